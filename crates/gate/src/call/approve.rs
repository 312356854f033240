//! A person's answer, where something asks for one. It covers exactly what was shown: tool, canonical arguments, caller,
//! session. After the wait the call is checked again, as it stands then.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use toolgate_model::approval::{Approval, Mode};
use toolgate_model::canonical::to_canonical;
use toolgate_model::merkle::sha256;

use self::need::Need;
use super::fit::Fit;
use super::guard::{Guarded, Judged};
use super::{Call, Progress, Reached};
use crate::gate::Gate;
use crate::ports::approver::Ask;
use crate::ports::ledger::{Consent, Freshness, SessionTerms};
use crate::refusal::{Code, Refusal, Stage};

mod need;

/// A call that needs nobody's answer any more.
pub(super) struct Approved {
    pub(super) fits: Vec<Fit>,
    pub(super) modified: Option<Value>,
    /// What it rests on, besides its grants.
    pub(super) consent: Consent,
    /// What the guardians said.
    pub(super) judged: Judged,
}

impl Approved {
    fn of(guarded: Guarded, consent: Consent) -> Self {
        let (fits, modified, mut judged) = guarded.into_parts();
        if let (Some(decision), Some(approval)) = (&mut judged.decision, consent.approval) {
            decision.approval = Some(approval);
        }
        Self { fits, modified, consent, judged }
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
        let Some(ask) = Need::ask(self, call, &guarded).await? else {
            return Ok(Approved::of(guarded, Consent::default()));
        };
        let (shown, rule) = (ask.approval.digest.clone(), ask.approval.rule.clone());
        let told = need::Told::of(call, &guarded);
        let consent = self.ask_somebody(call, ask, told, reached.clone()).await?;
        if consent.approval.is_none() {
            call.tell(|| Progress::Covered(consent.standing.clone()));
            return Ok(Approved::of(guarded, consent));
        }
        // Time has passed: what holds now is what counts, and the answer is for what was shown.
        let constrained = self.check(call, Freshness::Newest, reached).await?;
        let guarded = self
            .guard(call, constrained, Freshness::Newest, reached)
            .await
            .map_err(|refusal| refusal.at(Stage::Guard))?;
        let asked_now = need::asked_rule(guarded.asks())?;
        let parameters = guarded.modified().unwrap_or(&call.parameters).clone();
        let is_same = |fit: &Fit| {
            digest(call, fit, &parameters) == shown && need::rule(fit).stricter(&asked_now) == Some(rule.clone())
        };
        let same = guarded.into_those(is_same).ok_or_else(|| {
            let reason = "the call is no longer what was approved: its tool, its rule, or what guardians make of it, has \
                          changed; call again";
            Refusal::new(Code::ApprovalRequired, reason)
        })?;
        Ok(Approved::of(same, consent))
    }

    /// The mode of a session, within what the operator allows.
    pub(crate) fn effective_mode(&self, terms: &SessionTerms) -> Mode {
        let settings = &self.settings.approvals;
        terms.mode.unwrap_or(settings.mode).min(settings.highest_mode)
    }

    /// Waits in a task of its own: whoever called may leave, and then somebody must still write down that they did.
    async fn ask_somebody(
        self: &Arc<Self>,
        call: &Arc<Call>,
        ask: Ask,
        told: need::Told,
        reached: Reached,
    ) -> Result<Consent, Refusal> {
        let (mut answer, waiting) = oneshot::channel();
        let (gate, call) = (Arc::clone(self), Arc::clone(call));
        tokio::spawn(async move {
            let (left, gone) = oneshot::channel::<()>();
            let asked = |approval: &Approval| call.tell(|| Progress::Asked(Box::new(told.instead_of(approval))));
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
