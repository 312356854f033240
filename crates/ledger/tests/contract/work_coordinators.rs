//! Coordinators: who sets their guardrails, which grants they govern, what bounds tasks and delegations.

use serde_json::{Value, json};
use toolgate_gate::ports::ledger::{
    ChangeCoordinator, ChangeIntent, CoordinatorChanges, CreateCoordinator, CreateTask, Freshness, SendHeartbeat,
    Viewer,
};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::context::GrantContext;
use toolgate_model::id::{CoordinatorId, GrantId};
use toolgate_model::work::{Coordinator, CoordinatorStatus, Guardrails, IntentChange, IntentStatus, TaskStatus};
use toolgate_testkit::ledger_fixture::LedgerFixture;

use super::support::calls::Caller;
use super::support::work::Office;
use super::support::{detail, refused};

contract! {
    only_its_supervisor_changes_a_coordinator,
    its_own_supervisor_may_only_narrow,
    nobody_is_rid_of_guardrails_by_ending_the_intent,
    a_coordinator_governs_everything_below_its_grants,
    nobody_escapes_guardrails_by_narrowing_the_context,
    a_coordinator_of_another_intent_does_not_govern_a_bound_grant,
    guardrails_bound_delegations_and_tasks,
    heartbeats_that_stop_are_noticed_and_free_nobody,
    a_paused_coordinator_does_not_direct,
}

async fn change(
    office: &Office,
    by: &Caller,
    id: CoordinatorId,
    changes: CoordinatorChanges,
) -> Result<Coordinator, Refusal> {
    let command = ChangeCoordinator { audit: office.by(by).await, id, expected_version: None, changes };
    office.tenant.ledger.change_coordinator(command).await
}

fn guardrails(value: Value) -> CoordinatorChanges {
    let guardrails = Guardrails::from_json(value.as_object().unwrap()).unwrap();
    CoordinatorChanges { guardrails: Some(guardrails), ..CoordinatorChanges::default() }
}

fn status(status: CoordinatorStatus) -> CoordinatorChanges {
    CoordinatorChanges { status: Some(status), ..CoordinatorChanges::default() }
}

async fn only_its_supervisor_changes_a_coordinator(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let one = office.govern(json!({"denied_services": ["aws"]})).await;
    for by in [&office.coordinator, &office.worker] {
        refused(&office.tenant, Code::PermissionDenied, change(&office, by, one.id, guardrails(json!({})))).await;
        let ended = status(CoordinatorStatus::Completed);
        refused(&office.tenant, Code::PermissionDenied, change(&office, by, one.id, ended)).await;
    }
    let unseen = change(&office, &office.stranger, one.id, guardrails(json!({})));
    refused(&office.tenant, Code::CoordinatorNotFound, unseen).await;
    let by_manager = ChangeCoordinator {
        audit: office.tenant.audit(),
        id: one.id,
        expected_version: Some(1),
        changes: guardrails(json!({"denied_services": ["gcp"]})),
    };
    let changed = office.tenant.ledger.change_coordinator(by_manager.clone()).await.unwrap();
    assert_eq!(changed.version, 2);
    refused(&office.tenant, Code::VersionConflict, office.tenant.ledger.change_coordinator(by_manager)).await;
}

async fn its_own_supervisor_may_only_narrow(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let mut one = office.govern(json!({})).await;
    one.id = CoordinatorId::new(office.tenant.now(), [9; 10]);
    one.supervisor = office.coordinator.agent.clone();
    one.guardrails = Guardrails { max_tool_invocations: Some(10), ..Guardrails::default() };
    let command = CreateCoordinator { audit: office.by(&office.coordinator).await, coordinator: one.clone() };
    office.tenant.ledger.create_coordinator(command).await.unwrap();
    let own = |changes| change(&office, &office.coordinator, one.id, changes);
    own(guardrails(json!({"max_tool_invocations": 5}))).await.unwrap();
    refused(&office.tenant, Code::PermissionDenied, own(guardrails(json!({"max_tool_invocations": 6})))).await;
    refused(&office.tenant, Code::PermissionDenied, own(guardrails(json!({})))).await;
    refused(&office.tenant, Code::PermissionDenied, own(status(CoordinatorStatus::Completed))).await;
    let soon = CoordinatorChanges { expires_at: Some(Some(office.tenant.later(1))), ..CoordinatorChanges::default() };
    refused(&office.tenant, Code::PermissionDenied, own(soon)).await;
}

async fn nobody_is_rid_of_guardrails_by_ending_the_intent(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let source = office.source().await;
    let one = office.govern(json!({"max_tool_invocations": 5})).await;
    office.govern_agent(&office.helper.agent, json!({"auto_delegate": true})).await;
    let (ledger, tenant) = (&office.tenant.ledger, &office.tenant.id);
    let end = |audit, status| ChangeIntent {
        audit,
        id: office.intent,
        expected_version: 1,
        change: IntentChange::Status { status, reason: None },
    };
    // The coordinator itself, which created the intent, and another coordinator.
    for by in [&office.coordinator, &office.helper] {
        for status in [IntentStatus::Completed, IntentStatus::Abandoned] {
            let ended = ledger.change_intent(end(office.by(by).await, status));
            let refusal = refused(&office.tenant, Code::PermissionDenied, ended).await;
            assert_eq!(detail(&refusal, "coordinator_id"), json!(one.id));
        }
    }
    assert_eq!(governing(&office.coordinator, source.id).await, [one.id]);
    // Whoever may change the guardrails may end them with the intent.
    ledger.change_intent(end(office.tenant.audit(), IntentStatus::Completed)).await.unwrap();
    assert_eq!(
        ledger.coordinator(tenant, one.id, &Viewer::Everything).await.unwrap().unwrap().status,
        CoordinatorStatus::Completed
    );

    // Its own supervisor may not be rid of them either; without limits there is nothing to be rid of.
    let other = office.another().await;
    let own = other.govern(json!({"auto_delegate": true})).await;
    let limited = Coordinator {
        id: CoordinatorId::new(office.tenant.now(), [9; 10]),
        supervisor: office.coordinator.agent.clone(),
        guardrails: Guardrails { max_tool_invocations: Some(10), ..Guardrails::default() },
        ..own
    };
    let command = CreateCoordinator { audit: office.by(&office.coordinator).await, coordinator: limited.clone() };
    ledger.create_coordinator(command).await.unwrap();
    let ends = async || {
        let audit = office.by(&office.coordinator).await;
        ledger.change_intent(ChangeIntent { id: other.intent, ..end(audit, IntentStatus::Completed) }).await
    };
    refused(&office.tenant, Code::PermissionDenied, ends()).await;
    let done = ChangeCoordinator {
        audit: office.tenant.audit(),
        id: limited.id,
        expected_version: None,
        changes: status(CoordinatorStatus::Completed),
    };
    ledger.change_coordinator(done).await.unwrap();
    ends().await.unwrap();
}

/// The coordinators that govern calls of this agent through this grant.
async fn governing(caller: &Caller, grant: GrantId) -> Vec<CoordinatorId> {
    let tenant = &caller.tenant;
    let held = tenant.ledger.held_grants(&tenant.id, &caller.agent, tenant.now(), Freshness::Newest).await.unwrap();
    let found = held.held.iter().find(|held| held.grant() == grant).unwrap();
    let alone = tenant.ledger.held_grant(&tenant.id, grant).await.unwrap().unwrap();
    let ids = |of: &[std::sync::Arc<Coordinator>]| of.iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(ids(&found.coordinators), ids(&alone.coordinators));
    ids(&found.coordinators)
}

async fn a_coordinator_governs_everything_below_its_grants(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let source = office.source().await;
    let below = office.tenant.delegate(&source, "worker").await.unwrap();
    let deeper = office.tenant.delegate(&below, "helper").await.unwrap();
    assert!(governing(&office.coordinator, source.id).await.is_empty());
    let one = office.govern(json!({"max_tool_invocations": 5})).await;
    for (caller, grant) in [(&office.coordinator, &source), (&office.worker, &below), (&office.helper, &deeper)] {
        assert_eq!(governing(caller, grant.id).await, [one.id], "{}", caller.agent);
    }
    let elsewhere = office.helper.grant(None).await;
    assert!(governing(&office.helper, elsewhere.id).await.is_empty());
    let audit = office.tenant.audit();
    let ended =
        ChangeCoordinator { audit, id: one.id, expected_version: None, changes: status(CoordinatorStatus::Completed) };
    office.tenant.ledger.change_coordinator(ended).await.unwrap();
    assert!(governing(&office.helper, deeper.id).await.is_empty());
}

async fn nobody_escapes_guardrails_by_narrowing_the_context(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let one = office.govern(json!({"max_tool_invocations": 5})).await;
    let source = office.source().await;
    let elsewhere = office.another().await.task().await;
    let foreign: GrantContext = serde_json::from_value(json!({"intent_id": "intent_of_another_system"})).unwrap();
    for context in [elsewhere.context(), foreign] {
        let mut bound = office.tenant.delegation(&source, "worker");
        bound.request.context = context;
        let bound = office.tenant.ledger.delegate_grant(bound).await.unwrap();
        assert_eq!(governing(&office.worker, bound.id).await, [one.id]);
    }
}

async fn a_coordinator_of_another_intent_does_not_govern_a_bound_grant(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let one = office.govern(json!({"max_tool_invocations": 5})).await;
    let other = office.another().await;
    let credential = office.tenant.credential().await;
    for (intent, expected) in [(office.intent, vec![one.id]), (other.intent, Vec::new())] {
        let mut grant = office.tenant.new_grant(&credential, &office.coordinator.agent);
        grant.authority.context = serde_json::from_value(json!({"intent_id": intent})).unwrap();
        let grant = office.tenant.store_grant(grant).await.unwrap();
        assert_eq!(governing(&office.coordinator, grant.id).await, expected);
    }
}

async fn guardrails_bound_delegations_and_tasks(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let source = office.source().await;
    office.govern(json!({"max_delegation_depth": 1, "max_concurrent_tasks": 1})).await;
    let below = office.tenant.delegate(&source, "worker").await.unwrap();
    refused(&office.tenant, Code::GuardrailDenied, office.tenant.delegate(&below, "helper")).await;
    let (first, second) = (office.task().await, office.task().await);
    office.claim(&office.worker, first.id).await.unwrap();
    refused(&office.tenant, Code::GuardrailDenied, office.claim(&office.helper, second.id)).await;
    office.move_to(&office.worker, first.id, TaskStatus::Completed).await.unwrap();
    office.claim(&office.helper, second.id).await.unwrap();
    office.govern(json!({"denied_services": [source.service]})).await;
    refused(&office.tenant, Code::GuardrailDenied, office.tenant.delegate(&source, "helper")).await;
}

async fn heartbeats_that_stop_are_noticed_and_free_nobody(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let one = office.govern(json!({"max_tool_invocations": 5})).await;
    let source = office.source().await;
    let beat = |by: &Caller| {
        let (by, office) = (by.clone(), office.clone());
        async move {
            let command = SendHeartbeat { audit: office.by(&by).await, id: one.id };
            office.tenant.ledger.send_heartbeat(command).await
        }
    };
    refused(&office.tenant, Code::PermissionDenied, beat(&office.worker)).await;
    office.tenant.wait(86_400);
    beat(&office.coordinator).await.unwrap();
    office.tenant.wait(3 * 86_400);
    assert_eq!(office.tenant.ledger.sweep_work(office.tenant.now()).await.unwrap(), 1);
    let (ledger, tenant) = (&office.tenant.ledger, &office.tenant.id);
    let read = async || ledger.coordinator(tenant, one.id, &Viewer::Everything).await.unwrap().unwrap();
    assert_eq!(read().await.status, CoordinatorStatus::Unresponsive);
    assert_eq!(governing(&office.coordinator, source.id).await, [one.id]);
    beat(&office.coordinator).await.unwrap();
    assert_eq!(read().await.status, CoordinatorStatus::Active);
}

async fn a_paused_coordinator_does_not_direct(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let one = office.govern_agent(&office.helper.agent, json!({})).await;
    let create = async || {
        let audit = office.by(&office.helper).await;
        let command = CreateTask { audit, intent: office.intent, tasks: vec![office.new_task()] };
        office.tenant.ledger.create_tasks(command).await
    };
    create().await.unwrap();
    let pause = ChangeCoordinator {
        audit: office.tenant.audit(),
        id: one.id,
        expected_version: None,
        changes: status(CoordinatorStatus::Paused),
    };
    office.tenant.ledger.change_coordinator(pause).await.unwrap();
    refused(&office.tenant, Code::PermissionDenied, create()).await;
}
