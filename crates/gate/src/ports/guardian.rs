//! The guardian: consulted about a call before it runs, about its result before it is used, and about the hook requests
//! of other agents' runtimes.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use toolgate_model::credential::ServiceName;
use toolgate_model::guard::{Dialect, Hook, HookDecision, HookEvent, Verdict};
use toolgate_model::hook::RunId;
use toolgate_model::id::InvocationId;
use toolgate_model::principal::{Principal, PrincipalId, TenantId};
use toolgate_model::service::ToolDefinition;

use crate::ports::ledger::{Counts, Freshness, Generation, MarkScope};
use crate::refusal::Refusal;

/// An event with everything that the gate knows about it, except secrets and keys.
pub struct Hooked<'a> {
    pub event: &'a HookEvent<'a>,
    pub dialect: Dialect,
    /// The id of the hook request, if it came from another runtime.
    pub request: Option<&'a str>,
    pub tenant: &'a TenantId,
    /// The call that it belongs to.
    pub invocation: Option<InvocationId>,
    /// The agent that it is for.
    pub agent: &'a PrincipalId,
    /// `None` if there is no such principal.
    pub principal: Option<&'a Arc<Principal>>,
    /// The caller.
    pub actor: &'a Principal,
    /// Set if it is about a tool.
    pub tool: Option<HookedTool<'a>>,
    /// The arguments of the call, if the event is its result.
    pub arguments: Option<&'a Map<String, Value>>,
    pub run: Option<&'a RunId>,
    /// Whose earlier calls count as leading to this one.
    pub marks: MarkScope,
    pub address: IpAddr,
    /// How new the policies must be.
    pub freshness: Freshness,
    /// Secrets that must not leave the gate; `None` if they are not known yet.
    pub secrets: Option<&'a [&'a [u8]]>,
}

/// The parts of an event that decide which rules apply and which guardians are consulted.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    pub hook: Hook,
    /// The agent that it is for.
    pub agent: &'a PrincipalId,
    /// `None` if there is no such principal.
    pub principal: Option<&'a Principal>,
    /// The caller.
    pub actor: &'a Principal,
    /// Set exactly if a tool is called or has returned.
    pub tool: Option<HookedTool<'a>>,
    /// Where it comes from.
    pub dialect: Dialect,
}

impl Subject<'_> {
    /// Whether it is a message or a step of a call of the gate itself. What matters in it is evaluated as the call or the result
    /// that it belongs to as well, so only rules that name its hook apply.
    pub fn is_own_message(&self) -> bool {
        let about_tool = matches!(self.hook, Hook::ToolCallRequest | Hook::ToolCallResult);
        !about_tool && self.dialect == Dialect::Native
    }
}

impl<'a> Hooked<'a> {
    pub fn subject(&self) -> Subject<'a> {
        Subject {
            hook: self.event.hook,
            agent: self.agent,
            principal: self.principal.map(|principal| &**principal),
            actor: self.actor,
            tool: self.tool,
            dialect: self.dialect,
        }
    }
}

#[derive(Clone, Copy)]
pub struct HookedTool<'a> {
    pub service: &'a ServiceName,
    /// `service.tool`.
    pub name: &'a str,
    pub definition: &'a Arc<ToolDefinition>,
    /// Whether it is client-executed: known only from what the client says.
    pub external: bool,
    /// The registry revision that it was found in; `None` for a tool outside the registry.
    pub registry: Option<u64>,
}

/// What all guardians together decide about an event.
#[derive(Debug, Clone, PartialEq)]
pub struct Ruling {
    pub verdict: Verdict,
    /// `None` if no rule or guardian applied.
    pub decision: Option<Box<HookDecision>>,
    /// The policies that it is based on.
    pub basis: PolicyBasis,
    /// Whether there is no verdict because the secrets of the call must be known first: consult again with them.
    pub lacks_secrets: bool,
}

/// The state of the policies that a ruling is based on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PolicyBasis {
    /// Counts the changes of the tenant's policies; zero if there were none.
    pub revision: u64,
    /// The state that this was read from.
    pub generation: Generation,
    /// What the agent had called and spent, if rules read it.
    pub counts: Option<Counts>,
}

impl PolicyBasis {
    /// The older one of two that one call is based on: if the state has changed in between, the admission finds out.
    #[must_use]
    pub fn older(self, other: Self) -> Self {
        Self {
            revision: self.revision.min(other.revision),
            generation: self.generation.min(other.generation),
            counts: self.counts.or(other.counts),
        }
    }
}

#[async_trait]
pub trait Guardian: Send + Sync {
    /// The basis of the policies if no rule or guardian applies to such an event, whatever its content: then it need
    /// not be evaluated. `None` if one may apply.
    async fn unconcerned(
        &self,
        _tenant: &TenantId,
        _subject: &Subject<'_>,
        _freshness: Freshness,
    ) -> Result<Option<PolicyBasis>, Refusal> {
        Ok(None)
    }

    /// Decides about an event. A refusal means that nobody could be consulted, which is a denial.
    async fn judge(&self, hooked: &Hooked<'_>) -> Result<Ruling, Refusal>;

    /// What is known about a ruling without external guardians: the verdict of the gate's own policies, and the
    /// guardians that would be consulted.
    async fn dry_run(&self, hooked: &Hooked<'_>) -> Result<(Verdict, Vec<String>), Refusal>;
}
