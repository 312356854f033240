//! The guardian: is asked about a call before it runs, about its result before it is used, and about whatever the
//! runtimes of other agents ask the gate about.

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

/// An event with all that the gate knows about it: everything but secrets and keys.
pub struct Hooked<'a> {
    /// The event.
    pub event: &'a HookEvent<'a>,
    /// In whose words the gate was asked.
    pub dialect: Dialect,
    /// The id of the question, where somebody asked one.
    pub request: Option<&'a str>,
    /// The tenant.
    pub tenant: &'a TenantId,
    /// The call that it belongs to.
    pub invocation: Option<InvocationId>,
    /// For whom it is.
    pub agent: &'a PrincipalId,
    /// The agent as it is known; `None` where there is no such principal.
    pub principal: Option<&'a Arc<Principal>>,
    /// Who makes it.
    pub actor: &'a Principal,
    /// The tool, where it is about one.
    pub tool: Option<HookedTool<'a>>,
    /// The arguments of the call, where it is its result that is looked at.
    pub arguments: Option<&'a Map<String, Value>>,
    /// The execution that it belongs to.
    pub run: Option<&'a RunId>,
    /// Whose earlier calls count as having led to this one.
    pub marks: MarkScope,
    /// From where it comes.
    pub address: IpAddr,
    /// How new the policies must be that it is judged by.
    pub freshness: Freshness,
    /// What must not be in anything that leaves the gate; `None` where it is not known yet.
    pub secrets: Option<&'a [&'a [u8]]>,
}

/// What of an event decides who has a say in it: which rules apply and which guardians are asked.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    pub hook: Hook,
    /// For whom it is.
    pub agent: &'a PrincipalId,
    /// The agent as it is known; `None` where there is no such principal.
    pub principal: Option<&'a Principal>,
    /// Who makes it.
    pub actor: &'a Principal,
    /// The tool; there is one where a tool is called or has returned, and nowhere else.
    pub tool: Option<HookedTool<'a>>,
}

impl<'a> Hooked<'a> {
    pub fn subject(&self) -> Subject<'a> {
        Subject {
            hook: self.event.hook,
            agent: self.agent,
            principal: self.principal.map(|principal| &**principal),
            actor: self.actor,
            tool: self.tool,
        }
    }
}

/// A tool that a guardian is asked about.
#[derive(Clone, Copy)]
pub struct HookedTool<'a> {
    pub service: &'a ServiceName,
    /// `service.tool`.
    pub name: &'a str,
    pub definition: &'a Arc<ToolDefinition>,
    /// Whether it is somebody else's: known only by what whoever asks says.
    pub external: bool,
    /// The revision of the registry that it was found in; `None` for one that is not in it.
    pub registry: Option<u64>,
}

/// What guardians say about an event, all together.
#[derive(Debug, Clone, PartialEq)]
pub struct Ruling {
    /// What they say.
    pub verdict: Verdict,
    /// The record of it; `None` where nobody had anything to look at.
    pub decision: Option<Box<HookDecision>>,
    /// The policies that it rests on.
    pub basis: PolicyBasis,
    /// Whether nothing was said because the secrets of the call must be known first: ask again with them.
    pub lacks_secrets: bool,
}

/// The state of the policies that a ruling rests on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PolicyBasis {
    /// Counts the changes of the tenant's policies; zero where there never was one.
    pub revision: u64,
    /// The state that this was read from.
    pub generation: Generation,
    /// How much the agent had called and spent, where rules looked at it.
    pub counts: Option<Counts>,
}

/// Gives rulings.
#[async_trait]
pub trait Guardian: Send + Sync {
    /// The policies by which nobody has a say in such an event, whatever its content is: then it need not be judged.
    /// `None` where somebody may have one.
    async fn unconcerned(
        &self,
        _tenant: &TenantId,
        _subject: &Subject<'_>,
        _freshness: Freshness,
    ) -> Result<Option<PolicyBasis>, Refusal> {
        Ok(None)
    }

    /// On an event. A refusal means that nobody could be asked, which is a no.
    async fn judge(&self, hooked: &Hooked<'_>) -> Result<Ruling, Refusal>;

    /// What is known about a ruling without asking anybody outside: what the gate's own policies say, and who else would
    /// be asked.
    async fn dry_run(&self, hooked: &Hooked<'_>) -> Result<(Verdict, Vec<String>), Refusal>;
}
