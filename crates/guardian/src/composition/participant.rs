//! One external guardian during a consultation: the content that it agreed to, the modification that it asks for, and
//! its record.

use std::sync::Arc;
use std::time::Duration;

use toolgate_model::guard::{
    Content, Denial, DenialCause, FailureClass, GuardMode, GuardianRecord, Hook, Outcome, VerdictKind,
};

use super::alarm::Alarm;
use super::words;
use crate::remote::{RemoteDecision, RemoteGuardian, RemoteResult};

pub(super) struct Participant<'a> {
    pub(super) guardian: &'a RemoteGuardian,
    /// The content that it agreed to, or made itself; `None` if it has not decided.
    agreed: Option<Arc<Content<'a>>>,
    /// The modification that it asks for.
    change: Option<Content<'static>>,
    /// Whether one of its modifications was applied.
    has_changed: bool,
    record: GuardianRecord,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// About the original event, or about the content as modified by earlier guardians: any decision is valid.
    Any,
    /// About the final content: only allow and deny are valid.
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
            // Until it responds.
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

    /// Whether its modifications are applied.
    pub(super) fn modifies(&self) -> bool {
        self.enforces() && self.guardian.settings().may_modify
    }

    /// The modification that it asks for, if modifications are applied.
    pub(super) fn take_change(&mut self) -> Option<Arc<Content<'a>>> {
        if !self.modifies() {
            return None;
        }
        let change = Arc::new(self.change.take()?);
        self.has_changed = true;
        self.agreed = Some(Arc::clone(&change));
        Some(change)
    }

    /// Whether it has agreed to exactly this content.
    pub(super) fn agrees_to(&self, content: &Arc<Content<'a>>) -> bool {
        self.agreed.as_ref().is_some_and(|agreed| Arc::ptr_eq(agreed, content) || agreed == content)
    }

    /// Applies its decision on this content; returns its denial if that is enforced.
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
                // If it failed open now, its modification could be lost silently.
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
        // Of several decisions the strictest is recorded.
        if self.record.verdict.is_none_or(|recorded| recorded <= kind) {
            self.record.verdict = Some(kind);
            self.record.reason = reason.or(self.record.reason.take());
        }
        // A record that failed open stays marked, unless it is a denial in the end.
        if self.record.outcome != Outcome::FailedOpen || kind == VerdictKind::Deny {
            self.settle(Outcome::Enforced);
        }
        denial
    }

    pub(super) fn into_record(self) -> GuardianRecord {
        self.record
    }

    /// Returns whether the failure is an enforced denial.
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

/// A duration in the unit of records.
pub(super) fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
