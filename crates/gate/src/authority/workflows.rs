//! Workflows as files: a file is read, compared with the present state, and its changes are made in one transaction. Every
//! change is the command of the single use case, with all of its checks; a file gives nobody authority that the caller
//! could not give.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;
use toolgate_model::guard::PolicyFile;
use toolgate_model::merkle::sha256;
use toolgate_model::permission::Permission;
use toolgate_model::principal::PrincipalId;
use toolgate_model::time::Timestamp;
use toolgate_model::workflow::{Problem, Workflow, WorkflowName, WorkflowVersion, in_order};

use super::{Administration, PolicyAdministration};
use crate::gate::{Ports, Shared};
use crate::identify::Caller;
use crate::ids::Ids;
use crate::ports::clock::Clock;
use crate::ports::ledger::{
    ApplyWorkflow, WorkflowDetails, WorkflowQuery, WorkflowRecord, WorkflowState, WorkflowStep, WorkflowWork, Workflows,
};
use crate::refusal::{Code, Refusal};

pub use self::change::{Change, ChangeAction, ChangedObject};
use self::difference::{Difference, Intended};
use self::resolve::{Desired, resolve};

mod change;
mod commands;
mod difference;
mod export;
mod known;
mod policy_difference;
mod resolve;
mod work;

/// A file to apply.
pub struct NewApplication {
    /// The text of the file.
    pub document: String,
    /// The files of the directory that `policies` names.
    pub policy_files: Option<Vec<PolicyFile>>,
    /// Only report what would change.
    pub dry_run: bool,
    /// Whether changes may widen access.
    pub allow_widening: bool,
}

/// A file that was applied or compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Application {
    pub name: WorkflowName,
    pub version: WorkflowVersion,
    pub changes: Vec<Change>,
    /// Whether the changes were made.
    pub applied: bool,
    /// What was created from the plan of this version.
    pub work: Option<WorkflowWork>,
}

/// Applies and exports workflows.
pub struct WorkflowAdministration {
    workflows: Arc<dyn Workflows>,
    administration: Arc<Administration>,
    policies: Arc<PolicyAdministration>,
    clock: Arc<dyn Clock>,
    ids: Arc<Ids>,
}

impl WorkflowAdministration {
    pub(crate) fn new(
        ports: &Ports,
        shared: &Shared,
        administration: Arc<Administration>,
        policies: Arc<PolicyAdministration>,
    ) -> Self {
        Self {
            workflows: ports.ledger.clone(),
            administration,
            policies,
            clock: Arc::clone(&ports.clock),
            ids: Arc::clone(&shared.ids),
        }
    }

    /// Applies a file, or reports what applying it would change. The second application of a file changes nothing.
    pub async fn apply_workflow(&self, caller: &Caller, new: NewApplication) -> Result<Application, Refusal> {
        let read = Workflow::read(&new.document);
        let Some(workflow) = read.workflow else { return Err(invalid(read.problems)) };
        require_sections(caller, &workflow)?;
        let now = self.clock.now();
        let query = WorkflowQuery {
            tenant: caller.tenant().clone(),
            name: workflow.name.value.clone(),
            agents: agents_of(&workflow),
            now,
        };
        let state = self.workflows.workflow_state(query.clone()).await?;
        require_own(caller, &state)?;
        let known = self.known(caller, &workflow).await?;
        let mut problems = read.problems;
        let is_complete = problems.is_empty();
        let (desired, found) = resolve(&workflow, &state, &known, new.policy_files, now, is_complete);
        problems.extend(found);
        if !problems.is_empty() {
            return Err(invalid(problems));
        }
        let difference = Difference::between(&desired, &state, &known);
        let foreign = difference.of_others(&state);
        if !foreign.is_empty() {
            return Err(invalid(foreign));
        }
        self.carry_out(caller, &new.document, &desired, difference, query, state, (new.dry_run, new.allow_widening))
            .await
    }

    #[expect(clippy::too_many_arguments, reason = "one step of `apply_workflow`, with everything that it has found")]
    async fn carry_out(
        &self,
        caller: &Caller,
        document: &str,
        desired: &Desired<'_>,
        difference: Difference,
        query: WorkflowQuery,
        state: WorkflowState,
        (dry_run, allow_widening): (bool, bool),
    ) -> Result<Application, Refusal> {
        let Difference { intended, mut taken, released } = difference;
        let workflow = desired.workflow;
        let mut application = Application {
            name: workflow.name.value.clone(),
            version: workflow.version.value.clone(),
            changes: intended.iter().map(|intended| intended.change.clone()).collect(),
            applied: false,
            work: state.record.as_ref().and_then(|record| record.details.work.clone()),
        };
        if intended.is_empty() && released.is_empty() {
            return Ok(application);
        }
        let widenings = application.changes.iter().filter(|change| !change.widens.is_empty()).count();
        if widenings > 0 && !allow_widening && !dry_run {
            return Err(widening_not_allowed(&application.changes));
        }
        let mut steps: Vec<WorkflowStep> = Vec::new();
        for Intended { change, act } in intended {
            let commands = self.commands(caller, desired, act, &mut taken, &mut application.work).await;
            steps.extend(commands.map_err(|refusal| located(refusal, &change))?);
        }
        if dry_run {
            application.work = state.record.as_ref().and_then(|record| record.details.work.clone());
            return Ok(application);
        }
        let audit = caller.mandate(query.now);
        let before = state.record.as_ref();
        let record = WorkflowRecord {
            name: application.name.clone(),
            version: application.version.clone(),
            revision: before.map_or(0, |record| record.revision) + 1,
            created_by: before.map_or_else(|| caller.id().clone(), |record| record.created_by.clone()),
            applied_by: caller.id().clone(),
            applied_at: query.now,
            details: WorkflowDetails {
                capabilities: difference::capabilities(workflow),
                work: application.work.clone(),
            },
        };
        let command = ApplyWorkflow {
            audit,
            query,
            expected: Box::new(state),
            steps,
            record,
            taken,
            released,
            digest: sha256(document.as_bytes()).to_hex(),
            widenings: u64::try_from(widenings).unwrap_or(u64::MAX),
        };
        let applied = self.workflows.apply_workflow(command).await;
        applied.map_err(|refusal| at_requirement(refusal, workflow))?;
        application.applied = true;
        Ok(application)
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// What reading the present state of the parts of a file needs; what changing them needs is checked for each change.
fn require_sections(caller: &Caller, workflow: &Workflow) -> Result<(), Refusal> {
    let sections = [
        (!workflow.agents.is_empty() || workflow.budget.is_some(), Permission::ManageAgents),
        (!workflow.grants.is_empty() || !workflow.services.is_empty(), Permission::ManageTools),
        (workflow.policies.is_some(), Permission::ManagePolicies),
        (true, Permission::InvokeTools),
    ];
    let is_empty = !sections.iter().take(3).any(|(is_declared, _)| *is_declared) && workflow.plan.is_none();
    if is_empty && !caller.may(Permission::ManageAgents) && !caller.may(Permission::ManagePolicies) {
        // A file that declares nothing takes back what the workflow owns.
        return caller.require(Permission::ManageTools);
    }
    match sections.into_iter().find(|(is_declared, permission)| *is_declared && !caller.may(*permission)) {
        Some((_, permission)) if workflow.plan.is_some() || permission != Permission::InvokeTools => {
            caller.require(permission)
        }
        _ => Ok(()),
    }
}

/// A workflow is changed by the principal that created it, and by administrators.
fn require_own(caller: &Caller, state: &WorkflowState) -> Result<(), Refusal> {
    match &state.record {
        Some(record) if record.created_by != *caller.id() && !caller.manages_all() => {
            let reason = format!(
                "the workflow `{}` was created by another principal; choose another `name`, or ask an administrator to \
                 apply it",
                record.name
            );
            Err(Refusal::new(Code::PermissionDenied, reason))
        }
        _ => Ok(()),
    }
}

/// Every principal that a file names.
fn agents_of(workflow: &Workflow) -> BTreeSet<PrincipalId> {
    let declared = workflow.agents.iter().map(|agent| &agent.id);
    let granted = workflow.grants.iter().map(|grant| &grant.agent);
    let plan = workflow.plan.iter().map(|plan| &plan.value);
    let working = plan.flat_map(|plan| plan.coordinator.iter().chain(plan.tasks.iter().flat_map(|task| &task.agent)));
    declared.chain(granted).chain(working).map(|agent| agent.value.clone()).collect()
}

fn invalid(problems: Vec<Problem>) -> Refusal {
    let problems = in_order(problems);
    let count = problems.len();
    let reason = match problems.first() {
        Some(first) if count == 1 => first.to_string(),
        Some(first) => format!("the file has {count} problems; the first: {first}"),
        None => "the file cannot be read".to_owned(),
    };
    let shown: Vec<_> = problems
        .iter()
        .map(|problem| {
            let (line, column) = (problem.at.line, problem.at.column);
            json!({"line": line, "column": column, "path": problem.path, "message": problem.message})
        })
        .collect();
    Refusal::new(Code::WorkflowInvalid, reason).with("problems", shown)
}

fn widening_not_allowed(changes: &[Change]) -> Refusal {
    let widening: Vec<_> = changes.iter().filter(|change| !change.widens.is_empty()).map(Change::to_json).collect();
    let reason = format!(
        "{} of the changes widen access, and nothing was applied; review them, and apply with `allow_widening`",
        widening.len()
    );
    Refusal::new(Code::WideningNotAllowed, reason).with("widening", widening)
}

/// A task that its agent could not claim is a problem of the file, at what the task requires.
fn at_requirement(refusal: Refusal, workflow: &Workflow) -> Refusal {
    if refusal.code() != Code::InsufficientToolAccess {
        return refusal;
    }
    let detail = |name: &str| refusal.details().find(|(own, _)| *own == name).and_then(|(_, value)| value.as_str());
    let (task, service) = (detail("task"), detail("service"));
    let mut tasks = workflow.plan.iter().flat_map(|plan| &plan.value.tasks);
    let declared = tasks.find(|declared| Some(declared.name.value.as_str()) == task);
    let Some(declared) = declared else { return refusal };
    let mut requirements = declared.requires_tools.iter().filter(|requirement| requirement.required);
    let requirement = requirements.find(|requirement| Some(requirement.service.value.as_str()) == service);
    let at = requirement.map_or(declared.name.at, |requirement| requirement.at);
    invalid(vec![Problem::new(at, "plan", refusal.reason())])
}

/// A refusal of one change, with the change.
fn located(refusal: Refusal, change: &Change) -> Refusal {
    refusal.with("change", change.to_json())
}
