//! Events of the audit log: an envelope and a typed payload, written as canonical JSON so that it can be hashed, and
//! read back through the same types. The names of members are those of RFC-0014 and OpenWOP if these define them.
//!
//! INVARIANT: the bytes of an event never change once a release has written it; `tests/golden.jsonl` has one of each.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::canonical::{CanonicalError, write_serialized};
use crate::context::GrantContext;
use crate::id::EventId;
use crate::merkle::{Hash, leaf_hash};
use crate::principal::{PrincipalId, TenantId};
use crate::time::Timestamp;

pub use self::agent::{AgentCreated, AgentRemoved, AgentUpdated};
pub use self::approval::{
    ApprovalDecided, ApprovalModeChanged, ApprovalRequested, QuorumProgress, StandingApprovalCreated,
    StandingApprovalRevoked, StandingApprovalUsed,
};
pub use self::budget::{BudgetReached, CallsStopped, TenantUpdated};
pub use self::call::{AuthorizationDecided, CallDetached, ToolDenialsCounted, ToolDenied, ToolForbidden, ToolInvoked};
pub use self::credential::{CredentialCreated, CredentialExpired, CredentialRevoked, CredentialRotated};
pub use self::grant::{GrantCreated, GrantDelegated, GrantExpired, GrantResumed, GrantRevoked, GrantSuspended};
pub use self::key::{KeyCreated, KeyRevoked};
pub use self::ledger::LedgerRollbackAccepted;
pub use self::mount::{
    MountAdded, MountRemoved, MountServerAccepted, MountServerQuarantined, MountToolAccepted, MountToolQuarantined,
    MountToolRejected, MountToolRestored,
};
pub use self::payload::{EventKind, EventPayload, UnknownPayload};
pub use self::policy::{PoliciesChanged, PolicyChangeKind};
pub use self::service::{ServiceApplied, ServiceRemoved};
pub use self::session::{SessionOutcome, ToolSessionClosed, ToolSessionOpened};
pub use self::store::{KnowledgeIngested, KnowledgeRemoved, MemoryForgotten, StoreCreated, StoreRemoved};
pub use self::stored::{DamagedEvent, EventError, StoredEvent};
pub use self::tenant::TenantCreated;
pub use self::vault::{VaultCreated, VaultDeleted, VaultRekeyed};
pub use self::work::{
    WorkAgentAssigned, WorkAgentUnassigned, WorkCoordinatorChanged, WorkCoordinatorCreated, WorkCostRecorded,
    WorkIntentChanged, WorkIntentCreated, WorkLeaseAcquired, WorkLeaseEnded, WorkPlanChanged, WorkPlanCreated,
    WorkTaskAssigned, WorkTaskChanged, WorkTaskCreated,
};
pub use self::workflow::WorkflowApplied;

mod agent;
mod approval;
mod budget;
mod call;
mod credential;
mod grant;
mod key;
mod ledger;
mod mount;
mod payload;
mod policy;
mod service;
mod session;
mod store;
mod stored;
mod tenant;
mod vault;
mod work;
mod workflow;

#[cfg(test)]
mod tests;

/// One entry of the audit log, before it has its sequence.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub id: EventId,
    pub tenant: TenantId,
    pub actor: PrincipalId,
    /// The agent that it concerns.
    pub agent: Option<PrincipalId>,
    pub context: GrantContext,
    /// The execution that it belongs to.
    pub run: Option<String>,
    pub time: Timestamp,
    pub payload: EventPayload,
}

impl Event {
    /// The event as it is hashed, stored and shown: canonical JSON without the sequence, which is its position in the
    /// log.
    pub fn to_canonical(&self) -> Result<Vec<u8>, CanonicalError> {
        let mut out = Vec::with_capacity(1024);
        self.write_canonical(&mut out)?;
        Ok(out)
    }

    /// Appends [`Event::to_canonical`].
    pub fn write_canonical(&self, out: &mut Vec<u8>) -> Result<(), CanonicalError> {
        write_serialized(self, out)
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { id, tenant, actor, agent, context, run, time, payload } = self;
        let mut event = serializer.serialize_struct("Event", 11)?;
        event.serialize_field("actor", actor)?;
        if let Some(agent) = agent {
            event.serialize_field("agent_id", agent)?;
        }
        event.serialize_field("data", payload)?;
        event.serialize_field("id", id)?;
        if let Some(intent) = &context.intent_id {
            event.serialize_field("intent_id", intent)?;
        }
        if let Some(plan) = &context.plan_id {
            event.serialize_field("plan_id", plan)?;
        }
        if let Some(run) = run {
            event.serialize_field("run_id", run)?;
        }
        if let Some(task) = &context.task_id {
            event.serialize_field("task_id", task)?;
        }
        event.serialize_field("tenant", tenant)?;
        event.serialize_field("timestamp", time)?;
        event.serialize_field("type", payload.name())?;
        event.end()
    }
}

/// The leaf of an event's canonical JSON in the log's tree.
pub fn event_leaf(canonical: &[u8]) -> Hash {
    leaf_hash(canonical)
}
