//! Requirements at the claim, automatic delegation, and the end of what was delegated for a task.

use serde_json::json;
use toolgate_gate::ports::ledger::{ChangeTask, CheckTask, TaskChanges};
use toolgate_gate::refusal::Code;
use toolgate_model::context::GrantContext;
use toolgate_model::grant::{DelegationDepth, Grant, GrantStatus};
use toolgate_model::work::{Task, TaskStatus};
use toolgate_testkit::ledger_fixture::{LedgerFixture, scopes};

use super::support::work::Office;
use super::support::{detail, refused};

contract! {
    a_task_is_claimed_only_with_the_access_that_it_requires,
    what_is_not_required_is_reported,
    a_grant_for_another_task_does_not_count,
    an_assignment_delegates_the_least_that_is_missing,
    what_a_manager_assigns_comes_with_grants_of_the_coordinator,
    nothing_is_delegated_without_the_permission_or_the_guardrail,
    the_best_source_is_the_smallest_that_ends_soonest,
    a_delegation_ends_with_the_deadline_of_the_task,
    what_was_delegated_for_a_task_ends_with_it,
    a_task_that_is_given_back_or_reassigned_takes_its_grants_back,
    a_direct_grant_for_a_task_ends_with_it_and_all_below_it,
    nothing_is_granted_for_a_task_that_has_ended,
    a_grant_for_a_task_is_bound_to_its_intent_too,
}

async fn a_task_is_claimed_only_with_the_access_that_it_requires(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let source = office.source().await;
    let task = office.store(office.task_requiring(&source.service, &["charges.read", "charges.create"])).await;
    let task = task.unwrap().task;
    let refusal = refused(&office.tenant, Code::InsufficientToolAccess, office.claim(&office.worker, task.id)).await;
    let all = json!([{"service": source.service, "scopes": ["charges.create", "charges.read"]}]);
    assert_eq!(detail(&refusal, "missing"), all);
    let mut half = office.tenant.delegation(&source, "worker");
    half.request.scopes = scopes(&["charges.read"]);
    office.tenant.ledger.delegate_grant(half).await.unwrap();
    let refusal = refused(&office.tenant, Code::InsufficientToolAccess, office.claim(&office.worker, task.id)).await;
    assert_eq!(detail(&refusal, "missing"), json!([{"service": source.service, "scopes": ["charges.create"]}]));
    let whole = office.tenant.delegate(&source, "worker").await.unwrap();
    office.tenant.suspend(whole.id).await.unwrap();
    refused(&office.tenant, Code::InsufficientToolAccess, office.claim(&office.worker, task.id)).await;
    office.tenant.resume(whole.id).await.unwrap();
    assert_eq!(office.claim(&office.worker, task.id).await.unwrap().task.status, TaskStatus::Claimed);
}

async fn what_is_not_required_is_reported(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let source = office.source().await;
    let mut task = office.task_requiring(&source.service, &["charges.read"]);
    task.details.requires_tools[0].required = false;
    let task = office.store(task).await.unwrap().task;
    let query = CheckTask {
        tenant: office.tenant.id.clone(),
        viewer: Office::viewer(&office.worker),
        id: task.id,
        agent: office.worker.agent.clone(),
        now: office.tenant.now(),
    };
    let report = office.tenant.ledger.check_task(query).await.unwrap().unwrap();
    assert!(report.is_sufficient());
    let claimed = office.claim(&office.worker, task.id).await.unwrap();
    assert_eq!(claimed.optional_missing, report.optional_missing);
    assert_eq!(claimed.optional_missing.len(), 1);
}

async fn a_grant_for_another_task_does_not_count(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let source = office.source().await;
    let requiring = || office.task_requiring(&source.service, &["charges.read"]);
    let (task, other) = (office.store(requiring()).await.unwrap().task, office.store(requiring()).await.unwrap().task);
    let mut bound = office.tenant.delegation(&source, "worker");
    bound.request.context = other.context();
    office.tenant.ledger.delegate_grant(bound).await.unwrap();
    refused(&office.tenant, Code::InsufficientToolAccess, office.claim(&office.worker, task.id)).await;
    office.claim(&office.worker, other.id).await.unwrap();
}

async fn an_assignment_delegates_the_least_that_is_missing(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    office.govern(json!({"auto_delegate": true})).await;
    let source = office.source().await;
    let task = office.store(office.task_requiring(&source.service, &["charges.read"])).await.unwrap().task;
    let assigned = office.assign(task.id, Some(&office.worker)).await.unwrap();
    let [grant] = assigned.delegated.as_slice() else { panic!("one grant, not {:?}", assigned.delegated) };
    assert_eq!(grant.source, Some(source.id));
    assert_eq!(grant.authority.scopes, scopes(&["charges.read"]));
    assert_eq!(grant.authority.context, task.context());
    assert!(!grant.authority.delegatable);
    assert_eq!(grant.authority.delegation_depth, DelegationDepth::Limited(0));
    assert_eq!(office.active(&office.worker.agent).await, *std::slice::from_ref(grant));
    office.claim(&office.worker, task.id).await.unwrap();
    // A worker that holds the access already gets nothing more.
    office.tenant.delegate(&source, "helper").await.unwrap();
    let task = office.store(office.task_requiring(&source.service, &["charges.read"])).await.unwrap().task;
    assert!(office.assign(task.id, Some(&office.helper)).await.unwrap().delegated.is_empty());
}

async fn what_a_manager_assigns_comes_with_grants_of_the_coordinator(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    // The helper coordinates, and another agent has created the intent.
    office.govern_agent(&office.helper.agent, json!({"auto_delegate": true})).await;
    let credential = office.tenant.credential().await;
    let held = office.tenant.new_grant(&credential, &office.helper.agent);
    let held = office.tenant.store_grant(held).await.unwrap();
    let requiring = || office.task_requiring(&held.service, &["charges.read"]);
    let task = office.store(requiring()).await.unwrap().task;
    let by_creator = office.assign(task.id, Some(&office.worker)).await.unwrap();
    assert!(by_creator.delegated.is_empty(), "the creator has no say over grants of the coordinator");

    let task = office.store(requiring()).await.unwrap().task;
    let assigned_agent = Some(Some(office.worker.agent.clone()));
    let changes = TaskChanges { assigned_agent, ..TaskChanges::default() };
    let by_manager = |task: Task, changes: TaskChanges| ChangeTask {
        audit: office.tenant.audit(),
        id: task.id,
        expected_version: task.version,
        changes,
    };
    let ledger = &office.tenant.ledger;
    let refused = ledger.change_task(by_manager(task, changes.clone())).await.unwrap();
    assert_eq!((refused.delegated.len(), refused.undelegated.len()), (0, 1), "the helper may not delegate");

    office.govern(json!({"auto_delegate": true})).await;
    let held = office.source().await;
    let office = office.another().await;
    office.govern(json!({"auto_delegate": true})).await;
    let task = office.store(office.task_requiring(&held.service, &["charges.read"])).await.unwrap().task;
    let by_manager = ChangeTask { audit: office.tenant.audit(), id: task.id, expected_version: task.version, changes };
    let assigned = office.tenant.ledger.change_task(by_manager).await.unwrap();
    let [grant] = assigned.delegated.as_slice() else { panic!("one grant, not {:?}", assigned.undelegated) };
    assert_eq!((grant.source, &grant.granted_by), (Some(held.id), &office.coordinator.agent));
}

async fn nothing_is_delegated_without_the_permission_or_the_guardrail(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let source = office.source().await;
    let requiring = || office.task_requiring(&source.service, &["charges.read"]);
    let task = office.store(requiring()).await.unwrap().task;
    let assigned = office.assign(task.id, Some(&office.worker)).await.unwrap();
    assert!(assigned.delegated.is_empty() && assigned.undelegated.is_empty(), "no coordinator delegates by itself");
    office.govern(json!({"auto_delegate": true, "denied_services": [source.service]})).await;
    let task = office.store(requiring()).await.unwrap().task;
    let assigned = office.assign(task.id, Some(&office.worker)).await.unwrap();
    assert_eq!((assigned.delegated.len(), assigned.undelegated.len()), (0, 1));
    assert!(assigned.undelegated[0].reason.contains("may not use the service"), "{:?}", assigned.undelegated);
    assert!(office.active(&office.worker.agent).await.is_empty());
}

async fn the_best_source_is_the_smallest_that_ends_soonest(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    office.govern(json!({"auto_delegate": true})).await;
    let credential = office.tenant.credential().await;
    let mut made = Vec::new();
    for (names, end) in [
        (&["charges.read", "charges.create", "refunds.create"][..], 50),
        (&["charges.read", "charges.create"][..], 900),
        (&["charges.read", "charges.create"][..], 100),
        (&["charges.create"][..], 10),
    ] {
        let mut grant = office.tenant.new_grant(&credential, &office.coordinator.agent);
        grant.authority.scopes = scopes(names);
        grant.authority.expires_at = Some(office.tenant.later(end));
        made.push(office.tenant.store_grant(grant).await.unwrap());
    }
    let task = office.store(office.task_requiring(&credential.service, &["charges.read"])).await.unwrap().task;
    let assigned = office.assign(task.id, Some(&office.worker)).await.unwrap();
    assert_eq!(assigned.delegated[0].source, Some(made[2].id));
    assert_eq!(assigned.delegated[0].authority.expires_at, made[2].authority.expires_at);
}

async fn a_delegation_ends_with_the_deadline_of_the_task(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    office.govern(json!({"auto_delegate": true})).await;
    let source = office.source().await;
    let deadline = Some(office.tenant.later(60));
    let task = Task { deadline, ..office.task_requiring(&source.service, &["charges.read"]) };
    let task = Task { assigned_agent: Some(office.worker.agent.clone()), ..task };
    let created = office.store(task).await.unwrap();
    assert_eq!(created.delegated[0].authority.expires_at, deadline);
    assert_eq!(created.task.assigned_agent.as_ref(), Some(&office.worker.agent));
}

/// A task of the worker with a grant that was delegated for it.
async fn delegated(office: &Office, source: &Grant) -> (Task, Grant) {
    let task = office.store(office.task_requiring(&source.service, &["charges.read"])).await.unwrap().task;
    let mut assigned = office.assign(task.id, Some(&office.worker)).await.unwrap();
    (assigned.task, assigned.delegated.remove(0))
}

async fn what_was_delegated_for_a_task_ends_with_it(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    office.govern(json!({"auto_delegate": true})).await;
    let source = office.source().await;
    let ways: [&[TaskStatus]; 5] = [
        &[TaskStatus::Claimed, TaskStatus::Running, TaskStatus::Completed],
        &[TaskStatus::Claimed, TaskStatus::Running, TaskStatus::Failed],
        &[TaskStatus::Claimed, TaskStatus::Running, TaskStatus::Blocked, TaskStatus::Cancelled],
        &[TaskStatus::Cancelled],
        &[TaskStatus::Skipped],
    ];
    for way in ways {
        let (task, grant) = delegated(&office, &source).await;
        for status in way {
            assert_eq!(office.tenant.standing(grant.id).await, GrantStatus::Active);
            let by = if matches!(status, TaskStatus::Cancelled | TaskStatus::Skipped) {
                &office.coordinator
            } else {
                &office.worker
            };
            office.move_to(by, task.id, *status).await.unwrap();
        }
        assert_eq!(office.tenant.standing(grant.id).await, GrantStatus::Revoked, "{way:?}");
    }
    assert_eq!(office.tenant.events_of("grant.revoked").await.len(), ways.len());
    assert_eq!(office.tenant.standing(source.id).await, GrantStatus::Active);
}

async fn a_task_that_is_given_back_or_reassigned_takes_its_grants_back(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    office.govern(json!({"auto_delegate": true})).await;
    let source = office.source().await;
    let (task, first) = delegated(&office, &source).await;
    let assigned = office.assign(task.id, Some(&office.helper)).await.unwrap();
    assert_eq!((assigned.revoked_grants, assigned.delegated.len()), (1, 1));
    assert_eq!(office.tenant.standing(first.id).await, GrantStatus::Revoked);
    let second = &assigned.delegated[0];
    assert_eq!(second.agent, office.helper.agent);
    refused(&office.tenant, Code::TaskStateInvalid, office.claim(&office.worker, task.id)).await;
    office.claim(&office.helper, task.id).await.unwrap();
    let back = office.move_to(&office.helper, task.id, TaskStatus::Ready).await.unwrap();
    assert_eq!((back.revoked_grants, back.task.assigned_agent), (1, None));
    assert_eq!(office.tenant.standing(second.id).await, GrantStatus::Revoked);
    let taken = office.assign(task.id, Some(&office.worker)).await.unwrap();
    let freed = office.assign(task.id, None).await.unwrap();
    assert_eq!((taken.delegated.len(), freed.revoked_grants), (1, 1));
}

async fn a_direct_grant_for_a_task_ends_with_it_and_all_below_it(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let task = office.task().await;
    let credential = office.tenant.credential().await;
    let mut grant = office.tenant.new_grant(&credential, &office.worker.agent);
    grant.authority.context = GrantContext { task_id: task.context().task_id, ..GrantContext::default() };
    let grant = office.tenant.store_grant(grant).await.unwrap();
    let below = office.tenant.delegate(&grant, "helper").await.unwrap();
    assert_eq!(below.authority.context, task.context());
    office.move_to(&office.coordinator, task.id, TaskStatus::Cancelled).await.unwrap();
    for grant in [grant.id, below.id] {
        assert_eq!(office.tenant.standing(grant).await, GrantStatus::Revoked);
    }
}

async fn nothing_is_granted_for_a_task_that_has_ended(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let source = office.source().await;
    let task = office.task().await;
    office.move_to(&office.coordinator, task.id, TaskStatus::Cancelled).await.unwrap();
    let mut bound = office.tenant.delegation(&source, "worker");
    bound.request.context = task.context();
    refused(&office.tenant, Code::TaskStateInvalid, office.tenant.ledger.delegate_grant(bound)).await;
    let credential = office.tenant.credential().await;
    let mut direct = office.tenant.new_grant(&credential, &office.worker.agent);
    direct.authority.context = task.context();
    refused(&office.tenant, Code::TaskStateInvalid, office.tenant.store_grant(direct.clone())).await;
    direct.authority.context = office.new_task().context();
    refused(&office.tenant, Code::TaskNotFound, office.tenant.store_grant(direct)).await;
}

async fn a_grant_for_a_task_is_bound_to_its_intent_too(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let source = office.source().await;
    let (task, other) = (office.task().await, office.another().await.task().await);
    let mut bound = office.tenant.delegation(&source, "worker");
    bound.request.context = GrantContext { intent_id: None, ..task.context() };
    let bound = office.tenant.ledger.delegate_grant(bound).await.unwrap();
    assert_eq!(bound.authority.context, task.context());
    let mut mixed = office.tenant.delegation(&source, "worker");
    mixed.request.context = GrantContext { intent_id: other.context().intent_id, ..task.context() };
    refused(&office.tenant, Code::GrantContextMismatch, office.tenant.ledger.delegate_grant(mixed)).await;
    let changes = TaskChanges { assigned_agent: Some(None), ..TaskChanges::default() };
    office.change(&office.coordinator, task.id, changes).await.unwrap();
    assert_eq!(office.tenant.standing(bound.id).await, GrantStatus::Active, "nobody had the task");
}
