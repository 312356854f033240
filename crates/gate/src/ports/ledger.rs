//! The ledger: the store of all state. Its ports are split by noun, and each method is one transaction; what a method
//! acknowledges is durable, together with the events that record it.

use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

pub use self::agent_tasks::{AgentTasks, OwnTasks, OwnedTasks};
pub use self::approval_links::{ApprovalLinks, CreateApprovalLink, RedeemApprovalLink};
pub use self::approval_sessions::{ApprovalSessions, SessionTerms, SetSessionTerms};
pub use self::approval_webhooks::{AdvanceWebhook, ApprovalWebhooks, LeaseWebhook, WebhookBacklog};
pub use self::approvals::{
    ApprovalFilter, Approvals, Consent, DecideApproval, EndApproval, GrantRates, Heartbeat, RequestApproval,
};
pub use self::audit::{
    AuditLog, EventFilter, EventHeading, LogHead, LogNews, LogRollback, LoggedEvent, RecordRollback,
};
pub use self::calls::{
    Admission, Admit, Calls, DenialCount, Freshness, Generation, GrantLookup, HeldGrant, HeldGrants, RecordDenial,
    Settle, StoredResult,
};
pub use self::credentials::{
    CreateCredential, Credentials, NewExpiry, RevokeCredential, RotateCredential, SealedVersion,
};
pub use self::detached::{
    AskedApproval, ClaimDetached, ClaimedCall, DetachCall, Detached, DetachedCall, DetachedCalls, DetachedLimits,
    DetachedState, FinishDetached, ParkCall, StoredCall,
};
pub use self::grants::{
    CreateGrant, DelegateGrant, GrantFilter, GrantSource, Grants, ResumeGrant, RevokeGrant, Revoked, SuspendGrant,
};
pub use self::invocations::{InvocationFilter, Invocations, ReportInvocation};
pub use self::keys::{CreateKey, Keys, NewKey, RevokeKey};
pub use self::mandate::{Mandate, Right};
pub use self::master_keys::{KeyUsage, MasterKeys, RecordRekey, Rewrap};
pub use self::mounts::{
    AddMount, DecideMount, Decided, MountSummary, Mounts, OfferRecorded, RecordCheck, RecordOffer, RemoveMount,
};
pub use self::page::{Page, PageRequest};
pub use self::policies::{
    ActivePolicies, ApplyPolicies, CountedRun, Counts, History, HistoryQuery, MarkScope, Marks, Policies, PolicyChange,
    RecordDecision, beginning_of_day,
};
pub use self::principals::{CreatePrincipal, Principals, RemovePrincipal, Removed, UpdatePrincipal};
pub use self::services::{ApplyService, RegisteredService, Registry, RemoveService, Services};
pub use self::sessions::{CloseSession, OpenSession, ToolSession, ToolSessions};
pub use self::spending::{BudgetUse, CallLimits, SetTenantBudget, Spending, StopCalls, StopOutcome, StoppedBy};
pub use self::standing_approvals::{RevokeStanding, StandingApprovals, StandingFilter};
pub use self::state::{EngineStatistics, LedgerState, LedgerStatistics};
pub use self::stores::{
    AddChunks, BeginDocument, ChunkOrigin, CreateStore, Document, FindBy, FindItems, FinishDocument, Forget,
    ForgetItems, ForgetReason, FoundItem, KnownStore, NewItem, Partition, PutItem, PutOutcome, RemoveDocument,
    RemoveStore, Stores,
};
pub use self::tenants::{CreateTenant, Tenants};
pub use self::vaults::{CreateVault, DeleteVault, Deleted, Vaults};
pub use self::work::{
    AcquireLease, AssignParticipant, CallCost, ChangeCoordinator, ChangeIntent, ChangePlan, ChangeTask, CheckTask,
    ClaimTask, CoordinatorChanges, Coordinators, Costs, CreateCoordinator, CreateIntent, CreatePlan, CreateTask,
    EndLease, IntentCosts, IntentEventFilter, IntentFilter, Intents, Leases, LogIntentEvent, PlanChanges, Plans,
    RecordCost, RemoveParticipant, RenewLease, SendHeartbeat, TaskChanged, TaskChanges, TaskFilter, Tasks, Undelegated,
    Viewer,
};
pub use self::workflows::{
    ApplyWorkflow, Coordination, OwnedKind, OwnedObject, Ownership, WorkflowDetails, WorkflowQuery, WorkflowRecord,
    WorkflowState, WorkflowStep, WorkflowWork, Workflows,
};

mod agent_tasks;
mod approval_links;
mod approval_sessions;
mod approval_webhooks;
mod approvals;
mod audit;
mod calls;
mod credentials;
mod detached;
mod grants;
mod invocations;
mod keys;
mod mandate;
mod master_keys;
mod mounts;
mod page;
mod policies;
mod principals;
mod services;
mod sessions;
mod spending;
mod standing_approvals;
mod state;
mod stores;
mod tenants;
mod vaults;
mod work;
mod workflows;

/// Tenant, actor and time of a change, as its event shows them. An administrative change has a [`Mandate`] instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditContext {
    pub tenant: TenantId,
    pub actor: PrincipalId,
    pub time: Timestamp,
}

/// A point in the ledger's history: a read that reports this revision or a later one includes every change that was
/// acknowledged with it.
pub type Revision = u64;

/// Every port at once: the composition root opens it and passes on one port at a time.
pub trait Ledger:
    Tenants
    + Principals
    + Keys
    + Vaults
    + Credentials
    + MasterKeys
    + Grants
    + Services
    + Stores
    + Mounts
    + AgentTasks
    + Policies
    + GrantLookup
    + Calls
    + Invocations
    + ToolSessions
    + Approvals
    + ApprovalWebhooks
    + ApprovalLinks
    + StandingApprovals
    + ApprovalSessions
    + AuditLog
    + LedgerState
    + DetachedCalls
    + Spending
    + Workflows
    + Intents
    + Plans
    + Tasks
    + Leases
    + Coordinators
    + Costs
{
}
