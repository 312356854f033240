//! Commands on calls: admission, settlement, refusal; and the records that stay of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use toolgate_model::approval::BoundAction;
use toolgate_model::connection::Connection;
use toolgate_model::context::ContextId;
use toolgate_model::credential::{Credential, ServiceName};
use toolgate_model::grant::{Authority, Grant, Lineage};
use toolgate_model::guard::HookDecision;
use toolgate_model::hook::ToolReturned;
use toolgate_model::id::{CredentialId, GrantId, InvocationId, KeyId, ProcessId};
use toolgate_model::invocation::{IdempotencyKey, Invocation, InvocationError, InvocationStatus};
use toolgate_model::principal::{Principal, PrincipalId, TenantId};
use toolgate_model::rate_limit::RateLimit;
use toolgate_model::service::{DefinitionError, ToolDefinition, ToolName};
use toolgate_model::time::Timestamp;

use super::{Consent, CountedRun, Counts, FinishDetached, GrantRates, Mandate, Marks, Stamp};
use crate::refusal::Refusal;

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

/// A grant in the hands of its agent, with all that a call through it needs to know.
#[derive(Debug)]
pub struct Holding {
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

impl Holding {
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

/// Everything that an agent holds and that has not ended.
#[derive(Debug)]
pub struct Holdings {
    /// The agent, as it was read together with what it holds; `None` where there is no such principal.
    pub agent: Option<Arc<Principal>>,
    /// The state that all of this was read from.
    pub generation: Generation,
    /// The grants, oldest first.
    pub held: Vec<Arc<Holding>>,
    /// Whether there are more than are looked through.
    pub truncated: bool,
}

impl Holdings {
    /// The most grants of one agent that are looked through for a call that names none.
    pub const LIMIT: u32 = 2000;
}

/// Admits a call: in one durable step the whole authority that it rests on is checked again, its rate is reserved, its
/// idempotency key claimed and the call written down as running.
#[derive(Debug, Clone)]
pub struct Admit {
    /// Who and when.
    pub stamp: Stamp,
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
    /// The revision of the agent that the decision rests on; `None` where there is no such principal.
    pub agent_revision: Option<u64>,
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
    Replayed(StoredAnswer),
    /// It may not be: the rate is used up, or the idempotency key is in the way.
    Refused(Refusal),
    /// The state that the decision rests on has changed; look again.
    Stale,
}

/// What a call answered, as it is kept for whoever sends it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
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
    pub stamp: Stamp,
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
    pub stamp: Stamp,
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

/// Writes down a call that its caller made by itself and reports.
#[derive(Debug, Clone)]
pub struct ReportInvocation {
    /// Who and when, and by which right.
    pub stamp: Mandate,
    /// The grants of the lineage from the top down, each with its limit per hour: all must be usable, and it counts at
    /// each.
    pub lineage: Vec<(GrantId, Option<u64>)>,
    /// The credential that it went through.
    pub credential: CredentialId,
    /// The call.
    pub invocation: Invocation,
}

/// Which invocations to list, newest first. What is absent does not filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InvocationFilter {
    /// By agent.
    pub agent: Option<PrincipalId>,
    /// By grant.
    pub grant: Option<GrantId>,
    /// By service.
    pub service: Option<ServiceName>,
    /// By tool.
    pub tool: Option<String>,
    /// By status.
    pub status: Option<InvocationStatus>,
    /// By intent.
    pub intent: Option<ContextId>,
    /// By task.
    pub task: Option<ContextId>,
    /// By the caller's name for it.
    pub idempotency_key: Option<IdempotencyKey>,
    /// From then on.
    pub since: Option<Timestamp>,
    /// Until before then.
    pub until: Option<Timestamp>,
    /// Only through grants on credentials in vaults of this owner.
    pub vault_owner: Option<PrincipalId>,
}
