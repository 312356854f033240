//! One external guardian during a consultation: which content it has agreed to, the change that it asks for, and
//! what is written down of it.

use std::sync::Arc;
use std::time::Duration;

use toolgate_model::guard::{
    Content, Denial, DenialCause, FailureClass, GuardMode, GuardianRecord, Hook, Outcome, VerdictKind,
};

use super::alarm::Alarm;
use super::words;
use crate::remote::{RemoteDecision, RemoteGuardian, RemoteResult};

/// One guardian during a consultation.
pub(super) struct Participant<'a> {
    pub(super) guardian: &'a RemoteGuardian,
    /// What it has agreed to, or made itself; `None` where it has not said anything.
    agreed: Option<Arc<Content<'a>>>,
    /// What it wants instead of what it was asked about.
    change: Option<Content<'static>>,
    /// Whether a change that it asked for was made.
    has_changed: bool,
    record: GuardianRecord,
}

/// What a guardian is asked in this round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// About the event as it came, or about what those before it made of it: any verdict will do.
    Any,
    /// About what came out in the end: it is a yes or a no.
    Last,
}

impl<'a> Participant<'a> {
    pub(super) fn new(guardian: &'a RemoteGuardian) -> Self {
        let settings = guardian.settings();
        let record = GuardianRecord {
            guardian: settings.name.clone(),
            dialect: settings.dialect,
            mode: settings.mode,
            verdict: None,
            // Until something is heard of it.
            outcome: Outcome::Cancelled,
            reason: None,
            policies: Vec::new(),
            failure: None,
            latency_us: 0,
        };
        Self { guardian, agreed: None, change: None, has_changed: false, record }
    }

    pub(super) fn enforces(&self) -> bool {
        self.record.mode == GuardMode::Enforce
    }

    /// Whether what it makes of the content counts.
    pub(super) fn modifies(&self) -> bool {
        self.enforces() && self.guardian.settings().may_modify
    }

    /// The change that it asks for, where that counts.
    pub(super) fn take_change(&mut self) -> Option<Arc<Content<'a>>> {
        if !self.modifies() {
            return None;
        }
        let change = Arc::new(self.change.take()?);
        self.has_changed = true;
        self.agreed = Some(Arc::clone(&change));
        Some(change)
    }

    /// Whether it has agreed to just this.
    pub(super) fn agrees_to(&self, content: &Arc<Content<'a>>) -> bool {
        self.agreed.as_ref().is_some_and(|agreed| Arc::ptr_eq(agreed, content) || agreed == content)
    }

    /// Applies its decision on this content; returns its denial where that is enforced.
    pub(super) fn apply_decision(
        &mut self,
        asked: RemoteResult,
        content: &Arc<Content<'a>>,
        round: Round,
        hook: Hook,
        alarm: &dyn Alarm,
    ) -> Option<Denial> {
        let RemoteResult { said, reason, policy, timeout, latency } = asked;
        self.record.latency_us = self.record.latency_us.saturating_add(microseconds(latency));
        alarm.consulted(&self.record.guardian, latency);
        let said = match said {
            Ok(RemoteDecision::Modify(_)) if !self.guardian.settings().may_modify => {
                Err(FailureClass::ModifyNotAllowed.into())
            }
            Ok(RemoteDecision::Modify(_)) if round == Round::Last => Err(FailureClass::BadModify.into()),
            said => said,
        };
        let said = match said {
            Ok(said) => said,
            Err(failed) => {
                // A failure now could lose its change without a word.
                let passes = self.guardian.passes(failed) && !self.has_changed;
                return self.fail(failed.class, passes, alarm).then(|| {
                    let guardian = self.record.guardian.clone();
                    let reason = words::failure(&guardian, failed.class, timeout, hook);
                    let cause = DenialCause::Failure { guardian, class: failed.class };
                    Denial { cause, reason, policy: None }
                });
            }
        };
        if let Some(policy) = policy.clone().filter(|policy| !self.record.policies.contains(policy)) {
            self.record.policies.push(policy);
        }
        let denial = (said == RemoteDecision::Deny && self.enforces()).then(|| {
            let cause = DenialCause::Guardian(self.record.guardian.clone());
            Denial { cause, reason: words::denial(&self.record.guardian, reason.as_deref()), policy }
        });
        let (kind, change) = match said {
            RemoteDecision::Allow => (VerdictKind::Allow, None),
            RemoteDecision::Deny => (VerdictKind::Deny, None),
            RemoteDecision::Modify(change) => (VerdictKind::Modify, Some(*change)),
        };
        self.agreed = (kind != VerdictKind::Deny).then(|| Arc::clone(content));
        self.change = change;
        // Of several answers the strictest is told.
        if self.record.verdict.is_none_or(|recorded| recorded <= kind) {
            self.record.verdict = Some(kind);
            self.record.reason = reason.or(self.record.reason.take());
        }
        // What once passed by failure stays marked, unless it is a no in the end.
        if self.record.outcome != Outcome::FailedOpen || kind == VerdictKind::Deny {
            self.settle(Outcome::Enforced);
        }
        denial
    }

    pub(super) fn into_record(self) -> GuardianRecord {
        self.record
    }

    /// Answers whether it is a no that counts.
    fn fail(&mut self, class: FailureClass, passes: bool, alarm: &dyn Alarm) -> bool {
        alarm.failed(&self.record.guardian, class, passes && self.enforces());
        self.record.failure = Some(class);
        self.settle(if passes { Outcome::FailedOpen } else { Outcome::FailedClosed });
        self.enforces() && !passes
    }

    fn settle(&mut self, outcome: Outcome) {
        self.record.outcome = if self.enforces() { outcome } else { Outcome::Shadowed };
    }
}

/// A length of time as records have it.
pub(super) fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
