//! Resolves the tool that the caller named, among the tools of the services that the agent holds grants for. Tools
//! without a grant do not exist for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolgate_model::credential::ServiceName;
use toolgate_model::grant::GrantStatus;
use toolgate_model::id::GrantId;
use toolgate_model::scope::Scope;
use toolgate_model::service::{ServiceVersion, ToolName};
use toolgate_model::tool_alias::{self, Meaning, ToolAlias};

use super::authorize::require_standing;
use super::eligible::{AuthorizedBy, Candidate};
use super::{Call, Pipeline};
use crate::catalog::{Catalog, Service, Tool};
use crate::ports::ledger::{Freshness, HeldGrant, HeldGrants, StoppedBy};
use crate::refusal::{Code, Refusal, Stage};

#[cfg(test)]
mod tests;

/// The prefix of a connector's tool in the catalog. A call may also use it.
const CONNECTOR: &str = "connector:";

/// A call whose tool was found, with every grant that might authorize it.
pub(super) struct Resolved {
    candidates: Vec<Candidate>,
}

impl Resolved {
    /// Any of the candidates: all are for the same tool.
    pub(super) fn first(&self) -> Option<Candidate> {
        self.candidates.first().cloned()
    }

    pub(super) fn into_candidates(self) -> Vec<Candidate> {
        self.candidates
    }
}

impl Pipeline {
    /// Finds the tool, and the grants on its service.
    pub(super) async fn resolve(&self, call: &Call, freshness: Freshness) -> Result<Resolved, Refusal> {
        let tenant = call.caller.tenant();
        let held_grants = self.held_grants.held_grants(tenant, &call.agent, self.clock.now(), freshness).await?;
        // Before anything is said about tools: whatever the call is for, it is not made.
        require_not_stopped(call, &held_grants)?;
        if let Some(tool) = self.built_in(call) {
            let agent = held_grants.agent.clone();
            let generation = held_grants.generation;
            let candidate = Candidate {
                authorized_by: AuthorizedBy::Scopes,
                agent,
                limits: Arc::clone(&held_grants.limits),
                generation,
                work_revision: held_grants.work_revision,
                work: held_grants.work.clone(),
                tool,
                registry: None,
                client_executed: call.asked.is_some(),
            };
            return Ok(Resolved { candidates: vec![candidate] });
        }
        let held = self.held(call, &held_grants).await?;
        let catalog = self.catalogs.of(tenant, freshness).await?;
        let looking = ToolLookup { call, held_grants: &held_grants, catalog: &catalog };
        let named: Vec<Candidate> = held.iter().filter_map(|held_grant| looking.qualified(held_grant)).collect();
        let candidates = match named.is_empty() {
            false => named,
            true => unambiguous(held.iter().flat_map(|held_grant| looking.bare(held_grant)).collect()),
        };
        let candidates = match candidates.is_empty() {
            false => candidates,
            true => looking.aliased(&held),
        };
        let tools: BTreeSet<_> = candidates.iter().map(|found| (&found.tool.service, &found.tool.name)).collect();
        match tools.len() {
            0 => Err(self.explain_missing(call, &held, freshness).await?),
            1 => Ok(Resolved { candidates }),
            _ => {
                let names: Vec<_> = tools.iter().map(|(service, tool)| service.with_tool(tool.as_str())).collect();
                let reason = format!("`{}` names several tools; use one of {}", call.tool, names.join(", "));
                Err(Refusal::new(Code::ToolAmbiguous, reason).with("candidates", names))
            }
        }
    }

    /// A tool that needs no grant: that of a conformance endpoint, or a built-in tool, which is named by its id.
    fn built_in(&self, call: &Call) -> Option<Arc<Tool>> {
        if let Some(tool) = &call.uncataloged_tool {
            return Some(Arc::clone(tool));
        }
        let named = self.builtins.named(call.caller.tenant(), &call.tool)?;
        if call.grant.is_some() || call.version.is_some() {
            return None;
        }
        Some(Arc::clone(&named.tool))
    }

    /// The grants to check: the one that the call names, or all that the agent holds.
    async fn held(&self, call: &Call, held_grants: &HeldGrants) -> Result<Vec<Arc<HeldGrant>>, Refusal> {
        let tenant = call.caller.tenant();
        let Some(grant) = call.grant else {
            if held_grants.truncated {
                let reason = format!("`{}` holds too many grants to pick from; name one in `grant_id`", call.agent);
                return Err(Refusal::new(Code::InvalidField, reason).with("path", "grant_id"));
            }
            return Ok(held_grants.held.clone());
        };
        if let Some(held_grant) = held_grants.held.iter().find(|held_grant| held_grant.grant() == grant) {
            return Ok(vec![Arc::clone(held_grant)]);
        }
        let found = self.held_grants.held_grant(tenant, grant).await?;
        match found.filter(|held_grant| held_grant.lineage.grant().agent == call.agent) {
            Some(held_grant) => Ok(vec![held_grant]),
            None => Err(no_grant(grant)),
        }
    }

    /// Why nothing was found, as far as the agent may know.
    async fn explain_missing(
        &self,
        call: &Call,
        held: &[Arc<HeldGrant>],
        freshness: Freshness,
    ) -> Result<Refusal, Refusal> {
        if let Some(held_grant) = held.iter().find(|held_grant| held_grant.credential.service.as_str() == call.tool) {
            let scopes = &held_grant.effective.scopes;
            let example =
                scopes.iter().next().map_or_else(String::new, |scope| format!(", as in `{}.{scope}`", call.tool));
            let reason = format!("`{}` is a service; name one of its tools{example}", call.tool);
            return Ok(Refusal::new(Code::ToolNotFound, reason).with("available_scopes", scopes));
        }
        let named = |held_grant: &Arc<HeldGrant>| {
            tool_part(call, &held_grant.credential.service).or_else(|| call.grant.map(|_| call.tool.as_str()))
        };
        let beyond: Vec<_> = held.iter().filter_map(|held_grant| Some((held_grant, named(held_grant)?))).collect();
        let holds_scope = |(held_grant, wanted): &&(&Arc<HeldGrant>, &str)| {
            Scope::parse(wanted).is_ok_and(|scope| held_grant.effective.scopes.contains(&scope))
        };
        if let Some((held_grant, _)) = beyond.iter().find(holds_scope) {
            return Ok(undefined(call, held_grant));
        }
        // A tool that a service does not have and one that the agent may not use look the same.
        if let Some((_, wanted)) = beyond.first() {
            let scopes: BTreeSet<&Scope> =
                beyond.iter().flat_map(|(held_grant, _)| held_grant.effective.scopes.iter()).collect();
            let who = match beyond.as_slice() {
                [(only, _)] => format!("grant {} does not include", only.grant()),
                _ => "no grant of the agent includes".to_owned(),
            };
            let refusal = Refusal::new(Code::GrantScopeInsufficient, format!("{who} scope '{wanted}'"))
                .with("requested_scope", wanted)
                .with("available_scopes", scopes);
            return Ok(match beyond.as_slice() {
                [(only, _)] => refusal.with("grant_id", only.grant()),
                _ => refusal,
            });
        }
        if freshness == Freshness::Newest {
            // A grant that was usable once: saying so helps, and tells the agent nothing new.
            let now = self.clock.now();
            for held_grant in self.held_grants.ended_grants(call.caller.tenant(), &call.agent, now).await? {
                let names_it = tool_part(call, &held_grant.credential.service)
                    .or_else(|| (call.grant.is_none()).then_some(call.tool.as_str()));
                let held_it = names_it.and_then(|name| Scope::parse(name).ok());
                if held_it.is_some_and(|scope| held_grant.lineage.grant().authority.scopes.contains(&scope))
                    && held_grant.lineage.standing(now).status != GrantStatus::Active
                {
                    require_standing(&held_grant, now)?;
                }
            }
        }
        let reason = format!("there is no tool `{}` for `{}`", call.tool, call.agent);
        Ok(Refusal::new(Code::ToolNotFound, reason))
    }
}

/// Refuses a call whose agent, caller, tenant or gate is stopped.
fn require_not_stopped(call: &Call, held_grants: &HeldGrants) -> Result<(), Refusal> {
    let own = || StoppedBy::of_principal(call.caller.principal());
    match held_grants.limits.stopped.clone().or_else(own) {
        // About the caller, not about the tool.
        Some(stopped) => Err(stopped.refusal().at(Stage::Identify)),
        None => Ok(()),
    }
}

/// The lookup of a tool for one call.
struct ToolLookup<'a> {
    call: &'a Call,
    held_grants: &'a HeldGrants,
    catalog: &'a Catalog,
}

impl<'a> ToolLookup<'a> {
    /// `service.tool`, with the service of this grant.
    fn qualified(&self, held_grant: &Arc<HeldGrant>) -> Option<Candidate> {
        self.named(held_grant, tool_part(self.call, &held_grant.credential.service)?)
    }

    /// The tool with this name at the service of this grant.
    fn named(&self, held_grant: &Arc<HeldGrant>, name: &str) -> Option<Candidate> {
        let registered = self.registered(held_grant).and_then(|service| service.tool(name)).map(Arc::clone);
        let tool = registered.or_else(|| unversioned(self.call, held_grant, name))?;
        Some(self.candidate(held_grant, tool))
    }

    /// A scope, or the name of a tool without its service.
    fn bare(&self, held_grant: &Arc<HeldGrant>) -> Vec<Candidate> {
        let wanted = &self.call.tool;
        if let Some(service) = self.registered(held_grant) {
            if let Some(tool) = service.tool(wanted) {
                return vec![self.candidate(held_grant, Arc::clone(tool))];
            }
            if let Ok(scope) = Scope::parse(wanted) {
                let tools = service.tools_of_scope(&scope);
                let of_scope: Vec<_> = tools.map(|tool| self.candidate(held_grant, Arc::clone(tool))).collect();
                if !of_scope.is_empty() {
                    return of_scope;
                }
            }
        }
        unversioned(self.call, held_grant, wanted).map(|tool| self.candidate(held_grant, tool)).into_iter().collect()
    }

    /// The tool of this alias at the services of these grants.
    fn aliased(&self, held: &[Arc<HeldGrant>]) -> Vec<Candidate> {
        match tool_alias::read(&self.call.tool) {
            Some(Meaning::Tool(service, name)) => {
                let of_service = held.iter().filter(|held_grant| held_grant.credential.service == service);
                of_service.filter_map(|held_grant| self.named(held_grant, name.as_str())).collect()
            }
            Some(Meaning::Hashed) => held.iter().filter_map(|held_grant| self.hashed(held_grant)).collect(),
            Some(Meaning::BuiltIn) | None => Vec::new(),
        }
    }

    fn hashed(&self, held_grant: &Arc<HeldGrant>) -> Option<Candidate> {
        let registered = self.registered(held_grant).into_iter().flat_map(|service| service.tools());
        let mut registered = registered.filter(|tool| tool.alias().as_str() == self.call.tool);
        let service = &held_grant.credential.service;
        let implicit = || {
            let mut names = held_grant.implicit.keys();
            let name = names.find(|name| ToolAlias::of(service, name).as_str() == self.call.tool)?;
            unversioned(self.call, held_grant, name.as_str())
        };
        let tool = registered.next().cloned().or_else(implicit)?;
        Some(self.candidate(held_grant, tool))
    }

    fn registered(&self, held_grant: &HeldGrant) -> Option<&'a Service> {
        self.catalog.service(&held_grant.credential.service, self.call.version.as_ref().or(pinned(held_grant)))
    }

    /// A tool that only a credential defines also depends on the registry, which must not define it.
    fn candidate(&self, held_grant: &Arc<HeldGrant>, tool: Arc<Tool>) -> Candidate {
        Candidate {
            authorized_by: AuthorizedBy::Grant(Arc::clone(held_grant)),
            agent: self.held_grants.agent.clone(),
            limits: Arc::clone(&self.held_grants.limits),
            // A grant that the call names may have been read later than the agent and its limits.
            generation: held_grant.generation.min(self.held_grants.generation),
            work_revision: self.held_grants.work_revision,
            // The coordinators of a grant come with it.
            work: None,
            tool,
            registry: Some(self.catalog.revision),
            // A hook request is executed by the other runtime, never here.
            client_executed: self.call.asked.is_some(),
        }
    }
}

/// The version of the service that the credential names, if any.
fn pinned(held_grant: &HeldGrant) -> Option<&ServiceVersion> {
    held_grant.connection.as_ref().ok().and_then(|connection| connection.service_version.as_ref())
}

/// Of several tools, those whose scope the agent holds: the others do not exist for it.
fn unambiguous(candidates: Vec<Candidate>) -> Vec<Candidate> {
    let mut tools = candidates.iter().map(|found| (&found.tool.service, &found.tool.name));
    let first = tools.next();
    if tools.all(|tool| Some(tool) == first) {
        return candidates;
    }
    let held = |found: &Candidate| {
        found.held_grant().is_some_and(|held_grant| held_grant.effective.scopes.contains(&found.tool.definition.scope))
    };
    candidates.into_iter().filter(held).collect()
}

/// The agent holds the scope, but nothing defines the tool.
fn undefined(call: &Call, held_grant: &HeldGrant) -> Refusal {
    let (tool, grant) = (&call.tool, held_grant.grant());
    if let Some(version) = &call.version {
        let reason =
            format!("version `{version}` of its service has no tool `{tool}`; omit `version` to use another version");
        return Refusal::new(Code::ToolNotFound, reason).with("grant_id", grant);
    }
    let reason = format!(
        "grant {grant} holds the scope, but nothing defines the tool `{tool}`: register its service, or give the \
         credential's metadata a `base_url`"
    );
    Refusal::new(Code::ToolNotExecutable, reason).with("grant_id", grant)
}

/// The tool that the credential defines. It has no versions, so a call that names one does not mean it.
fn unversioned(call: &Call, held_grant: &HeldGrant, name: &str) -> Option<Arc<Tool>> {
    if call.version.is_some() {
        return None;
    }
    let name = ToolName::parse(name).ok()?;
    let definition = held_grant.implicit.get(&name)?;
    Some(Arc::new(Tool::implicit(held_grant.credential.service.clone(), name, Arc::clone(definition))))
}

/// The part after the service and its dot.
pub(super) fn tool_part<'a>(call: &'a Call, service: &ServiceName) -> Option<&'a str> {
    let name = call.tool.strip_prefix(CONNECTOR).unwrap_or(&call.tool);
    name.strip_prefix(service.as_str())?.strip_prefix('.').filter(|rest| !rest.is_empty())
}

fn no_grant(grant: GrantId) -> Refusal {
    Refusal::new(Code::GrantNotFound, format!("there is no grant {grant}")).with("grant_id", grant)
}
