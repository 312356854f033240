//! Calls: the grants that they can go through, admission, settlement, refusal.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use toolgate_model::approval::BoundAction;
use toolgate_model::connection::Connection;
use toolgate_model::credential::Credential;
use toolgate_model::grant::{Authority, Grant, Lineage};
use toolgate_model::guard::HookDecision;
use toolgate_model::hook::ToolReturned;
use toolgate_model::id::{CredentialId, GrantId, InvocationId, KeyId, ProcessId};
use toolgate_model::invocation::{Invocation, InvocationError, InvocationStatus};
use toolgate_model::principal::{Principal, PrincipalId, TenantId};
use toolgate_model::rate_limit::RateLimit;
use toolgate_model::service::{DefinitionError, ToolDefinition, ToolName};
use toolgate_model::time::Timestamp;

use super::{AuditContext, Consent, CountedRun, Counts, FinishDetached, GrantRates, Marks, RecordDecision};
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
    /// Returns one grant in whatever state it is.
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
    /// Counts refused calls that are not recorded one by one: each principal and code once, in their order.
    async fn count_denials(&self, counts: Vec<DenialCount>) -> Result<(), Refusal>;
    /// Records the counts that began before `before` in one event per principal; returns the number of calls.
    async fn sum_up_denials(&self, before: Timestamp, now: Timestamp) -> Result<u64, Refusal>;
    /// Records the decisions of guardians on an event that is not a call of the gate.
    async fn record_decision(&self, command: RecordDecision) -> Result<(), Refusal>;
    /// Settles calls as unknown that are past their deadline, or that an earlier run of the only process left in flight,
    /// and deletes old idempotency keys. Returns the number of calls.
    async fn close_calls(&self, now: Timestamp) -> Result<u64, Refusal>;
}

/// A point in the history of authority: who exists, what is granted, which services are registered. While it stands
/// still, nothing of that has changed. Only one ledger's own points can be compared.
pub type Generation = u64;

/// How new an answer must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// May be some moments old: whatever rests on it is checked again when the call is admitted.
    Recent,
    /// Includes every change that was acknowledged before.
    Newest,
}

/// A grant with all that a call through it needs: lineage, effective authority, credential and connection.
#[derive(Debug)]
pub struct HeldGrant {
    /// The grant with what it was delegated from.
    pub lineage: Lineage,
    /// What it can do in effect.
    pub effective: Authority,
    /// What it opens.
    pub credential: Credential,
    /// How the credential's service is reached; a connection that is not understood is closed.
    pub connection: Result<Connection, DefinitionError>,
    /// The tools that the credential defines by itself.
    pub implicit: BTreeMap<ToolName, Arc<ToolDefinition>>,
    /// The state that all of this was read from.
    pub generation: Generation,
}

impl HeldGrant {
    /// Puts one together from what is stored.
    pub fn new(lineage: Lineage, credential: Credential, generation: Generation) -> Self {
        let effective = lineage.effective();
        let connection = Connection::from_metadata(&credential.metadata);
        let implicit = match &connection {
            Ok(connection) => connection.implicit_tools(&credential.scopes_available),
            Err(_) => BTreeMap::new(),
        };
        let implicit = implicit.into_iter().map(|(name, tool)| (name, Arc::new(tool))).collect();
        Self { lineage, effective, credential, connection, implicit, generation }
    }

    /// The grant's id.
    pub fn grant(&self) -> GrantId {
        self.lineage.grant().id
    }

    /// How often it may be used.
    pub fn rates(&self) -> GrantRates {
        let grants = self.lineage.ancestors().iter().chain([self.lineage.grant()]);
        let limit = |grant: &Grant| (grant.id, grant.authority.constraints.max_invocations_per_hour);
        GrantRates { grant: self.grant(), lineage: grants.map(limit).collect() }
    }
}

/// All grants of an agent that have not ended.
#[derive(Debug)]
pub struct HeldGrants {
    /// The agent, as it was read together with what it holds; `None` where there is no such principal.
    pub agent: Option<Arc<Principal>>,
    /// The state that all of this was read from.
    pub generation: Generation,
    /// The grants, oldest first.
    pub held: Vec<Arc<HeldGrant>>,
    /// Whether there are more than are looked through.
    pub truncated: bool,
}

impl HeldGrants {
    /// The most grants of one agent that are looked through for a call that names none.
    pub const LIMIT: u32 = 2000;
}

/// Admits a call: in one durable step the whole authority that it rests on is checked again, its rate is reserved, its
/// idempotency key claimed and the call written down as running.
#[derive(Debug, Clone)]
pub struct Admit {
    /// Who and when.
    pub audit: AuditContext,
    /// The key that the caller showed.
    pub key: KeyId,
    /// The call as it is written down.
    pub invocation: Invocation,
    /// The state that the decision rests on.
    pub generation: Generation,
    /// When the first of what the decision rests on ends by the clock.
    pub usable_until: Option<Timestamp>,
    /// The grants of the lineage, the direct one first, each with the calls that it allows in an hour.
    pub lineage: Vec<(GrantId, Option<u64>)>,
    /// What the grant opens, and the version of it that the decision rests on; `None` for a tool that needs none.
    pub credential: Option<(CredentialId, u32)>,
    /// The revision of whoever calls that the decision rests on.
    pub actor_revision: u64,
    /// The agent as the decision rests on it; `None` where there is no such principal.
    pub agent: Option<Arc<Principal>>,
    /// The revision of the registry that was searched for the tool; `None` for a built-in, which is in none.
    pub registry: Option<u64>,
    /// The revision of the policies that judged the call.
    pub policies: u64,
    /// How much the agent had called and spent when they did, where they looked at it: it must be so still.
    pub counts: Option<Counts>,
    /// The execution that the call counts in.
    pub run: Option<CountedRun>,
    /// What guardians said about the call; written down with it.
    pub decision: Option<Box<HookDecision>>,
    /// What the call leaves on its conversation.
    pub marks: Option<Marks>,
    /// How often this agent may call this tool.
    pub bucket: Option<RateLimit>,
    /// The approvals that the call rests on: taken with it, so that none is taken twice.
    pub consent: Consent,
    /// The action that standing approvals must be for.
    pub action: Option<BoundAction>,
    /// What the decision on this call was given for.
    pub approval_digest: Option<String>,
    /// The arguments, where the log may have them.
    pub inputs: Option<Value>,
    /// SHA-256 of the canonical request, under the caller's key for it.
    pub request_digest: Option<String>,
    /// When, at the latest, the call is over.
    pub deadline: Timestamp,
    /// The process that has claimed the call, where it is detached: it must have so still.
    pub detached: Option<ProcessId>,
}

/// What became of an admission.
#[derive(Debug, Clone, PartialEq)]
pub enum Admission {
    /// It is reserved, claimed and written down.
    Admitted,
    /// The same call was carried out before; this is what it answered.
    Replayed(StoredResult),
    /// It may not be: the rate is used up, or the idempotency key is in the way.
    Refused(Refusal),
    /// The state that the decision rests on has changed; look again.
    Stale,
}

/// The result of a call, kept for repetitions with the same idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResult {
    /// The call.
    pub invocation: InvocationId,
    /// The grant that it used.
    pub grant: Option<GrantId>,
    /// How it ended.
    pub status: InvocationStatus,
    /// The answer, as JSON text.
    pub answer: String,
}

/// Settles a call: in one durable step its outcome and its event.
#[derive(Debug, Clone)]
pub struct Settle {
    /// Who and when.
    pub audit: AuditContext,
    /// The call with its outcome.
    pub invocation: Invocation,
    /// What it answered, for whoever sends it again under its idempotency key.
    pub answer: Option<String>,
    /// Whether the service certainly saw nothing of it, so that the idempotency key is free again.
    pub never_sent: bool,
    /// What the log is told of its return.
    pub returned: ToolReturned,
    /// What guardians said about its result.
    pub decision: Option<Box<HookDecision>>,
    /// Where the call is detached, what its caller gets.
    pub detached: Option<FinishDetached>,
}

/// Writes down a call that was refused, with its event.
#[derive(Debug, Clone)]
pub struct RecordDenial {
    /// Who and when.
    pub audit: AuditContext,
    /// The refused call.
    pub invocation: Invocation,
    /// At which stage.
    pub stage: &'static str,
    /// Why.
    pub error: InvocationError,
    /// What the log is told of its return.
    pub returned: ToolReturned,
    /// Whether it was refused for want of authority.
    pub about_authority: bool,
    /// What guardians said about it, where it came so far.
    pub decision: Option<Box<HookDecision>>,
    /// Where the call is detached, what its caller gets. The process must have it claimed still.
    pub detached: Option<FinishDetached>,
}

/// Refused calls of a principal that are not written down one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenialCount {
    /// Whose tenant.
    pub tenant: TenantId,
    /// Who called.
    pub principal: PrincipalId,
    /// What the calls were refused with.
    pub code: &'static str,
    /// How many they were.
    pub count: u64,
    /// When the first of them was refused.
    pub first: Timestamp,
    /// When the last of them was.
    pub last: Timestamp,
}
