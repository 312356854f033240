//! Calls that belong to a task: what an agent may claim, and what the admission checks again.

use toolgate_gate::ports::ledger::{Admission, Admit, Freshness};
use toolgate_model::context::GrantContext;
use toolgate_model::grant::Grant;
use toolgate_model::id::TaskId;
use toolgate_model::work::{AgentWork, Task, TaskStatus};
use toolgate_testkit::ledger_fixture::LedgerFixture;

use serde_json::json;

use super::support::calls::{Caller, another};
use super::support::work::Office;

contract! {
    an_agent_without_work_has_none,
    the_work_of_an_agent_is_read_with_its_grants,
    a_call_is_admitted_only_while_its_task_is_running,
    a_task_of_another_agent_admits_nothing,
    a_new_coordinator_makes_decisions_stale,
    a_replica_that_knows_an_older_state_admits_nothing,
}

async fn work(caller: &Caller) -> AgentWork {
    let tenant = &caller.tenant;
    let held = tenant.ledger.held_grants(&tenant.id, &caller.agent, tenant.now(), Freshness::Newest).await.unwrap();
    held.work.as_deref().cloned().unwrap_or_default()
}

/// A call of the agent through this grant for this task.
async fn call(caller: &Caller, grant: &Grant, task: TaskId) -> Admit {
    let context = work(caller).await.running.get(&task).map(|running| running.context.clone());
    let mut call = caller.call(grant).await;
    call.invocation.context = context.unwrap_or_default();
    Admit { task: Some(task), ..call }
}

async fn an_agent_without_work_has_none(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let tenant = &caller.tenant;
    let held = tenant.ledger.held_grants(&tenant.id, &caller.agent, tenant.now(), Freshness::Newest).await.unwrap();
    assert!(held.work.is_none());
    assert_eq!(held.work_revision, 0);
    let office = Office::new(fixture).await;
    assert_eq!(work(&office.stranger).await, AgentWork::default());
}

async fn the_work_of_an_agent_is_read_with_its_grants(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let task = office.store(Task { timeout_seconds: Some(60), ..office.new_task() }).await.unwrap().task;
    assert!(work(&office.worker).await.running.is_empty());
    assert!(work(&office.worker).await.intents.contains(&office.intent));
    office.claim(&office.worker, task.id).await.unwrap();
    assert!(work(&office.worker).await.running.is_empty(), "it has not begun");
    office.move_to(&office.worker, task.id, TaskStatus::Running).await.unwrap();
    let running = work(&office.worker).await.running;
    assert_eq!(running[&task.id].context, task.context());
    assert_eq!(running[&task.id].due, Some(office.tenant.later(60)));
    let named = GrantContext { task_id: task.context().task_id, ..GrantContext::default() };
    let now = office.tenant.now();
    assert!(work(&office.worker).await.bind(&named, now).is_ok());
    assert!(work(&office.worker).await.bind(&named, office.tenant.later(60)).is_err(), "its time is over");
    assert!(work(&office.helper).await.bind(&named, now).is_err());
    let one = office.govern(json!({"max_tool_invocations": 5})).await;
    assert_eq!(work(&office.coordinator).await.coordinators[0].id, one.id);
    office.move_to(&office.worker, task.id, TaskStatus::Blocked).await.unwrap();
    assert!(work(&office.worker).await.bind(&named, now).is_err());
}

async fn a_call_is_admitted_only_while_its_task_is_running(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let grant = office.worker.grant(None).await;
    let task = office.begun(&office.worker).await;
    let decided = call(&office.worker, &grant, task.id).await;
    assert_eq!(office.worker.send(decided.clone()).await, Admission::Admitted);
    office.move_to(&office.worker, task.id, TaskStatus::Blocked).await.unwrap();
    assert_eq!(office.worker.send(another(&decided)).await, Admission::Stale);
    office.move_to(&office.worker, task.id, TaskStatus::Running).await.unwrap();
    let again = call(&office.worker, &grant, task.id).await;
    assert_eq!(office.worker.send(again.clone()).await, Admission::Admitted);
    office.move_to(&office.worker, task.id, TaskStatus::Completed).await.unwrap();
    assert_eq!(office.worker.send(another(&again)).await, Admission::Stale);
    // A call outside of the task goes on.
    assert_eq!(office.worker.admit(&grant).await, Admission::Admitted);
}

async fn a_task_of_another_agent_admits_nothing(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let task = office.begun(&office.worker).await;
    let grant = office.helper.grant(None).await;
    let forged = Admit { generation: 0, ..call(&office.helper, &grant, task.id).await };
    assert_eq!(office.helper.send(forged).await, Admission::Stale);
}

async fn a_new_coordinator_makes_decisions_stale(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let grant = office.coordinator.grant(None).await;
    let decided = office.coordinator.call(&grant).await;
    office.govern(json!({"denied_services": [grant.service]})).await;
    assert_eq!(office.coordinator.send(decided).await, Admission::Stale);
    assert_eq!(office.coordinator.admit(&grant).await, Admission::Admitted);
}

async fn a_replica_that_knows_an_older_state_admits_nothing(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let grant = office.worker.grant(None).await;
    let task = office.begun(&office.worker).await;
    let there = office.worker.at_replica(fixture).await;
    let decided = call(&there, &grant, task.id).await;
    office.move_to(&office.coordinator, task.id, TaskStatus::Cancelled).await.unwrap();
    assert_eq!(there.send(decided).await, Admission::Stale);
}
