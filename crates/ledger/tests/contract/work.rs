//! Intents, plans and tasks: who sees and changes what, versions, dependencies, ends.

use serde_json::json;
use toolgate_gate::ports::entropy::random;
use toolgate_gate::ports::ledger::{
    ChangeIntent, ChangePlan, CreateIntent, CreatePlan, CreateTask, IntentEventFilter, IntentFilter, PageRequest,
    PlanChanges, RecordCost, RemoveParticipant, TaskChanges, TaskFilter, Viewer,
};
use toolgate_gate::refusal::Code;
use toolgate_model::id::{CostId, IntentId, PlanId, TaskId};
use toolgate_model::work::limits::INTENTS;
use toolgate_model::work::{
    CostEntry, CostKind, Intent, IntentChange, IntentEventKind, IntentStatus, Plan, PlanDetails, PlanState, StatePatch,
    Task, TaskStatus,
};
use toolgate_testkit::ledger_fixture::LedgerFixture;

use super::support::work::Office;
use super::support::{detail, number, refused, run};

contract! {
    an_intent_exists_only_for_those_who_take_part_in_it,
    only_those_who_direct_an_intent_change_it,
    a_change_of_another_version_is_a_conflict,
    a_task_waits_for_what_it_depends_on,
    a_cycle_or_an_unknown_task_is_refused,
    the_assignee_reports_on_its_work_and_changes_nothing_else,
    a_failed_task_is_tried_again_as_often_as_it_may,
    an_intent_that_ends_ends_everything_below_it,
    a_plan_has_tasks_that_nobody_has_begun,
    a_cancelled_plan_cancels_its_tasks,
    every_change_is_an_event_that_the_client_can_read,
    costs_are_summed_by_agent_and_task,
    an_agent_that_left_sees_the_intent_no_more,
    intents_of_other_tenants_do_not_exist,
    a_page_ends_before_it_becomes_too_large,
    one_intent_too_many_takes_the_place_of_one_that_ended_long_ago,
}

async fn an_intent_exists_only_for_those_who_take_part_in_it(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let task = office.task().await;
    let (ledger, tenant) = (&office.tenant.ledger, &office.tenant.id);
    for (caller, sees) in [(&office.coordinator, true), (&office.worker, true), (&office.stranger, false)] {
        let viewer = Office::viewer(caller);
        assert_eq!(ledger.intent(tenant, office.intent, &viewer).await.unwrap().is_some(), sees, "{}", caller.agent);
        assert_eq!(ledger.task(tenant, task.id, &viewer).await.unwrap().is_some(), sees);
        let all = ledger.intents(tenant, IntentFilter::default(), &viewer, PageRequest::first(10)).await.unwrap();
        assert_eq!(all.items.len(), usize::from(sees));
        let page = PageRequest::first(10);
        let tasks = ledger.tasks(tenant, office.intent, &viewer, TaskFilter::default(), page).await.unwrap();
        assert_eq!(tasks.is_some(), sees);
        assert_eq!(ledger.leases(tenant, office.intent, &viewer, office.tenant.now()).await.unwrap().is_some(), sees);
        assert_eq!(ledger.intent_costs(tenant, office.intent, &viewer, 10).await.unwrap().is_some(), sees);
    }
    refused(&office.tenant, Code::TaskNotFound, office.claim(&office.stranger, task.id)).await;
    refused(&office.tenant, Code::TaskNotFound, office.move_to(&office.stranger, task.id, TaskStatus::Cancelled)).await;
}

async fn only_those_who_direct_an_intent_change_it(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let change = |audit| ChangeIntent {
        audit,
        id: office.intent,
        expected_version: 1,
        change: IntentChange::State(vec![StatePatch::Set { path: "phase".to_owned(), value: json!("audit") }]),
    };
    let ledger = &office.tenant.ledger;
    let by_worker = change(office.by(&office.worker).await);
    refused(&office.tenant, Code::PermissionDenied, ledger.change_intent(by_worker)).await;
    let by_stranger = change(office.by(&office.stranger).await);
    refused(&office.tenant, Code::IntentNotFound, ledger.change_intent(by_stranger)).await;
    let changed = ledger.change_intent(change(office.by(&office.coordinator).await)).await.unwrap();
    assert_eq!((changed.version, &changed.state["phase"]), (2, &json!("audit")));
    let task = office.task().await;
    refused(&office.tenant, Code::PermissionDenied, office.move_to(&office.worker, task.id, TaskStatus::Cancelled))
        .await;
    let new =
        CreateTask { audit: office.by(&office.worker).await, intent: office.intent, tasks: vec![office.new_task()] };
    refused(&office.tenant, Code::PermissionDenied, ledger.create_tasks(new)).await;
    let managed = ChangeIntent { expected_version: 2, ..change(office.tenant.audit()) };
    assert_eq!(ledger.change_intent(managed).await.unwrap().version, 3);
}

async fn a_change_of_another_version_is_a_conflict(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let task = office.task().await;
    let changes = TaskChanges { name: Some("renamed".to_owned()), ..TaskChanges::default() };
    let renamed = office.change(&office.coordinator, task.id, changes.clone()).await.unwrap();
    assert_eq!((renamed.task.version, renamed.task.details.name.as_str()), (2, "renamed"));
    let stale = toolgate_gate::ports::ledger::ChangeTask {
        audit: office.by(&office.coordinator).await,
        id: task.id,
        expected_version: 1,
        changes,
    };
    let refusal = refused(&office.tenant, Code::VersionConflict, office.tenant.ledger.change_task(stale)).await;
    assert_eq!(detail(&refusal, "current_version"), 2);
    assert!(!refusal.reason().contains("lease"), "clients take it for another conflict: {refusal}");
}

async fn a_task_waits_for_what_it_depends_on(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let (first, second) = (office.new_task(), office.new_task());
    let third = Task { depends_on: vec![first.id, second.id], ..office.new_task() };
    let command = CreateTask {
        audit: office.by(&office.coordinator).await,
        intent: office.intent,
        tasks: vec![third.clone(), first.clone(), second.clone()],
    };
    let created = office.tenant.ledger.create_tasks(command).await.unwrap();
    let status = |number: usize| created[number].task.status;
    assert_eq!((status(0), status(1), status(2)), (TaskStatus::Pending, TaskStatus::Ready, TaskStatus::Ready));
    assert_eq!(office.now(first.id).await.blocks, [third.id]);
    refused(&office.tenant, Code::TaskStateInvalid, office.claim(&office.worker, third.id)).await;
    refused(&office.tenant, Code::TaskStateInvalid, office.move_to(&office.coordinator, third.id, TaskStatus::Ready))
        .await;
    office.claim(&office.worker, first.id).await.unwrap();
    office.move_to(&office.worker, first.id, TaskStatus::Completed).await.unwrap();
    assert_eq!(office.now(third.id).await.status, TaskStatus::Pending);
    office.move_to(&office.coordinator, second.id, TaskStatus::Skipped).await.unwrap();
    assert_eq!(office.now(third.id).await.status, TaskStatus::Ready);
    let later = Task { depends_on: vec![first.id], ..office.new_task() };
    assert_eq!(office.store(later).await.unwrap().task.status, TaskStatus::Ready);
}

async fn a_cycle_or_an_unknown_task_is_refused(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let elsewhere = office.another().await.task().await.id;
    let unknown = Task { depends_on: vec![elsewhere], ..office.new_task() };
    refused(&office.tenant, Code::InvalidField, office.store(unknown)).await;
    let (mut first, mut second) = (office.new_task(), office.new_task());
    (first.depends_on, second.depends_on) = (vec![second.id], vec![first.id]);
    let command =
        CreateTask { audit: office.by(&office.coordinator).await, intent: office.intent, tasks: vec![first, second] };
    refused(&office.tenant, Code::InvalidField, office.tenant.ledger.create_tasks(command)).await;
}

async fn the_assignee_reports_on_its_work_and_changes_nothing_else(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let task = office.begun(&office.worker).await;
    assert_eq!(task.assigned_agent.as_ref(), Some(&office.worker.agent));
    assert_eq!(task.started_at, Some(office.tenant.now()));
    let output = TaskChanges { output: Some(json!({"report": "r-1"}).as_object().cloned().unwrap()), ..same(&task) };
    let reported = office.change(&office.worker, task.id, output.clone()).await.unwrap().task;
    assert_eq!(
        (reported.details.output.unwrap()["report"].as_str(), reported.status),
        (Some("r-1"), TaskStatus::Running)
    );
    refused(&office.tenant, Code::PermissionDenied, office.change(&office.helper, task.id, output)).await;
    let rename = TaskChanges { name: Some("mine".to_owned()), ..TaskChanges::default() };
    refused(&office.tenant, Code::PermissionDenied, office.change(&office.worker, task.id, rename)).await;
    refused(&office.tenant, Code::PermissionDenied, office.move_to(&office.worker, task.id, TaskStatus::Cancelled))
        .await;
    refused(&office.tenant, Code::TaskStateInvalid, office.move_to(&office.worker, task.id, TaskStatus::Ready)).await;
    office.move_to(&office.worker, task.id, TaskStatus::Blocked).await.unwrap();
    let done = [TaskStatus::Running, TaskStatus::Completed];
    for status in done {
        office.move_to(&office.worker, task.id, status).await.unwrap();
    }
    assert_eq!(office.now(task.id).await.completed_at, Some(office.tenant.now()));
    refused(&office.tenant, Code::TaskStateInvalid, office.move_to(&office.worker, task.id, TaskStatus::Running)).await;
}

/// The SDK always sends a status: the present one changes nothing.
fn same(task: &Task) -> TaskChanges {
    TaskChanges { status: Some(task.status), ..TaskChanges::default() }
}

async fn a_failed_task_is_tried_again_as_often_as_it_may(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let task = office.store(Task { max_attempts: 2, ..office.new_task() }).await.unwrap().task;
    for attempt in 1..=2 {
        office.claim(&office.worker, task.id).await.unwrap();
        office.move_to(&office.worker, task.id, TaskStatus::Failed).await.unwrap();
        assert_eq!(office.now(task.id).await.attempt, attempt);
        refused(&office.tenant, Code::PermissionDenied, office.move_to(&office.worker, task.id, TaskStatus::Ready))
            .await;
        let again = office.move_to(&office.coordinator, task.id, TaskStatus::Ready);
        if attempt == 1 {
            let task = again.await.unwrap().task;
            assert_eq!((task.attempt, task.assigned_agent), (2, None));
        } else {
            refused(&office.tenant, Code::TaskStateInvalid, again).await;
        }
    }
}

async fn an_intent_that_ends_ends_everything_below_it(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let coordinator = office.govern(json!({"denied_services": ["aws"]})).await;
    let (begun, ready) = (office.begun(&office.worker).await, office.task().await);
    let plan = plan(&office, &[]).await;
    let change = ChangeIntent {
        audit: office.tenant.audit(),
        id: office.intent,
        expected_version: 1,
        change: IntentChange::Status { status: IntentStatus::Abandoned, reason: Some("no budget".to_owned()) },
    };
    let ledger = &office.tenant.ledger;
    assert_eq!(ledger.change_intent(change).await.unwrap().status, IntentStatus::Abandoned);
    for task in [begun.id, ready.id] {
        assert_eq!(office.now(task).await.status, TaskStatus::Cancelled);
    }
    let (tenant, all) = (&office.tenant.id, Viewer::Everything);
    assert_eq!(ledger.plan(tenant, plan.id, &all).await.unwrap().unwrap().state, PlanState::Cancelled);
    assert!(ledger.coordinator(tenant, coordinator.id, &all).await.unwrap().unwrap().status.has_ended());
    refused(&office.tenant, Code::IntentStateInvalid, office.store(office.new_task())).await;
}

async fn plan(office: &Office, tasks: &[TaskId]) -> Plan {
    let plan = Plan {
        id: PlanId::new(office.tenant.now(), random().unwrap()),
        tenant: office.tenant.id.clone(),
        intent: office.intent,
        version: 1,
        state: PlanState::Active,
        tasks: tasks.to_vec(),
        details: PlanDetails::default(),
        created_by: office.coordinator.agent.clone(),
        created_at: office.tenant.now(),
        updated_at: office.tenant.now(),
    };
    let command = CreatePlan { audit: office.by(&office.coordinator).await, plan };
    office.tenant.ledger.create_plan(command).await.unwrap()
}

async fn change_plan(
    office: &Office,
    plan: &Plan,
    changes: PlanChanges,
) -> Result<Plan, toolgate_gate::refusal::Refusal> {
    let audit = office.by(&office.coordinator).await;
    let command = ChangePlan { audit, id: plan.id, expected_version: plan.version, changes };
    office.tenant.ledger.change_plan(command).await
}

async fn a_plan_has_tasks_that_nobody_has_begun(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let (free, begun) = (office.task().await, office.begun(&office.worker).await);
    let plan = plan(&office, &[free.id]).await;
    assert_eq!(plan.tasks, [free.id]);
    assert_eq!(office.now(free.id).await.plan, Some(plan.id));
    let tasks = |tasks: &[TaskId]| PlanChanges { tasks: Some(tasks.to_vec()), ..PlanChanges::default() };
    refused(&office.tenant, Code::TaskStateInvalid, change_plan(&office, &plan, tasks(&[free.id, begun.id]))).await;
    let emptied = change_plan(&office, &plan, tasks(&[])).await.unwrap();
    assert_eq!((emptied.version, office.now(free.id).await.plan), (2, None));
    refused(&office.tenant, Code::VersionConflict, change_plan(&office, &plan, tasks(&[]))).await;
}

async fn a_cancelled_plan_cancels_its_tasks(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let task = office.task().await;
    let plan = plan(&office, &[task.id]).await;
    let state = |state| PlanChanges { state: Some(state), ..PlanChanges::default() };
    refused(&office.tenant, Code::PlanStateInvalid, change_plan(&office, &plan, state(PlanState::Draft))).await;
    let paused = change_plan(&office, &plan, state(PlanState::Paused)).await.unwrap();
    refused(&office.tenant, Code::PlanStateInvalid, office.claim(&office.worker, task.id)).await;
    change_plan(&office, &paused, state(PlanState::Cancelled)).await.unwrap();
    assert_eq!(office.now(task.id).await.status, TaskStatus::Cancelled);
}

async fn every_change_is_an_event_that_the_client_can_read(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    office.begun(&office.worker).await;
    let (ledger, tenant) = (&office.tenant.ledger, &office.tenant.id);
    let viewer = Office::viewer(&office.helper);
    let page = PageRequest::first(100);
    let events = ledger.intent_events(tenant, office.intent, &viewer, IntentEventFilter::default(), page).await;
    let mut kinds: Vec<_> = events.unwrap().unwrap().items.into_iter().map(|event| event.kind).collect();
    kinds.sort();
    let expected = [
        IntentEventKind::IntentCreated,
        IntentEventKind::AgentAssigned,
        IntentEventKind::AgentAssigned,
        IntentEventKind::TaskCreated,
        IntentEventKind::TaskClaimed,
        IntentEventKind::TaskStarted,
    ];
    assert_eq!(kinds, expected);
    let mut logged: Vec<_> = office.tenant.events().await;
    logged.retain(|event| event["intent_id"] == office.intent.to_string());
    assert_eq!(logged.len(), expected.len());
    let started = logged.last().unwrap();
    assert_eq!((&started["type"], &started["data"]["to"]), (&json!("work.task.changed"), &json!("running")));
}

async fn costs_are_summed_by_agent_and_task(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let task = office.begun(&office.worker).await;
    for (amount_micros, unit) in [(1_500_000, "usd"), (50_000_000, "cents"), (7_000_000, "tokens")] {
        let entry = CostEntry {
            id: CostId::new(office.tenant.now(), random().unwrap()),
            tenant: office.tenant.id.clone(),
            intent: office.intent,
            task: Some(task.id),
            agent: office.worker.agent.clone(),
            kind: CostKind::Compute,
            amount_micros,
            unit: unit.to_owned(),
            provider: None,
            metadata: serde_json::Map::new(),
            recorded_at: office.tenant.now(),
        };
        let command = RecordCost { audit: office.by(&office.worker).await, entry };
        office.tenant.ledger.record_cost(command).await.unwrap();
    }
    let grant = office.worker.grant(None).await;
    let mut call = office.worker.call(&grant).await;
    call.invocation.context = task.context();
    assert_eq!(office.worker.send(call.clone()).await, toolgate_gate::ports::ledger::Admission::Admitted);
    office.worker.settle(&call, "{}").await;
    let (ledger, tenant) = (&office.tenant.ledger, &office.tenant.id);
    let costs = ledger.intent_costs(tenant, office.intent, &Viewer::Everything, 10).await.unwrap().unwrap();
    assert_eq!((costs.recorded.len(), costs.calls.len()), (3, 1));
    assert_eq!(costs.summary.total, 2_020_000);
    assert_eq!(costs.summary.by_task[&task.id.to_string()], 2_020_000);
    assert_eq!(costs.summary.by_agent[&office.worker.agent], 2_020_000);
    assert_eq!(costs.summary.by_kind[&CostKind::ExternalTool], 20_000);
}

async fn an_agent_that_left_sees_the_intent_no_more(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let command = RemoveParticipant {
        audit: office.by(&office.helper).await,
        intent: office.intent,
        agent: office.helper.agent.clone(),
    };
    office.tenant.ledger.remove_participant(command).await.unwrap();
    let (ledger, tenant) = (&office.tenant.ledger, &office.tenant.id);
    assert!(ledger.intent(tenant, office.intent, &Office::viewer(&office.helper)).await.unwrap().is_none());
}

async fn intents_of_other_tenants_do_not_exist(fixture: &LedgerFixture) {
    let (office, other) = (Office::new(fixture).await, Office::new(fixture).await);
    let all = Viewer::Everything;
    let (ledger, tenant) = (&other.tenant.ledger, &other.tenant.id);
    assert!(ledger.intent(tenant, office.intent, &all).await.unwrap().is_none());
    let task = office.task().await;
    assert!(ledger.task(tenant, task.id, &all).await.unwrap().is_none());
    refused(&other.tenant, Code::TaskNotFound, other.claim(&other.worker, task.id)).await;
    let below = CreateIntent {
        audit: other.tenant.audit(),
        intent: toolgate_model::work::Intent {
            id: IntentId::new(other.tenant.now(), random().unwrap()),
            parent: Some(office.intent),
            ..other.new_intent()
        },
    };
    refused(&other.tenant, Code::IntentNotFound, ledger.create_intent(below)).await;
}

async fn a_page_ends_before_it_becomes_too_large(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let text = "x".repeat(1 << 20);
    for _ in 0..10 {
        let id = IntentId::new(office.tenant.now(), random().unwrap());
        let intent = Intent { id, state: json!({"text": text}).as_object().cloned().unwrap(), ..office.new_intent() };
        let command = CreateIntent { audit: office.by(&office.coordinator).await, intent };
        office.tenant.ledger.create_intent(command).await.unwrap();
    }
    let (ledger, tenant) = (&office.tenant.ledger, &office.tenant.id);
    let list = async |page| ledger.intents(tenant, IntentFilter::default(), &Viewer::Everything, page).await.unwrap();
    let first = list(PageRequest::first(1000)).await;
    assert!((6..=8).contains(&first.items.len()), "{}", first.items.len());
    let rest = list(PageRequest { after: first.next, ..PageRequest::first(1000) }).await;
    assert_eq!((first.items.len() + rest.items.len(), rest.next), (11, None));
    let one = list(PageRequest::first(1)).await;
    assert_eq!(one.items.len(), 1);
}

async fn one_intent_too_many_takes_the_place_of_one_that_ended_long_ago(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let (ledger, tenant) = (&office.tenant.ledger, office.tenant.id.clone());
    let task = office.begun(&office.worker).await;
    office.move_to(&office.worker, task.id, TaskStatus::Completed).await.unwrap();
    let end = ChangeIntent {
        audit: office.tenant.audit(),
        id: office.intent,
        expected_version: 1,
        change: IntentChange::Status { status: IntentStatus::Completed, reason: None },
    };
    ledger.change_intent(end).await.unwrap();
    let now = office.tenant.now().as_millis();
    let sql = format!(
        "INSERT INTO intents (id, tenant, version, status, title, description, state, constraints, depends_on, created_by, \
         created_at, updated_at) \
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {}) \
         SELECT 'intent_7ZZZZZZZZZ00000000000' || SUBSTR(CAST(100000 + n AS TEXT), 2, 5), '{tenant}', 1, 'completed', 'a', \
         'b', '{{}}', '{{}}', '[]', '{}', {now}, {now} FROM numbers",
        INTENTS - 1,
        office.coordinator.agent
    );
    run(fixture, &sql).await;
    let create = async || {
        let intent = Intent { id: IntentId::new(office.tenant.now(), random().unwrap()), ..office.new_intent() };
        let command = CreateIntent { audit: office.by(&office.coordinator).await, intent };
        ledger.create_intent(command).await
    };
    // What has ended lately is kept.
    refused(&office.tenant, Code::WorkLimitReached, create()).await;
    assert!(ledger.intent(&tenant, office.intent, &Viewer::Everything).await.unwrap().is_some());
    office.tenant.wait(31 * 86_400);
    create().await.unwrap();
    // The oldest one is gone with all of its work, and the audit log says so.
    assert!(ledger.intent(&tenant, office.intent, &Viewer::Everything).await.unwrap().is_none());
    assert!(ledger.task(&tenant, task.id, &Viewer::Everything).await.unwrap().is_none());
    let events = office.tenant.events().await;
    let reason = |event: &serde_json::Value| event["data"]["reason"].as_str().map(str::to_owned);
    assert!(events.iter().filter_map(reason).any(|reason| reason.starts_with("deleted to make room")));
    assert_eq!(number(fixture, &format!("SELECT COUNT(*) FROM intents WHERE tenant = '{tenant}'")).await, 10_000);
}
