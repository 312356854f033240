//! Approvals, as people see and decide them. Approvers see all approvals of the tenant; other callers see those of
//! their own calls and decide none.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_model::approval::{
    Approval, ApprovalSession, ApprovalStatus, Attendance, Channel, Decision, MAX_WAIT, Mode, SessionName,
    StandingApproval, StandingRequest, Vote,
};
use toolgate_model::canonical::to_canonical;
use toolgate_model::event::EventKind;
use toolgate_model::id::{ApprovalId, StandingApprovalId};
use toolgate_model::invocation::IdempotencyKey;
use toolgate_model::merkle::sha256;
use toolgate_model::permission::Permission;
use toolgate_model::principal::PrincipalId;

use super::AuditReader;
use crate::call::detached::Runs;
use crate::gate::{Ports, Shared};
use crate::identify::Caller;
use crate::ids::Ids;
use crate::ports::approver::{Approver, Attached, Covered, Presentation};
use crate::ports::clock::Clock;
use crate::ports::ledger::{
    ApprovalFilter, ApprovalLinks, ApprovalSessions, Approvals, AuditLog, DecideApproval, EventFilter, Freshness,
    LoggedEvent, Page, PageRequest, RevokeStanding, SessionTerms, SetSessionTerms, StandingApprovals, StandingFilter,
};
use crate::refusal::{Code, Refusal};
use crate::settings::Settings;

/// In bytes.
const MAX_REASON: usize = 2_000;
/// In bytes.
const MAX_ANSWER: usize = 16 * 1024;

/// A decision by an approver.
#[derive(Debug, Clone)]
pub struct DecisionRequest {
    pub decision: Decision,
    /// The standing approval that the approver requests besides the decision.
    pub standing: Option<StandingRequest>,
    pub reason: Option<String>,
    /// The answer, if the tool is a question.
    pub answer: Option<String>,
    /// A repeated request with the same key gets the same result.
    pub idempotency_key: Option<IdempotencyKey>,
    pub channel: Channel,
}

/// The settings of a session, with the values that are in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionView {
    pub name: SessionName,
    /// The mode that is in effect.
    pub mode: Mode,
    /// How long its calls wait for a decision.
    pub wait: Duration,
    /// Whether calls wait when no approver is connected.
    pub attendance: Attendance,
}

/// Approvals and standing approvals, for approvers and for callers.
pub struct ApprovalAdministration {
    approvals: Arc<dyn Approvals>,
    pub(super) links: Arc<dyn ApprovalLinks>,
    standing_approvals: Arc<dyn StandingApprovals>,
    approval_sessions: Arc<dyn ApprovalSessions>,
    log: Arc<dyn AuditLog>,
    approver: Arc<dyn Approver>,
    pub(super) clock: Arc<dyn Clock>,
    audit: Arc<AuditReader>,
    ids: Arc<Ids>,
    settings: Arc<Settings>,
    detached_runs: Runs,
}

impl ApprovalAdministration {
    pub(crate) fn new(ports: &Ports, shared: &Shared) -> Self {
        Self {
            approvals: ports.ledger.clone(),
            links: ports.ledger.clone(),
            standing_approvals: ports.ledger.clone(),
            approval_sessions: ports.ledger.clone(),
            log: ports.ledger.clone(),
            approver: Arc::clone(&ports.approver),
            clock: Arc::clone(&ports.clock),
            audit: Arc::clone(&shared.audit),
            ids: Arc::clone(&shared.ids),
            settings: Arc::clone(&shared.settings),
            detached_runs: shared.detached_runs.clone(),
        }
    }
}

impl ApprovalAdministration {
    /// Lists approvals, newest first.
    pub async fn approvals(
        &self,
        caller: &Caller,
        mut filter: ApprovalFilter,
        page: PageRequest,
    ) -> Result<Page<Approval>, Refusal> {
        filter.agent = visible_agent(caller, filter.agent)?;
        let Page { items, next } = self.approvals.approvals(caller.tenant(), filter, page).await?;
        Ok(Page { items: items.into_iter().map(|approval| as_seen_by(caller, approval)).collect(), next })
    }

    pub async fn approval_of(&self, caller: &Caller, id: ApprovalId) -> Result<Approval, Refusal> {
        let found = self.approvals.approval(caller.tenant(), id).await?;
        let sees = |approval: &Approval| caller.may(Permission::DecideApprovals) || is_own(caller, approval);
        found.filter(sees).map(|approval| as_seen_by(caller, approval)).ok_or_else(|| no_approval(id))
    }

    /// What a person should know before deciding.
    pub async fn present(&self, approval: &Approval) -> Result<Presentation, Refusal> {
        let now = self.clock.now();
        let standing = match approval.status.is_open() {
            true => {
                self.standing_approvals.standing_for(&approval.tenant, &approval.agent, &approval.tool, now).await?
            }
            false => Vec::new(),
        };
        Ok(self.approver.present(approval, &standing))
    }

    /// Records a decision and returns the approval in its new state.
    pub async fn decide(&self, caller: &Caller, id: ApprovalId, request: DecisionRequest) -> Result<Approval, Refusal> {
        check_texts(&request)?;
        caller.require(Permission::DecideApprovals)?;
        let approval = self.approvals.approval(caller.tenant(), id).await?.ok_or_else(|| no_approval(id))?;
        let (standing, notice) = match &request.standing {
            Some(wanted) if request.decision == Decision::Approve => self.standing_of(caller, &approval, wanted)?,
            _ => (None, None),
        };
        let audit = caller.mandate(self.clock.now());
        let vote = Vote {
            by: caller.id().clone(),
            decision: request.decision,
            channel: request.channel,
            reason: request.reason.clone().filter(|reason| !reason.is_empty()),
            answer: request.answer.clone(),
            wish: request.standing.clone(),
            at: audit.time(),
        };
        let command = DecideApproval {
            audit,
            id,
            vote,
            standing,
            notice,
            idempotency_key: request.idempotency_key.clone(),
            request_digest: decision_digest(&request),
        };
        let decided =
            self.approvals.decide_approval(command).await.inspect(|decided| self.approver.resolved(decided))?;
        if decided.detached && !decided.status.is_open() {
            self.detached_runs.wake();
        }
        require_waiting(decided)
    }

    /// The standing approval that a request leads to, or the reason why there is none. The decision on the single call
    /// stays valid either way.
    fn standing_of(
        &self,
        caller: &Caller,
        approval: &Approval,
        request: &StandingRequest,
    ) -> Result<(Option<StandingApproval>, Option<String>), Refusal> {
        let (coverage, reach) = match self.approver.standing(approval, request) {
            Ok(covered) => covered,
            Err(why) => return Ok((None, Some(format!("only this call is approved: {why}")))),
        };
        let now = self.clock.now();
        let lifetime = request.expires_in_seconds.map(Duration::from_secs);
        if lifetime.is_some_and(|lifetime| lifetime.is_zero()) || request.max_uses == Some(0) {
            let reason = "`expires_in_seconds` and `max_uses` must be at least 1";
            return Err(Refusal::new(Code::InvalidField, reason).with("path", "scope"));
        }
        let standing = StandingApproval {
            id: self.ids.make(now, StandingApprovalId::new)?,
            tenant: approval.tenant.clone(),
            agent: approval.agent.clone(),
            tool: approval.tool.clone(),
            external: approval.external,
            action: approval.action.clone(),
            coverage,
            reach,
            source: approval.id,
            created_by: caller.id().clone(),
            created_at: now,
            expires_at: lifetime.map(|lifetime| now.plus(lifetime)),
            max_uses: request.max_uses,
            used: 0,
            last_used_at: None,
            revoked_at: None,
            revoked_by: None,
        };
        Ok((Some(standing), None))
    }

    /// The events of approvals that the caller may see, in order, after a position in the log. [`Freshness::Recent`]
    /// events end where the log was last integrated.
    pub async fn approval_events(
        &self,
        caller: &Caller,
        after: Option<u64>,
        limit: u32,
        freshness: Freshness,
    ) -> Result<Vec<LoggedEvent>, Refusal> {
        let agent = visible_agent(caller, None)?;
        let filter = EventFilter { agent, ..EventFilter::of_kinds(EventKind::about_approvals()) };
        let page = PageRequest { after: after.map(|sequence| sequence.to_string()), limit };
        if freshness == Freshness::Newest {
            self.audit.integrate_if_possible().await;
        }
        Ok(self.log.events(caller.tenant(), filter, page).await?.items)
    }

    /// The position of the last event of the log; `None` while it is empty.
    pub async fn end_of_log(&self, caller: &Caller) -> Result<Option<u64>, Refusal> {
        self.audit.integrate_if_possible().await;
        let head = self.log.log_head(caller.tenant()).await?;
        Ok(head.and_then(|head| head.head.size.checked_sub(1)))
    }

    /// Marks the caller as a connected approver until the returned value is dropped.
    pub fn attach_approver(&self, caller: &Caller) -> Option<Attached> {
        caller.may(Permission::DecideApprovals).then(|| self.approver.attach(caller.tenant()))
    }

    /// Lists standing approvals, newest first.
    pub async fn standing_approvals(
        &self,
        caller: &Caller,
        agent: Option<PrincipalId>,
        tool: Option<String>,
        only_active: bool,
        page: PageRequest,
    ) -> Result<Page<StandingApproval>, Refusal> {
        let agent = visible_agent(caller, agent)?;
        let filter = StandingFilter { agent, tool, active_at: only_active.then(|| self.clock.now()) };
        self.standing_approvals.standings(caller.tenant(), filter, page).await
    }

    pub async fn standing_approval(
        &self,
        caller: &Caller,
        id: StandingApprovalId,
    ) -> Result<StandingApproval, Refusal> {
        let found = self.standing_approvals.standing(caller.tenant(), id).await?;
        let sees =
            |standing: &StandingApproval| caller.may(Permission::DecideApprovals) || standing.agent == *caller.id();
        found.filter(sees).ok_or_else(|| no_standing(id))
    }

    pub async fn revoke_standing_approval(
        &self,
        caller: &Caller,
        id: StandingApprovalId,
    ) -> Result<StandingApproval, Refusal> {
        self.standing_approval(caller, id).await?;
        caller.require(Permission::DecideApprovals)?;
        self.standing_approvals.revoke_standing(RevokeStanding { audit: caller.mandate(self.clock.now()), id }).await
    }

    /// The standing approvals that would cover a call, or why none does.
    pub async fn explain_standing(
        &self,
        caller: &Caller,
        agent: &PrincipalId,
        tool: &str,
        arguments: &Value,
        session: Option<&ApprovalSession>,
    ) -> Result<Result<Vec<StandingApproval>, String>, Refusal> {
        visible_agent(caller, Some(agent.clone()))?;
        let call = |external, action| Covered { tool, external, action, arguments, session };
        let none = call(false, None);
        if let Some(protected) = self.approver.protects(&none) {
            return Ok(Err(protected));
        }
        let standing = self.standing_approvals.standing_for(caller.tenant(), agent, tool, self.clock.now()).await?;
        // The caller names a tool, but neither who executes it nor its action: any approved combination counts.
        let actions = standing.iter().map(|one| call(one.external, one.action.as_ref()));
        let covering = std::iter::once(none)
            .chain(actions)
            .map(|call| self.approver.covering(&standing, &call))
            .reduce(|found, next| found.or_else(|why| next.map_err(|_| why)))
            .unwrap_or_else(|| Ok(Vec::new()));
        Ok(covering.map(|ids| standing.iter().filter(|standing| ids.contains(&standing.id)).cloned().collect()))
    }

    /// The settings of a session of the caller.
    pub async fn approval_session(&self, caller: &Caller, name: &SessionName) -> Result<SessionView, Refusal> {
        let terms = self.approval_sessions.session_terms(caller.tenant(), caller.id(), name).await?;
        Ok(self.view_of(name, &terms))
    }

    /// Changes the settings of a session of the caller; absent values stay. Calls that already wait are not affected.
    pub async fn set_approval_session(
        &self,
        caller: &Caller,
        name: SessionName,
        changes: SessionTerms,
    ) -> Result<SessionView, Refusal> {
        caller.require(Permission::InvokeTools)?;
        let before = self.approval_sessions.session_terms(caller.tenant(), caller.id(), &name).await?;
        if changes.wait.is_some_and(|wait| wait.is_zero() || wait > MAX_WAIT) {
            let reason = format!("`ttl_seconds` must be 1 to {}", MAX_WAIT.as_secs());
            return Err(Refusal::new(Code::InvalidField, reason).with("path", "ttl_seconds"));
        }
        let terms = SessionTerms {
            mode: changes.mode.or(before.mode),
            wait: changes.wait.or(before.wait),
            attendance: changes.attendance.or(before.attendance),
        };
        if let Some(mode) = changes.mode {
            self.require_mode(caller, self.settings.approvals.effective_mode(&before), mode)?;
        }
        let (from, to) =
            (self.settings.approvals.effective_mode(&before), self.settings.approvals.effective_mode(&terms));
        let command = SetSessionTerms {
            audit: caller.mandate(self.clock.now()),
            owner: caller.id().clone(),
            name: name.clone(),
            terms: terms.clone(),
            mode_change: (from != to).then_some((from, to)),
        };
        self.approval_sessions.set_session_terms(command).await?;
        Ok(self.view_of(&name, &terms))
    }

    /// Raising a mode lets calls pass without an approval: it needs the permission to approve, and an operator who
    /// allows it.
    fn require_mode(&self, caller: &Caller, before: Mode, wanted: Mode) -> Result<(), Refusal> {
        let settings = &self.settings.approvals;
        if wanted > settings.highest_mode {
            let reason = format!(
                "mode {} is not allowed here: the highest is {} (`approvals.highest_mode`)",
                wanted.as_str(),
                settings.highest_mode.as_str()
            );
            return Err(Refusal::new(Code::PermissionDenied, reason).with("highest_mode", settings.highest_mode));
        }
        if wanted <= before {
            return Ok(());
        }
        if !settings.mode_changes {
            let reason = "requests cannot raise the mode on this gate; the operator must set `approvals.mode_changes`";
            return Err(Refusal::new(Code::PermissionDenied, reason));
        }
        caller.require(Permission::DecideApprovals)
    }

    fn view_of(&self, name: &SessionName, terms: &SessionTerms) -> SessionView {
        let settings = &self.settings.approvals;
        SessionView {
            name: name.clone(),
            mode: self.settings.approvals.effective_mode(terms),
            wait: terms.wait.unwrap_or(settings.wait),
            attendance: terms.attendance.unwrap_or(settings.attendance),
        }
    }
}

/// The agent whose approvals the caller may see; `None` for all of them.
pub(crate) fn visible_agent(caller: &Caller, wanted: Option<PrincipalId>) -> Result<Option<PrincipalId>, Refusal> {
    if caller.may(Permission::DecideApprovals) {
        return Ok(wanted);
    }
    match wanted {
        Some(agent) if agent != *caller.id() => Err(caller
            .require(Permission::DecideApprovals)
            .err()
            .unwrap_or_else(|| Refusal::new(Code::PermissionDenied, "you can list only your own approvals"))),
        _ => Ok(Some(caller.id().clone())),
    }
}

/// Refuses a decision about a call whose process has stopped: the decision has no effect.
fn require_waiting(decided: Approval) -> Result<Approval, Refusal> {
    if decided.status != ApprovalStatus::Orphaned {
        return Ok(decided);
    }
    let reason = decided.reason.clone().unwrap_or_else(|| "the gate process that held the call has stopped".to_owned());
    Err(Refusal::new(Code::ApprovalEnded, reason).with("approval_id", decided.id).with("status", decided.status))
}

fn is_own(caller: &Caller, approval: &Approval) -> bool {
    approval.agent == *caller.id() || approval.actor == *caller.id()
}

/// The approval as this caller may see it. The stored arguments have the credential's secret redacted, so a caller who
/// may not approve could learn from them whether a guess was right.
fn as_seen_by(caller: &Caller, approval: Approval) -> Approval {
    if caller.may(Permission::DecideApprovals) {
        return approval;
    }
    let description = format!("Call: {}", approval.tool);
    Approval { arguments: None, original_arguments: None, description, ..approval }
}

fn no_approval(id: ApprovalId) -> Refusal {
    Refusal::new(Code::ApprovalNotFound, format!("there is no approval {id}"))
}

fn no_standing(id: StandingApprovalId) -> Refusal {
    Refusal::new(Code::StandingApprovalNotFound, format!("there is no standing approval {id}"))
}

fn check_texts(request: &DecisionRequest) -> Result<(), Refusal> {
    let wrong = |field: &str, limit: usize| {
        let reason = format!("`{field}` must be printable text of at most {limit} bytes");
        Refusal::new(Code::InvalidField, reason).with("path", field)
    };
    let fits = |text: &Option<String>, limit: usize| {
        text.as_ref().is_none_or(|text| {
            text.len() <= limit && !text.chars().any(|letter| letter.is_control() && letter != '\n' && letter != '\t')
        })
    };
    if !fits(&request.reason, MAX_REASON) {
        return Err(wrong("reason", MAX_REASON));
    }
    if !fits(&request.answer, MAX_ANSWER) {
        return Err(wrong("answer", MAX_ANSWER));
    }
    Ok(())
}

/// INVARIANT: the members keep their names, because digests are stored with idempotency keys.
fn decision_digest(request: &DecisionRequest) -> String {
    let content = json!({
        "decision": request.decision, "wish": request.standing, "reason": request.reason, "answer": request.answer,
    });
    sha256(&to_canonical(&content)).to_hex()
}
