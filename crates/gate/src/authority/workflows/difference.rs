//! The difference between a file and the present state: what has to be changed, and which changes widen access compared with
//! before. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use toolgate_model::context::GrantContext;
use toolgate_model::credential::ServiceName;
use toolgate_model::grant::Grant;
use toolgate_model::guard::PolicyFile;
use toolgate_model::id::{CoordinatorId, GrantId};
use toolgate_model::permission::PermissionSet;
use toolgate_model::principal::{Principal, PrincipalChanges, PrincipalId, PrincipalKind};
use toolgate_model::service::{ServiceDefinition, ServiceVersion};
use toolgate_model::spending::Budget;
use toolgate_model::text::Line;
use toolgate_model::workflow::{
    DeclaredAgent, DeclaredPlan, Located, Place, Problem, Workflow, authority_widenings, definition_widenings,
    is_budget_raised, principal_widenings, removal_widening,
};

use super::change::{Change, ChangeAction, ChangedObject};
use super::known::Known;
use super::policy_difference::policy_differences;
use super::resolve::{Desired, DesiredGrant, ExpectedDelegation};
use crate::ports::ledger::{Coordination, OwnedKind, OwnedObject, Ownership, WorkflowState};

/// What the budget of a file belongs to.
const TENANT: &str = "tenant";

/// What has to be changed.
pub(super) struct Difference {
    /// In the order in which the changes are made.
    pub(super) intended: Vec<Intended>,
    /// What the workflow owns from now on; grants are added when they have an id.
    pub(super) taken: BTreeMap<OwnedObject, Ownership>,
    pub(super) released: BTreeSet<OwnedObject>,
}

/// A change with what makes it.
#[derive(Debug)]
pub(super) struct Intended {
    pub(super) change: Change,
    pub(super) act: Act,
}

#[derive(Debug)]
pub(super) enum Act {
    CreateAgent {
        id: PrincipalId,
        kind: PrincipalKind,
        attributes: PrincipalChanges,
    },
    UpdateAgent {
        id: PrincipalId,
        changes: PrincipalChanges,
    },
    RemoveAgent {
        id: PrincipalId,
    },
    CreateGrant(Box<DesiredGrant>),
    /// Grants are immutable: another one takes the place of the first.
    ReplaceGrant(GrantId, Box<DesiredGrant>),
    RevokeGrant(GrantId),
    ApplyService {
        definition: Box<ServiceDefinition>,
        replace: bool,
    },
    RemoveService {
        service: ServiceName,
        version: ServiceVersion,
    },
    ApplyPolicies {
        files: Vec<PolicyFile>,
        expected: u64,
    },
    /// Sets or removes the budget of the tenant.
    SetBudget(Option<Budget>),
    /// Ends the coordinator of the previous version.
    EndCoordinator(CoordinatorId),
    /// Creates intent, coordinator, plan and tasks.
    CreateWork,
    /// Only the workflow itself is stored.
    Note,
}

/// The capabilities that a file states.
pub(super) fn capabilities(workflow: &Workflow) -> BTreeMap<PrincipalId, Vec<Line>> {
    workflow.capabilities().into_iter().map(|(agent, stated)| (agent.clone(), stated.to_vec())).collect()
}

impl Difference {
    pub(super) fn between(desired: &Desired<'_>, state: &WorkflowState, known: &Known) -> Self {
        let mut difference = Self { intended: Vec::new(), taken: BTreeMap::new(), released: BTreeSet::new() };
        for agent in &desired.workflow.agents {
            difference.agent(agent, state);
        }
        difference.grants(desired, state);
        difference.gone_agents(desired.workflow, state);
        difference.services(desired.workflow, state, known);
        difference.policies(desired, state, known);
        difference.budget(desired.workflow, state);
        difference.work(desired, state);
        difference
    }

    /// Changes of what another workflow has created: that workflow changes it.
    pub(super) fn of_others(&self, state: &WorkflowState) -> Vec<Problem> {
        let problem = |intended: &Intended| {
            let change = &intended.change;
            let (kind, id) = match change.object {
                ChangedObject::Agent => (OwnedKind::Agent, change.name.clone()),
                ChangedObject::Service => (OwnedKind::Service, change.name.clone()),
                ChangedObject::Policies => (OwnedKind::Policies, "active".to_owned()),
                ChangedObject::Budget => (OwnedKind::Budget, change.name.clone()),
                _ => return None,
            };
            let owner = state.of_others.get(&OwnedObject { kind, id })?;
            let what = change.object.as_str();
            let message = format!(
                "the {what} `{}` is declared by the workflow `{owner}`; change it there, or remove it there first",
                change.name
            );
            Some(Problem::new(change.at.unwrap_or(Place::START), what, message))
        };
        self.intended.iter().filter_map(problem).collect()
    }

    fn add(
        &mut self,
        (action, object, name): (ChangeAction, ChangedObject, String),
        at: Option<Place>,
        (details, widens): (Vec<String>, Vec<String>),
        act: Act,
    ) {
        self.intended.push(Intended { change: Change { action, object, name, details, widens, at }, act });
    }

    fn agent(&mut self, declared: &DeclaredAgent, state: &WorkflowState) {
        let (id, at) = (&declared.id.value, Some(declared.id.at));
        let object = OwnedObject { kind: OwnedKind::Agent, id: id.to_string() };
        let Some(before) = state.principals.get(id) else {
            let kind = declared.kind.as_ref().map_or(PrincipalKind::Agent, |kind| kind.value);
            let mut after = new_principal(state, id, kind);
            let details = declared.attributes.apply(&mut after).into_iter().map(str::to_owned).collect();
            let widens = principal_widenings(None, &after);
            let act = Act::CreateAgent { id: id.clone(), kind, attributes: declared.attributes.clone() };
            self.taken.insert(object, Ownership::default());
            self.add((ChangeAction::Create, ChangedObject::Agent, id.to_string()), at, (details, widens), act);
            return;
        };
        let mut after = before.clone();
        // What the file created has the defaults where it says nothing; others keep what they have.
        if state.owned.contains_key(&object) {
            let usual = new_principal(state, id, before.kind);
            all_attributes(&usual).apply(&mut after);
        }
        declared.attributes.apply(&mut after);
        after.revision = before.revision;
        let changed = all_attributes(&after).apply(&mut before.clone());
        if !changed.is_empty() {
            let widens = principal_widenings(Some(before), &after);
            let details = changed.into_iter().map(str::to_owned).collect();
            let act = Act::UpdateAgent { id: id.clone(), changes: all_attributes(&after) };
            self.add((ChangeAction::Update, ChangedObject::Agent, id.to_string()), at, (details, widens), act);
        }
    }

    fn grants(&mut self, desired: &Desired<'_>, state: &WorkflowState) {
        let object = |id: GrantId| OwnedObject { kind: OwnedKind::Grant, id: id.to_string() };
        let rank = |grant: &Grant| match &object(grant.id) {
            own if state.owned.contains_key(own) => 0,
            other if state.of_others.contains_key(other) => 2,
            _ => 1,
        };
        let mut pool: Vec<&Grant> = state.grants.values().collect();
        pool.sort_by_key(|grant| (rank(grant), grant.id));
        let ownership = |grant: &Grant| state.owned.get(&object(grant.id)).copied();
        let mut missing = Vec::new();
        for wanted in &desired.grants {
            match pool.iter().position(|grant| is_same(grant, wanted, ownership(grant))) {
                Some(place) => drop(pool.remove(place)),
                None => missing.push(wanted),
            }
        }
        let mut own: Vec<&Grant> = pool.into_iter().filter(|grant| rank(grant) == 0).collect();
        let mut created = Vec::new();
        for wanted in missing {
            let is_for = |grant: &&Grant| grant.agent == wanted.agent && grant.credential == wanted.credential.id;
            match own.iter().position(is_for) {
                Some(place) => {
                    let before = own.remove(place);
                    self.released.insert(object(before.id));
                    self.replace(before, wanted, ownership(before));
                }
                None => created.push(wanted),
            }
        }
        for before in own {
            self.released.insert(object(before.id));
            let details = vec![described(
                &before.agent,
                &before.service,
                &before.authority.scopes.iter().map(ToString::to_string).collect::<Vec<_>>(),
            )];
            let name = (ChangeAction::Revoke, ChangedObject::Grant, before.id.to_string());
            self.add(name, None, (details, Vec::new()), Act::RevokeGrant(before.id));
        }
        for wanted in created {
            let scopes: Vec<String> = wanted.authority.scopes.iter().map(ToString::to_string).collect();
            let name = described(&wanted.agent, &wanted.credential.service, &scopes);
            let widens = vec![format!("gives `{}` a new grant", wanted.agent)];
            let act = Act::CreateGrant(Box::new(wanted.clone()));
            self.add((ChangeAction::Create, ChangedObject::Grant, name), Some(wanted.at), (terms(wanted), widens), act);
        }
        // Rows about grants that ended otherwise.
        let ended = |object: &&OwnedObject| {
            object.kind == OwnedKind::Grant && !state.grants.keys().any(|id| id.to_string() == object.id)
        };
        let ended: Vec<OwnedObject> = state.owned.keys().filter(ended).cloned().collect();
        if !self.intended.is_empty() {
            self.released.extend(ended);
        }
    }

    fn replace(&mut self, before: &Grant, wanted: &DesiredGrant, ownership: Option<Ownership>) {
        let mut wanted = wanted.clone();
        // A change of other terms does not extend the default lifetime.
        if wanted.default_expiry && ownership.is_some_and(|ownership| ownership.default_expiry) {
            wanted.authority.expires_at = before.authority.expires_at;
        }
        let mut widens = authority_widenings(&before.authority, &wanted.authority);
        if before.suspended.is_some() {
            widens.push("ends its suspension".to_owned());
        }
        let details = differences(before, &wanted);
        let at = Some(wanted.at);
        let act = Act::ReplaceGrant(before.id, Box::new(wanted));
        self.add((ChangeAction::Replace, ChangedObject::Grant, before.id.to_string()), at, (details, widens), act);
    }

    fn gone_agents(&mut self, workflow: &Workflow, state: &WorkflowState) {
        for object in state.owned.keys().filter(|object| object.kind == OwnedKind::Agent) {
            let is_declared = workflow.agents.iter().any(|agent| agent.id.value.as_str() == object.id);
            if is_declared {
                continue;
            }
            self.released.insert(object.clone());
            let found = state.principals.values().find(|principal| principal.id.as_str() == object.id);
            if let Some(agent) = found.filter(|principal| principal.removed_at.is_none()) {
                let details = vec!["with its keys and grants; its id is never used again".to_owned()];
                let act = Act::RemoveAgent { id: agent.id.clone() };
                let name = (ChangeAction::Remove, ChangedObject::Agent, agent.id.to_string());
                self.add(name, None, (details, Vec::new()), act);
            }
        }
    }

    fn services(&mut self, workflow: &Workflow, state: &WorkflowState, known: &Known) {
        let object = |definition: &ServiceDefinition| OwnedObject {
            kind: OwnedKind::Service,
            id: format!("{} {}", definition.service, definition.version),
        };
        let declared: BTreeSet<OwnedObject> = workflow.services.iter().map(|service| object(&service.value)).collect();
        for gone in state.owned.keys().filter(|owned| owned.kind == OwnedKind::Service && !declared.contains(*owned)) {
            self.released.insert(gone.clone());
            let mut all = known.services.iter().map(|registered| &registered.definition);
            if let Some(definition) = all.find(|definition| object(definition) == *gone) {
                let (service, version) = (definition.service.clone(), definition.version.clone());
                let of_service = known.services.iter().map(|registered| &registered.definition);
                let versions: Vec<_> = of_service.filter(|one| one.service == service).collect();
                let widens = vec![removal_widening(definition, &versions)];
                let name = (ChangeAction::Remove, ChangedObject::Service, gone.id.clone());
                self.add(name, None, (Vec::new(), widens), Act::RemoveService { service, version });
            }
        }
        for service in &workflow.services {
            let (same, newest) = known.registered(&service.value);
            if same.is_some_and(|same| same.to_json() == service.value.to_json()) {
                continue;
            }
            let widens = definition_widenings(same.or(newest), &service.value);
            let own = object(&service.value);
            let name = own.id.clone();
            let details = vec![format!("{} tools", service.value.tools.len())];
            let replace = same.is_some();
            if !replace {
                self.taken.insert(own, Ownership::default());
            }
            let action = if replace { ChangeAction::Update } else { ChangeAction::Create };
            let act = Act::ApplyService { definition: Box::new(service.value.clone()), replace };
            self.add((action, ChangedObject::Service, name), Some(service.at), (details, widens), act);
        }
    }

    fn policies(&mut self, desired: &Desired<'_>, state: &WorkflowState, known: &Known) {
        let object = OwnedObject { kind: OwnedKind::Policies, id: "active".to_owned() };
        let owned = state.owned.get(&object);
        let (at, files) = match &desired.policies {
            Some((at, files)) => (Some(*at), files.clone()),
            // Policies that were replaced in another way since are not the workflow's.
            None if owned.is_some_and(|owned| owned.policies == Some(state.policies)) => (None, Vec::new()),
            None => {
                self.released.extend(owned.map(|_| object));
                return;
            }
        };
        if at.is_none() {
            self.released.insert(object.clone());
        }
        if files == known.policies {
            return;
        }
        if at.is_some() {
            let policies = Some(state.policies.saturating_add(1));
            self.taken.insert(object, Ownership { policies, ..Ownership::default() });
        }
        let (details, widens) = policy_differences(&known.policies, &files);
        let action = if at.is_none() { ChangeAction::Remove } else { ChangeAction::Update };
        let act = Act::ApplyPolicies { files, expected: state.policies };
        let name = (action, ChangedObject::Policies, format!("version {}", state.policies.saturating_add(1)));
        self.add(name, at, (details, widens), act);
    }

    fn budget(&mut self, workflow: &Workflow, state: &WorkflowState) {
        let object = OwnedObject { kind: OwnedKind::Budget, id: TENANT.to_owned() };
        let owned = state.owned.get(&object);
        let (at, after) = match &workflow.budget {
            Some(declared) => (Some(declared.at), Some(declared.value)),
            // A budget that was set in another way since is left unchanged.
            None if owned.is_some_and(|owned| owned.budget == state.budget) => (None, None),
            None => {
                self.released.extend(owned.map(|_| object));
                return;
            }
        };
        if after == state.budget {
            return;
        }
        if after.is_some() {
            self.taken.insert(object, Ownership { budget: after, ..Ownership::default() });
        } else {
            self.released.insert(object);
        }
        let shown = |budget: Option<Budget>| budget.map_or_else(|| "none".to_owned(), |one| json!(one).to_string());
        let details = vec![format!("{} -> {}", shown(state.budget), shown(after))];
        let raised = is_budget_raised(state.budget.as_ref(), after.as_ref());
        let widens = raised.then(|| "raises or removes the budget of the tenant".to_owned()).into_iter().collect();
        let action = if after.is_some() { ChangeAction::Update } else { ChangeAction::Remove };
        let name = (action, ChangedObject::Budget, TENANT.to_owned());
        self.add(name, at, (details, widens), Act::SetBudget(after));
    }

    fn work(&mut self, desired: &Desired<'_>, state: &WorkflowState) {
        let workflow = desired.workflow;
        let record = state.record.as_ref();
        let before = record.and_then(|record| record.details.work.as_ref());
        if let Some(plan) = &workflow.plan {
            let is_created = before.is_some_and(|work| work.version == workflow.version.value);
            if !is_created {
                let open = |former: &&Coordination| former.open_tasks == 0;
                if let Some(former) = state.coordination.as_ref().filter(open) {
                    let details =
                        vec![format!("`{}` coordinated {}, whose tasks have ended", former.agent, former.intent)];
                    let widens = former.is_limited.then(|| format!("ends guardrails of `{}`", former.agent));
                    let key = (ChangeAction::Remove, ChangedObject::Coordinator, former.coordinator.to_string());
                    let act = Act::EndCoordinator(former.coordinator);
                    self.add(key, None, (details, widens.into_iter().collect()), act);
                }
                let name = format!("version {}", workflow.version.value);
                let key = (ChangeAction::Create, ChangedObject::Plan, name);
                self.add(key, Some(plan.at), work_terms(&plan.value, desired), Act::CreateWork);
            }
        }
        let stated = capabilities(workflow);
        let differs = match record {
            Some(record) => record.version != workflow.version.value || record.details.capabilities != stated,
            None => !stated.is_empty(),
        };
        // The workflow is stored with any other change of its file.
        if differs && self.intended.is_empty() {
            let action = if record.is_some() { ChangeAction::Update } else { ChangeAction::Create };
            let details = vec![format!("version {}", workflow.version.value)];
            let name = (action, ChangedObject::Workflow, workflow.name.value.to_string());
            self.add(name, Some(workflow.version.at), (details, Vec::new()), Act::Note);
        }
    }
}

/// The details of new work, and how it widens access: its coordinator, and what that delegates.
fn work_terms(plan: &DeclaredPlan, desired: &Desired<'_>) -> (Vec<String>, Vec<String>) {
    let (mut details, mut widens) = (vec![format!("{} tasks", plan.tasks.len())], Vec::new());
    if let Some(Located { value: coordinator, .. }) = &plan.coordinator {
        let guardrails = serde_json::Value::Object(desired.guardrails.to_json());
        details.push(format!("coordinated by `{coordinator}`, guardrails {guardrails}"));
        widens.push(format!("makes `{coordinator}` a coordinator"));
    }
    for ExpectedDelegation { agent, service, scopes, task } in &desired.delegations {
        let delegated = format!("{} to `{agent}` for the task `{task}`", service_scopes(service, scopes));
        details.push(format!("delegates {delegated}"));
        widens.push(format!("gives {delegated}"));
    }
    (details, widens)
}

/// All attributes that a file can declare, with those that are not set.
fn all_attributes(principal: &Principal) -> PrincipalChanges {
    PrincipalChanges { budget: Some(principal.budget), stopped: None, ..PrincipalChanges::of(principal) }
}

fn new_principal(state: &WorkflowState, id: &PrincipalId, kind: PrincipalKind) -> Principal {
    let tenant = toolgate_model::principal::TenantId::default_tenant();
    let tenant = state.principals.values().next().map_or(tenant, |principal| principal.tenant.clone());
    let created_at = toolgate_model::time::Timestamp::EPOCH;
    Principal::new(tenant, id.clone(), kind, PermissionSet::of_an_agent(), created_at)
}

/// Whether a grant is what a file declares.
fn is_same(grant: &Grant, wanted: &DesiredGrant, ownership: Option<Ownership>) -> bool {
    let (own, desired) = (&grant.authority, &wanted.authority);
    let same_end = match (wanted.default_expiry, ownership) {
        (true, Some(ownership)) => ownership.default_expiry,
        (true, None) => own.expires_at.is_some(),
        (false, Some(ownership)) if ownership.default_expiry => false,
        (false, _) => own.expires_at == desired.expires_at,
    };
    grant.agent == wanted.agent
        && grant.credential == wanted.credential.id
        && own.scopes == desired.scopes
        && own.constraints == desired.constraints
        && is_same_context(&own.context, &desired.context)
        && own.delegatable == desired.delegatable
        && own.delegation_depth == desired.delegation_depth
        && same_end
}

/// The gate completes a binding to a task by the intent and the plan of the task.
fn is_same_context(own: &GrantContext, desired: &GrantContext) -> bool {
    own == desired || (desired.task_id.is_some() && desired.within(own) == *own)
}

fn described(agent: &PrincipalId, service: &ServiceName, scopes: &[String]) -> String {
    format!("{agent}: {}", service_scopes(service, scopes))
}

fn service_scopes(service: &ServiceName, scopes: &[String]) -> String {
    format!("{service} [{}]", scopes.join(", "))
}

/// The terms of a new grant that are not the usual ones.
fn terms(wanted: &DesiredGrant) -> Vec<String> {
    let authority = &wanted.authority;
    let constraints = authority.constraints.to_json();
    let limits = constraints.as_object().is_some_and(|members| !members.is_empty());
    let mut terms: Vec<String> = limits.then(|| format!("constraints {constraints}")).into_iter().collect();
    if authority.delegatable {
        terms.push("delegatable".to_owned());
    }
    match authority.expires_at {
        None => terms.push("never expires".to_owned()),
        Some(_) if wanted.default_expiry => {}
        Some(end) => terms.push(format!("until {end}")),
    }
    terms
}

/// The terms that differ.
fn differences(before: &Grant, wanted: &DesiredGrant) -> Vec<String> {
    let (own, desired) = (&before.authority, &wanted.authority);
    let scopes =
        |of: &toolgate_model::scope::ScopeSet| of.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let end =
        |end: Option<toolgate_model::time::Timestamp>| end.map_or_else(|| "never".to_owned(), |end| end.to_string());
    let mut found = vec![format!("{} on {}", before.agent, before.service)];
    if own.scopes != desired.scopes {
        found.push(format!("scopes [{}] -> [{}]", scopes(&own.scopes), scopes(&desired.scopes)));
    }
    if own.constraints != desired.constraints {
        found.push(format!("constraints {} -> {}", own.constraints.to_json(), desired.constraints.to_json()));
    }
    if own.context != desired.context {
        found.push("context".to_owned());
    }
    if own.delegatable != desired.delegatable {
        found.push(format!("delegatable {} -> {}", own.delegatable, desired.delegatable));
    }
    if own.delegation_depth != desired.delegation_depth {
        found.push("delegation_depth".to_owned());
    }
    if own.expires_at != desired.expires_at {
        found.push(format!("expires_at {} -> {}", end(own.expires_at), end(desired.expires_at)));
    }
    found
}
