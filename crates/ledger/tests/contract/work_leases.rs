//! Leases, and what passes with time.

use std::time::Duration;

use toolgate_gate::ports::entropy::random;
use toolgate_gate::ports::ledger::{AcquireLease, EndLease, RenewLease, Viewer};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::id::LeaseId;
use toolgate_model::work::limits::LEASES;
use toolgate_model::work::{Lease, LeaseScope, LeaseStatus, Task, TaskStatus};
use toolgate_testkit::ledger_fixture::LedgerFixture;

use super::support::calls::Caller;
use super::support::work::Office;
use super::support::{detail, refused};

contract! {
    a_scope_has_one_holder,
    a_lease_on_a_task_claims_it,
    a_task_is_given_back_or_fails_with_its_lease,
    an_expired_lease_gives_way_before_it_is_swept,
    time_ends_leases_and_overdue_tasks_once,
    nobody_takes_the_places_of_others_and_tasks_need_none,
}

async fn acquire(office: &Office, by: &Caller, scope: &str, seconds: u64) -> Result<Lease, Refusal> {
    let now = office.tenant.now();
    let lease = Lease {
        id: LeaseId::new(now, random().unwrap()),
        tenant: office.tenant.id.clone(),
        intent: office.intent,
        agent: by.agent.clone(),
        scope: scope.to_owned(),
        task: match LeaseScope::of(scope) {
            LeaseScope::Task(task) => Some(task),
            LeaseScope::Free => None,
        },
        status: LeaseStatus::Active,
        created_at: now,
        expires_at: now.plus(Duration::from_secs(seconds)),
        ended_at: None,
    };
    office.tenant.ledger.acquire_lease(AcquireLease { audit: office.by(by).await, lease }).await
}

async fn end(office: &Office, by: &Caller, id: LeaseId) -> Result<Lease, Refusal> {
    office.tenant.ledger.end_lease(EndLease { audit: office.by(by).await, intent: office.intent, id }).await
}

async fn a_scope_has_one_holder(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let lease = acquire(&office, &office.worker, "research", 60).await.unwrap();
    let refusal = refused(&office.tenant, Code::LeaseHeld, acquire(&office, &office.helper, "research", 60)).await;
    assert!(refusal.reason().contains("lease"), "clients know the conflict by this word");
    assert_eq!(detail(&refusal, "existing_lease")["id"], lease.id.to_string());
    refused(&office.tenant, Code::IntentNotFound, acquire(&office, &office.stranger, "other", 60)).await;
    acquire(&office, &office.helper, "writing", 60).await.unwrap();
    let again = acquire(&office, &office.worker, "research", 90).await.unwrap();
    assert_eq!((again.id, again.expires_at), (lease.id, office.tenant.later(90)));
    refused(&office.tenant, Code::PermissionDenied, end(&office, &office.helper, lease.id)).await;
    assert_eq!(end(&office, &office.worker, lease.id).await.unwrap().status, LeaseStatus::Released);
    refused(&office.tenant, Code::LeaseNotFound, end(&office, &office.worker, lease.id)).await;
    acquire(&office, &office.helper, "research", 60).await.unwrap();
    let (ledger, tenant) = (&office.tenant.ledger, &office.tenant.id);
    let live = ledger.leases(tenant, office.intent, &Viewer::Everything, office.tenant.now()).await.unwrap().unwrap();
    assert_eq!(live.len(), 2);
}

async fn a_lease_on_a_task_claims_it(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let task = office.task().await;
    let lease = acquire(&office, &office.worker, &format!("task:{}", task.id), 60).await.unwrap();
    let claimed = office.now(task.id).await;
    assert_eq!(
        (claimed.status, claimed.lease, claimed.due),
        (TaskStatus::Claimed, Some(lease.id), Some(lease.expires_at))
    );
    let scope = task.id.to_string();
    refused(&office.tenant, Code::LeaseHeld, acquire(&office, &office.helper, &scope, 60)).await;
    let renew = RenewLease {
        audit: office.by(&office.worker).await,
        intent: office.intent,
        id: lease.id,
        expires_at: office.tenant.later(600),
    };
    office.tenant.ledger.renew_lease(renew).await.unwrap();
    assert_eq!(office.now(task.id).await.due, Some(office.tenant.later(600)));
    office.move_to(&office.worker, task.id, TaskStatus::Completed).await.unwrap();
    refused(&office.tenant, Code::LeaseNotFound, end(&office, &office.worker, lease.id)).await;
    let source = office.source().await;
    let requiring = office.store(office.task_requiring(&source.service, &["charges.read"])).await.unwrap().task;
    let scope = requiring.id.to_string();
    let attempt = acquire(&office, &office.worker, &scope, 60);
    refused(&office.tenant, Code::InsufficientToolAccess, attempt).await;
}

async fn a_task_is_given_back_or_fails_with_its_lease(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    for (begin, expected) in [(false, TaskStatus::Ready), (true, TaskStatus::Failed)] {
        let task = office.task().await;
        let lease = acquire(&office, &office.worker, &task.id.to_string(), 60).await.unwrap();
        if begin {
            office.move_to(&office.worker, task.id, TaskStatus::Running).await.unwrap();
        }
        end(&office, &office.worker, lease.id).await.unwrap();
        assert_eq!(office.now(task.id).await.status, expected);
    }
}

async fn an_expired_lease_gives_way_before_it_is_swept(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let task = office.task().await;
    acquire(&office, &office.worker, &task.id.to_string(), 60).await.unwrap();
    office.tenant.wait(60);
    let lease = acquire(&office, &office.helper, &task.id.to_string(), 60).await.unwrap();
    let task = office.now(task.id).await;
    assert_eq!((task.assigned_agent.as_ref(), task.lease), (Some(&office.helper.agent), Some(lease.id)));
}

async fn time_ends_leases_and_overdue_tasks_once(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    let leased = office.task().await;
    acquire(&office, &office.worker, &leased.id.to_string(), 60).await.unwrap();
    let begin = |task: Task| async {
        let id = office.store(task).await.unwrap().task.id;
        office.claim(&office.helper, id).await.unwrap();
        office.move_to(&office.helper, id, TaskStatus::Running).await.unwrap();
        id
    };
    let timed = begin(Task { timeout_seconds: Some(50), ..office.new_task() }).await;
    let dated = begin(Task { deadline: Some(office.tenant.later(55)), ..office.new_task() }).await;
    let free = begin(office.new_task()).await;
    let sweep = || office.tenant.ledger.sweep_work(office.tenant.now());
    assert_eq!(sweep().await.unwrap(), 0);
    office.tenant.wait(60);
    let replica = fixture.replica().await;
    let (here, there) = tokio::join!(sweep(), replica.sweep_work(office.tenant.now()));
    // Whichever passes over what the other holds: together they do everything once.
    assert_eq!(here.unwrap() + there.unwrap() + sweep().await.unwrap(), 3);
    let status = async |id| office.now(id).await.status;
    assert_eq!((status(timed).await, status(dated).await), (TaskStatus::Failed, TaskStatus::Failed));
    assert_eq!((status(leased.id).await, status(free).await), (TaskStatus::Ready, TaskStatus::Running));
    assert_eq!(office.now(timed).await.details.error.as_deref(), Some("the task ran longer than its timeout"));
    assert_eq!(office.tenant.events_of("work.lease.ended").await.len(), 1);
}

async fn nobody_takes_the_places_of_others_and_tasks_need_none(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    for number in 0..LEASES {
        acquire(&office, &office.worker, &format!("topic-{number}"), 60).await.unwrap();
    }
    refused(&office.tenant, Code::WorkLimitReached, acquire(&office, &office.worker, "one more", 60)).await;
    let task = office.task().await;
    acquire(&office, &office.worker, &task.id.to_string(), 60).await.unwrap();
    acquire(&office, &office.helper, "one more", 60).await.unwrap();
}
