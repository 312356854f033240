//! What a file means in this tenant: its names are looked up, and what does not fit is a problem at its position.

use std::collections::BTreeSet;

use toolgate_model::context::GrantContext;
use toolgate_model::credential::{Credential, CredentialStatus, ServiceName, Vault};
use toolgate_model::grant::{Authority, DelegationDepth, Grant};
use toolgate_model::guard::PolicyFile;
use toolgate_model::principal::{Principal, PrincipalId};
use toolgate_model::scope::{Scope, ScopeSet};
use toolgate_model::time::Timestamp;
use toolgate_model::work::Guardrails;
use toolgate_model::workflow::{
    DeclaredGrant, DeclaredPlan, DeclaredPolicies, DeclaredRequirement, Located, Place, Problem, TaskName, Workflow,
    meant,
};

use super::known::Known;
use super::work::new_task;
use crate::authority::work::tasks::require_valid;
use crate::ports::ledger::{OwnedKind, OwnedObject, WorkflowState};

/// A file with everything that it refers to.
pub(super) struct Desired<'w> {
    pub(super) workflow: &'w Workflow,
    pub(super) grants: Vec<DesiredGrant>,
    /// `None` if the file declares none.
    pub(super) policies: Option<(Place, Vec<PolicyFile>)>,
    pub(super) guardrails: Guardrails,
    /// What the coordinator is to delegate with the tasks of the plan.
    pub(super) delegations: Vec<ExpectedDelegation>,
}

/// What a coordinator is to delegate with a task.
#[derive(Debug, Clone)]
pub(super) struct ExpectedDelegation {
    pub(super) agent: PrincipalId,
    pub(super) service: ServiceName,
    pub(super) scopes: Vec<String>,
    pub(super) task: TaskName,
}

#[derive(Debug, Clone)]
pub(super) struct DesiredGrant {
    pub(super) at: Place,
    pub(super) agent: PrincipalId,
    pub(super) credential: Credential,
    pub(super) authority: Authority,
    /// Whether the file does not say when it expires.
    pub(super) default_expiry: bool,
    pub(super) allow_indefinite: bool,
}

/// What is asked about what an agent holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// As far as is known.
    Possible,
    /// Beyond doubt, so that nothing will be delegated to it.
    Certain,
    /// So that it can delegate it.
    Delegatable,
}

struct Resolver<'a> {
    workflow: &'a Workflow,
    state: &'a WorkflowState,
    known: &'a Known,
    now: Timestamp,
    problems: Vec<Problem>,
}

/// Looks up what a file refers to. Unless the file was read completely, missing grants are not reported.
pub(super) fn resolve<'w>(
    workflow: &'w Workflow,
    state: &WorkflowState,
    known: &Known,
    policy_files: Option<Vec<PolicyFile>>,
    now: Timestamp,
    is_complete: bool,
) -> (Desired<'w>, Vec<Problem>) {
    let mut resolver = Resolver { workflow, state, known, now, problems: Vec::new() };
    resolver.check_agents();
    resolver.check_gone_agents();
    resolver.check_version();
    let grants: Vec<DesiredGrant> = workflow.grants.iter().filter_map(|grant| resolver.grant(grant)).collect();
    let policies = resolver.policies(policy_files);
    let plan = workflow.plan.as_ref();
    let guardrails = plan.and_then(|plan| plan.value.guardrails.as_ref()).map(|found| found.value.clone());
    let guardrails = guardrails.unwrap_or_default();
    let mut delegations = Vec::new();
    if let Some(plan) = &workflow.plan {
        let complete = is_complete && grants.len() == workflow.grants.len();
        resolver.check_tasks(&plan.value);
        resolver.check_plan(&plan.value, &grants, &guardrails, complete);
        delegations = resolver.delegations(&plan.value, &grants, &guardrails);
    }
    (Desired { workflow, grants, policies, guardrails, delegations }, resolver.problems)
}

impl Resolver<'_> {
    fn add(&mut self, at: Place, path: &str, message: String) {
        self.problems.push(Problem::new(at, path, message));
    }

    fn check_agents(&mut self) {
        for agent in &self.workflow.agents {
            let id = &agent.id.value;
            match self.state.principals.get(id) {
                Some(Principal { removed_at: Some(_), .. }) => {
                    let message =
                        format!("`{id}` was removed, and ids of removed agents are not reused; choose another");
                    self.add(agent.id.at, "agents", message);
                }
                Some(Principal { kind, .. }) => {
                    if let Some(declared) = agent.kind.as_ref().filter(|declared| declared.value != *kind) {
                        let message =
                            format!("`{id}` is a principal of the kind {}; a kind cannot be changed", kind.as_str());
                        self.add(declared.at, "agents", message);
                    }
                }
                None => {}
            }
        }
        let plan = self.workflow.plan.iter().map(|plan| &plan.value);
        let working =
            plan.flat_map(|plan| plan.coordinator.iter().chain(plan.tasks.iter().flat_map(|task| &task.agent)));
        let referred: Vec<&Located<PrincipalId>> =
            self.workflow.grants.iter().map(|grant| &grant.agent).chain(working).collect();
        let declared: BTreeSet<&str> = self.workflow.agents.iter().map(|agent| agent.id.value.as_str()).collect();
        let mut reported = BTreeSet::new();
        for agent in referred {
            let id = agent.value.as_str();
            let exists = self.state.principals.get(&agent.value).is_some_and(|found| found.removed_at.is_none());
            // Whether an agent exists is not revealed to a caller that may not see it.
            if declared.contains(id) || exists || !self.known.manages_agents || !reported.insert((agent.at, id)) {
                continue;
            }
            let suggestion = meant(id, declared.iter().copied());
            self.add(agent.at, "agents", format!("there is no agent `{id}`; declare it under `agents`{suggestion}"));
        }
    }

    /// Removing an agent revokes its grants: those of others are not ours to revoke.
    fn check_gone_agents(&mut self) {
        let declared: BTreeSet<&str> = self.workflow.agents.iter().map(|agent| agent.id.value.as_str()).collect();
        let owned = self.state.owned.keys().filter(|object| object.kind == OwnedKind::Agent);
        let gone: Vec<&str> = owned.map(|object| object.id.as_str()).filter(|id| !declared.contains(id)).collect();
        for id in gone {
            let is_own = |grant: &Grant| {
                let object = OwnedObject { kind: OwnedKind::Grant, id: grant.id.to_string() };
                self.state.owned.contains_key(&object)
            };
            let mut grants = self.state.grants.values().filter(|grant| grant.agent.as_str() == id);
            if let Some(grant) = grants.find(|grant| !is_own(grant)) {
                let message = format!(
                    "`{id}` is no longer declared, and holds grant {}, which this workflow did not create; revoke that \
                     grant, or declare the agent",
                    grant.id
                );
                self.add(Place::START, "agents", message);
            }
        }
    }

    /// Whether the work of this version was created before.
    fn is_created(&self) -> bool {
        let work = self.state.record.as_ref().and_then(|record| record.details.work.as_ref());
        work.is_some_and(|work| work.version == self.workflow.version.value)
    }

    /// The work of a version is created once, and not while tasks of the previous version are within its guardrails: both
    /// would bound the coordinator.
    fn check_version(&mut self) {
        let record = self.state.record.as_ref();
        let Some(work) = record.and_then(|record| record.details.work.as_ref()) else { return };
        let version = &self.workflow.version;
        if let Some(former) = self.state.coordination.as_ref().filter(|former| former.is_limited)
            && self.workflow.plan.is_some()
            && !self.is_created()
            && former.open_tasks > 0
        {
            let message = format!(
                "version {} has {} open tasks in {}, within guardrails that still bound `{}`; complete or cancel them, or \
                 end the intent, before another version is applied",
                work.version, former.open_tasks, former.intent, former.agent
            );
            self.add(version.at, "version", message);
        }
        let differs = self.workflow.plan.as_ref().is_some_and(|plan| plan.value.to_json() != work.declared);
        if work.version == version.value && differs {
            let message = format!(
                "the plan of version {} was created with other tasks; give the file another version to create a new one",
                version.value
            );
            self.add(version.at, "version", message);
        }
    }

    fn grant(&mut self, declared: &DeclaredGrant) -> Option<DesiredGrant> {
        let vault = self.vault(declared)?;
        let credential = self.credential(declared, &vault)?;
        let mut scopes = Vec::new();
        for scope in &declared.scopes {
            if !credential.scopes_available.contains(&scope.value) {
                let available = credential.scopes_available.iter().map(Scope::as_str);
                let suggestion = suggestion(scope.value.as_str(), available);
                let message = format!(
                    "the credential for `{}` has no scope `{}`{suggestion}",
                    declared.service.value, scope.value
                );
                self.add(scope.at, "tools.grants", message);
            }
            scopes.push(scope.value.clone());
        }
        if let Some(Some(end)) = declared.expires_at
            && end <= self.now
        {
            self.add(declared.at, "tools.grants", format!("`expires_at` is {end}, which is in the past"));
        }
        let usual = DelegationDepth::Limited(u32::from(declared.delegatable));
        Some(DesiredGrant {
            at: declared.at,
            agent: declared.agent.value.clone(),
            credential,
            authority: Authority {
                scopes: scopes.into_iter().collect(),
                constraints: declared.constraints.clone(),
                context: declared.context.clone(),
                delegatable: declared.delegatable,
                delegation_depth: declared.delegation_depth.unwrap_or(usual),
                expires_at: declared.expires_at.unwrap_or(Some(self.known.default_end)),
            },
            default_expiry: declared.expires_at.is_none(),
            allow_indefinite: declared.allow_indefinite,
        })
    }

    /// The vault with this id, or the only one with this name.
    fn vault(&mut self, declared: &DeclaredGrant) -> Option<Vault> {
        let name = declared.vault.as_ref().or(self.workflow.vault.as_ref())?;
        let vaults = &self.known.vaults;
        if let Some(vault) = vaults.iter().find(|vault| vault.id.to_string() == name.value) {
            return Some(vault.clone());
        }
        let named: Vec<&Vault> = vaults.iter().filter(|vault| vault.name.as_str() == name.value).collect();
        match named.as_slice() {
            [vault] => Some((*vault).clone()),
            [] => {
                let suggestion = suggestion(&name.value, vaults.iter().map(|vault| vault.name.as_str()));
                self.add(name.at, "tools.vault", format!("there is no vault `{}`{suggestion}", name.value));
                None
            }
            several => {
                let ids: Vec<String> = several.iter().map(|vault| vault.id.to_string()).collect();
                let message =
                    format!("several vaults are named `{}`; use the id of one: {}", name.value, ids.join(", "));
                self.add(name.at, "tools.vault", message);
                None
            }
        }
    }

    /// The credential with this id, or the only one of the vault for this service.
    fn credential(&mut self, declared: &DeclaredGrant, vault: &Vault) -> Option<Credential> {
        let service = &declared.service;
        let in_vault: Vec<&Credential> =
            self.known.credentials.iter().filter(|credential| credential.vault == vault.id).collect();
        let of_service: Vec<&Credential> =
            in_vault.iter().copied().filter(|credential| credential.service == service.value).collect();
        let named = declared.credential.as_ref();
        match (named, of_service.as_slice()) {
            (Some(id), found) => {
                let credential = found.iter().find(|credential| credential.id == id.value);
                if credential.is_none() {
                    let message = format!(
                        "the vault `{}` has no credential {} for `{}`",
                        vault.name.as_str(),
                        id.value,
                        service.value
                    );
                    self.add(id.at, "tools.grants", message);
                }
                credential.map(|credential| (*credential).clone())
            }
            (None, [credential]) => Some((*credential).clone()),
            (None, []) => {
                let services = in_vault.iter().map(|credential| credential.service.as_str());
                let suggestion = suggestion(service.value.as_str(), services);
                let message = format!(
                    "the vault `{}` has no credential for `{}`{suggestion}",
                    vault.name.as_str(),
                    service.value
                );
                self.add(service.at, "tools.grants", message);
                None
            }
            (None, several) => {
                let ids: Vec<String> = several.iter().map(|credential| credential.id.to_string()).collect();
                let message = format!(
                    "the vault `{}` has several credentials for `{}`; name one in `credential`: {}",
                    vault.name.as_str(),
                    service.value,
                    ids.join(", ")
                );
                self.add(service.at, "tools.grants", message);
                None
            }
        }
    }

    fn policies(&mut self, sent: Option<Vec<PolicyFile>>) -> Option<(Place, Vec<PolicyFile>)> {
        let declared = match (&self.workflow.policies, &sent) {
            (None, None) => return None,
            (Some(Located { at, value: DeclaredPolicies::Directory(_) }), None) => {
                let message =
                    "the files of a directory are sent with the file; `toolgate apply` does, or write them inline";
                let at = *at;
                self.add(at, "policies", message.to_owned());
                return None;
            }
            (None | Some(Located { value: DeclaredPolicies::Files(_), .. }), Some(_)) => {
                let at = self.workflow.policies.as_ref().map_or(Place::START, |policies| policies.at);
                let message = "policy files were sent, and `policies` names no directory; remove one of the two";
                self.add(at, "policies", message.to_owned());
                return None;
            }
            (Some(declared), _) => declared,
        };
        let mut files = match (&declared.value, sent) {
            (DeclaredPolicies::Files(files), _) => files.clone(),
            (DeclaredPolicies::Directory(_), sent) => sent.unwrap_or_default(),
        };
        files.sort_by(|left, right| left.name.cmp(&right.name));
        Some((declared.at, files))
    }

    /// Checks each task of work that is to be created by itself.
    fn check_tasks(&mut self, plan: &DeclaredPlan) {
        if self.is_created() {
            return;
        }
        for declared in &plan.tasks {
            if let Err(refusal) = require_valid(&new_task(declared), self.now) {
                self.add(declared.name.at, "plan", format!("task `{}`: {}", declared.name.value, refusal.reason()));
            }
        }
    }

    /// What a coordinator with `auto_delegate` is to delegate: everything that an agent is not known to hold anyway.
    fn delegations(
        &self,
        plan: &DeclaredPlan,
        grants: &[DesiredGrant],
        guardrails: &Guardrails,
    ) -> Vec<ExpectedDelegation> {
        let Some(coordinator) = plan.coordinator.as_ref().filter(|_| guardrails.auto_delegate) else {
            return Vec::new();
        };
        let assigned = plan.tasks.iter().filter_map(|task| Some((task, &task.agent.as_ref()?.value)));
        let by_others = assigned.filter(|(_, agent)| **agent != coordinator.value);
        let required =
            by_others.flat_map(|(task, agent)| task.requires_tools.iter().map(move |one| (task, agent, one)));
        let missing = required.filter(|(_, agent, requirement)| {
            let held = self.holds(agent, &requirement.service.value, requirement, grants, Access::Certain);
            !requirement.scopes.is_empty() && !held
        });
        let expected = missing.map(|(task, agent, requirement)| ExpectedDelegation {
            agent: agent.clone(),
            service: requirement.service.value.clone(),
            scopes: requirement.scopes.iter().map(|scope| scope.value.to_string()).collect(),
            task: task.name.value.clone(),
        });
        expected.collect()
    }

    fn check_plan(&mut self, plan: &DeclaredPlan, grants: &[DesiredGrant], guardrails: &Guardrails, is_complete: bool) {
        // What an agent without rights to see the registry may use is checked when it claims its tasks.
        if !self.known.manages_tools {
            return;
        }
        let names = self.known.service_names(self.workflow);
        for task in &plan.tasks {
            for requirement in &task.requires_tools {
                let service = &requirement.service;
                if !names.contains(service.value.as_str()) {
                    let suggestion = suggestion(service.value.as_str(), names.iter().copied());
                    self.add(service.at, "plan", format!("there is no service `{}`{suggestion}", service.value));
                    continue;
                }
                let scopes = self.known.scopes_of(self.workflow, &service.value);
                let unknown: Vec<_> =
                    requirement.scopes.iter().filter(|scope| !scopes.contains(&scope.value)).cloned().collect();
                for scope in &unknown {
                    let suggestion = suggestion(scope.value.as_str(), scopes.iter().map(|scope| scope.as_str()));
                    let message = format!("`{}` has no scope `{}`{suggestion}", service.value, scope.value);
                    self.add(scope.at, "plan", message);
                }
                let Some(agent) = &task.agent else { continue };
                let by_coordinator = plan.coordinator.as_ref().filter(|_| guardrails.auto_delegate);
                let may_use =
                    |agent: &PrincipalId, how: Access| self.holds(agent, &service.value, requirement, grants, how);
                let has_access = may_use(&agent.value, Access::Possible)
                    || by_coordinator.is_some_and(|coordinator| may_use(&coordinator.value, Access::Delegatable));
                if is_complete && requirement.required && unknown.is_empty() && !has_access {
                    let wanted: Vec<String> = requirement.scopes.iter().map(|scope| scope.value.to_string()).collect();
                    let message = format!(
                        "`{}` has no grant for [{}] of `{}`, which the task `{}` requires; add one under `tools.grants`",
                        agent.value,
                        wanted.join(", "),
                        service.value,
                        task.name.value
                    );
                    self.add(requirement.at, "plan", message);
                }
            }
        }
    }

    /// Whether an agent gets by this file, or has anyway, one grant with all scopes of a requirement. A grant that is bound
    /// to a context does not meet the requirement of a task that does not exist yet.
    fn holds(
        &self,
        agent: &PrincipalId,
        service: &ServiceName,
        requirement: &DeclaredRequirement,
        grants: &[DesiredGrant],
        how: Access,
    ) -> bool {
        let wanted: ScopeSet = requirement.scopes.iter().map(|scope| scope.value.clone()).collect();
        let has_all = |scopes: &ScopeSet| wanted.beyond(scopes).is_empty();
        let fits = |authority: &Authority| {
            let may_go_on = authority.delegatable && authority.delegation_depth.below().is_some();
            has_all(&authority.scopes)
                && authority.context == GrantContext::default()
                && (how != Access::Delegatable || may_go_on)
        };
        // Of a credential that the caller does not manage, nothing is certain.
        let is_usable = |credential: Option<&Credential>| {
            let status = credential.map(|credential| credential.status(self.now));
            status.map_or(how != Access::Certain, |status| status == CredentialStatus::Active)
        };
        let by_file = grants.iter().any(|grant| {
            grant.agent == *agent
                && grant.credential.service == *service
                && fits(&grant.authority)
                && is_usable(Some(&grant.credential))
        });
        let directly = || {
            let found = self.state.grants.values().filter(|grant| grant.agent == *agent && grant.service == *service);
            let is_kept = |id: String| !self.state.owned.contains_key(&OwnedObject { kind: OwnedKind::Grant, id });
            let credential = |grant: &Grant| self.known.credentials.iter().find(|one| one.id == grant.credential);
            found
                .filter(|grant| is_kept(grant.id.to_string()) && grant.suspended.is_none())
                .any(|grant| fits(&grant.authority) && is_usable(credential(grant)))
        };
        let delegated = || {
            let held = self.known.delegated.get(agent).into_iter().flatten();
            how == Access::Possible && held.into_iter().any(|(of, scopes)| of == service && has_all(scopes))
        };
        by_file || directly() || delegated()
    }
}

/// The nearest candidate, or all of them if there are few.
fn suggestion<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    const FEW: usize = 8;
    let candidates: BTreeSet<&str> = candidates.collect();
    let nearest = meant(name, candidates.iter().copied());
    match candidates.len() {
        _ if !nearest.is_empty() => nearest,
        1..=FEW => format!("; there is {}", candidates.into_iter().collect::<Vec<_>>().join(", ")),
        _ => String::new(),
    }
}
