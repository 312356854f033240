//! Discovery: which tools there are, seen through the eyes of the caller. What it may not use, it does not see.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolgate_model::connection::Connection;
use toolgate_model::credential::{Credential, CredentialStatus, ServiceName};
use toolgate_model::grant::GrantStatus;
use toolgate_model::permission::Permission;
use toolgate_model::principal::PrincipalId;

use super::services::not_found;
use crate::catalog::{Catalog, Tool};
use crate::gate::Gate;
use crate::identify::Caller;
use crate::ports::ledger::{Freshness, Holding, PageRequest};
use crate::refusal::{Code, Refusal};

/// A tool that an agent can use, and through which grant.
pub struct GrantedTool {
    /// The grant.
    pub holding: Arc<Holding>,
    /// The tool.
    pub tool: Arc<Tool>,
}

/// How many credentials are looked through for tools that they define.
const CREDENTIAL_LIMIT: usize = 10_000;

impl Gate {
    /// The tools that the caller may know of, by service, version and name.
    pub async fn tools(&self, caller: &Caller, service: Option<&ServiceName>) -> Result<Vec<Arc<Tool>>, Refusal> {
        let catalog = self.catalog(caller.tenant(), Freshness::Newest).await?;
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
        let catalog = self.catalog(caller.tenant(), Freshness::Newest).await?;
        self.granted(caller, agent, &catalog).await
    }

    async fn granted(
        &self,
        caller: &Caller,
        agent: &PrincipalId,
        catalog: &Catalog,
    ) -> Result<Vec<GrantedTool>, Refusal> {
        let now = self.clock.now();
        let holdings = self.ledger.holdings(caller.tenant(), agent, now, Freshness::Newest).await?;
        if holdings.truncated {
            let reason = format!("`{agent}` holds too many grants to list; page through GET /api/v1/grants");
            return Err(Refusal::new(Code::InvalidField, reason));
        }
        let active = holdings.held.iter().filter(|holding| {
            holding.lineage.standing(now).status == GrantStatus::Active
                && holding.credential.status(now) == CredentialStatus::Active
        });
        let granted = active.flat_map(|holding| {
            usable_tools(holding, catalog).map(|tool| GrantedTool { holding: Arc::clone(holding), tool })
        });
        Ok(granted.collect())
    }

    async fn all_credentials(&self, caller: &Caller) -> Result<Vec<Credential>, Refusal> {
        let mut found = Vec::new();
        let mut request = PageRequest::first(PageRequest::LIMIT);
        loop {
            let page = self.ledger.credentials(caller.tenant(), None, request.clone()).await?;
            found.extend(page.items);
            match page.next {
                Some(next) if found.len() < CREDENTIAL_LIMIT => request.after = Some(next),
                _ => return Ok(found),
            }
        }
    }
}

/// The tools of the grant's service whose scope it holds.
fn usable_tools(holding: &Holding, catalog: &Catalog) -> impl Iterator<Item = Arc<Tool>> {
    let service = &holding.credential.service;
    let pinned = holding.connection.as_ref().ok().and_then(|connection| connection.service_version.as_ref());
    let registered = catalog.service(service, pinned);
    let mut tools: BTreeMap<_, Arc<Tool>> = BTreeMap::new();
    for (name, definition) in &holding.implicit {
        let tool = Tool::implicit(service.clone(), name.clone(), Arc::clone(definition));
        tools.insert(name.clone(), Arc::new(tool));
    }
    for tool in registered.into_iter().flat_map(|service| service.tools()) {
        tools.insert(tool.name.clone(), Arc::clone(tool));
    }
    let scopes = holding.effective.scopes.clone();
    tools.into_values().filter(move |tool| scopes.contains(&tool.definition.scope))
}

fn implicit_tools(credential: &Credential, catalog: &Catalog) -> Vec<Arc<Tool>> {
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
