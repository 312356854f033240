//! All event payloads: one enum for writing and reading, and their types.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::agent::{AgentCreated, AgentRemoved, AgentUpdated};
use super::approval::{
    ApprovalDecided, ApprovalModeChanged, ApprovalRequested, StandingApprovalCreated, StandingApprovalRevoked,
    StandingApprovalUsed,
};
use super::budget::{BudgetReached, CallsStopped, TenantUpdated};
use super::call::{AuthorizationDecided, CallDetached, ToolDenialsCounted, ToolDenied, ToolForbidden, ToolInvoked};
use super::credential::{CredentialCreated, CredentialExpired, CredentialRevoked, CredentialRotated};
use super::grant::{GrantCreated, GrantDelegated, GrantExpired, GrantResumed, GrantRevoked, GrantSuspended};
use super::key::{KeyCreated, KeyRevoked};
use super::ledger::LedgerRollbackAccepted;
use super::mount::{
    MountAdded, MountRemoved, MountServerAccepted, MountServerQuarantined, MountToolAccepted, MountToolQuarantined,
    MountToolRejected, MountToolRestored,
};
use super::policy::PoliciesChanged;
use super::service::{ServiceApplied, ServiceRemoved};
use super::session::{ToolSessionClosed, ToolSessionOpened};
use super::store::{KnowledgeIngested, KnowledgeRemoved, MemoryForgotten, StoreCreated, StoreRemoved};
use super::tenant::TenantCreated;
use super::vault::{VaultCreated, VaultDeleted, VaultRekeyed};
use super::work::{
    WorkAgentAssigned, WorkAgentUnassigned, WorkCoordinatorChanged, WorkCoordinatorCreated, WorkCostRecorded,
    WorkIntentChanged, WorkIntentCreated, WorkLeaseAcquired, WorkLeaseEnded, WorkPlanChanged, WorkPlanCreated,
    WorkTaskAssigned, WorkTaskChanged, WorkTaskCreated,
};
use super::workflow::WorkflowApplied;
use crate::guard::HookDecision;
use crate::hook::{CALLED, RETURNED, ToolCalled};

macro_rules! payloads {
    ($($(#[$doc:meta])* $variant:ident($payload:ty) = $name:expr,)+) => {
        /// The type of an event, without its payload.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum EventKind {
            $($variant,)+
        }

        impl EventKind {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The form that is stored, shown and filtered by.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        /// The payload of an event. Serialized as the `data` of the event.
        #[derive(Debug, Clone, PartialEq)]
        pub enum EventPayload {
            $($(#[$doc])* $variant($payload),)+
            /// Read from a log: a type that this version does not have, or a payload that it cannot parse.
            Unknown(UnknownPayload),
        }

        impl EventPayload {
            /// `None` if it is unknown.
            pub fn kind(&self) -> Option<EventKind> {
                match self {
                    $(Self::$variant(_) => Some(EventKind::$variant),)+
                    Self::Unknown(_) => None,
                }
            }

            /// Parses the payload of an event of this type.
            pub fn read(kind: &str, data: &Value) -> Self {
                let read = EventKind::parse(kind).and_then(|kind| match kind {
                    $(EventKind::$variant => Deserialize::deserialize(data).ok().map(Self::$variant),)+
                });
                read.unwrap_or_else(|| Self::Unknown(UnknownPayload { kind: kind.to_owned(), data: data.clone() }))
            }
        }

        impl Serialize for EventPayload {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(payload) => payload.serialize(serializer),)+
                    Self::Unknown(unknown) => unknown.data.serialize(serializer),
                }
            }
        }
    };
}

payloads! {
    AgentCreated(AgentCreated) = "agent.created",
    AgentRemoved(AgentRemoved) = "agent.removed",
    AgentResumed(CallsStopped) = "agent.resumed",
    AgentStopped(CallsStopped) = "agent.stopped",
    AgentToolCalled(Box<ToolCalled>) = CALLED,
    AgentUpdated(AgentUpdated) = "agent.updated",
    ApprovalCancelled(Box<ApprovalDecided>) = "approval.cancelled",
    ApprovalCounted(Box<ApprovalDecided>) = "approval.counted",
    ApprovalGranted(Box<ApprovalDecided>) = "approval.granted",
    ApprovalModeChanged(ApprovalModeChanged) = "approval_session.mode_changed",
    ApprovalOrphaned(Box<ApprovalDecided>) = "approval.orphaned",
    ApprovalOverridden(Box<ApprovalDecided>) = "approval.overridden",
    ApprovalRejected(Box<ApprovalDecided>) = "approval.rejected",
    ApprovalRequested(Box<ApprovalRequested>) = "approval.requested",
    ApprovalTimedOut(Box<ApprovalDecided>) = "approval.timed_out",
    AuthorizationDecided(AuthorizationDecided) = "authorization.decided",
    BudgetExhausted(Box<BudgetReached>) = "budget.exhausted",
    BudgetWarned(Box<BudgetReached>) = "budget.warned",
    CallDetached(CallDetached) = "call.detached",
    CredentialCreated(CredentialCreated) = "credential.created",
    CredentialExpired(CredentialExpired) = "credential.expired",
    CredentialRevoked(CredentialRevoked) = "credential.revoked",
    CredentialRotated(CredentialRotated) = "credential.rotated",
    GateResumed(CallsStopped) = "gate.resumed",
    GateStopped(CallsStopped) = "gate.stopped",
    GrantCreated(GrantCreated) = "grant.created",
    GrantDelegated(GrantDelegated) = "grant.delegated",
    GrantExpired(GrantExpired) = "grant.expired",
    GrantResumed(GrantResumed) = "grant.resumed",
    GrantRevoked(GrantRevoked) = "grant.revoked",
    GrantSuspended(GrantSuspended) = "grant.suspended",
    HookDecided(Box<HookDecision>) = "hook.decided",
    KeyCreated(KeyCreated) = "key.created",
    KeyRevoked(KeyRevoked) = "key.revoked",
    KnowledgeIngested(KnowledgeIngested) = "knowledge.ingested",
    KnowledgeRemoved(KnowledgeRemoved) = "knowledge.removed",
    LedgerRollbackAccepted(LedgerRollbackAccepted) = "ledger.rollback_accepted",
    MemoryForgotten(MemoryForgotten) = "memory.forgotten",
    MountAdded(MountAdded) = "mount.added",
    MountRemoved(MountRemoved) = "mount.removed",
    MountServerAccepted(MountServerAccepted) = "mount.server.accepted",
    MountServerQuarantined(MountServerQuarantined) = "mount.server.quarantined",
    MountToolAccepted(MountToolAccepted) = "mount.tool.accepted",
    MountToolQuarantined(MountToolQuarantined) = "mount.tool.quarantined",
    MountToolRejected(MountToolRejected) = "mount.tool.rejected",
    MountToolRestored(MountToolRestored) = "mount.tool.restored",
    PoliciesChanged(PoliciesChanged) = "policies.changed",
    ServiceApplied(ServiceApplied) = "service.applied",
    ServiceRemoved(ServiceRemoved) = "service.removed",
    StandingApprovalCreated(Box<StandingApprovalCreated>) = "standing_approval.created",
    StandingApprovalRevoked(StandingApprovalRevoked) = "standing_approval.revoked",
    StandingApprovalUsed(StandingApprovalUsed) = "standing_approval.used",
    StoreCreated(StoreCreated) = "store.created",
    StoreRemoved(StoreRemoved) = "store.removed",
    TenantCreated(TenantCreated) = "tenant.created",
    TenantResumed(CallsStopped) = "tenant.resumed",
    TenantStopped(CallsStopped) = "tenant.stopped",
    TenantUpdated(TenantUpdated) = "tenant.updated",
    ToolDenialsCounted(ToolDenialsCounted) = "tool.denials.counted",
    ToolDenied(Box<ToolDenied>) = "tool.denied",
    /// The return of a call that is never made; other returns are inside `ToolDenied` and `ToolInvoked`.
    ToolForbidden(ToolForbidden) = RETURNED,
    ToolInvoked(Box<ToolInvoked>) = "tool.invoked",
    ToolSessionClosed(ToolSessionClosed) = "tool.session.closed",
    ToolSessionOpened(ToolSessionOpened) = "tool.session.opened",
    VaultCreated(VaultCreated) = "vault.created",
    VaultDeleted(VaultDeleted) = "vault.deleted",
    VaultRekeyed(VaultRekeyed) = "vault.rekeyed",
    WorkAgentAssigned(WorkAgentAssigned) = "work.agent.assigned",
    WorkAgentUnassigned(WorkAgentUnassigned) = "work.agent.unassigned",
    WorkCoordinatorChanged(Box<WorkCoordinatorChanged>) = "work.coordinator.changed",
    WorkCoordinatorCreated(Box<WorkCoordinatorCreated>) = "work.coordinator.created",
    WorkCostRecorded(WorkCostRecorded) = "work.cost.recorded",
    WorkIntentChanged(WorkIntentChanged) = "work.intent.changed",
    WorkIntentCreated(WorkIntentCreated) = "work.intent.created",
    WorkLeaseAcquired(WorkLeaseAcquired) = "work.lease.acquired",
    WorkLeaseEnded(WorkLeaseEnded) = "work.lease.ended",
    WorkPlanChanged(WorkPlanChanged) = "work.plan.changed",
    WorkPlanCreated(WorkPlanCreated) = "work.plan.created",
    WorkTaskAssigned(WorkTaskAssigned) = "work.task.assigned",
    WorkTaskChanged(WorkTaskChanged) = "work.task.changed",
    WorkTaskCreated(WorkTaskCreated) = "work.task.created",
    WorkflowApplied(WorkflowApplied) = "workflow.applied",
}

/// A payload that is kept as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct UnknownPayload {
    pub kind: String,
    pub data: Value,
}

impl EventKind {
    /// Events of approvals, without standing approvals and sessions.
    pub const APPROVAL: [Self; 8] = [
        Self::ApprovalCancelled,
        Self::ApprovalCounted,
        Self::ApprovalGranted,
        Self::ApprovalOrphaned,
        Self::ApprovalOverridden,
        Self::ApprovalRejected,
        Self::ApprovalRequested,
        Self::ApprovalTimedOut,
    ];

    /// Events that approvers subscribe to.
    pub fn about_approvals() -> impl Iterator<Item = Self> {
        let others = [
            Self::ApprovalModeChanged,
            Self::StandingApprovalCreated,
            Self::StandingApprovalRevoked,
            Self::StandingApprovalUsed,
        ];
        Self::APPROVAL.into_iter().chain(others)
    }

    /// What the list of callable tools depends on.
    pub const CATALOG: [Self; 14] = [
        Self::AgentRemoved,
        Self::AgentUpdated,
        Self::CredentialCreated,
        Self::CredentialExpired,
        Self::CredentialRevoked,
        Self::CredentialRotated,
        Self::GrantCreated,
        Self::GrantDelegated,
        Self::GrantExpired,
        Self::GrantResumed,
        Self::GrantRevoked,
        Self::GrantSuspended,
        Self::ServiceApplied,
        Self::ServiceRemoved,
    ];

    /// Parses [`EventKind::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text)
    }
}

impl EventPayload {
    /// The stored type of the event.
    pub fn name(&self) -> &str {
        match self {
            Self::Unknown(unknown) => &unknown.kind,
            known => known.kind().map_or("", EventKind::as_str),
        }
    }

    /// The call that the event is about, if it names one.
    pub fn call(&self) -> Option<String> {
        let id = match self {
            Self::AgentToolCalled(called) => called.call_id,
            Self::ApprovalRequested(requested) => requested.invocation_id,
            Self::CallDetached(detached) => detached.invocation_id,
            Self::HookDecided(decision) => decision.invocation?,
            Self::StandingApprovalUsed(used) => used.invocation_id,
            Self::ToolDenied(denied) => denied.invocation_id,
            Self::ToolForbidden(forbidden) => return Some(forbidden.call_id.clone()),
            Self::ToolInvoked(invoked) => invoked.invocation_id,
            other => other.approval_decided()?.invocation_id,
        };
        Some(id.to_string())
    }

    /// The tool that the event is about, with its service, if it names one.
    pub fn tool(&self) -> Option<String> {
        let (service, tool) = match self {
            Self::AgentToolCalled(called) => (None, called.tool_name.as_str()),
            Self::ApprovalRequested(requested) => (None, requested.tool.as_str()),
            Self::CallDetached(detached) => (None, detached.tool.as_str()),
            Self::HookDecided(decision) => (None, decision.tool.as_deref()?),
            Self::StandingApprovalUsed(used) => (None, used.tool.as_str()),
            Self::ToolDenied(denied) => (denied.service.as_ref(), denied.tool.as_str()),
            Self::ToolForbidden(forbidden) => (None, forbidden.tool_name.as_str()),
            Self::ToolInvoked(invoked) => (invoked.service.as_ref(), invoked.tool.as_str()),
            other => (None, other.approval_decided()?.tool.as_str()),
        };
        Some(service.map_or_else(|| tool.to_owned(), |service| service.with_tool(tool)))
    }
}
