//! What a file can refer to: vaults, credentials, services and their scopes, policies, what agents hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use toolgate_model::context::GrantContext;
use toolgate_model::credential::{Credential, ServiceName, Vault};
use toolgate_model::guard::PolicyFile;
use toolgate_model::permission::Permission;
use toolgate_model::principal::PrincipalId;
use toolgate_model::scope::{Scope, ScopeSet};
use toolgate_model::service::ServiceDefinition;
use toolgate_model::time::Timestamp;
use toolgate_model::workflow::Workflow;

use super::{WorkflowAdministration, agents_of};
use crate::identify::Caller;
use crate::ports::ledger::{HeldGrant, PageRequest, RegisteredService};
use crate::refusal::Refusal;

/// The maximum number of vaults that are looked at.
const VAULT_LIMIT: usize = 10_000;

/// What a file can refer to, as far as the caller manages it.
pub(super) struct Known {
    /// Whether the caller sees the registry and the credentials.
    pub(super) manages_tools: bool,
    pub(super) manages_agents: bool,
    pub(super) vaults: Vec<Vault>,
    /// The credentials in these vaults that are not revoked.
    pub(super) credentials: Vec<Credential>,
    /// Each service's newest version first.
    pub(super) services: Vec<RegisteredService>,
    pub(super) policies: Vec<PolicyFile>,
    /// What each agent of a plan holds by delegation for every task, by service.
    pub(super) delegated: BTreeMap<PrincipalId, Vec<(ServiceName, ScopeSet)>>,
    /// How long a grant is valid if its file does not say so.
    pub(super) default_end: Timestamp,
}

impl WorkflowAdministration {
    pub(super) async fn known(&self, caller: &Caller, workflow: &Workflow) -> Result<Known, Refusal> {
        let manages_tools = caller.may(Permission::ManageTools);
        let mut known = Known {
            manages_tools,
            manages_agents: caller.may(Permission::ManageAgents),
            vaults: Vec::new(),
            credentials: Vec::new(),
            services: Vec::new(),
            policies: Vec::new(),
            delegated: BTreeMap::new(),
            default_end: self.now().plus(self.administration.default_grant_lifetime()),
        };
        if manages_tools {
            known.vaults = self.managed_vaults(caller).await?;
            let vaults: BTreeSet<_> = known.vaults.iter().map(|vault| vault.id).collect();
            known.credentials = self.administration.all_credentials(caller).await?;
            known.credentials.retain(|found| vaults.contains(&found.vault) && found.revoked_at.is_none());
            known.services.clone_from(&self.administration.services(caller).await?.services);
        }
        if caller.may(Permission::ManagePolicies) {
            let active = self.policies.active_policies(caller).await?;
            known.policies = active.active.as_ref().map_or_else(Vec::new, |active| active.files.clone());
        }
        if manages_tools && workflow.plan.is_some() {
            for agent in agents_of(workflow) {
                let (_, held) = self.administration.active_grants(caller, &agent).await?;
                let is_unbound = |held: &&HeldGrant| held.effective.context == GrantContext::default();
                let delegated = held.iter().map(|held| &**held).filter(|held| !held.lineage.ancestors().is_empty());
                let delegated = delegated.filter(is_unbound);
                let scopes =
                    delegated.map(|held| (held.credential.service.clone(), held.effective.scopes.clone())).collect();
                known.delegated.insert(agent, scopes);
            }
        }
        Ok(known)
    }

    pub(super) async fn managed_vaults(&self, caller: &Caller) -> Result<Vec<Vault>, Refusal> {
        let mut vaults = Vec::new();
        let mut request = PageRequest::first(PageRequest::LIMIT);
        loop {
            let page = self.administration.vaults(caller, request.clone()).await?;
            vaults.extend(page.items.into_iter().map(|(vault, _)| vault));
            match page.next {
                Some(next) if vaults.len() < VAULT_LIMIT => request.after = Some(next),
                _ => return Ok(vaults),
            }
        }
    }
}

impl Known {
    /// The registered version of a definition, and the newest version of its service.
    pub(super) fn registered(
        &self,
        definition: &ServiceDefinition,
    ) -> (Option<&ServiceDefinition>, Option<&ServiceDefinition>) {
        let of_service = || {
            let all = self.services.iter().map(|registered| &registered.definition);
            all.filter(|registered| registered.service == definition.service)
        };
        (of_service().find(|registered| registered.version == definition.version), of_service().next())
    }

    /// The names of the services that the registry or a credential has, or that a file defines.
    pub(super) fn service_names<'a>(&'a self, workflow: &'a Workflow) -> BTreeSet<&'a str> {
        let registered = self.services.iter().map(|registered| registered.definition.service.as_str());
        let declared = workflow.services.iter().map(|service| service.value.service.as_str());
        let of_credentials = self.credentials.iter().map(|credential| credential.service.as_str());
        registered.chain(declared).chain(of_credentials).collect()
    }

    /// The scopes that a service has: of its tools and of its credentials.
    pub(super) fn scopes_of<'a>(&'a self, workflow: &'a Workflow, service: &ServiceName) -> BTreeSet<&'a Scope> {
        let registered = self.services.iter().map(|registered| &registered.definition);
        let definitions = registered.chain(workflow.services.iter().map(|declared| &declared.value));
        let of_tools = definitions
            .filter(|definition| definition.service == *service)
            .flat_map(|definition| definition.tools.values().map(|tool| &tool.scope));
        let credentials = self.credentials.iter().filter(|credential| credential.service == *service);
        of_tools.chain(credentials.flat_map(|credential| credential.scopes_available.iter())).collect()
    }
}

impl WorkflowAdministration {
    /// The tools of the services that a file defines, for the rules of its policies.
    pub(super) fn declared_tools(workflow: &Workflow) -> Vec<crate::ports::policy_book::PolicyTool> {
        let services = workflow.services.iter().map(|service| &service.value);
        let tools = services.flat_map(|definition| {
            definition.tools.iter().map(|(name, tool)| crate::ports::policy_book::PolicyTool {
                name: definition.service.with_tool(name.as_str()),
                service: definition.service.to_string(),
                definition: Arc::new(tool.clone()),
            })
        });
        tools.collect()
    }
}
