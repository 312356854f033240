//! Tool sessions through the real binary: calls stand between the ends of their session, and every session ends, whatever
//! becomes of whoever opened it.

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};
use toolgate_model::time::Timestamp;

use super::events_of;
use crate::calls::shop::{Shop, read};
use crate::world::{Actor, Reply, World, names, on_both_engines, setup, text, until};

on_both_engines! {
    calls_of_a_session_belong_to_its_run_and_stand_between_its_ends,
    a_session_is_of_a_tool_that_its_owner_may_use_and_for_nobody_else,
    a_session_is_not_closed_while_a_call_of_it_is_under_way,
    a_session_whose_caller_went_away_in_a_call_is_closed_by_the_clock_after_the_call,
    only_what_is_overdue_is_closed_by_the_clock,
}

const TOOL: &str = "connector:payments.charges.read";
/// Long enough that a call is admitted in it on a busy machine too.
const SHORT: u64 = 3;

/// Opens a session of the shop's tool, adding `more` to the request.
fn open(actor: &Actor, more: Value) -> Value {
    let session = actor.post("/v1/tool-sessions", &crate::world::merged(json!({"toolId": TOOL}), more)).created();
    assert_eq!(names(&session), ["expiresAt", "openedAt", "runId", "sessionId", "toolId"], "{session}");
    session
}

fn path_of(session: &Value) -> String {
    format!("/v1/tool-sessions/{}", text(session, "/sessionId"))
}

/// A call that is part of this session.
fn within(session: &Value) -> Value {
    read(json!({"context": {"session_id": session["sessionId"]}}))
}

/// The events of the session's run, oldest first.
fn events(shop: &Shop, session: &Value) -> Vec<Value> {
    events_of(&shop.admin.get(&format!("/v1/runs/{}/events", text(session, "/runId"))).ok())
}

/// Their types, once the session is closed, with how it was.
fn ended(shop: &Shop, session: &Value) -> (Vec<String>, Value) {
    let found = until("the session is closed", || {
        let events = events(shop, session);
        events.iter().any(|event| event["type"] == "tool.session.closed").then_some(events)
    });
    let last = found.last().unwrap()["payload"]["outcome"].clone();
    (found.iter().map(|event| text(event, "/type").to_owned()).collect(), last)
}

fn bracketed(calls: usize) -> Vec<String> {
    let call = ["agent.toolCalled", "agent.toolReturned"].repeat(calls);
    [vec!["tool.session.opened"], call, vec!["tool.session.closed"]].concat().into_iter().map(str::to_owned).collect()
}

fn calls_of_a_session_belong_to_its_run_and_stand_between_its_ends(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    for (more, query, outcome) in [
        (json!({}), "", "completed"),
        (json!({"runId": "report-7", "ttlSeconds": 3600}), "?outcome=completed", "completed"),
        (json!({"runId": "report-8"}), "?outcome=failed", "failed"),
    ] {
        let session = open(&shop.agent, more.clone());
        let own_run = more.get("runId").unwrap_or(&session["sessionId"]);
        assert_eq!((&session["runId"], &session["toolId"]), (own_run, &json!(TOOL)));
        assert_eq!(shop.agent.get(&path_of(&session)).ok(), session);
        shop.agent.invokes(within(&session)).ok();
        // To name the run too is no contradiction; to name another one is.
        let context = |run: &Value| json!({"context": {"session_id": session["sessionId"], "run_id": run}});
        shop.agent.invokes(read(context(&session["runId"]))).ok();
        let error = shop.agent.invokes(read(context(&json!("another")))).refused(400, "INVALID_FIELD");
        assert_eq!(error["path"], "context.run_id");

        let closed = shop.agent.delete(&format!("{}{query}", path_of(&session)));
        assert_eq!((closed.status(), closed.answer.body.len()), (204, 0), "{}", closed.answer.text());
        assert_eq!(ended(&shop, &session), (bracketed(2), json!(outcome)));
        for event in events(&shop, &session).iter().filter(|event| text(event, "/type").starts_with("tool.session")) {
            let mut payload = json!({"sessionId": session["sessionId"], "toolId": TOOL});
            if event["type"] == "tool.session.closed" {
                payload["outcome"] = json!(outcome);
            }
            assert_eq!(event["payload"], payload, "identifiers and nothing else");
        }
        // Over is over.
        shop.agent.get(&path_of(&session)).flat(404, "not_found");
        let again = shop.agent.delete(&path_of(&session)).flat(404, "not_found");
        assert_eq!(again["details"]["code"], "SESSION_NOT_FOUND");
        let late = shop.agent.invokes(within(&session));
        let error = shop.denied(&late, 404, "SESSION_NOT_FOUND");
        assert_eq!((&error["session_id"], &error["stage"]), (&session["sessionId"], &json!("admit")));
        assert_eq!(ended(&shop, &session).0.len(), 6, "what comes too late is told elsewhere");
    }
    assert_eq!(shop.upstream.count(), 6);
}

fn a_session_is_of_a_tool_that_its_owner_may_use_and_for_nobody_else(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({"scopes": ["charges.read"]}));
    let open_with = |actor: &Actor, body: Value| -> Reply { actor.post("/v1/tool-sessions", &body) };
    for tool in ["connector:payments.refunds.create", "openwop:http.fetch", "connector:no.such", "no id at all"] {
        let refused = open_with(&shop.agent, json!({"toolId": tool})).flat(404, "not_found");
        assert_eq!(refused["details"]["code"], "TOOL_NOT_FOUND", "{tool}");
    }
    for body in [
        json!({"toolId": TOOL, "ttlSeconds": 0}),
        json!({"toolId": TOOL, "ttlSeconds": 3601}),
        json!({"toolId": TOOL, "ttlSeconds": -1}),
        json!({"toolId": TOOL, "runId": "no name"}),
        json!({"toolId": TOOL, "unheardOf": 1}),
        json!({}),
    ] {
        open_with(&shop.agent, body).flat(400, "validation_error");
    }
    assert!(shop.admin.events("&type=tool.session.opened").is_empty());

    let session = open(&shop.agent, json!({}));
    shop.agent.delete(&format!("{}?outcome=cancelled", path_of(&session))).flat(400, "validation_error");
    let other = world.agent("other", &["tools.invoke"]);
    shop.grant_to("other", json!({}));
    let elsewhere = world.tenant("elsewhere").registers("billing", &["tools.invoke"]);
    for stranger in [&other, &elsewhere, &shop.admin] {
        let ask = |method: &str, path: &str| {
            let reply = stranger.ask(method, path, None);
            reply.flat(404, "not_found")["details"]["code"].clone()
        };
        for method in ["GET", "DELETE"] {
            assert_eq!(ask(method, &path_of(&session)), "SESSION_NOT_FOUND");
            assert_eq!(ask(method, "/v1/tool-sessions/none"), "SESSION_NOT_FOUND");
        }
    }
    let denied = other.invokes(within(&session));
    shop.denied(&denied, 404, "SESSION_NOT_FOUND");
    assert_eq!(shop.upstream.count(), 0);
    assert_eq!(events(&shop, &session).len(), 1, "nothing of others is told in its run");
    shop.agent.invokes(within(&session)).ok();
    let unheard_of = read(json!({"context": {"session_id": "none"}}));
    shop.agent.invokes(unheard_of).error();
}

fn a_session_is_not_closed_while_a_call_of_it_is_under_way(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let session = open(&shop.agent, json!({}));
    shop.upstream.hold();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| shop.agent.invokes(within(&session)).ok());
        shop.upstream.wait_for(1);
        shop.agent.delete(&path_of(&session)).flat(409, "conflict");
        shop.upstream.release();
        assert_eq!(call.join().unwrap()["status"], "success");
    });
    assert_eq!(shop.agent.delete(&path_of(&session)).status(), 204);
    assert_eq!(ended(&shop, &session), (bracketed(1), json!("completed")));
}

/// Sends a call and goes away when it has reached the service, which does not answer.
fn leave_in_the_middle(world: &World, shop: &Shop, body: &Value) {
    let body = body.to_string();
    let mut stream = TcpStream::connect(world.gate.address()).unwrap();
    let request = format!(
        "POST /api/v1/tools/invoke HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        shop.agent.key,
        body.len()
    );
    shop.upstream.hold();
    stream.write_all(request.as_bytes()).unwrap();
    shop.upstream.wait_for(1);
}

fn a_session_whose_caller_went_away_in_a_call_is_closed_by_the_clock_after_the_call(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let session = open(&shop.agent, json!({"ttlSeconds": SHORT}));
    leave_in_the_middle(world, &shop, &within(&session));
    wait_past(&shop, &session);
    // Its time is over, other overdue sessions are closed, and it is not: what its call returns belongs into it.
    let other = open(&shop.agent, json!({"ttlSeconds": 1}));
    assert_eq!(ended(&shop, &other), (bracketed(0), json!("failed")));
    assert_eq!(shop.agent.get(&path_of(&session)).ok(), session);

    shop.upstream.release();

    assert_eq!(ended(&shop, &session), (bracketed(1), json!("failed")));
    let status = events(&shop, &session)[2]["payload"]["status"].clone();
    assert_eq!(status, "ok", "the call itself was settled");
}

/// Waits until the time of a session is over.
fn wait_past(shop: &Shop, session: &Value) {
    let end = Timestamp::parse(text(session, "/expiresAt")).unwrap();
    until("its time is over", || (shop.admin.time() > end).then_some(()));
}

fn only_what_is_overdue_is_closed_by_the_clock(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let (long, short) = (open(&shop.agent, json!({})), open(&shop.agent, json!({"ttlSeconds": 1})));
    assert_eq!(ended(&shop, &short), (bracketed(0), json!("failed")));
    let told = &shop.admin.events("&type=tool.session.closed")[0];
    assert_eq!((&told["actor"], &told["agent_id"]), (&json!("core.system"), &json!("billing")));
    // On SQLite, the first look after a start is for what was left over; this one came after that.
    assert_eq!(shop.agent.get(&path_of(&long)).ok(), long);
    assert_eq!(shop.admin.events("&type=tool.session.closed").len(), 1);
}

#[test]
fn a_kill_in_the_middle_of_a_call_closes_its_session_at_the_next_start_on_sqlite() {
    let setup = setup().reaching_loopback();
    let world = World::of(&setup, None);
    let shop = Shop::open(&world);
    shop.grant(json!({}));
    let session = open(&shop.agent, json!({}));
    leave_in_the_middle(&world, &shop, &within(&session));
    world.gate.kill();
    shop.upstream.release();

    let mut world = World::of(&setup, None);

    let shop = shop.at(&world);
    shop.agent.get(&path_of(&session)).flat(404, "not_found");
    assert_eq!(ended(&shop, &session), (bracketed(1), json!("failed")));
    let returned = events(&shop, &session)[2]["payload"].clone();
    assert_eq!((&returned["status"], &returned["error"]["code"]), (&json!("error"), &json!("OUTCOME_UNKNOWN")));
    assert_eq!(returned.get("durationMs"), None);
    assert!(world.gate.stderr().contains("closed as failed"), "the operator is told");
}

#[test]
fn a_kill_leaves_sessions_on_postgresql_to_the_clock() {
    let database = crate::world::block_on(toolgate_testkit::postgres::TestDatabase::create());
    let setup = setup().reaching_loopback().database(database.url());
    let world = World::of(&setup, None);
    let shop = Shop::open(&world);
    shop.grant(json!({}));
    let long = open(&shop.agent, json!({}));
    let short = open(&shop.agent, json!({"ttlSeconds": 1}));
    world.gate.kill();

    let world = World::of(&setup, None);

    let shop = shop.at(&world);
    assert_eq!(ended(&shop, &short), (bracketed(0), json!("failed")));
    assert_eq!(shop.agent.get(&path_of(&long)).ok(), long, "another replica may be using it");
}
