//! Invocation records: everything stored can be read back, and each filter finds what it names.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolgate_gate::ports::ledger::{InvocationFilter, PageRequest, RecordDenial};
use toolgate_model::constraint::Cost;
use toolgate_model::context::{ContextId, GrantContext};
use toolgate_model::credential::ServiceName;
use toolgate_model::grant::Grant;
use toolgate_model::hook::ToolReturned;
use toolgate_model::id::{GrantId, InvocationId};
use toolgate_model::invocation::{IdempotencyKey, Invocation, InvocationError, InvocationStatus};
use toolgate_model::service::ServiceVersion;
use toolgate_model::time::Timestamp;
use toolgate_testkit::ledger_fixture::{LedgerFixture, principal};

use super::support::calls::Caller;

contract!(
    a_record_reads_back_with_everything_in_it,
    every_filter_finds_what_it_names,
    filters_work_together,
    records_are_found_by_the_owner_of_the_vault,
    records_are_listed_newest_first,
    pages_miss_nothing_and_repeat_nothing,
    a_period_is_listed_by_time_also_where_the_clock_stepped_back,
    the_records_of_a_period_are_found_whole_although_the_clock_steps,
    the_records_of_another_tenant_are_out_of_reach,
);

/// Writes this record down as it is.
async fn store(caller: &Caller, invocation: Invocation) -> Invocation {
    let denial = RecordDenial {
        audit: caller.tenant.audit_of(&invocation.actor),
        stage: "admit",
        error: InvocationError { code: "FORBIDDEN".to_owned(), reason: "no".to_owned() },
        returned: ToolReturned::forbidden(&invocation),
        about_authority: false,
        decision: None,
        detached: None,
        invocation: invocation.clone(),
    };
    caller.tenant.ledger.record_denial(denial).await.unwrap();
    invocation
}

async fn find(caller: &Caller, filter: InvocationFilter) -> Vec<InvocationId> {
    let page = PageRequest::first(100);
    let found = caller.tenant.ledger.invocations(&caller.tenant.id, filter, page).await.unwrap();
    assert_eq!(found.next, None);
    found.items.iter().map(|record| record.id).collect()
}

fn context(intent: &str, task: &str) -> GrantContext {
    let id = |text: &str| Some(ContextId::parse(text).unwrap());
    GrantContext { intent_id: id(intent), plan_id: None, task_id: id(task) }
}

async fn a_record_reads_back_with_everything_in_it(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let parameters = json!({"text": "Bücher \u{1f4da} \"'\\", "deep": {"list": [1, 2.5, null, true]}, "big": u64::MAX});
    let full = Invocation {
        version: Some(ServiceVersion::parse("2024-01").unwrap()),
        status: InvocationStatus::Error,
        error: Some(InvocationError { code: "UPSTREAM_ERROR".to_owned(), reason: "nicht verfügbar".to_owned() }),
        parameters: Arc::new(parameters.as_object().cloned().unwrap()),
        fingerprint: Some("f3".repeat(32).into()),
        http_status: Some(503),
        cost: Cost::from_micros(1),
        duration_ms: Some(0),
        idempotency_key: Some(IdempotencyKey::parse("order-1").unwrap()),
        context: GrantContext { plan_id: Some(ContextId::parse("plan-2").unwrap()), ..context("intent-1", "task-3") },
        reported: true,
        ..caller.invocation(&grant)
    };
    let empty = Invocation {
        grant: None,
        service: None,
        tool: "".into(),
        parameters: Arc::default(),
        arguments_hash: "".into(),
        cost: None,
        status: InvocationStatus::Denied,
        ..caller.invocation(&grant)
    };
    for invocation in [full, empty] {
        let stored = store(&caller, invocation).await;
        assert_eq!(caller.record(stored.id).await, Some(stored));
    }
    let unknown = InvocationId::new(caller.tenant.now(), [9; 10]);
    assert_eq!(caller.record(unknown).await, None);
}

async fn every_filter_finds_what_it_names(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let (grant, other_grant) = (caller.grant(None).await, caller.grant(None).await);
    let plain = |grant: &Grant| Invocation { status: InvocationStatus::Success, ..caller.invocation(grant) };
    // Each differs from the first in one thing.
    let first = store(&caller, plain(&grant)).await;
    let by_agent = store(&caller, Invocation { agent: principal("worker"), ..plain(&grant) }).await;
    let by_grant = store(&caller, plain(&other_grant)).await;
    let github = ServiceName::parse("github").unwrap();
    let by_service = store(&caller, Invocation { service: Some(github.clone()), ..plain(&grant) }).await;
    let by_tool = store(&caller, Invocation { tool: "charges.read".into(), ..plain(&grant) }).await;
    let by_status = store(&caller, Invocation { status: InvocationStatus::Denied, ..plain(&grant) }).await;
    let by_intent = store(&caller, Invocation { context: context("i-2", "t-1"), ..plain(&grant) }).await;
    let by_task = store(&caller, Invocation { context: context("i-1", "t-2"), ..plain(&grant) }).await;
    let key = IdempotencyKey::parse("order-9").unwrap();
    let by_key = store(&caller, Invocation { idempotency_key: Some(key.clone()), ..plain(&grant) }).await;
    fixture.clock().advance(Duration::from_millis(1));
    let by_time = store(&caller, plain(&grant)).await;

    let all = InvocationFilter::default;
    for (found, filter) in [
        (&by_agent, InvocationFilter { agent: Some(principal("worker")), ..all() }),
        (&by_grant, InvocationFilter { grant: Some(other_grant.id), ..all() }),
        (&by_service, InvocationFilter { service: Some(github), ..all() }),
        (&by_tool, InvocationFilter { tool: Some("charges.read".to_owned()), ..all() }),
        (&by_status, InvocationFilter { status: Some(InvocationStatus::Denied), ..all() }),
        (&by_intent, InvocationFilter { intent: by_intent.context.intent_id.clone(), ..all() }),
        (&by_task, InvocationFilter { task: by_task.context.task_id.clone(), ..all() }),
        (&by_key, InvocationFilter { idempotency_key: Some(key), ..all() }),
        (&by_time, InvocationFilter { since: Some(by_time.created_at), ..all() }),
    ] {
        assert_eq!(find(&caller, filter.clone()).await, [found.id], "{filter:?}");
    }
    assert_eq!(find(&caller, all()).await.len(), 10);
    let before = find(&caller, InvocationFilter { until: Some(by_time.created_at), ..all() }).await;
    assert_eq!((before.len(), before.contains(&by_time.id)), (9, false), "the end is not part of it");
    let never = InvocationFilter { since: Some(by_time.created_at), until: Some(first.created_at), ..all() };
    assert!(find(&caller, never).await.is_empty());
    let unknown = InvocationFilter { grant: Some(GrantId::new(caller.tenant.now(), [9; 10])), ..all() };
    assert!(find(&caller, unknown).await.is_empty());
}

async fn filters_work_together(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let (grant, other) = (caller.grant(None).await, caller.grant(None).await);
    let of = |grant: &Grant, status| Invocation { status, ..caller.invocation(grant) };
    let wanted = store(&caller, of(&grant, InvocationStatus::Error)).await;
    store(&caller, of(&grant, InvocationStatus::Success)).await;
    store(&caller, of(&other, InvocationStatus::Error)).await;

    let filter = InvocationFilter {
        grant: Some(grant.id),
        status: Some(InvocationStatus::Error),
        vault_owner: Some(caller.tenant.administrator.clone()),
        since: Some(caller.tenant.now()),
        ..InvocationFilter::default()
    };

    assert_eq!(find(&caller, filter).await, [wanted.id]);
}

async fn records_are_found_by_the_owner_of_the_vault(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let owner = caller.tenant.agent("owner").await;
    let mut of_owner = caller.clone();
    of_owner.tenant.administrator = owner.clone();
    let (theirs, own) = (caller.grant(None).await, of_owner.grant(None).await);
    let below = of_owner.delegate(&own, None).await;
    store(&caller, caller.invocation(&theirs)).await;
    store(&caller, Invocation { grant: None, ..caller.invocation(&own) }).await;
    let expected = [store(&caller, caller.invocation(&own)).await, store(&caller, caller.invocation(&below)).await];

    let filter = InvocationFilter { vault_owner: Some(owner), ..InvocationFilter::default() };
    let found = find(&caller, filter.clone()).await;
    assert_eq!(found.len(), 2);
    assert!(expected.iter().all(|record| found.contains(&record.id)));
    let and_more = InvocationFilter { grant: Some(below.id), ..filter.clone() };
    assert_eq!(find(&caller, and_more).await, [expected[1].id]);

    // Ended objects keep their history.
    caller.tenant.revoke_credential(own.credential).await.unwrap();
    assert_eq!(find(&caller, filter).await.len(), 2);
}

async fn records_are_listed_newest_first(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let mut stored = Vec::new();
    for _ in 0..5 {
        stored.push(caller.running(&grant).await.invocation.id);
        caller.tenant.wait(1);
    }
    stored.reverse();
    assert_eq!(find(&caller, InvocationFilter::default()).await, stored);
}

async fn pages_miss_nothing_and_repeat_nothing(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let mut stored = Vec::new();
    // All in the same millisecond, and then some later.
    for number in 0..7 {
        stored.push(store(&caller, caller.invocation(&grant)).await.id);
        caller.tenant.wait(u64::from(number > 3));
    }
    stored.sort();
    stored.reverse();
    let filter = InvocationFilter { agent: Some(caller.agent.clone()), ..InvocationFilter::default() };
    let mut found = Vec::new();
    let mut page = PageRequest::first(3);
    loop {
        let read = caller.tenant.ledger.invocations(&caller.tenant.id, filter.clone(), page).await.unwrap();
        found.extend(read.items.iter().map(|record| record.id));
        // New calls are newer than everything that is still to be read.
        store(&caller, caller.invocation(&grant)).await;
        let Some(next) = read.next else { break };
        page = PageRequest { after: Some(next), limit: 3 };
    }
    assert_eq!(found, stored);
}

async fn a_period_is_listed_by_time_also_where_the_clock_stepped_back(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let at = |millis: i64| Timestamp::from_millis(caller.tenant.now().as_millis() + millis).unwrap();
    let mut stored = Vec::new();
    // The time of the id, and that of the call: an id is never earlier than the last one.
    for (number, (of_id, of_call)) in
        [(0, 0), (10, 10), (20, 20), (20, 4), (20, 10), (20, 12), (21, 21), (30, 30)].into_iter().enumerate()
    {
        let id = InvocationId::new(at(of_id), [u8::try_from(number).unwrap(); 10]);
        let invocation = Invocation { id, created_at: at(of_call), ..caller.invocation(&grant) };
        stored.push((of_call, store(&caller, invocation).await.id));
    }
    stored.sort();
    stored.reverse();
    for (since, until) in [(0, 31), (4, 21), (5, 20), (10, 11), (12, 30), (21, 31)] {
        let filter = InvocationFilter { since: Some(at(since)), until: Some(at(until)), ..InvocationFilter::default() };
        let within = stored.iter().filter(|(time, _)| (since..until).contains(time)).map(|(_, id)| *id);
        let expected: Vec<InvocationId> = within.collect();
        assert_eq!(find(&caller, filter.clone()).await, expected, "{since}..{until}");
        let (mut found, mut page) = (Vec::new(), PageRequest::first(1));
        loop {
            let read = caller.tenant.ledger.invocations(&caller.tenant.id, filter.clone(), page).await.unwrap();
            found.extend(read.items.iter().map(|record| record.id));
            let Some(next) = read.next else { break };
            page = PageRequest { after: Some(next), limit: 1 };
        }
        assert_eq!(found, expected, "{since}..{until}, page by page");
    }
}

async fn the_records_of_another_tenant_are_out_of_reach(fixture: &LedgerFixture) {
    let (owner, intruder) = (Caller::new(fixture).await, Caller::new(fixture).await);
    let grant = owner.grant(None).await;
    let record = owner.running(&grant).await.invocation;

    assert_eq!(intruder.record(record.id).await, None);
    let all = InvocationFilter::default;
    for filter in [
        all(),
        InvocationFilter { agent: Some(record.agent.clone()), ..all() },
        InvocationFilter { grant: Some(grant.id), ..all() },
        InvocationFilter { vault_owner: Some(owner.tenant.administrator.clone()), ..all() },
    ] {
        assert!(find(&intruder, filter).await.is_empty());
    }
    assert_eq!(find(&owner, all()).await, [record.id]);
}

async fn the_records_of_a_period_are_found_whole_although_the_clock_steps(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let begin = caller.tenant.now();
    let at = |minutes: u64| begin.plus(Duration::from_secs(60 * minutes));
    let mut all = Vec::new();
    for (round, minutes) in [0, 10, 90_000, 20, 5, 20].into_iter().enumerate() {
        fixture.clock().set(at(minutes));
        for number in 0..4 {
            let agent = principal(["worker", "billing"][number % 2]);
            let made = Invocation { agent, tool: format!("round-{round}").into(), ..caller.invocation(&grant) };
            all.push(store(&caller, made).await);
        }
    }
    let edges = [None, Some(at(5)), Some(at(20)), Some(at(21)), Some(at(100_000))];
    for (since, until) in edges.into_iter().flat_map(|since| edges.map(|until| (since, until))) {
        for agent in [None, Some(principal("worker"))] {
            let wanted = |record: &&Invocation| {
                since.is_none_or(|since| record.created_at >= since)
                    && until.is_none_or(|until| record.created_at < until)
                    && agent.as_ref().is_none_or(|agent| record.agent == *agent)
            };
            let mut expected: Vec<_> = all.iter().filter(wanted).map(|record| (record.created_at, record.id)).collect();
            expected.sort_unstable_by(|one, other| match (since, until) {
                (None, None) => other.1.cmp(&one.1),
                _ => other.cmp(one),
            });
            let filter = InvocationFilter { since, until, agent: agent.clone(), ..InvocationFilter::default() };
            let mut found = Vec::new();
            let mut page = PageRequest::first(3);
            loop {
                let read = caller.tenant.ledger.invocations(&caller.tenant.id, filter.clone(), page).await.unwrap();
                found.extend(read.items.iter().map(|record| (record.created_at, record.id)));
                let Some(next) = read.next else { break };
                page = PageRequest { after: Some(next), limit: 3 };
            }
            assert_eq!(found, expected, "{filter:?}");
        }
    }
    let unknown = PageRequest { after: Some(InvocationId::new(begin, [9; 10]).to_string()), limit: 3 };
    let filter = InvocationFilter { since: Some(begin), ..InvocationFilter::default() };
    let refused = caller.tenant.ledger.invocations(&caller.tenant.id, filter, unknown).await.unwrap_err();
    assert_eq!(refused.code(), toolgate_gate::refusal::Code::InvalidCursor);
}
