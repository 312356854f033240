//! The plan of a file as an intent with coordinator, tasks and plan.

use std::collections::BTreeMap;

use serde_json::{Map, json};
use toolgate_model::id::{CoordinatorId, IntentId, PlanId, TaskId};
use toolgate_model::permission::Permission;
use toolgate_model::scope::ScopeSet;
use toolgate_model::work::{
    Coordinator, CoordinatorKind, CoordinatorStatus, Intent, IntentStatus, Plan, PlanDetails, PlanState, Task,
    TaskDetails, TaskStatus, ToolRequirement,
};
use toolgate_model::workflow::{DeclaredPlan, DeclaredTask, TaskName};

use super::WorkflowAdministration;
use super::resolve::Desired;
use crate::authority::work::NewTask;
use crate::identify::Caller;
use crate::ports::ledger::{
    CreateCoordinator, CreateIntent, CreatePlan, CreateTask, Mandate, WorkflowStep, WorkflowWork,
};
use crate::refusal::{Code, Refusal};

/// How many attempts a task has unless its file says otherwise.
const ATTEMPTS: u64 = 3;
/// How often a coordinator sends heartbeats.
const HEARTBEAT_SECONDS: u32 = 60;

impl WorkflowAdministration {
    /// The commands that create the work of a plan, and what is remembered of it.
    pub(super) fn work(
        &self,
        caller: &Caller,
        desired: &Desired<'_>,
    ) -> Result<(Vec<WorkflowStep>, WorkflowWork), Refusal> {
        caller.require(Permission::InvokeTools)?;
        let workflow = desired.workflow;
        let no_plan = || Refusal::new(Code::Internal, "a workflow without a plan has no work");
        let declared = &workflow.plan.as_ref().ok_or_else(no_plan)?.value;
        let audit = caller.mandate(self.clock.now());
        let intent = self.intent(&audit, desired)?;
        let coordinator = self.coordinator(caller, &audit, declared, desired, intent.id)?;
        // Tasks that are ready or assigned cannot be added to a plan, but created in one.
        let plan = self.plan(&audit, intent.id)?;
        let tasks = self.tasks(&audit, declared, intent.id, plan.id)?;
        let coordinator_id = coordinator.as_ref().map(|coordinator| coordinator.id);
        let version = workflow.version.value.clone();
        let created = WorkflowWork::new(version, declared.to_json(), intent.id, plan.id, coordinator_id);
        let mut steps = vec![WorkflowStep::CreateIntent(Box::new(CreateIntent { audit: audit.clone(), intent }))];
        steps.extend(coordinator.map(|coordinator| {
            WorkflowStep::CreateCoordinator(Box::new(CreateCoordinator { audit: audit.clone(), coordinator }))
        }));
        let intent = plan.intent;
        steps.push(WorkflowStep::CreatePlan(Box::new(CreatePlan { audit: audit.clone(), plan })));
        steps.push(WorkflowStep::CreateTasks(Box::new(CreateTask { audit, intent, tasks })));
        Ok((steps, created))
    }

    fn intent(&self, audit: &Mandate, desired: &Desired<'_>) -> Result<Intent, Refusal> {
        let (name, version) = (&desired.workflow.name.value, &desired.workflow.version.value);
        let mut state = Map::new();
        state.insert("workflow".to_owned(), json!({"name": name, "version": version}));
        Ok(Intent {
            id: self.ids.make(audit.time(), IntentId::new)?,
            tenant: audit.tenant().clone(),
            version: 1,
            status: IntentStatus::Active,
            title: name.to_string(),
            description: format!("Workflow {name}, version {version}"),
            state,
            constraints: Map::new(),
            parent: None,
            depends_on: Vec::new(),
            created_by: audit.actor().clone(),
            created_at: audit.time(),
            updated_at: audit.time(),
        })
    }

    fn coordinator(
        &self,
        caller: &Caller,
        audit: &Mandate,
        declared: &DeclaredPlan,
        desired: &Desired<'_>,
        intent: IntentId,
    ) -> Result<Option<Coordinator>, Refusal> {
        let Some(agent) = declared.coordinator.as_ref().map(|agent| agent.value.clone()) else { return Ok(None) };
        if !caller.may(Permission::ManageTools) {
            caller.require_acting_for(&agent)?;
        }
        Ok(Some(Coordinator {
            id: self.ids.make(audit.time(), CoordinatorId::new)?,
            tenant: audit.tenant().clone(),
            intent,
            agent,
            supervisor: audit.actor().clone(),
            version: 1,
            status: CoordinatorStatus::Active,
            role: "coordinator".to_owned(),
            kind: CoordinatorKind::Llm,
            guardrails: desired.guardrails.clone(),
            heartbeat_seconds: HEARTBEAT_SECONDS,
            last_heartbeat: None,
            granted_at: audit.time(),
            expires_at: None,
            metadata: Map::new(),
        }))
    }

    fn tasks(
        &self,
        audit: &Mandate,
        declared: &DeclaredPlan,
        intent: IntentId,
        plan: PlanId,
    ) -> Result<Vec<Task>, Refusal> {
        let mut ids: BTreeMap<&TaskName, TaskId> = BTreeMap::new();
        for task in &declared.tasks {
            ids.insert(&task.name.value, self.ids.make(audit.time(), TaskId::new)?);
        }
        let id_of = |name: &TaskName| {
            let unknown = || Refusal::new(Code::Internal, format!("there is no task `{name}`"));
            ids.get(name).copied().ok_or_else(unknown)
        };
        let tasks = declared.tasks.iter().map(|task| {
            let depends_on = task.depends_on.iter().map(|name| id_of(&name.value));
            let mut depends_on = depends_on.collect::<Result<Vec<_>, _>>()?;
            depends_on.sort_unstable();
            Ok(Task {
                id: id_of(&task.name.value)?,
                tenant: audit.tenant().clone(),
                intent,
                plan: Some(plan),
                version: 1,
                status: TaskStatus::Pending,
                assigned_agent: task.agent.as_ref().map(|agent| agent.value.clone()),
                lease: None,
                depends_on,
                blocks: Vec::new(),
                attempt: 1,
                max_attempts: max_attempts(task),
                timeout_seconds: task.timeout_seconds,
                deadline: task.deadline,
                details: details(task),
                created_by: audit.actor().clone(),
                created_at: audit.time(),
                started_at: None,
                completed_at: None,
                due: None,
            })
        });
        tasks.collect()
    }

    fn plan(&self, audit: &Mandate, intent: IntentId) -> Result<Plan, Refusal> {
        Ok(Plan {
            id: self.ids.make(audit.time(), PlanId::new)?,
            tenant: audit.tenant().clone(),
            intent,
            version: 1,
            state: PlanState::Active,
            tasks: Vec::new(),
            details: PlanDetails::default(),
            created_by: audit.actor().clone(),
            created_at: audit.time(),
            updated_at: audit.time(),
        })
    }
}

/// More than can be stored is more than is allowed.
fn max_attempts(task: &DeclaredTask) -> u32 {
    u32::try_from(task.max_attempts.unwrap_or(ATTEMPTS)).unwrap_or(u32::MAX)
}

/// A task of a file, for the checks of a task by itself. Its dependencies are named, and counted.
pub(super) fn new_task(task: &DeclaredTask) -> NewTask {
    NewTask {
        plan: None,
        details: details(task),
        depends_on: Vec::new(),
        depends_on_new: (0..task.depends_on.len()).collect(),
        assigned_agent: None,
        timeout_seconds: task.timeout_seconds,
        deadline: task.deadline,
        max_attempts: max_attempts(task),
    }
}

fn details(task: &DeclaredTask) -> TaskDetails {
    let requirement = |declared: &toolgate_model::workflow::DeclaredRequirement| ToolRequirement {
        service: declared.service.value.clone(),
        scopes: declared.scopes.iter().map(|scope| scope.value.clone()).collect::<ScopeSet>(),
        required: declared.required,
    };
    let mut metadata = Map::new();
    if !task.outputs.is_empty() {
        metadata.insert("outputs".to_owned(), json!(task.outputs));
    }
    TaskDetails {
        description: task.description.clone(),
        input: task.input.clone(),
        requires_tools: task.requires_tools.iter().map(requirement).collect(),
        metadata,
        ..TaskDetails::named(task.name.value.as_str())
    }
}
