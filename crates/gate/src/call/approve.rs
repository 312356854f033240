//! Approval by a person, where something requires one. It covers exactly what was shown: tool, credential, request,
//! canonical arguments, caller, session. After the wait the call is decided again on the current state.

use std::sync::Arc;

use serde_json::Value;
use toolgate_model::approval::{Approval, ApprovalRule, BoundAction};

use self::need::Need;
use super::Pipeline;
use super::binding::{bound_action, digest};
use super::eligible::Alternative;
use super::guard::{Guarded, Judged};
use super::{Call, Progress, RetryState, StageTimes, Wait};
use crate::ports::approver::{ApprovalOutcome, Ask, consent_of};
use crate::ports::ledger::{AskedApproval, Consent, ParkCall};
use crate::refusal::{Code, Refusal};

mod need;
#[cfg(test)]
mod tests;

/// A call that needs no further approval.
pub(super) struct Approved {
    pub(super) alternative: Alternative,
    pub(super) modified: Option<Value>,
    /// What the admission is based on, besides its grants.
    pub(super) consent: Consent,
    /// The action and the call that the consent is for.
    pub(super) covered: Option<(Option<BoundAction>, String)>,
    pub(super) judged: Judged,
}

/// The outcome of the approval stage.
pub(super) enum Step {
    Approved(Box<Approved>),
    /// An approver has approved. Time has passed: the whole call is decided again, and the decision is used if the call
    /// still matches what was shown.
    Again,
    /// It waits in the ledger.
    Parked,
    /// It would wait on its connection, and is to be detached.
    Detach,
}

/// An approval, and what it was given for.
pub(super) struct GivenApproval {
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

impl Pipeline {
    /// Waits for an approver if something requires one.
    pub(super) async fn approve(
        self: &Arc<Self>,
        call: &Arc<Call>,
        guarded: Guarded,
        is_first: bool,
        retry_state: &mut RetryState,
        times: &mut StageTimes,
    ) -> Result<Step, Refusal> {
        let ask = Need::ask(self, call, &guarded).await?;
        if retry_state.answered.is_empty() && (ask.is_some() || call.detached) {
            // Approvals requested in an earlier run of the same call.
            for AskedApproval { approval, first } in &call.answered {
                let given = self.approvals.approval(call.caller.tenant(), *approval).await?;
                let given = given.ok_or_else(no_longer_the_same)?;
                let consent = consent_of(&given)?;
                retry_state.answered.push(GivenApproval {
                    consent,
                    digest: given.digest,
                    rule: given.rule,
                    is_first: *first,
                });
            }
        }
        if !retry_state.answered.is_empty() {
            let action = bound_action(guarded.eligible());
            let parameters = guarded.modified().unwrap_or(&call.parameters);
            let now = digest(call, guarded.eligible(), action.as_ref(), parameters);
            let same_rule =
                |answered: &GivenApproval| ask.as_ref().is_none_or(|ask| ask.approval.rule == answered.rule);
            if let Some(answered) = retry_state.answered.iter().find(|one| one.digest == now && same_rule(one)) {
                let consent = answered.consent.clone();
                return Ok(Step::Approved(Box::new(Approved::of(guarded, consent, Some((action, now))))));
            }
            // Each alternative is another action with its own approval, but the preferred one must not have changed.
            if is_first && retry_state.answered.iter().any(|answered| answered.is_first) {
                return Err(no_longer_the_same());
            }
        }
        let Some(mut ask) = ask else {
            return Ok(Step::Approved(Box::new(Approved::of(guarded, Consent::default(), None))));
        };
        // No other call waits for a call that waits for a person.
        retry_state.turn = None;
        let (action, digest, rule) =
            (ask.approval.action.clone(), ask.approval.digest.clone(), ask.approval.rule.clone());
        let view = need::CallerView::of(call, &guarded);
        if call.detached {
            ask.parks = Some(ParkCall { process: self.process, asked: call.answered.clone(), first: is_first });
        }
        let asking = self.ask_somebody(call, ask, view);
        let consent = match times.wait(Wait::Approval, &*self.clock, asking).await? {
            ApprovalOutcome::Consent(consent) => consent,
            ApprovalOutcome::Open(_) if call.detached => return Ok(Step::Parked),
            ApprovalOutcome::Open(id) => {
                let reason = format!("a person must approve this; ask again once approval {id} is given");
                return Err(Refusal::new(Code::ApprovalRequired, reason).with("approval_id", id));
            }
            ApprovalOutcome::Detach => return Ok(Step::Detach),
        };
        if consent.approval.is_none() {
            call.notify(|| Progress::Covered(consent.standing.clone()));
            return Ok(Step::Approved(Box::new(Approved::of(guarded, consent, Some((action, digest))))));
        }
        retry_state.answered.push(GivenApproval { consent, digest, rule, is_first });
        Ok(Step::Again)
    }

    /// Refuses a call that could not be made as it is: it must not need an approval, and its credential must be
    /// unsealable.
    pub(super) async fn require_passable(&self, call: &Call, guarded: &Guarded) -> Result<(), Refusal> {
        if Need::ask(self, call, guarded).await?.is_some() {
            let reason = "this call needs an approval; submit the call itself to request one";
            return Err(Refusal::new(Code::ApprovalRequired, reason));
        }
        self.open(guarded.eligible()).await.transpose().map(drop)
    }

    /// Waits for the decision of an approver, as long as the caller waits for the response.
    async fn ask_somebody(&self, call: &Call, ask: Ask, view: need::CallerView) -> Result<ApprovalOutcome, Refusal> {
        let asked = |approval: &Approval| call.notify(|| Progress::Asked(Box::new(view.instead_of(approval))));
        self.approver.approve(ask, &asked, Box::pin(call.presence.clone().gone())).await
    }
}

fn no_longer_the_same() -> Refusal {
    let reason = "the call no longer matches what was approved: its tool, request, credential, rule or guardian \
        decision has changed; call again";
    Refusal::new(Code::ApprovalRequired, reason)
}
