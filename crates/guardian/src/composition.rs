//! Several guardians, one verdict. Any no is a no, changes are made in the declared order, and it is a yes only where
//! all say yes to what came out in the end. A no to what came stays a no whoever else is asked, and one that may not
//! change anything can only make a yes into a no.

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

/// How long guardians have for one event, all together.
const DEFAULT_BUDGET: Duration = Duration::from_secs(2);

/// Judges within this process, by the gate's own policies.
#[async_trait]
pub trait InProcess: Send + Sync {
    /// The policies by which no rule applies to such an event; `None` where one may.
    async fn unconcerned(
        &self,
        tenant: &TenantId,
        subject: &Subject<'_>,
        freshness: Freshness,
    ) -> Result<Option<PolicyBasis>, Refusal>;

    /// An event, as if it had this content. A refusal means that the policies are not known, which is a no.
    async fn judge(&self, hooked: &Hooked<'_>, content: &Content<'_>) -> Result<PolicyJudgement, Refusal>;
}

/// What the gate's own policies say.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyJudgement {
    /// What they say.
    pub verdict: Verdict,
    /// Why, where it is not simply allowed.
    pub reason: Option<String>,
    /// The rules behind it.
    pub policies: Vec<PolicyRef>,
    /// What rules in shadow would have said.
    pub shadow: Vec<WouldBe>,
    /// Whether any rule was about this event, whatever it said.
    pub concerned: bool,
    /// The version of the set that is active; `None` where none is.
    pub version: Option<u64>,
    /// What rules could see besides the content.
    pub facts: Option<Value>,
    /// Whether rules look for the secrets of the call, and these are not known: nothing is said before they are.
    pub lacks_secrets: bool,
    /// The state of the policies.
    pub basis: PolicyBasis,
}

/// The gate's own policies and guardians of others.
pub struct Guardians {
    policy: Arc<dyn InProcess>,
    /// INVARIANT: in the order in which they count, without those that are off.
    remote: Vec<RemoteGuardian>,
    budget: Duration,
    alarm: Arc<dyn Alarm>,
}

impl Guardians {
    /// These, in this order where their own order numbers do not say otherwise.
    pub fn new(policy: Arc<dyn InProcess>, mut remote: Vec<RemoteGuardian>, alarm: Arc<dyn Alarm>) -> Self {
        remote.retain(|guardian| guardian.settings().mode != GuardMode::Off);
        remote.sort_by_key(|guardian| guardian.settings().order);
        Self { policy, remote, budget: DEFAULT_BUDGET, alarm }
    }

    /// The same with another time for one event.
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
        // What another runtime is told is written down in any case, and nothing of a secret with it.
        let is_asked = hooked.dialect != Dialect::Native;
        if hooked.secrets.is_none() && (first.lacks_secrets || leaves || is_asked) {
            return Ok(Ruling { verdict: Verdict::allow(), decision: None, basis, lacks_secrets: true });
        }
        let participants: Vec<_> = match &first.verdict {
            // Nobody else is asked: it is a no whatever they say.
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
        let judgement = self.policy.judge(hooked, &hooked.event.content).await?;
        let others = self.concerned(hooked).map(|guardian| guardian.settings().name.clone()).collect();
        Ok((judgement.verdict, others))
    }
}
