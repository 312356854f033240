//! Policies, and what the ledger knows of what an agent has done so far.

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

/// The policies of a tenant, as they stand.
#[derive(Debug, Clone)]
pub struct ActivePolicies {
    /// Counts their changes; zero where there never was one.
    pub revision: u64,
    /// The version that is active; `None` where there never was one.
    pub active: Option<Arc<PolicySetVersion>>,
    /// The state that this was read from.
    pub generation: Generation,
}

/// Why the policies of a tenant change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyChange {
    /// Somebody brought others.
    Applied,
    /// An earlier version is active again.
    RolledBack {
        /// Which.
        to: u64,
    },
    /// A rule that was in shadow counts from now on.
    Promoted {
        /// Which.
        policy: String,
    },
}

/// Makes a new version of a tenant's policy set, and makes it the active one.
#[derive(Debug, Clone)]
pub struct ApplyPolicies {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// Why.
    pub change: PolicyChange,
    /// The files, in the order of their names.
    pub files: Vec<PolicyFile>,
    /// What is said about it.
    pub note: Option<String>,
    /// The version that must be active still; `None` does not care. Zero is none.
    pub expected: Option<u64>,
    /// How many rules it has, for the log.
    pub rules: u64,
    /// How many of them are in shadow, for the log.
    pub shadowed: u64,
}

/// Writes down what guardians said about an event that is no call of the gate's own.
#[derive(Debug, Clone)]
pub struct RecordDecision {
    /// Who and when.
    pub audit: AuditContext,
    /// For whom.
    pub agent: PrincipalId,
    /// The execution that it belongs to.
    pub run: Option<RunId>,
    /// What they said.
    pub decision: Box<HookDecision>,
}

/// Whose earlier calls count as having led to one. A conversation that somebody else than the agent itself names keeps
/// to itself; whatever the agent names itself could be a new one each time, and so all that it does counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MarkScope {
    /// The agent.
    pub agent: PrincipalId,
    /// The conversation; empty for all that the agent does.
    pub session: String,
}

/// Labels that a call leaves on its conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    /// On which.
    pub scope: MarkScope,
    /// Which.
    pub labels: BTreeSet<String>,
}

/// What is asked about what an agent has done so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryQuery {
    /// The tenant.
    pub tenant: TenantId,
    /// Whose.
    pub scope: MarkScope,
    /// The execution that is looked at; `None` where the agent's whole day counts as one.
    pub run: Option<CountedRun>,
    /// From when on marks count.
    pub marks_since: Timestamp,
    /// From when on calls and costs count: the beginning of the day. `None` counts none, which costs nothing.
    pub since: Option<Timestamp>,
}

/// An execution whose calls are counted together. It belongs to the principal that named it: the same name given by
/// another is another execution.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CountedRun {
    /// The principal that named it.
    pub owner: PrincipalId,
    /// Its name.
    pub run: RunId,
}

impl CountedRun {
    /// The execution that a call counts in. A run that the agent names for itself is none, because it could begin
    /// another one to be rid of the counts.
    pub fn of(actor: &PrincipalId, agent: &PrincipalId, run: Option<&RunId>) -> Option<Self> {
        let run = run.filter(|_| actor != agent)?;
        Some(Self { owner: actor.clone(), run: run.clone() })
    }
}

/// How much an agent has called and spent so far. Calls count from their admission on; refused ones do not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many calls the agent made today.
    pub calls_today: u64,
    /// What they cost, in millionths.
    pub cost_today: u64,
    /// How many calls there were in this execution; today's where the call counts in none.
    pub calls_in_run: u64,
    /// What they cost, in millionths.
    pub cost_in_run: u64,
}

/// The beginning of the day, in UTC.
pub fn beginning_of_day(time: Timestamp) -> Timestamp {
    const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;
    let millis = time.as_millis();
    Timestamp::from_millis(millis - millis.rem_euclid(DAY_MILLIS)).unwrap_or(Timestamp::EPOCH)
}

/// What an agent has done so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// The labels of the tools that were used in this conversation.
    pub marks: BTreeSet<String>,
    /// How much it has called and spent.
    pub counts: Counts,
}
