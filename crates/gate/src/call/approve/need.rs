//! What an approver is shown, and why the call needs an approval.

use std::time::Duration;

use serde_json::{Map, Value};
use toolgate_model::approval::{
    Approval, ApprovalRule, ApprovalStatus, AskReason, AskSource, Attendance, Category, Workspace,
};
use toolgate_model::descriptor::ApprovalNeed;
use toolgate_model::guard::Ask;
use toolgate_model::id::ApprovalId;
use toolgate_model::principal::PrincipalKind;
use toolgate_model::work::Coordinator;

use crate::action::Action;
use crate::call::Pipeline;
use crate::call::binding::{bound_action, digest};
use crate::call::eligible::{Candidate, EligibleGrant};
use crate::call::guard::Guarded;
use crate::call::{Call, Detaching, ToolStanding, admit};
use crate::ports::approver::{Ask as Question, Covered};
use crate::ports::ledger::SessionTerms;
use crate::refusal::{Code, Refusal};

/// The maximum length of the line that describes a call.
const DESCRIPTION: usize = 400;

/// A call that may need an approval, with everything that decides whether it does.
pub(super) struct Need<'a> {
    pipeline: &'a Pipeline,
    call: &'a Call,
    guarded: &'a Guarded,
    eligible: &'a EligibleGrant,
    /// The settings of its session.
    terms: SessionTerms,
    /// Whether an approval mode applies to it.
    moded: bool,
    /// The coordinator whose guardrails require an approval.
    guardrail: Option<&'a Coordinator>,
}

impl<'a> Need<'a> {
    /// The approval to request; `None` if nothing requires one.
    pub(super) async fn ask(
        pipeline: &'a Pipeline,
        call: &'a Call,
        guarded: &'a Guarded,
    ) -> Result<Option<Question>, Refusal> {
        let eligible = guarded.eligible();
        let tool = &eligible.candidate.tool;
        require_true_workspace(pipeline, call, &eligible.candidate)?;
        let always = tool.definition.approval == Some(ApprovalNeed::Always);
        // Calls of sessions have a mode; calls of tools that coding agents use always have one. Hook requests are
        // decided by policies, unless they are about a workspace tool.
        let moded = match &call.asked {
            Some(_) => tool.action == Action::Workspace,
            None => call.approval_session.is_some() || eligible.action().is_moded(),
        };
        let guardrail = guarded.eligible_grants().find_map(EligibleGrant::asking_coordinator);
        if !always && !moded && guardrail.is_none() && !asks_as_foreign(call) && guarded.asks().is_empty() {
            return Ok(None);
        }
        let terms = match &call.approval_session {
            Some(session) => {
                pipeline.approval_sessions.session_terms(call.caller.tenant(), &session.owner, &session.name).await?
            }
            None => SessionTerms::default(),
        };
        let need = Self { pipeline, call, guarded, eligible, terms, moded, guardrail };
        let reasons = need.reasons();
        if reasons.is_empty() {
            return Ok(None);
        }
        let rule = rule(eligible).stricter(&asked_rule(guarded.asks())?).ok_or_else(nobody_of_both)?;
        let attendance = rule.attendance.or(need.terms.attendance).unwrap_or(pipeline.settings.approvals.attendance);
        let attended = attendance == Attendance::Required;
        let approval = need.approval(reasons, rule).await?;
        Ok(Some(Question {
            audit: pipeline.audit(&call.caller),
            approval,
            attended,
            waits: call.waits,
            grants: guarded
                .eligible_grants()
                .filter_map(|eligible| Some(eligible.candidate.held_grant()?.rates()))
                .collect(),
            most_of_agent: pipeline.settings.approvals.most_of_agent,
            parks: None,
            detach: call.waits
                && call.may_detach
                && (call.detaching != Detaching::WhereConfigured || pipeline.detaches(eligible)),
        }))
    }

    /// Why an approval is required. Reasons add up.
    fn reasons(&self) -> Vec<AskReason> {
        let tool = &self.eligible.candidate.tool;
        let says = |source, text: String| AskReason { source, text };
        let mut reasons: Vec<_> =
            self.guarded.asks().iter().map(|ask| says(AskSource::Guardian, reason_text(ask))).collect();
        if let Some(coordinator) = self.guardrail {
            let text = format!("a guardrail of coordinator {} requires approval of each call", coordinator.id);
            reasons.push(says(AskSource::Guardrail, text));
        }
        if tool.action == Action::Question {
            reasons.push(says(AskSource::Question, "the tool asks a person".to_owned()));
            return reasons;
        }
        if tool.definition.approval == Some(ApprovalNeed::Always) {
            let text = "the tool's definition says that every call needs approval";
            reasons.push(says(AskSource::Tool, text.to_owned()));
        }
        if asks_as_foreign(self.call) {
            let text = "the gate does not know this tool, and such calls need approval";
            reasons.push(says(AskSource::Tool, text.to_owned()));
        }
        if !self.moded {
            return reasons;
        }
        let arguments = self.call.decided_arguments(self.parameters());
        let covered = Covered {
            tool: tool.qualified_name(),
            external: self.eligible.candidate.is_client_executed(),
            action: None,
            arguments: &arguments,
            session: self.call.approval_session.as_ref(),
        };
        if let Some(protected) = self.pipeline.approver.protects(&covered) {
            reasons.push(says(AskSource::Protected, protected));
        }
        let (mode, category) = (self.pipeline.settings.approvals.effective_mode(&self.terms), tool.category);
        if !mode.passes(category) {
            let text = format!("mode {} asks before calls of category {}", mode.as_str(), category.as_str());
            reasons.push(says(AskSource::Mode, text));
        }
        reasons
    }

    /// Everything that an approver is shown.
    async fn approval(&self, reasons: Vec<AskReason>, rule: ApprovalRule) -> Result<Approval, Refusal> {
        let Self { pipeline, call, guarded, eligible, .. } = *self;
        let now = pipeline.clock.now();
        // The approver must see what is sent, and nobody may see a secret.
        let opened = pipeline.open(eligible).await;
        if let Some(Err(refusal)) = &opened {
            return Err(refusal.clone());
        }
        admit::require_shown(&call.decided_arguments(self.parameters()), &opened)?;
        let shown = |arguments: &Value| admit::shown(&call.decided_arguments(arguments), &opened).into_owned();
        let tool = &eligible.candidate.tool;
        let arguments = shown(self.parameters());
        let action = bound_action(eligible);
        let coverable = reasons.iter().all(|reason| matches!(reason.source, AskSource::Mode | AskSource::Tool))
            && rule.standing
            && rule.approvers == 1;
        Ok(Approval {
            id: pipeline.ids.make(now, ApprovalId::new)?,
            tenant: call.caller.tenant().clone(),
            status: ApprovalStatus::Requested,
            invocation: call.id,
            call: call.label.clone(),
            agent: call.agent.clone(),
            actor: call.caller.id().clone(),
            actor_is_person: call.caller.principal().kind == PrincipalKind::User,
            category: tool.category,
            description: description(&eligible.candidate, &arguments),
            tool: tool.qualified_name().to_owned(),
            external: eligible.candidate.is_client_executed(),
            detached: call.detached,
            arguments: Some(arguments),
            original_arguments: guarded.modified().map(|_| shown(&call.parameters)),
            digest: digest(call, eligible, action.as_ref(), self.parameters()),
            action,
            reasons,
            expires_at: now.plus(self.wait(&rule)),
            rule,
            coverable,
            session: call.approval_session.clone(),
            votes: Vec::new(),
            answer: None,
            reason: None,
            notice: None,
            standing: None,
            created_at: now,
            resolved_at: None,
        })
    }

    /// How long the call waits, by its tool, itself, its session or the operator.
    fn wait(&self, rule: &ApprovalRule) -> Duration {
        let ruled = rule.ttl_seconds.map(Duration::from_secs);
        match (ruled, self.call.approval_wait) {
            // A caller may shorten the wait of the rule, and set its own only if the rule has none.
            (Some(ruled), Some(own)) => ruled.min(own),
            (one, other) => one.or(other).or(self.terms.wait).unwrap_or(self.pipeline.settings.approvals.wait),
        }
    }

    fn parameters(&self) -> &Value {
        self.guarded.modified().unwrap_or(&self.call.parameters)
    }
}

impl Pipeline {
    /// Whether such calls do not wait on their connection.
    fn detaches(&self, eligible: &EligibleGrant) -> bool {
        let agent = eligible.candidate.agent.as_ref();
        self.settings.detached.when_asked
            || eligible.candidate.tool.definition.detach
            || agent.is_some_and(|agent| agent.detach_calls)
    }
}

/// Whether the calling runtime is configured so that its unknown tools need approval.
fn asks_as_foreign(call: &Call) -> bool {
    call.asked.as_ref().is_some_and(|asked| asked.standing == ToolStanding::ForeignAsks)
}

/// A waiting call as its caller sees it: the arguments unredacted. The redacted arguments that the approver
/// sees would reveal whether a guess of the credential's secret was right.
pub(super) struct CallerView {
    arguments: Option<Value>,
    original: Option<Value>,
    description: String,
}

impl CallerView {
    pub(super) fn of(call: &Call, guarded: &Guarded) -> Self {
        let arguments = guarded.modified().unwrap_or(&call.parameters);
        let candidate = &guarded.eligible().candidate;
        let line = || description(candidate, arguments);
        let observed = call.observer.is_some();
        Self {
            description: if observed { line() } else { String::new() },
            original: guarded.modified().filter(|_| observed).map(|_| call.parameters.clone()),
            arguments: observed.then(|| arguments.clone()),
        }
    }

    pub(super) fn instead_of(&self, approval: &Approval) -> Approval {
        Approval {
            arguments: self.arguments.clone(),
            original_arguments: self.original.clone(),
            description: self.description.clone(),
            ..approval.clone()
        }
    }
}

/// The approvers that a call of this tool needs.
fn rule(eligible: &EligibleGrant) -> ApprovalRule {
    eligible.candidate.tool.definition.approval_rule.clone().unwrap_or_default()
}

/// The approvers that satisfy all guardians.
fn asked_rule(asks: &[Ask]) -> Result<ApprovalRule, Refusal> {
    asks.iter().try_fold(ApprovalRule::default(), |rule, ask| {
        let asked = ApprovalRule {
            approvers: ask.approvers.max(1),
            groups: ask.groups.iter().cloned().collect(),
            ttl_seconds: ask.ttl_seconds,
            ..ApprovalRule::default()
        };
        rule.stricter(&asked).ok_or_else(nobody_of_both)
    })
}

fn nobody_of_both() -> Refusal {
    let reason = "two rules require approval by different groups, and no approver is in both; change one of the rules";
    Refusal::new(Code::ApprovalRequired, reason)
}

/// The reason of a guardian, with its rule.
fn reason_text(ask: &Ask) -> String {
    match &ask.policy {
        Some(policy) => format!("{} (policy {}, version {})", ask.reason, policy.id, policy.version),
        None => ask.reason.clone(),
    }
}

/// An approval for a directory must not cover a call that only claims to work there.
fn require_true_workspace(pipeline: &Pipeline, call: &Call, candidate: &Candidate) -> Result<(), Refusal> {
    let claimed = call.approval_session.as_ref().and_then(|session| session.workspace.as_ref());
    let root = pipeline.settings.machine.root.as_ref();
    match (candidate.action(), claimed) {
        (Action::Workspace, Some(claimed)) if Some(claimed) != root => {
            let root = root.map_or("", Workspace::as_str);
            let reason = format!("the workspace tools work in {root}; name that workspace or none");
            Err(Refusal::new(Code::InvalidField, reason).with("path", "approval_session.workspace"))
        }
        _ => Ok(()),
    }
}

/// One line that describes a call.
fn description(candidate: &Candidate, arguments: &Value) -> String {
    let tool = &candidate.tool;
    let nothing = Map::new();
    let arguments = arguments.as_object().unwrap_or(&nothing);
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let line = match (tool.category, text("command"), text("file_path"), text("question")) {
        (Category::Exec, Some(command), _, _) => format!("Execute: {command}"),
        (Category::Info | Category::Edit, _, Some(path), _) => format!("{}: {path}", tool.name),
        (_, _, _, Some(question)) if candidate.action() == Action::Question => question.to_owned(),
        _ => format!("Call: {}", tool.qualified_name()),
    };
    line.chars().take(DESCRIPTION).collect()
}
