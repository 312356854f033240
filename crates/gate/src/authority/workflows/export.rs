//! The present state as a file: of one workflow, or of the whole tenant. Applying it changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use toolgate_model::credential::{Credential, Vault};
use toolgate_model::grant::{Grant, GrantStatus};
use toolgate_model::id::{CredentialId, VaultId};
use toolgate_model::permission::Permission;
use toolgate_model::principal::{Principal, PrincipalId};
use toolgate_model::workflow::{Document, GrantPlace, Workflow, WorkflowName, WorkflowVersion};

use super::WorkflowAdministration;
use crate::identify::Caller;
use crate::ports::ledger::{
    GrantFilter, GrantSource, OwnedKind, OwnedObject, PageRequest, WorkflowDetails, WorkflowQuery, WorkflowState,
};
use crate::refusal::{Code, Refusal};

/// The maximum number of principals, and of grants, in one file.
const LIMIT: usize = 10_000;
/// The name and version of a file with a whole tenant.
const WHOLE: (&str, &str) = ("tenant", "1");

impl WorkflowAdministration {
    /// Writes a workflow, or everything that a file can declare, as a file.
    pub async fn export_workflow(&self, caller: &Caller, name: Option<WorkflowName>) -> Result<String, Refusal> {
        for permission in [Permission::ManageTools, Permission::ActAs, Permission::ManageAgents] {
            caller.require(permission)?;
        }
        let whole = |error| Refusal::new(Code::Internal, format!("a file of a tenant has no name: {error}"));
        let named = match &name {
            Some(name) => name.clone(),
            None => WorkflowName::parse(WHOLE.0).map_err(whole)?,
        };
        let state = self.state_of(caller, named.clone()).await?;
        let (principals, grants) = match &name {
            None => (self.all_principals(caller).await?, self.all_grants(caller).await?),
            Some(_) => (state.principals.values().cloned().collect(), state.grants.values().cloned().collect()),
        };
        let record = state.record.as_ref();
        if name.is_some() && record.is_none() {
            let reason = format!("there is no workflow `{named}`");
            return Err(Refusal::new(Code::WorkflowNotFound, reason).with("workflow", &named));
        }
        let is_wanted =
            |kind: OwnedKind, id: String| name.is_none() || state.owned.contains_key(&OwnedObject { kind, id });
        let details = record.map(|record| record.details.clone()).unwrap_or_default();
        let mut document = Document::default();
        add_agents(&mut document, &principals, &details, |id| is_wanted(OwnedKind::Agent, id.to_string()));
        let grants: Vec<Grant> =
            grants.into_iter().filter(|grant| is_wanted(OwnedKind::Grant, grant.id.to_string())).collect();
        let places = Places {
            vaults: self.managed_vaults(caller).await?,
            credentials: self.administration.all_credentials(caller).await?,
        };
        places.add_grants(&mut document, &grants, &state);
        for registered in &self.administration.services(caller).await?.services {
            let definition = &registered.definition;
            if !definition.is_maintained()
                && is_wanted(OwnedKind::Service, format!("{} {}", definition.service, definition.version))
            {
                document.add_service(definition);
            }
        }
        if is_wanted(OwnedKind::Budget, "tenant".to_owned()) {
            document.budget = state.budget;
        }
        if is_wanted(OwnedKind::Policies, "active".to_owned()) {
            let active = self.policies.active_policies(caller).await?;
            if let Some(active) = &active.active {
                document.add_policies(&active.files);
            }
        }
        let version = record.map(|record| record.version.clone());
        let version = match (version, &details.work) {
            (Some(version), _) => version,
            (None, _) => WorkflowVersion::parse(WHOLE.1).map_err(whole)?,
        };
        if let Some(work) = &details.work {
            document.plan = read_plan(&work.declared);
        }
        Ok(document.to_text(&named, &version))
    }

    async fn state_of(&self, caller: &Caller, name: WorkflowName) -> Result<WorkflowState, Refusal> {
        let query =
            |agents| WorkflowQuery { tenant: caller.tenant().clone(), name: name.clone(), agents, now: self.now() };
        let state = self.workflows.workflow_state(query(BTreeSet::new())).await?;
        // Agents that exist otherwise and have capabilities, or attributes, by the file.
        let stated = state.record.iter().flat_map(|record| record.details.capabilities.keys().cloned());
        let agents: BTreeSet<PrincipalId> = stated.collect();
        if agents.is_empty() { Ok(state) } else { self.workflows.workflow_state(query(agents)).await }
    }

    async fn all_principals(&self, caller: &Caller) -> Result<Vec<Principal>, Refusal> {
        let mut found = Vec::new();
        let mut request = PageRequest::first(PageRequest::LIMIT);
        loop {
            let page = self.administration.principals(caller, request.clone()).await?;
            found.extend(page.items);
            match page.next {
                Some(_) if found.len() >= LIMIT => return Err(too_many("principals")),
                Some(next) => request.after = Some(next),
                None => return Ok(found),
            }
        }
    }

    /// The direct grants that are neither revoked nor expired.
    async fn all_grants(&self, caller: &Caller) -> Result<Vec<Grant>, Refusal> {
        let now = self.now();
        let filter = GrantFilter { source: Some(GrantSource::Direct), ..GrantFilter::all(now) };
        let mut found = Vec::new();
        let mut request = PageRequest::first(PageRequest::LIMIT);
        loop {
            let page = self.administration.grants(caller, filter.clone(), request.clone()).await?;
            let live = page.items.into_iter().map(|lineage| lineage.grant().clone());
            found
                .extend(live.filter(|grant| matches!(grant.status(now), GrantStatus::Active | GrantStatus::Suspended)));
            match page.next {
                Some(_) if found.len() >= LIMIT => return Err(too_many("grants")),
                Some(next) => request.after = Some(next),
                None => return Ok(found),
            }
        }
    }
}

fn add_agents(
    document: &mut Document,
    principals: &[Principal],
    details: &WorkflowDetails,
    is_wanted: impl Fn(&PrincipalId) -> bool,
) {
    for principal in principals.iter().filter(|principal| principal.removed_at.is_none()) {
        let capabilities = details.capabilities.get(&principal.id);
        if is_wanted(&principal.id) || capabilities.is_some() {
            document.add_agent(principal, capabilities.map(Vec::as_slice).unwrap_or_default());
        }
    }
}

/// Where credentials are.
struct Places {
    vaults: Vec<Vault>,
    credentials: Vec<Credential>,
}

impl Places {
    fn add_grants(&self, document: &mut Document, grants: &[Grant], state: &WorkflowState) {
        let credentials: BTreeMap<CredentialId, &Credential> =
            self.credentials.iter().map(|credential| (credential.id, credential)).collect();
        let used: BTreeSet<VaultId> =
            grants.iter().filter_map(|grant| credentials.get(&grant.credential)).map(|found| found.vault).collect();
        let common = used.first().filter(|_| used.len() == 1).copied();
        document.vault = common.map(|vault| self.name_of(vault));
        for grant in grants {
            // A grant on a revoked credential, or on one that the caller does not manage, cannot be declared.
            let Some(credential) = credentials.get(&grant.credential).filter(|found| found.revoked_at.is_none()) else {
                continue;
            };
            let same = self.credentials.iter().filter(|other| {
                other.vault == credential.vault && other.service == credential.service && other.revoked_at.is_none()
            });
            let object = OwnedObject { kind: OwnedKind::Grant, id: grant.id.to_string() };
            let place = GrantPlace {
                service: grant.service.to_string(),
                vault: common.is_none().then(|| self.name_of(credential.vault)),
                credential: (same.count() > 1).then(|| credential.id.to_string()),
                default_expiry: state.owned.get(&object).is_some_and(|ownership| ownership.default_expiry),
            };
            document.add_grant(&grant.agent, &grant.authority, place);
        }
    }

    /// The name of a vault, or its id if others have the same name.
    fn name_of(&self, id: VaultId) -> String {
        let name = self.vaults.iter().find(|vault| vault.id == id).map(|vault| vault.name.as_str());
        let is_unique = |name: &str| self.vaults.iter().filter(|vault| vault.name.as_str() == name).count() == 1;
        name.filter(|name| is_unique(name)).map_or_else(|| id.to_string(), str::to_owned)
    }
}

/// The plan as it was declared, from its normal form.
fn read_plan(declared: &serde_json::Value) -> Option<toolgate_model::workflow::DeclaredPlan> {
    let mut document = declared.as_object()?.clone();
    document.insert("name".to_owned(), serde_json::json!(WHOLE.0));
    document.insert("version".to_owned(), serde_json::json!(WHOLE.1));
    let read = Workflow::read(&serde_json::Value::Object(document).to_string());
    read.workflow?.plan.map(|plan| plan.value)
}

fn too_many(what: &str) -> Refusal {
    let reason =
        format!("the tenant has more than {LIMIT} {what}, which is too many for one file; export workflows by name");
    Refusal::new(Code::InvalidField, reason)
}
