//! Discovery of tools. A caller sees only what it may use.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolgate_model::connection::Connection;
use toolgate_model::credential::{Credential, CredentialStatus, ServiceName};
use toolgate_model::grant::GrantStatus;
use toolgate_model::permission::Permission;
use toolgate_model::principal::{Principal, PrincipalId};
use toolgate_model::service::ToolName;

use super::services::not_found;
use crate::authority::Administration;
use crate::catalog::{Catalog, Service, Tool};
use crate::identify::Caller;
use crate::ports::ledger::{Freshness, HeldGrant, PageRequest};
use crate::refusal::{Code, Refusal};

/// A tool that an agent can use, with the grant that allows it.
pub struct GrantedTool {
    pub held_grant: Arc<HeldGrant>,
    pub tool: Arc<Tool>,
}

/// The maximum number of credentials searched for tools that they define.
const CREDENTIAL_LIMIT: usize = 10_000;

impl Administration {
    /// The tools visible to the caller, by service, version and name.
    pub async fn tools(&self, caller: &Caller, service: Option<&ServiceName>) -> Result<Vec<Arc<Tool>>, Refusal> {
        let catalog = self.catalogs.of(caller.tenant(), Freshness::Newest).await?;
        let mut tools: BTreeMap<_, Arc<Tool>> = BTreeMap::new();
        let mut add = |tool: Arc<Tool>| {
            tools.insert((tool.service.clone(), tool.version.clone(), tool.name.clone()), tool);
        };
        if caller.may(Permission::ManageTools) {
            catalog.services().flat_map(|service| service.tools()).for_each(|tool| add(Arc::clone(tool)));
        }
        if caller.manages_all() {
            for credential in self.all_credentials(caller).await? {
                implicit_tools(&credential, &catalog).into_iter().for_each(&mut add);
            }
        }
        self.granted(caller, caller.id(), &catalog).await?.into_iter().for_each(|granted| add(granted.tool));
        let found: Vec<_> =
            tools.into_values().filter(|tool| service.is_none_or(|service| tool.service == *service)).collect();
        match service {
            Some(service) if found.is_empty() => Err(not_found(service)),
            _ => Ok(found),
        }
    }

    /// The tools that an agent has active grants for.
    pub async fn granted_tools(
        &self,
        caller: &Caller,
        agent: Option<&PrincipalId>,
    ) -> Result<Vec<GrantedTool>, Refusal> {
        let agent = agent.unwrap_or_else(|| caller.id());
        caller.require_acting_for(agent)?;
        let catalog = self.catalogs.of(caller.tenant(), Freshness::Newest).await?;
        self.granted(caller, agent, &catalog).await
    }

    pub(super) async fn granted(
        &self,
        caller: &Caller,
        agent: &PrincipalId,
        catalog: &Catalog,
    ) -> Result<Vec<GrantedTool>, Refusal> {
        let (agent, active) = self.active_grants(caller, agent).await?;
        let granted = active.into_iter().flat_map(|held_grant| {
            let tools = usable_tools(&held_grant, catalog).into_iter();
            tools.map(move |tool| GrantedTool { held_grant: Arc::clone(&held_grant), tool })
        });
        Ok(granted.filter(|granted| granted.tool.is_listed_for(agent.as_deref())).collect())
    }

    /// An agent with its usable grants, oldest first.
    pub(super) async fn active_grants(
        &self,
        caller: &Caller,
        agent: &PrincipalId,
    ) -> Result<(Option<Arc<Principal>>, Vec<Arc<HeldGrant>>), Refusal> {
        let now = self.clock.now();
        let held_grants = self.held_grants.held_grants(caller.tenant(), agent, now, Freshness::Newest).await?;
        if held_grants.truncated {
            let reason = format!("`{agent}` holds too many grants to list; page through GET /api/v1/grants");
            return Err(Refusal::new(Code::InvalidField, reason));
        }
        let is_active = |held_grant: &&Arc<HeldGrant>| {
            held_grant.lineage.standing(now).status == GrantStatus::Active
                && held_grant.credential.status(now) == CredentialStatus::Active
        };
        Ok((held_grants.agent.clone(), held_grants.held.iter().filter(is_active).cloned().collect()))
    }

    /// Every credential of the tenant, up to a limit.
    pub(super) async fn all_credentials(&self, caller: &Caller) -> Result<Vec<Credential>, Refusal> {
        let mut found = Vec::new();
        let mut request = PageRequest::first(PageRequest::LIMIT);
        loop {
            let page = self.credentials.credentials(caller.tenant(), None, request.clone()).await?;
            found.extend(page.items);
            match page.next {
                Some(next) if found.len() < CREDENTIAL_LIMIT => request.after = Some(next),
                _ => return Ok(found),
            }
        }
    }
}

/// The tools of the grant's service whose scope the grant includes, by name. Only these are examined.
fn usable_tools(held_grant: &HeldGrant, catalog: &Catalog) -> Vec<Arc<Tool>> {
    let registered = registered_service(held_grant, catalog);
    let scopes = &held_grant.effective.scopes;
    let of_scopes =
        scopes.iter().flat_map(|scope| registered.into_iter().flat_map(|found| found.tools_of_scope(scope)));
    let mut tools: Vec<Arc<Tool>> = of_scopes.cloned().collect();
    for (name, definition) in &held_grant.implicit {
        if scopes.contains(&definition.scope) && registered.is_none_or(|found| found.tool(name.as_str()).is_none()) {
            let service = held_grant.credential.service.clone();
            tools.push(Arc::new(Tool::implicit(service, name.clone(), Arc::clone(definition))));
        }
    }
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    tools
}

/// The tool with this name, if it is one of [`usable_tools`].
pub(super) fn usable_tool(held_grant: &HeldGrant, catalog: &Catalog, name: &ToolName) -> Option<Arc<Tool>> {
    let registered = registered_service(held_grant, catalog).and_then(|found| found.tool(name.as_str()));
    let implicit = || {
        let definition = held_grant.implicit.get(name)?;
        let service = held_grant.credential.service.clone();
        Some(Arc::new(Tool::implicit(service, name.clone(), Arc::clone(definition))))
    };
    let tool = registered.cloned().or_else(implicit)?;
    held_grant.effective.scopes.contains(&tool.definition.scope).then_some(tool)
}

fn registered_service<'a>(held_grant: &HeldGrant, catalog: &'a Catalog) -> Option<&'a Service> {
    let pinned = held_grant.connection.as_ref().ok().and_then(|connection| connection.service_version.as_ref());
    catalog.service(&held_grant.credential.service, pinned)
}

/// The tools that a credential defines and the registry does not.
pub(super) fn implicit_tools(credential: &Credential, catalog: &Catalog) -> Vec<Arc<Tool>> {
    let Ok(connection) = Connection::from_metadata(&credential.metadata) else { return Vec::new() };
    if credential.revoked_at.is_some() {
        return Vec::new();
    }
    let registered = catalog.service(&credential.service, connection.service_version.as_ref());
    let tools = connection.implicit_tools(&credential.scopes_available).into_iter();
    let unregistered = tools.filter(|(name, _)| registered.is_none_or(|service| service.tool(name.as_str()).is_none()));
    unregistered
        .map(|(name, definition)| Arc::new(Tool::implicit(credential.service.clone(), name, Arc::new(definition))))
        .collect()
}
