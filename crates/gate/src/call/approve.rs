//! A person's answer, where something asks for one. It covers exactly what was shown: tool, canonical arguments, caller,
//! session. After the wait the call is checked again, as it stands then.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use toolgate_model::approval::{
    Approval, ApprovalRule, ApprovalStatus, AskReason, AskSource, Attendance, Category, Mode, Workspace,
};
use toolgate_model::arguments::without;
use toolgate_model::canonical::to_canonical;
use toolgate_model::descriptor::ApprovalNeed;
use toolgate_model::id::ApprovalId;
use toolgate_model::merkle::sha256;
use toolgate_model::principal::PrincipalKind;

use super::fit::Fit;
use super::guard::Guarded;
use super::{Call, Progress, Reached, admit};
use crate::catalog::{Backing, Tool};
use crate::gate::Gate;
use crate::ports::approver::{Ask, Covered};
use crate::ports::entropy::random;
use crate::ports::ledger::{Consent, Freshness, SessionTerms};
use crate::refusal::{Code, Refusal, Stage};

/// The longest line that says what a call does.
const DESCRIPTION: usize = 400;

/// A call that needs nobody's answer any more.
pub(super) struct Approved {
    pub(super) fits: Vec<Fit>,
    pub(super) modified: Option<Value>,
    /// What it rests on, besides its grants.
    pub(super) consent: Consent,
}

impl Approved {
    fn of(guarded: Guarded, consent: Consent) -> Self {
        let (fits, modified) = guarded.into_parts();
        Self { fits, modified, consent }
    }
}

impl Gate {
    /// Waits for a person where something asks for one.
    pub(super) async fn approve(
        self: &Arc<Self>,
        call: &Arc<Call>,
        guarded: Guarded,
        reached: &mut Reached,
    ) -> Result<Approved, Refusal> {
        let Some(ask) = self.need(call, &guarded).await? else {
            return Ok(Approved::of(guarded, Consent::default()));
        };
        let shown = ask.approval.digest.clone();
        let consent = self.ask_somebody(call, ask, reached.clone()).await?;
        if consent.approval.is_none() {
            call.tell(|| Progress::Covered(consent.standing.clone()));
            return Ok(Approved::of(guarded, consent));
        }
        // Time has passed: what holds now is what counts, and the answer is for what was shown.
        let constrained = self.check(call, Freshness::Newest, reached).await?;
        let guarded = self.guard(call, constrained).await.map_err(|refusal| refusal.at(Stage::Guard))?;
        let parameters = guarded.modified().unwrap_or(&call.parameters).clone();
        let same = guarded.into_those(|fit| digest(call, fit, &parameters) == shown).ok_or_else(|| {
            let reason = "the call is no longer what was approved: its tool, or what guardians make of it, has changed; \
                          call again";
            Refusal::new(Code::ApprovalRequired, reason)
        })?;
        Ok(Approved::of(same, consent))
    }

    /// What is to be put before a person; `None` where nothing asks for one.
    async fn need(&self, call: &Call, guarded: &Guarded) -> Result<Option<Ask>, Refusal> {
        let Some(fit) = guarded.fits().first() else { return Ok(None) };
        let tool = &fit.candidate.tool;
        self.require_true_workspace(call, tool)?;
        let always = tool.definition.approval == Some(ApprovalNeed::Always);
        // Calls of sessions have a mode; those of tools that coding agents use have one in any case.
        let moded =
            call.approval_session.is_some() || matches!(tool.backing, Backing::Workspace(_) | Backing::External(_));
        if !always && !moded && guarded.asks().is_empty() {
            return Ok(None);
        }
        let parameters = guarded.modified().unwrap_or(&call.parameters);
        let terms = self.terms_of(call).await?;
        let reasons = self.reasons(call, guarded, fit, &terms, moded);
        if reasons.is_empty() {
            return Ok(None);
        }
        let rule = tool.definition.approval_rule.clone().unwrap_or_default();
        let attendance = rule.attendance.or(terms.attendance).unwrap_or(self.settings.approvals.attendance);
        let approval = self.approval(call, guarded, fit, parameters, reasons, rule, &terms).await?;
        let stamp = self.stamp(&call.caller);
        Ok(Some(Ask { stamp, approval, attended: attendance == Attendance::Required }))
    }

    /// What reaches a directory must not reach a call that only says that it works there.
    fn require_true_workspace(&self, call: &Call, tool: &Tool) -> Result<(), Refusal> {
        let claimed = call.approval_session.as_ref().and_then(|session| session.workspace.as_ref());
        let root = self.settings.workspace_root.as_ref();
        match (tool.backing, claimed) {
            (Backing::Workspace(_), Some(claimed)) if Some(claimed) != root => {
                let root = root.map_or("", Workspace::as_str);
                let reason = format!("the tools of this machine work in {root}; name that, or no workspace");
                Err(Refusal::new(Code::InvalidField, reason).with("path", "approval_session.workspace"))
            }
            _ => Ok(()),
        }
    }

    /// How long the call waits: as its tool says, or as it says itself, or its session, or the operator.
    fn wait_of(&self, call: &Call, rule: &ApprovalRule, terms: &SessionTerms) -> Duration {
        let ruled = rule.ttl_seconds.map(Duration::from_secs);
        match (ruled, call.approval_wait) {
            // A caller may be in more of a hurry than the rule, and in less of one only where there is none.
            (Some(ruled), Some(own)) => ruled.min(own),
            (one, other) => one.or(other).or(terms.wait).unwrap_or(self.settings.approvals.wait),
        }
    }

    async fn terms_of(&self, call: &Call) -> Result<SessionTerms, Refusal> {
        match &call.approval_session {
            Some(session) => self.ledger.session_terms(call.caller.tenant(), &session.owner, &session.name).await,
            None => Ok(SessionTerms::default()),
        }
    }

    /// Why a person must be asked. Reasons add up.
    fn reasons(&self, call: &Call, guarded: &Guarded, fit: &Fit, terms: &SessionTerms, moded: bool) -> Vec<AskReason> {
        let tool = &fit.candidate.tool;
        let says = |source, text: String| AskReason { source, text };
        let mut reasons: Vec<_> = guarded.asks().iter().map(|ask| says(AskSource::Guardian, ask.clone())).collect();
        if tool.backing == Backing::Question {
            reasons.push(says(AskSource::Question, "the tool asks a person".to_owned()));
            return reasons;
        }
        if tool.definition.approval == Some(ApprovalNeed::Always) {
            let text = "the tool's definition says that every call needs approval";
            reasons.push(says(AskSource::Tool, text.to_owned()));
        }
        if !moded {
            return reasons;
        }
        let name = fit.candidate.tool_name();
        let arguments = guarded.modified().unwrap_or(&call.parameters);
        let session = call.approval_session.as_ref();
        if let Some(protected) = self.approver.protects(&Covered { tool: &name, arguments, session }) {
            reasons.push(says(AskSource::Protected, protected));
        }
        let (mode, category) = (self.effective_mode(terms), tool.category());
        if !mode.passes(category) {
            let text = format!("mode {} asks before calls of category {}", mode.as_str(), category.as_str());
            reasons.push(says(AskSource::Mode, text));
        }
        reasons
    }

    /// The mode of a session, within what the operator allows.
    pub(crate) fn effective_mode(&self, terms: &SessionTerms) -> Mode {
        let settings = &self.settings.approvals;
        terms.mode.unwrap_or(settings.mode).min(settings.highest_mode)
    }

    #[expect(clippy::too_many_arguments, reason = "everything that a person is shown comes together here")]
    async fn approval(
        &self,
        call: &Call,
        guarded: &Guarded,
        fit: &Fit,
        parameters: &Value,
        reasons: Vec<AskReason>,
        rule: ApprovalRule,
        terms: &SessionTerms,
    ) -> Result<Approval, Refusal> {
        let now = self.clock.now();
        let wait = self.wait_of(call, &rule, terms);
        // The person must see what is sent, and nobody a secret.
        let opened = self.open(fit).await;
        if let Some(Err(refusal)) = &opened {
            return Err(refusal.clone());
        }
        let secrets = admit::secrets(&opened);
        let shown = |arguments: &Value| without(arguments, &secrets).into_owned();
        let tool = &fit.candidate.tool;
        let coverable = reasons.iter().all(|reason| matches!(reason.source, AskSource::Mode | AskSource::Tool))
            && rule.standing
            && rule.approvers == 1;
        Ok(Approval {
            id: ApprovalId::new(now, random()?),
            tenant: call.caller.tenant().clone(),
            status: ApprovalStatus::Requested,
            invocation: call.id,
            call: call.label.clone(),
            agent: call.agent.clone(),
            actor: call.caller.id().clone(),
            actor_is_person: call.caller.principal().kind == PrincipalKind::User,
            tool: fit.candidate.tool_name(),
            category: tool.category(),
            description: description(tool, &fit.candidate.tool_name(), &shown(parameters)),
            arguments: Some(shown(parameters)),
            original_arguments: guarded.modified().map(|_| shown(&call.parameters)),
            digest: digest(call, fit, parameters),
            reasons,
            rule,
            coverable,
            session: call.approval_session.clone(),
            votes: Vec::new(),
            answer: None,
            reason: None,
            notice: None,
            standing: None,
            created_at: now,
            expires_at: now.plus(wait),
            resolved_at: None,
        })
    }

    /// Waits in a task of its own: whoever called may leave, and then somebody must still write down that they did.
    async fn ask_somebody(self: &Arc<Self>, call: &Arc<Call>, ask: Ask, reached: Reached) -> Result<Consent, Refusal> {
        let (mut answer, waiting) = oneshot::channel();
        let (gate, call) = (Arc::clone(self), Arc::clone(call));
        tokio::spawn(async move {
            let (left, gone) = oneshot::channel::<()>();
            let asked = |approval: &Approval| call.tell(|| Progress::Asked(Box::new(approval.clone())));
            let gone = Box::pin(async move {
                // Nothing is ever sent: it ends when the other side is dropped.
                let _ = gone.await;
            });
            let mut asking = gate.approver.approve(ask, &asked, gone);
            let mut left = Some(left);
            let outcome = loop {
                tokio::select! {
                    biased;
                    outcome = &mut asking => break outcome,
                    () = answer.closed(), if left.is_some() => drop(left.take()),
                }
            };
            drop(asking);
            if let Err(unheard) = answer.send(outcome) {
                let nobody = || Refusal::new(Code::ApprovalCancelled, "whoever made the call is gone; nothing was run");
                let refusal = unheard.err().unwrap_or_else(nobody);
                gate.record_denial(&call, reached, refusal.at(Stage::Approve)).await;
            }
        });
        let broken = |_| Refusal::new(Code::Internal, "the wait for an answer broke off inside the gate; see its log");
        waiting.await.map_err(broken)?
    }
}

/// What an answer covers.
pub(super) fn digest(call: &Call, fit: &Fit, parameters: &Value) -> String {
    let tool = &fit.candidate.tool;
    let session = call.approval_session.as_ref();
    let covered = json!({
        "service": tool.service, "tool": tool.name, "version": tool.version,
        "arguments": parameters, "agent": call.agent, "actor": call.caller.id(),
        "session": session.map(|session| &session.name), "workspace": session.map(|session| &session.workspace),
    });
    sha256(&to_canonical(&covered)).to_hex()
}

/// What a call does, in a line.
fn description(tool: &Tool, name: &str, arguments: &Value) -> String {
    let nothing = Map::new();
    let arguments = arguments.as_object().unwrap_or(&nothing);
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let line = match (tool.category(), text("command"), text("file_path"), text("question")) {
        (Category::Exec, Some(command), _, _) => format!("Execute: {command}"),
        (Category::Info | Category::Edit, _, Some(path), _) => format!("{}: {path}", tool.name),
        (_, _, _, Some(question)) if tool.backing == Backing::Question => question.to_owned(),
        _ => format!("Call: {name}"),
    };
    line.chars().take(DESCRIPTION).collect()
}
