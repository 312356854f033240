//! Coordinated work for the rules: an intent with a coordinator and two workers.

use serde_json::{Map, Value};
use toolgate_gate::ports::entropy::random;
use toolgate_gate::ports::ledger::{
    AssignParticipant, ChangeTask, ClaimTask, CreateCoordinator, CreateIntent, CreateTask, GrantFilter, Mandate,
    PageRequest, TaskChanged, TaskChanges, Viewer,
};
use toolgate_gate::refusal::Refusal;
use toolgate_model::credential::ServiceName;
use toolgate_model::grant::{Grant, GrantStatus};
use toolgate_model::id::{CoordinatorId, IntentId, TaskId};
use toolgate_model::permission::{Permission, PermissionSet};
use toolgate_model::principal::{Principal, PrincipalId};
use toolgate_model::work::{
    Coordinator, CoordinatorKind, CoordinatorStatus, Guardrails, Intent, IntentStatus, Task, TaskDetails, TaskStatus,
    ToolRequirement,
};
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal, scopes};

use super::calls::Caller;

/// An intent with its people.
#[derive(Clone)]
pub struct Office {
    pub tenant: TestTenant,
    pub intent: IntentId,
    /// Creator of the intent.
    pub coordinator: Caller,
    pub worker: Caller,
    pub helper: Caller,
    /// An agent that has nothing to do with it.
    pub stranger: Caller,
}

/// An agent that may delegate.
async fn delegator(tenant: &TestTenant, name: &str) -> Caller {
    let id = principal(name);
    let permissions = [Permission::InvokeTools, Permission::DelegateTools].into_iter().collect::<PermissionSet>();
    let command = tenant.registration(Principal { permissions, ..tenant.new_principal(&id) });
    tenant.ledger.create_principal(command).await.unwrap();
    let key = tenant.key(&id, &format!("key of {name} in {}", tenant.id)).await.id;
    Caller { tenant: tenant.clone(), agent: id, key }
}

impl Office {
    pub async fn new(fixture: &LedgerFixture) -> Self {
        Self::of(&fixture.tenant().await).await
    }

    pub async fn of(tenant: &TestTenant) -> Self {
        let coordinator = delegator(tenant, "coordinator").await;
        let office = Self {
            intent: IntentId::new(tenant.now(), random().unwrap()),
            worker: Caller::of(tenant, "worker").await,
            helper: Caller::of(tenant, "helper").await,
            stranger: Caller::of(tenant, "stranger").await,
            tenant: tenant.clone(),
            coordinator,
        };
        let command = CreateIntent { audit: office.by(&office.coordinator).await, intent: office.new_intent() };
        tenant.ledger.create_intent(command).await.unwrap();
        for worker in [&office.worker, &office.helper] {
            let command = AssignParticipant {
                audit: office.by(&office.coordinator).await,
                intent: office.intent,
                agent: worker.agent.clone(),
                role: "worker".to_owned(),
            };
            tenant.ledger.assign_participant(command).await.unwrap();
        }
        office
    }

    /// The same people at another intent, which only its creator takes part in.
    pub async fn another(&self) -> Self {
        let office = Self { intent: IntentId::new(self.tenant.now(), random().unwrap()), ..self.clone() };
        let command = CreateIntent { audit: office.by(&office.coordinator).await, intent: office.new_intent() };
        office.tenant.ledger.create_intent(command).await.unwrap();
        office
    }

    pub fn new_intent(&self) -> Intent {
        Intent {
            id: self.intent,
            tenant: self.tenant.id.clone(),
            version: 1,
            status: IntentStatus::Active,
            title: "quarterly compliance".to_owned(),
            description: String::new(),
            state: Map::new(),
            constraints: Map::new(),
            parent: None,
            depends_on: Vec::new(),
            created_by: self.coordinator.agent.clone(),
            created_at: self.tenant.now(),
            updated_at: self.tenant.now(),
        }
    }

    /// The right of this agent, now.
    pub async fn by(&self, caller: &Caller) -> Mandate {
        self.tenant.mandate(&caller.agent, caller.key).await
    }

    pub fn viewer(caller: &Caller) -> Viewer {
        Viewer::Participant(std::sync::Arc::new(caller.agent.clone()))
    }

    /// Makes the coordinator one of these guardrails, supervised by the administrator.
    pub async fn govern(&self, guardrails: Value) -> Coordinator {
        self.govern_agent(&self.coordinator.agent, guardrails).await
    }

    pub async fn govern_agent(&self, agent: &PrincipalId, guardrails: Value) -> Coordinator {
        let coordinator = Coordinator {
            id: CoordinatorId::new(self.tenant.now(), random().unwrap()),
            tenant: self.tenant.id.clone(),
            intent: self.intent,
            agent: agent.clone(),
            supervisor: self.tenant.administrator.clone(),
            version: 1,
            status: CoordinatorStatus::Active,
            role: "coordinator".to_owned(),
            kind: CoordinatorKind::Llm,
            guardrails: Guardrails::from_json(guardrails.as_object().unwrap()).unwrap(),
            heartbeat_seconds: 86_400,
            last_heartbeat: None,
            granted_at: self.tenant.now(),
            expires_at: None,
            metadata: Map::new(),
        };
        let command = CreateCoordinator { audit: self.tenant.audit(), coordinator: coordinator.clone() };
        self.tenant.ledger.create_coordinator(command).await.unwrap();
        coordinator
    }

    /// A task that is not stored and requires nothing.
    pub fn new_task(&self) -> Task {
        Task {
            id: TaskId::new(self.tenant.now(), random().unwrap()),
            tenant: self.tenant.id.clone(),
            intent: self.intent,
            plan: None,
            version: 1,
            status: TaskStatus::Pending,
            assigned_agent: None,
            lease: None,
            depends_on: Vec::new(),
            blocks: Vec::new(),
            attempt: 1,
            max_attempts: 3,
            timeout_seconds: None,
            deadline: None,
            details: TaskDetails::named("create_invoice"),
            created_by: self.coordinator.agent.clone(),
            created_at: self.tenant.now(),
            started_at: None,
            completed_at: None,
            due: None,
        }
    }

    /// A task that requires these scopes of the service of the test credentials.
    pub fn task_requiring(&self, service: &ServiceName, names: &[&str]) -> Task {
        let mut task = self.new_task();
        task.details.requires_tools =
            vec![ToolRequirement { service: service.clone(), scopes: scopes(names), required: true }];
        task
    }

    pub async fn store(&self, task: Task) -> Result<TaskChanged, Refusal> {
        let command = CreateTask { audit: self.by(&self.coordinator).await, intent: self.intent, tasks: vec![task] };
        self.tenant.ledger.create_tasks(command).await.map(|mut tasks| tasks.remove(0))
    }

    pub async fn task(&self) -> Task {
        self.store(self.new_task()).await.unwrap().task
    }

    pub async fn now(&self, id: TaskId) -> Task {
        self.tenant.ledger.task(&self.tenant.id, id, &Viewer::Everything).await.unwrap().unwrap()
    }

    pub async fn change(&self, by: &Caller, id: TaskId, changes: TaskChanges) -> Result<TaskChanged, Refusal> {
        let expected_version = self.now(id).await.version;
        let command = ChangeTask { audit: self.by(by).await, id, expected_version, changes };
        self.tenant.ledger.change_task(command).await
    }

    pub async fn move_to(&self, by: &Caller, id: TaskId, status: TaskStatus) -> Result<TaskChanged, Refusal> {
        self.change(by, id, TaskChanges { status: Some(status), ..TaskChanges::default() }).await
    }

    pub async fn assign(&self, id: TaskId, agent: Option<&Caller>) -> Result<TaskChanged, Refusal> {
        let assigned_agent = Some(agent.map(|agent| agent.agent.clone()));
        self.change(&self.coordinator, id, TaskChanges { assigned_agent, ..TaskChanges::default() }).await
    }

    pub async fn claim(&self, by: &Caller, id: TaskId) -> Result<TaskChanged, Refusal> {
        let command = ClaimTask { audit: self.by(by).await, id, agent: by.agent.clone(), expected_version: None };
        self.tenant.ledger.claim_task(command).await
    }

    /// A task that this agent has claimed and begun.
    pub async fn begun(&self, by: &Caller) -> Task {
        let task = self.task().await;
        self.claim(by, task.id).await.unwrap();
        self.move_to(by, task.id, TaskStatus::Running).await.unwrap().task
    }

    /// A freely delegatable grant of the coordinator.
    pub async fn source(&self) -> Grant {
        self.coordinator.grant(None).await
    }

    /// The grants of an agent that are active now.
    pub async fn active(&self, agent: &PrincipalId) -> Vec<Grant> {
        let filter = GrantFilter { agent: Some(agent.clone()), ..GrantFilter::all(self.tenant.now()) };
        let page = self.tenant.ledger.grants(&self.tenant.id, filter, PageRequest::first(1000)).await.unwrap();
        let active = page.items.into_iter().filter(|one| one.standing(self.tenant.now()).status == GrantStatus::Active);
        active.map(|lineage| lineage.grant().clone()).collect()
    }
}
