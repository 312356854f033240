//! The log: gapless, hashed, signed, provable, and readable.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use serde_json::{Value, json};
use toolgate_gate::ports::ledger::{Admission, Admit, EventFilter, LogHead, LoggedEvent, PageRequest};
use toolgate_model::approval::ApprovalStatus;
use toolgate_model::checkpoint;
use toolgate_model::context::{ContextId, GrantContext};
use toolgate_model::event::event_leaf;
use toolgate_model::hook::RunId;
use toolgate_model::merkle::{
    Hash, TILE_WIDTH, consistency_proof, consistency_tiles, inclusion_proof, inclusion_tiles, root_of,
    verify_consistency, verify_inclusion,
};
use toolgate_model::principal::PrincipalId;
use toolgate_model::time::Timestamp;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal};

use super::support::calls::Caller;
use super::support::{approvals, number, run};

contract!(
    an_event_is_in_the_log_once_it_is_integrated,
    the_log_is_gapless_and_its_root_is_that_of_its_events,
    the_head_is_signed,
    every_event_has_an_inclusion_proof,
    every_change_of_an_approval_is_an_event_of_the_log,
    every_earlier_head_is_consistent_with_the_newest,
    every_tenant_has_a_log_of_its_own,
    a_damaged_tile_of_one_tenant_keeps_no_other_log_from_growing,
    a_second_integration_finds_nothing_and_leaves_the_head,
    a_change_and_its_events_are_one,
    events_are_found_by_everything_they_are_filtered_by,
    in_a_long_log_every_filter_finds_what_reading_all_of_it_would,
    in_a_long_log_every_period_is_found_whole_although_the_clock_steps,
    in_a_long_log_the_events_of_a_run_are_found_wherever_they_stand,
    a_cursor_that_no_answer_gave_is_refused,
    two_replicas_integrate_into_one_gapless_log,
);

async fn head(tenant: &TestTenant) -> LogHead {
    tenant.ledger.log_head(&tenant.id).await.unwrap().expect("a head")
}

async fn logged(tenant: &TestTenant) -> Vec<LoggedEvent> {
    found(tenant, EventFilter::default(), 100).await
}

/// All that a filter finds, in pages of this many.
async fn found(tenant: &TestTenant, filter: EventFilter, limit: u32) -> Vec<LoggedEvent> {
    let mut all = Vec::new();
    let mut page = PageRequest::first(limit);
    loop {
        let read = tenant.ledger.events(&tenant.id, filter.clone(), page).await.unwrap();
        all.extend(read.items);
        let Some(next) = read.next else { return all };
        page = PageRequest { after: Some(next), limit };
    }
}

/// Creates this many events, by registering agents whose names begin with `name`.
async fn happen(tenant: &TestTenant, name: &str, count: usize) {
    let many = (0..count).map(|number| {
        let agent = tenant.new_principal(&principal(&format!("{name}-{number}")));
        tenant.ledger.create_principal(tenant.registration(agent))
    });
    try_join_all(many).await.unwrap();
}

fn leaves(events: &[LoggedEvent]) -> Vec<Hash> {
    events.iter().map(|event| event_leaf(event.canonical.as_bytes())).collect()
}

async fn assert_sound(fixture: &LedgerFixture, tenant: &TestTenant, expected: usize) {
    let events = logged(tenant).await;
    let sequences: Vec<u64> = events.iter().map(|event| event.sequence).collect();
    assert_eq!(sequences, (0..u64::try_from(expected).unwrap()).collect::<Vec<_>>(), "gapless from zero");
    let head = head(tenant).await;
    assert_eq!(head.head.size, u64::try_from(expected).unwrap());
    assert_eq!(head.head.root, root_of(&leaves(&events)));
    let signed = checkpoint::verify(&head.checkpoint, fixture.signer().public_key()).unwrap();
    assert_eq!(signed, head.head);
}

async fn an_event_is_in_the_log_once_it_is_integrated(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    assert_eq!(fixture.ledger().log_head(&tenant.id).await.unwrap(), None);
    assert!(logged(&tenant).await.is_empty());

    assert_eq!(tenant.integrate().await, 3, "the tenant, its administrator, its key");

    assert_eq!(head(&tenant).await.head.size, 3);
    let events = logged(&tenant).await;
    let event: Value = serde_json::from_str(&events[0].canonical).unwrap();
    let mut names: Vec<_> = event.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["actor", "data", "id", "tenant", "timestamp", "type"]);
    assert_eq!((&event["tenant"], &event["actor"]), (&json!(tenant.id), &json!("admin")));
    assert_eq!(event["timestamp"], "2026-02-08T10:00:00.000+00:00");
}

async fn the_log_is_gapless_and_its_root_is_that_of_its_events(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let mut size = 3;
    // Up to, onto and beyond the edge of a tile.
    for count in [1, TILE_WIDTH - 5, 1, 1, 300] {
        happen(&tenant, &format!("agent-{size}"), count).await;
        size += count;
        tenant.integrate().await;
        assert_sound(fixture, &tenant, size).await;
    }
}

async fn the_head_is_signed(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    tenant.wait(7);
    tenant.integrate().await;
    let head = head(&tenant).await;
    assert_eq!(checkpoint::verify(&head.checkpoint, fixture.signer().public_key()).unwrap(), head.head);
    assert_eq!((&head.head.tenant, head.head.time), (&tenant.id, tenant.now()));
    let stranger = checkpoint::SigningKey::from_seed(&[8; 32]).unwrap();
    assert!(checkpoint::verify(&head.checkpoint, stranger.public_key()).is_err());
}

async fn every_event_has_an_inclusion_proof(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    happen(&tenant, "agent", 600).await;
    tenant.integrate().await;
    let head = head(&tenant).await.head;

    let mut needed: Vec<_> = (0..head.size).flat_map(|index| inclusion_tiles(index, head.size)).collect();
    needed.sort_unstable();
    needed.dedup();
    let tiles = fixture.ledger().tiles(&tenant.id, &needed).await.unwrap();

    for (index, leaf) in (0..).zip(leaves(&logged(&tenant).await)) {
        let proof = inclusion_proof(index, head.size, &tiles).unwrap();
        assert_eq!(verify_inclusion(&leaf, index, head.size, &proof, &head.root), Ok(()), "event {index}");
    }
}

async fn every_change_of_an_approval_is_an_event_of_the_log(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    approvals::people(&tenant).await;
    let before = tenant.events().await.len();
    let made = approvals::standing(&tenant, |_| ()).await;
    approvals::revoke(&tenant, made.id).await.unwrap();
    let denied = approvals::ask(&tenant, approvals::question(&tenant)).await;
    approvals::deny(&tenant, &denied, "alice").await.unwrap();
    let cancelled = approvals::ask(&tenant, approvals::question(&tenant)).await;
    approvals::end(&tenant, &cancelled, ApprovalStatus::Cancelled).await.unwrap();
    tenant.integrate().await;
    assert_sound(fixture, &tenant, before + 8).await;
    let kinds: Vec<_> = tenant.events().await.iter().skip(before).map(|event| event["type"].clone()).collect();
    let expected = [
        "approval.requested",
        "approval.granted",
        "standing_approval.created",
        "standing_approval.revoked",
        "approval.requested",
        "approval.rejected",
        "approval.requested",
        "approval.cancelled",
    ];
    assert_eq!(kinds, expected);
}

async fn every_earlier_head_is_consistent_with_the_newest(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let mut heads = Vec::new();
    for round in 0..8 {
        happen(&tenant, &format!("agent-{round}"), 1 + round * 20).await;
        tenant.integrate().await;
        heads.push(head(&tenant).await.head);
    }
    let newest = heads.last().unwrap();

    for old in &heads {
        let tiles = fixture.ledger().tiles(&tenant.id, &consistency_tiles(old.size, newest.size)).await.unwrap();
        let proof = consistency_proof(old.size, newest.size, &tiles).unwrap();
        assert_eq!(verify_consistency(old.size, newest.size, &old.root, &newest.root, &proof), Ok(()));
    }
}

async fn every_tenant_has_a_log_of_its_own(fixture: &LedgerFixture) {
    let (one, other) = (fixture.tenant().await, fixture.tenant().await);
    happen(&one, "agent", 5).await;
    happen(&other, "agent", 300).await;

    assert_eq!(one.integrate().await, 8 + 303, "one integration serves all");

    assert_sound(fixture, &one, 8).await;
    assert_sound(fixture, &other, 303).await;
    for event in one.events().await {
        assert_eq!(event["tenant"], json!(one.id));
    }
    let tiles = fixture.ledger().tiles(&one.id, &inclusion_tiles(300, 303)).await.unwrap();
    assert!(inclusion_proof(300, 303, &tiles).is_err(), "tiles of another tenant are not given out");
}

async fn a_second_integration_finds_nothing_and_leaves_the_head(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    tenant.integrate().await;
    let before = head(&tenant).await;
    tenant.wait(60);
    assert_eq!(tenant.integrate().await, 0);
    assert_eq!(head(&tenant).await, before);
}

async fn a_change_and_its_events_are_one(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let root = tenant.grant("coordinator").await;
    tenant.delegate(&root, "worker").await.unwrap();
    let pending = format!(
        "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM event_batches WHERE tenant = '{0}' AND \
         (first IS NULL OR first >= (SELECT size FROM heads WHERE tenant = '{0}'))",
        tenant.id
    );
    tenant.integrate().await;
    assert_eq!(number(fixture, &pending).await, 0);

    // As soon as the change is acknowledged its events are there, though not in the tree yet.
    tenant.revoke(root.id).await.unwrap();
    assert_eq!(number(fixture, &pending).await, 2);

    // A change that is refused half-way leaves neither itself nor an event: the key's digest is taken.
    let mut command = tenant.creation();
    command.tenant.id = toolgate_model::principal::TenantId::parse("half").unwrap();
    command.administrator.tenant = command.tenant.id.clone();
    fixture.ledger().create_tenant(command).await.unwrap_err();
    assert_eq!(number(fixture, &pending).await, 2);
    let half = "SELECT COUNT(*) FROM tenants WHERE id = 'half'";
    assert_eq!(number(fixture, half).await, 0);
}

async fn events_are_found_by_everything_they_are_filtered_by(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    tenant.wait(10);
    let since = tenant.now();
    let mut grant = tenant.new_grant(&credential, &principal("billing"));
    grant.authority.context = GrantContext {
        intent_id: Some(ContextId::parse("intent_1").unwrap()),
        plan_id: Some(ContextId::parse("plan_1").unwrap()),
        task_id: Some(ContextId::parse("task_1").unwrap()),
    };
    let grant = tenant.store_grant(grant).await.unwrap();
    tenant.delegate(&grant, "worker").await.unwrap();
    tenant.wait(10);
    let until = tenant.now();
    tenant.suspend(grant.id).await.unwrap();
    tenant.integrate().await;
    let find = async |filter: EventFilter| {
        let page = fixture.ledger().events(&tenant.id, filter, PageRequest::first(100)).await.unwrap();
        let events = page.items.iter().map(|event| serde_json::from_str::<Value>(&event.canonical).unwrap());
        events.map(|event| event["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let any = EventFilter::default;

    let of_kind = EventFilter { kinds: vec!["grant.created".to_owned()], ..any() };
    assert_eq!(find(of_kind).await, ["grant.created"]);
    let by_actor = EventFilter { actor: Some(principal("billing")), ..any() };
    assert_eq!(find(by_actor).await, ["grant.delegated"]);
    let about_agent = EventFilter { agent: Some(principal("billing")), ..any() };
    assert_eq!(find(about_agent).await, ["grant.created", "grant.suspended"]);
    let in_context = ["grant.created", "grant.delegated", "grant.suspended"];
    let of_intent = EventFilter { intent: Some(ContextId::parse("intent_1").unwrap()), ..any() };
    assert_eq!(find(of_intent).await, in_context);
    let of_task = EventFilter { task: Some(ContextId::parse("task_1").unwrap()), ..any() };
    assert_eq!(find(of_task.clone()).await, in_context);
    let of_other = EventFilter { task: Some(ContextId::parse("task_2").unwrap()), ..any() };
    assert!(find(of_other).await.is_empty());
    let between = EventFilter { since: Some(since), until: Some(until), ..any() };
    assert_eq!(find(between).await, ["grant.created", "grant.delegated"]);
    let together = EventFilter {
        kinds: vec!["grant.suspended".to_owned()],
        actor: Some(tenant.administrator.clone()),
        agent: Some(principal("billing")),
        since: Some(until),
        ..of_task
    };
    assert_eq!(find(together).await, ["grant.suspended"]);
}

async fn in_a_long_log_every_filter_finds_what_reading_all_of_it_would(fixture: &LedgerFixture) {
    let (tenant, other) = (fixture.tenant().await, fixture.tenant().await);
    for round in 0..8 {
        happen(&tenant, &format!("crowd-{round}"), 45).await;
        happen(&other, "stranger", usize::from(round == 0)).await;
        // Some are integrated on their own, some with those of the next round.
        if round % 3 != 1 {
            tenant.integrate().await;
        }
        let grant = tenant.grant(["coordinator", "billing"][round % 2]).await;
        if round % 4 == 0 {
            tenant.delegate(&grant, "worker").await.unwrap();
        }
    }
    tenant.integrate().await;
    other.integrate().await;
    let all = logged(&tenant).await;
    assert!(all.len() > 5 * 64, "the log has several pages: {}", all.len());
    let any = EventFilter::default;
    let kinds = |kinds: &[&str]| EventFilter { kinds: kinds.iter().map(|&kind| kind.to_owned()).collect(), ..any() };
    let of = |agent: &str| EventFilter { agent: Some(principal(agent)), ..any() };
    let by = |actor: &PrincipalId| EventFilter { actor: Some(actor.clone()), ..any() };
    let (created, delegated) = ("grant.created", "grant.delegated");

    let filters = [
        kinds(&[created]),
        kinds(&[created, delegated, "vault.created"]),
        kinds(&["agent.created"]),
        kinds(&["tool.invoked"]),
        kinds(&["tool.invoked", delegated]),
        of("worker"),
        of("crowd-7-44"),
        of("billing"),
        of("stranger-0"),
        by(&tenant.administrator),
        by(&principal("coordinator")),
        EventFilter { kinds: vec![created.to_owned()], ..of("billing") },
        EventFilter { kinds: vec![delegated.to_owned()], ..by(&tenant.administrator) },
    ];

    let mut sizes = Vec::new();
    for filter in filters {
        let wanted = |event: &&LoggedEvent| {
            let json: Value = serde_json::from_str(&event.canonical).unwrap();
            let is = |field: &str, sought: &Option<PrincipalId>| {
                sought.as_ref().is_none_or(|sought| json[field] == json!(sought))
            };
            let kind = json["type"].as_str().unwrap();
            (filter.kinds.is_empty() || filter.kinds.iter().any(|sought| sought == kind))
                && is("agent_id", &filter.agent)
                && is("actor", &filter.actor)
        };
        let expected: Vec<LoggedEvent> = all.iter().filter(wanted).cloned().collect();
        for limit in [7, 1000] {
            assert_eq!(found(&tenant, filter.clone(), limit).await, expected, "{filter:?} in pages of {limit}");
        }
        sizes.push(expected.len());
    }
    assert!(sizes.contains(&0) && sizes.iter().any(|size| *size > 300), "{sizes:?}");
}

async fn in_a_long_log_every_period_is_found_whole_although_the_clock_steps(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let begin = tenant.now();
    let at = |minutes: u64| begin.plus(Duration::from_secs(60 * minutes));
    // Forward, far ahead for a moment, back before everything else, and on.
    let times = [0, 10, 20, 90_000, 20, 30, 5, 40];
    for (round, minutes) in times.into_iter().enumerate() {
        fixture.clock().set(at(minutes));
        happen(&tenant, &format!("crowd-{round}"), 170).await;
        tenant.grant(["rare", "common"][round % 2]).await;
        if round % 3 != 1 {
            tenant.integrate().await;
        }
    }
    tenant.integrate().await;
    let all = logged(&tenant).await;
    assert!(all.len() > 2 * 512, "the log has several pages: {}", all.len());

    let edges = [None, Some(at(0)), Some(at(15)), Some(at(20)), Some(at(35)), Some(at(80_000)), Some(at(100_000))];
    let mut sizes = Vec::new();
    for (since, until) in edges.into_iter().flat_map(|since| edges.map(|until| (since, until))) {
        for agent in [None, Some(principal("rare")), Some(principal("crowd-6-100"))] {
            let filter = EventFilter { since, until, agent: agent.clone(), ..EventFilter::default() };
            let expected: Vec<LoggedEvent> = all
                .iter()
                .filter(|event| {
                    let json: Value = serde_json::from_str(&event.canonical).unwrap();
                    let time = Timestamp::parse(json["timestamp"].as_str().unwrap()).unwrap();
                    since.is_none_or(|since| time >= since)
                        && until.is_none_or(|until| time < until)
                        && agent.as_ref().is_none_or(|agent| json["agent_id"] == json!(agent))
                })
                .cloned()
                .collect();
            for limit in [97, 1000] {
                assert_eq!(found(&tenant, filter.clone(), limit).await, expected, "{filter:?} in pages of {limit}");
            }
            sizes.push(expected.len());
        }
    }
    assert!(sizes.contains(&0) && sizes.contains(&1) && sizes.iter().any(|size| *size > 600), "{sizes:?}");
}

async fn in_a_long_log_the_events_of_a_run_are_found_wherever_they_stand(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let tenant = &caller.tenant;
    let grant = caller.grant(None).await;
    let of_run = async || {
        let mut call = caller.call(&grant).await;
        call.invocation.trace.run = Some(RunId::parse("run-1").unwrap());
        assert_eq!(caller.send(call.clone()).await, Admission::Admitted);
        call
    };

    let first = of_run().await;
    happen(tenant, "early", 300).await;
    tenant.integrate().await;
    let by_itself = caller.running(&grant).await;
    caller.settle(&by_itself, "{}").await;
    happen(tenant, "late", 300).await;
    caller.settle(&first, "{}").await;
    let last = of_run().await;
    tenant.integrate().await;

    assert!(logged(tenant).await.len() > 600, "both ends are far apart");
    let ids = async |run: String, limit| {
        let events = found(tenant, EventFilter { run: Some(run), ..EventFilter::default() }, limit).await;
        let json = events.iter().map(|event| serde_json::from_str::<Value>(&event.canonical).unwrap());
        let call = |data: &Value| data.get("callId").or(data.get("invocation_id")).cloned();
        json.map(|event| (event["type"].clone(), call(&event["data"]).unwrap())).collect::<Vec<_>>()
    };
    let called = |call: &Admit| (json!("agent.toolCalled"), json!(call.invocation.id));
    let invoked = |call: &Admit| (json!("tool.invoked"), json!(call.invocation.id));
    for limit in [1, 100] {
        assert_eq!(ids("run-1".to_owned(), limit).await, [called(&first), invoked(&first), called(&last)]);
        let own = by_itself.invocation.run_id();
        assert_eq!(ids(own, limit).await, [called(&by_itself), invoked(&by_itself)]);
        assert!(ids("run-2".to_owned(), limit).await.is_empty());
    }
}

async fn a_cursor_that_no_answer_gave_is_refused(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    tenant.integrate().await;
    for cursor in ["x", "", "-1", "1.5", "99999999999999999999999"] {
        let page = PageRequest { after: Some(cursor.to_owned()), limit: 10 };
        let refusal = fixture.ledger().events(&tenant.id, EventFilter::default(), page).await.unwrap_err();
        assert_eq!(refusal.code(), toolgate_gate::refusal::Code::InvalidCursor, "{cursor:?}");
    }
}

async fn two_replicas_integrate_into_one_gapless_log(fixture: &LedgerFixture) {
    let (one, other) = (fixture.tenant().await, fixture.tenant().await);
    let replicas = [Arc::clone(fixture.ledger()), fixture.replica().await];
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let integrating = replicas.map(|ledger| {
        let (tenant, stop) = (one.through(ledger), Arc::clone(&stop));
        tokio::spawn(async move {
            let mut total = 0;
            while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                total += tenant.integrate().await;
                tokio::task::yield_now().await;
            }
            total
        })
    });

    for round in 0..10 {
        let name = format!("agent-{round}");
        tokio::join!(happen(&one, &name, 30), happen(&other, &name, 20));
    }
    stop.store(true, std::sync::atomic::Ordering::SeqCst);

    let mut total = one.integrate().await;
    for task in integrating {
        total += task.await.unwrap();
    }
    assert_eq!(total, 303 + 203, "each event was integrated once");
    assert_sound(fixture, &one, 303).await;
    assert_sound(fixture, &other, 203).await;
}

async fn a_damaged_tile_of_one_tenant_keeps_no_other_log_from_growing(fixture: &LedgerFixture) {
    let tenants = [fixture.tenant().await, fixture.tenant().await, fixture.tenant().await];
    for tenant in &tenants {
        tenant.vault().await;
    }
    tenants[0].integrate().await;
    run(fixture, &format!("UPDATE tiles SET hashes = substr(hashes, 1, 7) WHERE tenant = '{}'", tenants[1].id)).await;
    for tenant in &tenants {
        tenant.vault().await;
    }

    let integrated = fixture.ledger().integrate(Arc::clone(fixture.signer()), tenants[0].now()).await;

    let reported = integrated.unwrap_err();
    assert!(reported.reason().contains(&format!("the log of tenant `{}`", tenants[1].id)), "{reported}");
    for tenant in [&tenants[0], &tenants[2]] {
        let filter = EventFilter { kinds: vec!["vault.created".to_owned()], ..EventFilter::default() };
        let found = fixture.ledger().events(&tenant.id, filter, PageRequest::first(10)).await.unwrap();
        assert_eq!(found.items.len(), 2, "the log of {} has gone on", tenant.id);
    }
}
