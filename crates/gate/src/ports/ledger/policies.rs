//! Policies, and the history of an agent that they read.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use toolgate_model::guard::{HookDecision, PolicyFile, PolicySetVersion};
use toolgate_model::hook::RunId;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::{AuditContext, Freshness, Generation, Mandate, Page, PageRequest};
use crate::refusal::Refusal;

/// Policies, and the history of an agent that they read.
#[async_trait]
pub trait Policies: Send + Sync {
    /// Returns the active policies of a tenant.
    async fn policies(
        &self,
        tenant: &TenantId,
        now: Timestamp,
        freshness: Freshness,
    ) -> Result<Arc<ActivePolicies>, Refusal>;
    /// Activates other policies; returns the new version.
    async fn apply_policies(&self, command: ApplyPolicies) -> Result<PolicySetVersion, Refusal>;
    async fn policy_version(&self, tenant: &TenantId, version: u64) -> Result<Option<PolicySetVersion>, Refusal>;
    /// Returns the versions of the policies of a tenant, newest first.
    async fn policy_versions(&self, tenant: &TenantId, page: PageRequest) -> Result<Page<PolicySetVersion>, Refusal>;
    /// Returns what an agent has done so far.
    async fn history(&self, query: &HistoryQuery) -> Result<History, Refusal>;
}

/// The policies of a tenant in their current state.
#[derive(Debug, Clone)]
pub struct ActivePolicies {
    /// Counts their changes; zero if there were none.
    pub revision: u64,
    /// `None` if there never was one.
    pub active: Option<Arc<PolicySetVersion>>,
    /// The state that this was read from.
    pub generation: Generation,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyChange {
    /// New policies were applied.
    Applied,
    /// An earlier version is active again.
    RolledBack { to: u64 },
    /// A rule that was in shadow mode is enforced from now on.
    Promoted { policy: String },
}

/// Creates a new version of a tenant's policy set and activates it.
#[derive(Debug, Clone)]
pub struct ApplyPolicies {
    pub audit: Mandate,
    pub change: PolicyChange,
    /// Sorted by name.
    pub files: Vec<PolicyFile>,
    pub note: Option<String>,
    /// The version that must still be active; zero for none; `None` skips the check.
    pub expected: Option<u64>,
    /// The number of rules, for the log.
    pub rules: u64,
    /// The number of rules in shadow mode, for the log.
    pub shadowed: u64,
}

/// Records a decision of guardians on an event that is not a call of the gate.
#[derive(Debug, Clone)]
pub struct RecordDecision {
    pub audit: AuditContext,
    pub agent: PrincipalId,
    pub run: Option<RunId>,
    pub decision: Box<HookDecision>,
}

/// Whose earlier calls count as leading to a call. A conversation named by another principal than the agent is separate; a
/// conversation that the agent names itself could be a new one each time, so everything that the agent does counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MarkScope {
    pub agent: PrincipalId,
    /// Empty for everything that the agent does.
    pub session: String,
}

/// Labels that a call leaves on its conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    pub scope: MarkScope,
    pub labels: BTreeSet<String>,
}

/// A query about what an agent has done so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryQuery {
    pub tenant: TenantId,
    pub scope: MarkScope,
    /// The run to count; `None` if the agent's whole day counts as one.
    pub run: Option<CountedRun>,
    /// The earliest time of marks that count.
    pub marks_since: Timestamp,
    /// The earliest time of calls and costs that count: the beginning of the day. `None` counts none, which costs
    /// nothing.
    pub since: Option<Timestamp>,
}

/// A run whose calls are counted together. It belongs to the principal that named it: the same name given by another
/// principal is another run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CountedRun {
    /// The principal that named it.
    pub owner: PrincipalId,
    pub run: RunId,
}

impl CountedRun {
    /// The run that a call is counted in. A run that the agent names for itself does not count, because the agent could
    /// start another one to reset the counters.
    pub fn of(actor: &PrincipalId, agent: &PrincipalId, run: Option<&RunId>) -> Option<Self> {
        let run = run.filter(|_| actor != agent)?;
        Some(Self { owner: actor.clone(), run: run.clone() })
    }
}

/// What an agent has called and spent so far. Calls count from their admission; refused ones do not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub calls_today: u64,
    /// In millionths.
    pub cost_today: u64,
    /// The calls in this run; today's if the call is counted in none.
    pub calls_in_run: u64,
    /// In millionths.
    pub cost_in_run: u64,
}

/// The beginning of the day, in UTC.
pub fn beginning_of_day(time: Timestamp) -> Timestamp {
    const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;
    let millis = time.as_millis();
    Timestamp::from_millis(millis - millis.rem_euclid(DAY_MILLIS)).unwrap_or(Timestamp::EPOCH)
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// The labels of the tools that were used in this conversation.
    pub marks: BTreeSet<String>,
    pub counts: Counts,
}
