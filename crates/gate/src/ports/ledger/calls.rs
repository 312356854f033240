//! Calls: the grants that they can use, admission, settlement, refusal.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use toolgate_model::approval::BoundAction;
use toolgate_model::connection::Connection;
use toolgate_model::constraint::Cost;
use toolgate_model::context::GrantContext;
use toolgate_model::credential::Credential;
use toolgate_model::grant::{Authority, Grant, Lineage};
use toolgate_model::guard::HookDecision;
use toolgate_model::hook::ToolReturned;
use toolgate_model::id::{CredentialId, GrantId, InvocationId, KeyId, ProcessId, TaskId};
use toolgate_model::invocation::{Invocation, InvocationError, InvocationStatus};
use toolgate_model::principal::{Principal, PrincipalId, TenantId};
use toolgate_model::rate_limit::RateLimit;
use toolgate_model::service::{DefinitionError, ToolDefinition, ToolName};
use toolgate_model::spending::{Account, Reservation};
use toolgate_model::time::Timestamp;
use toolgate_model::work::{AgentWork, Coordinator};

use super::{AuditContext, CallLimits, Consent, CountedRun, Counts, FinishDetached, GrantRates, Marks, RecordDecision};
use crate::refusal::Refusal;

/// Grants with everything that a call through them needs.
#[async_trait]
pub trait GrantLookup: Send + Sync {
    /// Returns the grants of an agent that have not ended by `now`.
    async fn held_grants(
        &self,
        tenant: &TenantId,
        agent: &PrincipalId,
        now: Timestamp,
        freshness: Freshness,
    ) -> Result<Arc<HeldGrants>, Refusal>;
    /// Returns what the context of a call names of the work of its agent, according to the newest state.
    async fn named_work(
        &self,
        tenant: &TenantId,
        agent: &PrincipalId,
        context: &GrantContext,
    ) -> Result<AgentWork, Refusal>;
    /// Returns one grant in any state.
    async fn held_grant(&self, tenant: &TenantId, grant: GrantId) -> Result<Option<Arc<HeldGrant>>, Refusal>;
    /// Returns the newest grants of an agent that have ended by `now`.
    async fn ended_grants(
        &self,
        tenant: &TenantId,
        agent: &PrincipalId,
        now: Timestamp,
    ) -> Result<Vec<Arc<HeldGrant>>, Refusal>;
}

/// Calls from their admission to their settlement, and those that are refused.
#[async_trait]
pub trait Calls: Send + Sync {
    async fn admit(&self, command: Arc<Admit>) -> Result<Admission, Refusal>;
    async fn settle(&self, command: Arc<Settle>) -> Result<(), Refusal>;
    /// Records a refused call.
    async fn record_denial(&self, command: RecordDenial) -> Result<(), Refusal>;
    /// Counts refused calls that are not recorded individually: each principal and code once, in their order.
    async fn count_denials(&self, counts: Vec<DenialCount>) -> Result<(), Refusal>;
    /// Records the counts that began before `before` in one event per principal; returns the number of calls.
    async fn sum_up_denials(&self, before: Timestamp, now: Timestamp) -> Result<u64, Refusal>;
    /// Records the decisions of guardians on an event that is not a call of the gate.
    async fn record_decision(&self, command: RecordDecision) -> Result<(), Refusal>;
    /// Settles calls as unknown that are past their deadline, or that an earlier run of the only process left in flight,
    /// and deletes old idempotency keys. Returns the number of calls.
    async fn close_calls(&self, now: Timestamp) -> Result<u64, Refusal>;
}

/// A point in the history of authority: principals, grants, registered services. As long as it stays the same, nothing
/// of that has changed. Points of different ledgers cannot be compared.
pub type Generation = u64;

/// How new the result of a read must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// May be slightly stale: whatever depends on it is checked again at the admission.
    Recent,
    /// Includes every change that was acknowledged before.
    Newest,
}

/// A grant with everything that a call through it needs: lineage, effective authority, credential and connection.
#[derive(Debug)]
pub struct HeldGrant {
    pub lineage: Lineage,
    /// The meet of the authority along the lineage.
    pub effective: Authority,
    pub credential: Credential,
    /// How the credential's service is reached; a connection that cannot be parsed cannot be used.
    pub connection: Result<Connection, DefinitionError>,
    /// The tools that the credential itself defines.
    pub implicit: BTreeMap<ToolName, Arc<ToolDefinition>>,
    /// The coordinators whose guardrails apply to its use: those of its agent and of the agents above it in its lineage.
    pub coordinators: Vec<Arc<Coordinator>>,
    /// The state that all of this was read from.
    pub generation: Generation,
}

impl HeldGrant {
    pub fn new(lineage: Lineage, credential: Credential, generation: Generation) -> Self {
        let effective = lineage.effective();
        let connection = Connection::from_metadata(&credential.metadata);
        let implicit = match &connection {
            Ok(connection) => connection.implicit_tools(&credential.scopes_available),
            Err(_) => BTreeMap::new(),
        };
        let implicit = implicit.into_iter().map(|(name, tool)| (name, Arc::new(tool))).collect();
        Self { lineage, effective, credential, connection, implicit, coordinators: Vec::new(), generation }
    }

    pub fn grant(&self) -> GrantId {
        self.lineage.grant().id
    }

    pub fn rates(&self) -> GrantRates {
        let grants = self.lineage.ancestors().iter().chain([self.lineage.grant()]);
        let limit = |grant: &Grant| (grant.id, grant.authority.constraints.max_invocations_per_hour);
        GrantRates { grant: self.grant(), lineage: grants.map(limit).collect() }
    }
}

/// All grants of an agent that have not ended.
#[derive(Debug)]
pub struct HeldGrants {
    /// Read together with its grants; `None` if there is no such principal.
    pub agent: Option<Arc<Principal>>,
    /// What limits its calls besides its grants.
    pub limits: Arc<CallLimits>,
    /// The state that all of this was read from.
    pub generation: Generation,
    /// Oldest first.
    pub held: Vec<Arc<HeldGrant>>,
    /// Whether the agent has more grants than were read.
    pub truncated: bool,
    /// Its work, if it has any.
    pub work: Option<Arc<AgentWork>>,
    /// Counts the changes of coordinated work in the tenant that are not changes of tasks.
    pub work_revision: u64,
}

impl Settle {
    /// Whether the call takes other amounts than were reserved.
    pub fn differs(&self) -> bool {
        self.never_sent || self.invocation.cost != self.reserved
    }
}

impl HeldGrants {
    /// The maximum number of grants of one agent that are read for a call that names none.
    pub const LIMIT: u32 = 2000;
}

/// Admits a call: one durable step checks the whole authority again, reserves its rate, claims its idempotency key and
/// records the call as running.
#[derive(Debug, Clone)]
pub struct Admit {
    pub audit: AuditContext,
    /// The key that the caller presented.
    pub key: KeyId,
    pub invocation: Invocation,
    /// The state that the decision is based on.
    pub generation: Generation,
    /// The earliest expiry of anything that the decision is based on.
    pub usable_until: Option<Timestamp>,
    /// The grants of the lineage, the direct one first, each with its hourly limit.
    pub lineage: Vec<(GrantId, Option<u64>)>,
    /// The credential of the grant, and the version that the decision is based on; `None` for a tool that needs none.
    pub credential: Option<(CredentialId, u32)>,
    /// The revision of the caller that the decision is based on.
    pub actor_revision: u64,
    /// The agent that the decision is based on; `None` if there is no such principal.
    pub agent: Option<Arc<Principal>>,
    /// The registry revision that was searched for the tool; `None` for a built-in tool.
    pub registry: Option<u64>,
    /// [`HeldGrants::work_revision`] that the decision is based on.
    pub work_revision: u64,
    /// The task of this gate that the call belongs to: it must be running and assigned to the agent.
    pub task: Option<TaskId>,
    /// The revision of the policies that decided about the call.
    pub policies: u64,
    /// What the agent had called and spent then, if rules read it: it must still be the same.
    pub counts: Option<Counts>,
    /// The revision of the tenant's budget and stops that the decision is based on.
    pub limits: u64,
    /// What the call reserves in budgets: one call, and the cost of its invocation.
    pub reservations: Vec<Reservation>,
    /// The run that the call is counted in.
    pub run: Option<CountedRun>,
    /// The guardians' decision about the call; recorded with it.
    pub decision: Option<Box<HookDecision>>,
    /// The marks that the call leaves on its conversation.
    pub marks: Option<Marks>,
    /// The token bucket of the agent for this tool.
    pub bucket: Option<RateLimit>,
    /// The approvals that the call is based on: consumed with it, so that none is used twice.
    pub consent: Consent,
    /// The action that standing approvals must be for.
    pub action: Option<BoundAction>,
    /// The digest that the decision on this call was given for.
    pub approval_digest: Option<String>,
    /// The arguments, if the log may contain them.
    pub inputs: Option<Value>,
    /// SHA-256 of the canonical request, for the idempotency key.
    pub request_digest: Option<String>,
    /// When the call must have ended.
    pub deadline: Timestamp,
    /// The process that has claimed the call, if it is detached: the claim must still hold.
    pub detached: Option<ProcessId>,
}

/// The outcome of an admission.
#[derive(Debug, Clone, PartialEq)]
pub enum Admission {
    Admitted,
    /// The same call was executed before; this was the result.
    Replayed(StoredResult),
    /// The rate is exhausted, or the idempotency key conflicts.
    Refused(Refusal),
    /// The state that the decision is based on has changed; decide again.
    Stale,
}

/// The result of a call, stored for repetitions with the same idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResult {
    pub invocation: InvocationId,
    pub grant: Option<GrantId>,
    pub status: InvocationStatus,
    /// As JSON text.
    pub result: String,
}

/// Settles a call: in one durable step its outcome and its event.
#[derive(Debug, Clone)]
pub struct Settle {
    pub audit: AuditContext,
    /// The call with its outcome.
    pub invocation: Invocation,
    /// What the admission reserved.
    pub reserved: Option<Cost>,
    /// The accounts of its reservations, each with the day that it was admitted in: charged again if the call was closed as
    /// cut off in the meantime.
    pub accounts: Vec<(Account, i64)>,
    /// The result for repetitions with the same idempotency key.
    pub stored_result: Option<String>,
    /// Whether the service certainly received nothing, so that the idempotency key is free again.
    pub never_sent: bool,
    /// The payload of the event about its return.
    pub returned: ToolReturned,
    /// The guardians' decision about its result.
    pub decision: Option<Box<HookDecision>>,
    /// The outcome for the caller, if the call is detached.
    pub detached: Option<FinishDetached>,
}

/// Records a refused call, with its event.
#[derive(Debug, Clone)]
pub struct RecordDenial {
    pub audit: AuditContext,
    pub invocation: Invocation,
    pub stage: &'static str,
    pub error: InvocationError,
    /// The payload of the event about its return.
    pub returned: ToolReturned,
    /// Whether it was refused for lack of authority.
    pub about_authority: bool,
    /// The guardians' decision, if it reached them.
    pub decision: Option<Box<HookDecision>>,
    /// The outcome for the caller, if the call is detached. The process must still hold its claim.
    pub detached: Option<FinishDetached>,
}

/// Refused calls of a principal that are not recorded individually.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenialCount {
    pub tenant: TenantId,
    pub principal: PrincipalId,
    pub code: &'static str,
    pub count: u64,
    pub first: Timestamp,
    pub last: Timestamp,
}
