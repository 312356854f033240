//! The records of calls: the lists of the RFC and of the SDK, their filters and pages, and who sees which.

use serde_json::{Value, json};

use super::shop::{Shop, read};
use crate::world::{Actor, World, id, ids, on_both_engines, text};

on_both_engines! {
    records_are_listed_newest_first_and_in_pages,
    every_filter_finds_exactly_its_own,
    intents_tasks_and_grants_have_their_lists,
    agents_see_their_own_and_what_was_done_through_grants_below,
    who_reads_the_log_or_manages_everything_sees_everything,
    a_keeper_sees_what_was_done_with_its_credentials,
    a_record_that_may_not_be_seen_looks_like_none,
}

fn listed(actor: &Actor, query: &str) -> Vec<String> {
    ids(&actor.get(&format!("/api/v1/invocations{query}")).ok()["invocations"])
}

/// Makes a call; answers the id of its record, whatever came of it.
fn made(actor: &Actor, body: Value) -> String {
    text(&actor.invokes(body).json(), "/invocation_id").to_owned()
}

fn records_are_listed_newest_first_and_in_pages(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let mut calls: Vec<String> = (0..7).map(|_| made(&shop.agent, read(json!({})))).collect();
    calls.reverse();
    assert_eq!(listed(&shop.agent, ""), calls);
    let (mut found, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = shop.agent.get(&format!("/api/v1/invocations?limit=3{cursor}")).ok();
        found.extend(ids(&page["invocations"]));
        pages += 1;
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
        // What comes in between does not shift the pages.
        made(&shop.agent, read(json!({})));
    }
    assert_eq!((found, pages), (calls, 3));
}

fn every_filter_finds_exactly_its_own(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({"scopes": ["charges.read"]}));
    let other = shop.grant(json!({"scopes": ["charges.create"]}));
    let plain = made(&shop.agent, read(json!({})));
    let with_context = read(json!({"context": {"intent_id": "i1", "task_id": "t1"}}));
    let in_context = made(&shop.agent, with_context);
    let keyed = made(&shop.agent, read(json!({"idempotency_key": "k1"})));
    let charge = json!({"tool": "payments.charges.create", "parameters": {"amount": 1, "currency": "usd"}});
    let charge = made(&shop.agent, charge);
    let denied = made(&shop.agent, json!({"tool": "payments.refunds.create"}));
    let unknown = made(&shop.agent, json!({"tool": "unheard.of"}));
    let broken = read(json!({"parameters": {"charge_id": "missing"}}));
    let failed = made(&shop.agent, broken);
    let time = text(&shop.record(&charge), "/timestamp").replace('+', "%2B");
    for (query, expected) in [
        ("?status=denied", vec![&unknown, &denied]),
        ("?status=error", vec![&failed]),
        ("?status=running", vec![]),
        ("?status=unknown", vec![]),
        ("?tool=charges.create", vec![&charge]),
        ("?service=payments&status=denied", vec![&denied]),
        ("?service=other", vec![]),
        ("?intent_id=i1", vec![&in_context]),
        ("?task_id=t1&intent_id=i1", vec![&in_context]),
        ("?task_id=t1&intent_id=i2", vec![]),
        ("?idempotency_key=k1", vec![&keyed]),
        ("?agent_id=billing&tool=unheard.of", vec![&unknown]),
        (&format!("?grant_id={}", id(&other)), vec![&charge]),
        (&format!("?grant_id={}", id(&grant)), vec![&failed, &keyed, &in_context, &plain]),
        ("?since=2099-01-01T00:00:00Z", vec![]),
    ] {
        let expected: Vec<String> = expected.into_iter().cloned().collect();
        assert_eq!(listed(&shop.agent, query), expected, "{query}");
    }
    // Calls of one millisecond are together on the later side.
    let before = listed(&shop.agent, &format!("?until={time}"));
    assert!(before.iter().all(|found| *found < charge), "{before:?}");
    let since = listed(&shop.agent, &format!("?since={time}"));
    assert_eq!(before.len() + since.len(), 7);
    assert!([&charge, &denied, &unknown, &failed].iter().all(|id| since.contains(id)), "{since:?}");
    for (query, path) in [("status=done", "status"), ("since=soon", "since"), ("tool=a%20b", "tool")] {
        let error = shop.agent.get(&format!("/api/v1/invocations?{query}")).refused(400, "INVALID_FIELD");
        assert_eq!(error["path"], path);
    }
}

fn intents_tasks_and_grants_have_their_lists(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({}));
    let context = |intent: &str, task: &str| read(json!({"context": {"intent_id": intent, "task_id": task}}));
    let one = made(&shop.agent, context("i1", "t1"));
    let two = made(&shop.agent, context("i1", "t2"));
    let three = made(&shop.agent, context("i2", "t1"));
    let list = |path: &str| ids(&shop.agent.get(&format!("/api/v1{path}")).ok()["invocations"]);
    assert_eq!(list("/intents/i1/invocations"), [two.as_str(), one.as_str()]);
    assert_eq!(list("/tasks/t1/invocations"), [three.as_str(), one.as_str()]);
    assert_eq!(list("/tasks/t1/invocations?intent_id=i2"), [three.as_str()]);
    assert_eq!(list("/intents/none/invocations"), Vec::<String>::new());
    assert_eq!(list("/intents/i1/invocations?limit=1"), [two.as_str()]);
    let twice = shop.agent.get("/api/v1/intents/i1/invocations?intent_id=i1").refused(400, "INVALID_FIELD");
    assert_eq!(twice["path"], "intent_id");
    // The SDK reads a bare array.
    let path = format!("/api/v1/grants/{}/invocations", id(&grant));
    assert_eq!(ids(&shop.agent.get(&path).ok()), [three.as_str(), &two, &one]);
    assert_eq!(ids(&shop.agent.get(&format!("{path}?limit=1")).ok()), [three.as_str()]);
    shop.agent.get("/api/v1/grants/grant_01K9ZZZZZZ0000000000000000/invocations").refused(404, "GRANT_NOT_FOUND");
    shop.agent.get("/api/v1/invocations/inv_01K9ZZZZZZ0000000000000000").refused(404, "INVOCATION_NOT_FOUND");
}

fn agents_see_their_own_and_what_was_done_through_grants_below(world: &World) {
    let shop = Shop::open(world);
    let worker = world.agent("worker", &["tools.invoke"]);
    let source = shop.grant(json!({"delegatable": true}));
    let below = shop.agent.delegates(&source, "worker", json!({}));
    let own = made(&shop.agent, read(json!({})));
    let theirs = made(&worker, read(json!({})));
    assert_eq!(listed(&shop.agent, ""), [own.as_str()]);
    assert_eq!(listed(&worker, ""), [theirs.as_str()]);
    assert_eq!(listed(&worker, "?agent_id=worker"), [theirs.as_str()]);
    assert_eq!(listed(&shop.agent, &format!("?grant_id={}", id(&below))), [theirs.as_str()]);
    shop.agent.get(&format!("/api/v1/invocations/{theirs}")).ok();
    worker.get(&format!("/api/v1/invocations/{own}")).refused(404, "INVOCATION_NOT_FOUND");
    worker.get(&format!("/api/v1/grants/{}/invocations", id(&source))).refused(404, "GRANT_NOT_FOUND");
    worker.get("/api/v1/invocations?agent_id=billing").refused(403, "PERMISSION_DENIED");
    let shared = json!({"context": {"intent_id": "shared"}});
    made(&shop.agent, read(shared.clone()));
    let last = made(&worker, read(shared));
    let of_intent = ids(&worker.get("/api/v1/intents/shared/invocations").ok()["invocations"]);
    assert_eq!(of_intent, [last.as_str()], "of an intent that many work on, its own");
}

fn who_reads_the_log_or_manages_everything_sees_everything(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    shop.grant_to("other", json!({}));
    let other = world.agent("other", &["tools.invoke"]);
    let one = made(&shop.agent, read(json!({})));
    let two = made(&other, read(json!({})));
    let auditor = world.agent("auditor", &["audit.read"]);
    for reader in [&auditor, &shop.admin] {
        assert_eq!(listed(reader, ""), [two.as_str(), one.as_str()]);
        assert_eq!(listed(reader, "?agent_id=other"), [two.as_str()]);
        reader.get(&format!("/api/v1/invocations/{one}")).ok();
    }
}

fn a_keeper_sees_what_was_done_with_its_credentials(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let keeper = world.agent("keeper", &["tools.manage", "tools.invoke"]);
    let kept = super::shop::credential(&keeper, "payments", json!({"base_url": shop.upstream.url()}));
    let grant = keeper.grants(&kept, "billing", json!({"scopes": ["charges.create"]}));
    let foreign = made(&shop.agent, read(json!({})));
    let charge = json!({
        "tool": "payments.charges.create", "parameters": {"amount": 1, "currency": "usd"}, "grant_id": grant["id"],
    });
    let own = made(&shop.agent, charge);
    assert_eq!(listed(&keeper, ""), [own.as_str()]);
    assert_eq!(listed(&keeper, "?agent_id=billing"), [own.as_str()]);
    keeper.get(&format!("/api/v1/invocations/{own}")).ok();
    keeper.get(&format!("/api/v1/invocations/{foreign}")).refused(404, "INVOCATION_NOT_FOUND");
}

fn a_record_that_may_not_be_seen_looks_like_none(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let hidden = made(&shop.agent, read(json!({})));
    let denied = made(&shop.agent, json!({"tool": "unheard.of"}));
    let stranger = world.agent("stranger", &["tools.invoke"]);
    let none = "inv_01K9ZZZZZZ0000000000000000";
    let ask = |id: &str| stranger.get(&format!("/api/v1/invocations/{id}"));
    for hidden in [hidden, denied] {
        assert_eq!(ask(&hidden).answer.text().replace(&hidden, none), ask(none).answer.text());
    }
    ask("inv_1").refused(404, "INVOCATION_NOT_FOUND");
    assert_eq!(listed(&stranger, ""), Vec::<String>::new());
}
