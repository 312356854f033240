//! Combines several guardians into one verdict. Any denial denies, modifications are applied in the declared order, and
//! the event is allowed only if all guardians allow the final content. A denial of the original stays a denial, whatever
//! others decide, and a guardian that may not modify can only turn an allow into a denial.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use toolgate_gate::ports::guardian::{Guardian, Hooked, PolicyBasis, Ruling, Subject};
use toolgate_gate::ports::ledger::Freshness;
use toolgate_gate::refusal::Refusal;
use toolgate_model::guard::{Content, Dialect, GuardMode, PolicyRef, Verdict, VerdictKind, WouldBe};
use toolgate_model::principal::TenantId;

pub use self::alarm::{Alarm, LogAlarm};
use self::consultation::Consultation;
use self::record::DecisionRecord;
use crate::remote::RemoteGuardian;
use crate::time::now;

mod alarm;
mod consultation;
mod participant;
mod record;
mod words;

#[cfg(test)]
mod tests;

/// The time for all guardians together on one event.
const DEFAULT_BUDGET: Duration = Duration::from_secs(2);

/// Evaluates the gate's own policies in this process.
#[async_trait]
pub trait InProcess: Send + Sync {
    /// The policies by which no rule applies to such an event; `None` if one may.
    async fn unconcerned(
        &self,
        tenant: &TenantId,
        subject: &Subject<'_>,
        freshness: Freshness,
    ) -> Result<Option<PolicyBasis>, Refusal>;

    /// Evaluates an event as if it had this content. A refusal means that the policies are not known, which denies.
    async fn judge(&self, hooked: &Hooked<'_>, content: &Content<'_>) -> Result<PolicyEvaluation, Refusal>;
}

/// The result of the gate's own policies.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyEvaluation {
    pub verdict: Verdict,
    /// The reason, unless it is simply allowed.
    pub reason: Option<String>,
    /// The rules that decided.
    pub policies: Vec<PolicyRef>,
    /// What the rules in shadow mode would have decided.
    pub shadow: Vec<WouldBe>,
    /// Whether any rule concerned this event, whatever it decided.
    pub concerned: bool,
    /// The active version of the set; `None` if none is active.
    pub version: Option<u64>,
    /// What rules could read besides the content.
    pub facts: Option<Value>,
    /// Whether rules search for the secrets of the call and these are not known: then there is no verdict before they
    /// are.
    pub lacks_secrets: bool,
    /// The state of the policies.
    pub basis: PolicyBasis,
}

/// The gate's own policies and the external guardians.
pub struct Guardians {
    policy: Arc<dyn InProcess>,
    /// INVARIANT: in order, without those that are disabled.
    remote: Vec<RemoteGuardian>,
    budget: Duration,
    alarm: Arc<dyn Alarm>,
}

impl Guardians {
    /// The guardians are ordered by their order number, and of equals as given.
    pub fn new(policy: Arc<dyn InProcess>, mut remote: Vec<RemoteGuardian>, alarm: Arc<dyn Alarm>) -> Self {
        remote.retain(|guardian| guardian.settings().mode != GuardMode::Off);
        remote.sort_by_key(|guardian| guardian.settings().order);
        Self { policy, remote, budget: DEFAULT_BUDGET, alarm }
    }

    /// Sets the time for one event.
    #[must_use]
    pub fn with_budget(self, budget: Duration) -> Self {
        Self { budget, ..self }
    }

    fn concerned<'a>(&'a self, hooked: &'a Hooked<'_>) -> impl Iterator<Item = &'a RemoteGuardian> {
        self.remote.iter().filter(|guardian| guardian.settings().selector.selects(hooked))
    }
}

#[async_trait]
impl Guardian for Guardians {
    async fn unconcerned(
        &self,
        tenant: &TenantId,
        subject: &Subject<'_>,
        freshness: Freshness,
    ) -> Result<Option<PolicyBasis>, Refusal> {
        let selects = |guardian: &RemoteGuardian| guardian.settings().selector.selects_subject(tenant, subject, None);
        if self.remote.iter().any(selects) {
            return Ok(None);
        }
        self.policy.unconcerned(tenant, subject, freshness).await
    }

    async fn judge(&self, hooked: &Hooked<'_>) -> Result<Ruling, Refusal> {
        let started = now();
        let first = self.policy.judge(hooked, &hooked.event.content).await?;
        let basis = first.basis;
        let leaves = first.verdict.kind() != VerdictKind::Deny && self.concerned(hooked).next().is_some();
        // A decision for an external runtime is always recorded, and nothing in it contains a secret.
        let is_asked = hooked.dialect != Dialect::Native;
        if hooked.secrets.is_none() && (first.lacks_secrets || leaves || is_asked) {
            return Ok(Ruling { verdict: Verdict::allow(), decision: None, basis, lacks_secrets: true });
        }
        let participants: Vec<_> = match &first.verdict {
            // No other guardian is asked: it is denied in any case.
            Verdict::Deny(_) => Vec::new(),
            Verdict::Pass { .. } => self.concerned(hooked).collect(),
        };
        if participants.is_empty() && !first.concerned && !is_asked && first.verdict == Verdict::allow() {
            return Ok(Ruling { verdict: first.verdict, decision: None, basis, lacks_secrets: false });
        }
        let mut decision_record = DecisionRecord::new(hooked, &first, started.elapsed());
        let verdict = if participants.is_empty() {
            first.verdict
        } else {
            let consultation = Consultation::new(hooked, self, participants, &mut decision_record);
            consultation.run(first.verdict).await?
        };
        let decision = Some(Box::new(decision_record.decision(&verdict)));
        Ok(Ruling { verdict, decision, basis, lacks_secrets: false })
    }

    async fn dry_run(&self, hooked: &Hooked<'_>) -> Result<(Verdict, Vec<String>), Refusal> {
        let evaluation = self.policy.judge(hooked, &hooked.event.content).await?;
        let others = self.concerned(hooked).map(|guardian| guardian.settings().name.clone()).collect();
        Ok((evaluation.verdict, others))
    }
}
