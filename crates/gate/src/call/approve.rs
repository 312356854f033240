//! A person's decision, where something asks for one. It covers exactly what was shown: tool, credential, request,
//! canonical arguments, caller, session. After the wait the call is decided on again, as it stands then.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;
use toolgate_model::approval::{Approval, ApprovalRule, BoundAction, Mode};

use self::need::Need;
use super::action::{bound_action, digest};
use super::fit::Alternative;
use super::guard::{Guarded, Judged};
use super::{Call, Kept, Progress, Reached};
use crate::gate::Gate;
use crate::ports::approver::{Ask, consent_of};
use crate::ports::ledger::{Consent, SessionTerms};
use crate::refusal::{Code, Refusal, Stage};

mod need;

/// A call that needs nobody's decision any more.
pub(super) struct Approved {
    pub(super) alternative: Alternative,
    pub(super) modified: Option<Value>,
    /// What it rests on, besides its grants.
    pub(super) consent: Consent,
    /// The action and the call that the consent is for.
    pub(super) covered: Option<(Option<BoundAction>, String)>,
    /// What the guardians said.
    pub(super) judged: Judged,
}

/// A person's yes, and what it was given for.
pub(super) struct Answered {
    consent: Consent,
    digest: String,
    rule: ApprovalRule,
    /// Whether it was for the preferred action of the call.
    is_first: bool,
}

impl Approved {
    fn of(guarded: Guarded, consent: Consent, covered: Option<(Option<BoundAction>, String)>) -> Self {
        let (alternative, modified, mut judged) = guarded.into_parts();
        if let (Some(decision), Some(approval)) = (&mut judged.decision, consent.approval) {
            decision.approval = Some(approval);
        }
        Self { alternative, modified, consent, covered, judged }
    }
}

impl Gate {
    /// Waits for a person where something asks for one. `None` where a person has said yes: time has passed, so that the
    /// whole call is decided on again, and the decision is used if the call is still what was shown.
    pub(super) async fn approve(
        self: &Arc<Self>,
        call: &Arc<Call>,
        guarded: Guarded,
        is_first: bool,
        kept: &mut Kept,
        reached: &mut Reached,
    ) -> Result<Option<Approved>, Refusal> {
        let ask = Need::ask(self, call, &guarded).await?;
        if let (Some(earlier), Some(_), true) = (call.answered, &ask, kept.answered.is_empty()) {
            // The same call was refused with this approval before.
            let given = self.ledger.approval(call.caller.tenant(), earlier).await?.ok_or_else(no_longer_the_same)?;
            let consent = consent_of(&given)?;
            kept.answered.push(Answered { consent, digest: given.digest, rule: given.rule, is_first: true });
        }
        if !kept.answered.is_empty() {
            let action = bound_action(guarded.fit());
            let parameters = guarded.modified().unwrap_or(&call.parameters);
            let now = digest(call, guarded.fit(), action.as_ref(), parameters);
            let same_rule = |answered: &Answered| ask.as_ref().is_none_or(|ask| ask.approval.rule == answered.rule);
            if let Some(answered) = kept.answered.iter().find(|one| one.digest == now && same_rule(one)) {
                let consent = answered.consent.clone();
                return Ok(Some(Approved::of(guarded, consent, Some((action, now)))));
            }
            // Each alternative is another action, which is asked about by itself; but what is preferred must still be it.
            if is_first && kept.answered.iter().any(|answered| answered.is_first) {
                return Err(no_longer_the_same());
            }
        }
        let Some(ask) = ask else { return Ok(Some(Approved::of(guarded, Consent::default(), None))) };
        // Nobody waits for a call that waits for a person.
        kept.turn = None;
        let (action, digest, rule) =
            (ask.approval.action.clone(), ask.approval.digest.clone(), ask.approval.rule.clone());
        let told = need::Told::of(call, &guarded);
        let consent = self.ask_somebody(call, ask, told, reached.clone()).await?;
        if consent.approval.is_none() {
            call.tell(|| Progress::Covered(consent.standing.clone()));
            return Ok(Some(Approved::of(guarded, consent, Some((action, digest)))));
        }
        kept.answered.push(Answered { consent, digest, rule, is_first });
        Ok(None)
    }

    /// Refuses a call that could not be made as it is: nobody may have to be asked, and its credential must open.
    pub(super) async fn require_passable(&self, call: &Call, guarded: &Guarded) -> Result<(), Refusal> {
        if Need::ask(self, call, guarded).await?.is_some() {
            let reason = "this call needs an approval, which is asked for where the call itself is asked about";
            return Err(Refusal::new(Code::ApprovalRequired, reason));
        }
        self.open(guarded.fit()).await.transpose().map(drop)
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

fn no_longer_the_same() -> Refusal {
    let reason = "the call is no longer what was approved: its tool, its request, its credential, its rule, or what \
                  guardians make of it, has changed; call again";
    Refusal::new(Code::ApprovalRequired, reason)
}
