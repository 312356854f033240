//! Which tool: the name that the caller wrote, among the tools of the services that the agent holds grants for. What it
//! holds no grant for does not exist for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolgate_model::credential::ServiceName;
use toolgate_model::grant::GrantStatus;
use toolgate_model::id::GrantId;
use toolgate_model::scope::Scope;
use toolgate_model::service::{ServiceVersion, ToolName};

use super::Call;
use super::authorize::require_standing;
use super::fit::Candidate;
use crate::catalog::{Catalog, Tool};
use crate::gate::Gate;
use crate::ports::ledger::{Freshness, Holding};
use crate::refusal::{Code, Refusal};

/// A call whose tool was found, with every grant that might open it.
pub(super) struct Resolved {
    candidates: Vec<Candidate>,
}

impl Resolved {
    /// Any of the candidates: they are all for the same tool.
    pub(super) fn first(&self) -> Option<Candidate> {
        self.candidates.first().cloned()
    }

    pub(super) fn into_candidates(self) -> Vec<Candidate> {
        self.candidates
    }
}

impl Gate {
    /// Finds the tool, and the grants on its service.
    pub(super) async fn resolve(&self, call: &Call, freshness: Freshness) -> Result<Resolved, Refusal> {
        let tenant = call.caller.tenant();
        let held = self.held(call, freshness).await?;
        let catalog = self.catalog(tenant, freshness).await?;
        let named: Vec<Candidate> = held.iter().filter_map(|holding| qualified(call, holding, &catalog)).collect();
        let candidates = match named.is_empty() {
            false => named,
            true => unambiguous(held.iter().flat_map(|holding| bare(call, holding, &catalog)).collect()),
        };
        let tools: BTreeSet<_> = candidates.iter().map(|found| (&found.tool.service, &found.tool.name)).collect();
        match tools.len() {
            0 => Err(self.explain_missing(call, &held, freshness).await?),
            1 => Ok(Resolved { candidates }),
            _ => {
                let names: Vec<_> = tools.iter().map(|(service, tool)| format!("{service}.{tool}")).collect();
                let reason = format!("`{}` names several tools; write one of {}", call.tool, names.join(", "));
                Err(Refusal::new(Code::ToolAmbiguous, reason).with("candidates", names))
            }
        }
    }

    /// Finds the same tool again for a grant that was read anew.
    pub(super) async fn resolve_again(
        &self,
        call: &Call,
        holding: Arc<Holding>,
        before: &Candidate,
    ) -> Result<Candidate, Refusal> {
        let catalog = self.catalog(call.caller.tenant(), Freshness::Newest).await?;
        let name = before.tool.name.as_str();
        let tool = registered(call, &holding, &catalog).and_then(|service| service.tool(name)).map(Arc::clone);
        let registry = tool.is_some().then_some(catalog.revision);
        match tool.or_else(|| unversioned(call, &holding, name)) {
            Some(tool) => Ok(Candidate { holding, tool, registry }),
            None => Err(Refusal::new(Code::ToolNotFound, format!("there is no tool `{}` any more", call.tool))),
        }
    }

    /// The grants to look at: the one that the call names, or all that the agent holds.
    async fn held(&self, call: &Call, freshness: Freshness) -> Result<Vec<Arc<Holding>>, Refusal> {
        let tenant = call.caller.tenant();
        let holdings = self.ledger.holdings(tenant, &call.agent, call.arrived, freshness).await?;
        let Some(grant) = call.grant else {
            if holdings.truncated {
                let reason = format!("`{}` holds too many grants to pick from; name one in `grant_id`", call.agent);
                return Err(Refusal::new(Code::InvalidField, reason).with("path", "grant_id"));
            }
            return Ok(holdings.held.clone());
        };
        if let Some(holding) = holdings.held.iter().find(|holding| holding.grant() == grant) {
            return Ok(vec![Arc::clone(holding)]);
        }
        let found = self.ledger.holding(tenant, grant).await?;
        match found.filter(|holding| holding.lineage.grant().agent == call.agent) {
            Some(holding) => Ok(vec![holding]),
            None => Err(no_grant(grant)),
        }
    }

    /// Why nothing was found, as far as the agent may know.
    async fn explain_missing(
        &self,
        call: &Call,
        held: &[Arc<Holding>],
        freshness: Freshness,
    ) -> Result<Refusal, Refusal> {
        if let Some(holding) = held.iter().find(|holding| holding.credential.service.as_str() == call.tool) {
            let scopes = &holding.effective.scopes;
            let example =
                scopes.iter().next().map_or_else(String::new, |scope| format!(", as in `{}.{scope}`", call.tool));
            let reason = format!("`{}` is a service; name one of its tools{example}", call.tool);
            return Ok(Refusal::new(Code::ToolNotFound, reason).with("available_scopes", scopes));
        }
        let named = |holding| tool_part(call, holding).or_else(|| call.grant.map(|_| call.tool.as_str()));
        let beyond: Vec<_> = held.iter().filter_map(|holding| Some((holding, named(holding)?))).collect();
        let holds_scope = |(holding, wanted): &&(&Arc<Holding>, &str)| {
            Scope::parse(wanted).is_ok_and(|scope| holding.effective.scopes.contains(&scope))
        };
        if let Some((holding, _)) = beyond.iter().find(holds_scope) {
            return Ok(undefined(call, holding));
        }
        // A tool that a service does not have and one that the agent may not use look the same.
        if let Some((_, wanted)) = beyond.first() {
            let scopes: BTreeSet<&Scope> =
                beyond.iter().flat_map(|(holding, _)| holding.effective.scopes.iter()).collect();
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
            // Perhaps it could be used once: saying so helps, and tells the agent nothing that it did not know.
            for holding in self.ledger.ended_holdings(call.caller.tenant(), &call.agent, call.arrived).await? {
                let names_it =
                    tool_part(call, &holding).or_else(|| (call.grant.is_none()).then_some(call.tool.as_str()));
                let held_it = names_it.and_then(|name| Scope::parse(name).ok());
                if held_it.is_some_and(|scope| holding.lineage.grant().authority.scopes.contains(&scope))
                    && holding.lineage.standing(call.arrived).status != GrantStatus::Active
                {
                    require_standing(&holding, call.arrived)?;
                }
            }
        }
        let reason = format!("there is no tool `{}` for `{}`", call.tool, call.agent);
        Ok(Refusal::new(Code::ToolNotFound, reason))
    }
}

/// `service.tool`, where the service is the one of this grant.
fn qualified(call: &Call, holding: &Arc<Holding>, catalog: &Catalog) -> Option<Candidate> {
    let name = tool_part(call, holding)?;
    let (tool, registry) = registered(call, holding, catalog)
        .and_then(|service| service.tool(name))
        .map(|tool| (Arc::clone(tool), Some(catalog.revision)))
        .or_else(|| unversioned(call, holding, name).map(|tool| (tool, None)))?;
    Some(Candidate { holding: Arc::clone(holding), tool, registry })
}

/// A scope, or the name of a tool without its service.
fn bare(call: &Call, holding: &Arc<Holding>, catalog: &Catalog) -> Vec<Candidate> {
    let candidate = |tool, registry| Candidate { holding: Arc::clone(holding), tool, registry };
    let revision = Some(catalog.revision);
    if let Some(service) = registered(call, holding, catalog) {
        if let Some(tool) = service.tool(&call.tool) {
            return vec![candidate(Arc::clone(tool), revision)];
        }
        if let Ok(scope) = Scope::parse(&call.tool) {
            let of_scope: Vec<_> =
                service.tools_of_scope(&scope).map(|tool| candidate(Arc::clone(tool), revision)).collect();
            if !of_scope.is_empty() {
                return of_scope;
            }
        }
    }
    unversioned(call, holding, &call.tool).map(|tool| candidate(tool, None)).into_iter().collect()
}

fn registered<'a>(call: &Call, holding: &Holding, catalog: &'a Catalog) -> Option<&'a crate::catalog::Service> {
    catalog.service(&holding.credential.service, call.version.as_ref().or(pinned(holding)))
}

/// The version of the service that the credential is for, where it says so.
fn pinned(holding: &Holding) -> Option<&ServiceVersion> {
    holding.connection.as_ref().ok().and_then(|connection| connection.service_version.as_ref())
}

/// Of several tools, those whose scope the agent holds: the others do not exist for it.
fn unambiguous(candidates: Vec<Candidate>) -> Vec<Candidate> {
    let mut tools = candidates.iter().map(|found| (&found.tool.service, &found.tool.name));
    let first = tools.next();
    if tools.all(|tool| Some(tool) == first) {
        return candidates;
    }
    let held = |found: &Candidate| found.holding.effective.scopes.contains(&found.tool.definition.scope);
    candidates.into_iter().filter(held).collect()
}

/// A scope that the agent holds, and nothing says what calling it would mean.
fn undefined(call: &Call, holding: &Holding) -> Refusal {
    let (tool, grant) = (&call.tool, holding.grant());
    if let Some(version) = &call.version {
        let reason =
            format!("version `{version}` of its service has no tool `{tool}`; leave `version` out for another");
        return Refusal::new(Code::ToolNotFound, reason).with("grant_id", grant);
    }
    let reason = format!(
        "grant {grant} holds the scope, but nothing defines the tool `{tool}`: register its service, or give the \
         credential's metadata a `base_url`"
    );
    Refusal::new(Code::ToolNotExecutable, reason).with("grant_id", grant)
}

/// What the credential defines; that has no versions, so a call that names one does not mean it.
fn unversioned(call: &Call, holding: &Holding, name: &str) -> Option<Arc<Tool>> {
    if call.version.is_some() {
        return None;
    }
    let name = ToolName::parse(name).ok()?;
    let definition = holding.implicit.get(&name)?;
    Some(Arc::new(Tool::implicit(holding.credential.service.clone(), name, Arc::clone(definition))))
}

/// What stands behind the service and its dot.
fn tool_part<'a>(call: &'a Call, holding: &Holding) -> Option<&'a str> {
    after_service(&call.tool, &holding.credential.service)
}

fn after_service<'a>(name: &'a str, service: &ServiceName) -> Option<&'a str> {
    name.strip_prefix(service.as_str())?.strip_prefix('.').filter(|rest| !rest.is_empty())
}

fn no_grant(grant: GrantId) -> Refusal {
    Refusal::new(Code::GrantNotFound, format!("there is no grant {grant}")).with("grant_id", grant)
}
