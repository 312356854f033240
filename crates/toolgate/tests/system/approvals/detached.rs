//! Detached calls: accepted with 202, waiting in the ledger instead of on a connection, continued by whichever gate is alive,
//! and made once.

use serde_json::{Value, json};
use toolgate_testkit::gate_process::GateSetup;
use toolgate_testkit::postgres::TestDatabase;

use super::office::{Office, call};
use crate::faults::{Shim, Word};
use crate::world::{Actor, Reply, World, block_on, merged, on_both_engines, setup, text, until};

on_both_engines! {
    also_behind_nginx:
    a_detached_call_is_accepted_waits_and_is_executed_after_the_approval,
    a_detached_call_that_needs_nobody_is_executed_and_a_caller_that_waits_gets_its_result,
    a_denied_or_refused_call_gives_what_its_connection_would_have_given,
    a_cancelled_call_is_never_executed,
    a_result_is_its_callers_alone_until_it_is_deleted,
    the_same_call_under_the_same_idempotency_key_asks_once,
    tools_agents_and_the_gate_can_have_calls_detached_that_would_wait,
    what_a_call_rests_on_is_checked_again_after_the_approval,
    a_detached_call_can_be_followed_line_by_line,
}

const ASYNC: &[(&str, &str)] = &[("Prefer", "respond-async")];

impl Office {
    /// Sends a call that is to outlive its connection.
    fn detaches(&self, body: &Value) -> Value {
        let reply = self.agent.ask_with("POST", "/api/v1/tools/invoke", ASYNC, Some(body));
        let accepted = reply.expect(202);
        assert_eq!(reply.answer.header("location"), accepted["url"].as_str());
        assert_eq!(reply.answer.header("preference-applied"), Some("respond-async"));
        accepted
    }

    /// The approval that a detached call waits for.
    fn waits(&self, accepted: &Value) -> String {
        let url = text(accepted, "/url");
        until("a call that waits", || {
            let now = self.agent.get(url).ok();
            (now["status"] == "waiting").then(|| text(&now, "/approval_ids/0").to_owned())
        })
    }
}

fn result(actor: &Actor, accepted: &Value) -> Reply {
    actor.get(&format!("{}?wait_seconds=30", text(accepted, "/result_url")))
}

fn a_detached_call_is_accepted_waits_and_is_executed_after_the_approval(world: &World) {
    let office = Office::open(world);

    let accepted = office.detaches(&call("transfer", 12));
    let approval = office.waits(&accepted);

    assert_eq!(office.agent.get(text(&accepted, "/result_url")).status(), 202);
    let shown = office.approval(&approval);
    assert_eq!((&shown["detached"], &shown["arguments"]["amount"]), (&json!(true), &json!(12)));
    assert_eq!(office.bank.count(), 0);
    office.clerk.decides(&approval, "approve", json!({})).ok();
    let answer = result(&office.agent, &accepted).ok();
    assert_eq!((&answer["status"], &answer["result"]), (&json!("success"), &json!({"done": true})));
    assert_eq!(answer["invocation_id"], accepted["invocation_id"]);
    assert_eq!(office.bank.count(), 1);
    // Its record and its trace are those of any other call.
    let record = office.agent.get(text(&accepted, "/url")).ok();
    assert_eq!((&record["status"], &record["tool"]), (&json!("success"), &json!("transfer")));
    let run = format!("&run_id={}", text(&accepted, "/id"));
    let kinds: Vec<_> = office.admin.events(&run).iter().map(|event| text(event, "/type").to_owned()).collect();
    let expected = ["call.detached", "approval.requested", "approval.granted", "agent.toolCalled", "tool.invoked"];
    assert_eq!(kinds, expected);
    // The ledger has the request and the result only sealed.
    assert_eq!(result(&office.agent, &accepted).ok(), answer, "as often as it is asked for");
}

fn a_detached_call_that_needs_nobody_is_executed_and_a_caller_that_waits_gets_its_result(world: &World) {
    let office = Office::open(world);
    let waits = [("Prefer", "respond-async, wait=30")];

    let reply = office.agent.ask_with("POST", "/api/v1/tools/invoke", &waits, Some(&call("balance", 1)));

    assert_eq!(reply.ok()["result"], json!({"done": true}));
    let accepted = office.detaches(&call("balance", 2));
    assert_eq!(result(&office.agent, &accepted).ok()["status"], "success");
    let bad = [("Prefer", "respond-async, wait=soon")];
    let refused = office.agent.ask_with("POST", "/api/v1/tools/invoke", &bad, Some(&call("balance", 1)));
    refused.refused(400, "INVALID_FIELD");
}

fn a_denied_or_refused_call_gives_what_its_connection_would_have_given(world: &World) {
    let office = Office::open(world);
    let accepted = office.detaches(&call("transfer", 12));
    let approval = office.waits(&accepted);

    office.clerk.decides(&approval, "deny", json!({"reason": "invoice 5 is missing"})).ok();

    let denied = result(&office.agent, &accepted).refused(403, "APPROVAL_DENIED");
    assert_eq!(denied["message"], "denied by clerk: invoice 5 is missing");
    assert_eq!(denied["stage"], "approve");
    assert_eq!(office.agent.get(text(&accepted, "/url")).ok()["status"], "denied");
    let unknown = office.detaches(&json!({"tool": "shop.nothing", "parameters": {}}));
    result(&office.agent, &unknown).refused(404, "TOOL_NOT_FOUND");
    let brief = office.detaches(&call("transfer.brief", 1));
    until("the end of the approval", || (office.agent.get(text(&brief, "/result_url")).status() == 403).then_some(()));
    result(&office.agent, &brief).refused(403, "APPROVAL_TIMED_OUT");
    assert_eq!(office.bank.count(), 0);
}

fn a_cancelled_call_is_never_executed(world: &World) {
    let office = Office::open(world);
    let accepted = office.detaches(&call("transfer", 12));
    let approval = office.waits(&accepted);

    office.agent.post(text(&accepted, "/cancel_url"), &json!({})).ok();

    result(&office.agent, &accepted).refused(409, "CALL_CANCELLED");
    assert_eq!(office.approval(&approval)["status"], "cancelled");
    office.clerk.decides(&approval, "approve", json!({})).refused(410, "APPROVAL_ENDED");
    let done = office.detaches(&call("balance", 1));
    result(&office.agent, &done).ok();
    office.agent.post(text(&done, "/cancel_url"), &json!({})).refused(409, "VERSION_CONFLICT");
    assert_eq!(office.bank.count(), 1);
}

fn a_result_is_its_callers_alone_until_it_is_deleted(world: &World) {
    let office = Office::open(world);
    let accepted = office.detaches(&call("balance", 1));
    result(&office.agent, &accepted).ok();
    let (url, results) = (text(&accepted, "/result_url"), office.agent.get("/api/v1/detached-calls").ok());
    assert_eq!(results["detached_calls"][0]["id"], accepted["id"]);

    let other = office.admin.registers("other", &["tools.invoke"]);
    let auditor = office.admin.registers("auditor", &["audit.read"]);
    for stranger in [&other, &office.clerk] {
        stranger.get(url).refused(404, "INVOCATION_NOT_FOUND");
        stranger.delete(url).refused(404, "INVOCATION_NOT_FOUND");
        stranger.post(text(&accepted, "/cancel_url"), &json!({})).refused(404, "INVOCATION_NOT_FOUND");
        assert_eq!(stranger.get("/api/v1/detached-calls").ok()["detached_calls"], json!([]));
    }
    // Who may read the log sees that there was a call, and not what came of it.
    auditor.get(url).refused(410, "RESULT_GONE");
    let listed = auditor.get("/api/v1/detached-calls").ok();
    assert_eq!(listed["detached_calls"].as_array().unwrap().len(), 1);

    office.agent.delete(url).ok();
    office.agent.get(url).refused(410, "RESULT_GONE");
    let synchronous = office.agent.post("/api/v1/tools/invoke", &call("balance", 1)).ok();
    let of_connection = format!("/api/v1/invocations/{}/result", text(&synchronous, "/invocation_id"));
    office.agent.get(&of_connection).refused(410, "RESULT_GONE");
}

fn the_same_call_under_the_same_idempotency_key_asks_once(world: &World) {
    let office = Office::open(world);
    let body = merged(call("transfer", 12), json!({"idempotency_key": "order-1"}));

    let (first, second) = (office.detaches(&body), office.detaches(&body));

    assert_eq!(first["id"], second["id"]);
    let approval = office.waits(&first);
    assert_eq!(office.pending(), [approval.as_str()]);
    let other = merged(call("transfer", 13), json!({"idempotency_key": "order-1"}));
    let reply = office.agent.ask_with("POST", "/api/v1/tools/invoke", ASYNC, Some(&other));
    reply.refused(409, "IDEMPOTENCY_CONFLICT");
    office.clerk.decides(&approval, "approve", json!({})).ok();
    result(&office.agent, &first).ok();
    assert_eq!(office.detaches_again(&body), 200, "it has ended");
    assert_eq!(office.bank.count(), 1);
}

impl Office {
    fn detaches_again(&self, body: &Value) -> u16 {
        self.agent.ask_with("POST", "/api/v1/tools/invoke", ASYNC, Some(body)).status()
    }
}

fn tools_agents_and_the_gate_can_have_calls_detached_that_would_wait(world: &World) {
    let office = Office::open(world);
    // The agent's own setting: what asks nobody is answered on its connection.
    office.admin.patch("/api/v1/agents/teller", &json!({"detach_calls": true})).ok();
    office.agent.post("/api/v1/tools/invoke", &call("balance", 1)).ok();
    let accepted = office.agent.post("/api/v1/tools/invoke", &call("transfer", 1)).expect(202);
    let approval = office.waits(&accepted);
    office.clerk.decides(&approval, "approve", json!({"scope": "always"})).ok();
    result(&office.agent, &accepted).ok();
    // What a standing approval covers does not wait.
    office.agent.post("/api/v1/tools/invoke", &call("transfer", 2)).ok();
    office.admin.patch("/api/v1/agents/teller", &json!({"detach_calls": false})).ok();
    // The tool's.
    let tool = json!({"approval": "always", "detach": true, "http": {"method": "POST", "path": "/v1/anything"},
        "parameters": {"amount": {"type": "integer"}, "to": {"type": "string"}}});
    let definition = json!({"service": "bank", "version": "1", "tools": {"balance": tool}});
    office.admin.ask("PUT", "/api/v1/services/bank", Some(&definition)).ok();
    let accepted = office.agent.post("/api/v1/tools/invoke", &call("balance", 3)).expect(202);
    let approval = office.waits(&accepted);
    office.clerk.decides(&approval, "approve", json!({})).ok();
    result(&office.agent, &accepted).ok();
    assert_eq!(office.bank.count(), 4);
}

fn what_a_call_rests_on_is_checked_again_after_the_approval(world: &World) {
    let office = Office::open(world);
    let accepted = office.detaches(&call("transfer", 12));
    let approval = office.waits(&accepted);
    let key = office.admin.get("/api/v1/agents/teller/keys").ok()["keys"][0]["id"].as_str().unwrap().to_owned();
    office.admin.delete(&format!("/api/v1/keys/{key}")).ok();

    office.clerk.decides(&approval, "approve", json!({})).ok();

    let url = text(&accepted, "/url").to_owned();
    let record = until("the end of the call", || {
        let record = office.admin.get(&url).ok();
        (record["status"] == "denied").then_some(record)
    });
    assert_eq!(record["error"]["code"], "KEY_REVOKED");
    assert_eq!(office.bank.count(), 0);
}

fn a_detached_call_can_be_followed_line_by_line(world: &World) {
    let office = Office::open(world);
    let accepted = office.detaches(&call("transfer", 12));
    let approval = office.waits(&accepted);
    let (agent, url) = (office.agent.clone(), text(&accepted, "/result_url").to_owned());
    let lines = std::thread::spawn(move || {
        agent.ask_with("GET", &url, &[("Accept", "application/x-ndjson")], None).answer.text().to_owned()
    });
    office.clerk.decides(&approval, "approve", json!({})).ok();
    let lines = lines.join().unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["event"], "state", "{lines:?}");
    let last = lines.last().unwrap();
    assert_eq!((&last["event"], &last["status"]), (&json!("answered"), &json!(200)));
    assert_eq!(last["body"]["result"], json!({"done": true}));
}

/// Each engine, with what starts its gates.
fn setups() -> Vec<(GateSetup, Option<TestDatabase>)> {
    let database = block_on(TestDatabase::create());
    let postgres = setup().reaching_loopback().database(database.url());
    vec![(setup().reaching_loopback(), None), (postgres, Some(database))]
}

#[test]
fn a_call_that_waits_outlives_every_gate_and_is_made_once_by_the_one_that_is_alive() {
    for (setup, _database) in setups() {
        let world = World::of(&setup, None);
        let office = Office::open(&world);
        let (stopped, killed) = (office.detaches(&call("transfer", 1)), office.detaches(&call("transfer", 2)));
        let approvals = [office.waits(&stopped), office.waits(&killed)];
        // A gate that is stopped cancels nothing, and one that is killed orphans nothing.
        assert!(world.gate.stop().status.success());
        let world = World::of(&setup, None);
        let office = office.at(&world);
        assert_eq!(office.pending().len(), 2);
        office.clerk.decides(&approvals[0], "approve", json!({})).ok();
        assert_eq!(result(&office.agent, &stopped).ok()["status"], "success");
        world.gate.kill();
        let world = World::of(&setup, None);
        let office = office.at(&world);
        office.clerk.decides(&approvals[1], "approve", json!({})).ok();
        assert_eq!(result(&office.agent, &killed).ok()["status"], "success");
        assert_eq!(result(&office.agent, &stopped).ok()["status"], "success", "results outlive gates too");
        assert_eq!(office.bank.count(), 2);
    }
}

#[test]
fn a_call_whose_gate_died_is_made_by_another_once() {
    let database = block_on(TestDatabase::create());
    let setup = setup().reaching_loopback().database(database.url());
    let (one, other) = (World::of(&setup, None), World::of(&setup, None));
    let office = Office::open(&one);
    let calls: Vec<Value> = (0..5).map(|amount| office.detaches(&call("transfer", amount))).collect();
    let approvals: Vec<String> = calls.iter().map(|accepted| office.waits(accepted)).collect();
    // A follower at one gate hears of what another one does.
    let agent = other.actor("teller", &office.agent.key);
    let (follower, followed) = (agent.clone(), calls[0].clone());
    let follower = std::thread::spawn(move || result(&follower, &followed));
    office.clerk.decides(&approvals[0], "approve", json!({})).ok();
    follower.join().unwrap().ok();
    one.gate.kill();
    let clerk = other.actor("clerk", &office.clerk.key);
    for approval in approvals.iter().skip(1) {
        clerk.decides(approval, "approve", json!({})).ok();
    }
    for accepted in &calls {
        result(&agent, accepted).ok();
    }
    assert_eq!(office.bank.count(), 5, "each once");
}

#[test]
fn an_approval_that_takes_a_day_survives_a_rolling_upgrade() {
    for (setup, database) in setups() {
        let shim = Shim::new();
        let setup = shim.loaded_into(setup);
        let mut world = World::of(&setup, None);
        let mut office = Office::open(&world);
        let hours = |hours: u32| json!({"approval_ttl_seconds": hours * 3600});
        let patient = office.detaches(&merged(call("transfer", 1), hours(48)));
        let impatient = office.detaches(&merged(call("transfer", 2), hours(12)));
        // A call ends with the key that it was made with, and says so.
        let end = office.admin.time().plus(std::time::Duration::from_secs(10 * 3600));
        let key = office.admin.post("/api/v1/agents/teller/keys", &json!({"expires_at": end})).created();
        let brief = world.actor("teller", text(&key, "/key"));
        let outlived = merged(call("transfer", 3), hours(48));
        let outlived = brief.ask_with("POST", "/api/v1/tools/invoke", ASYNC, Some(&outlived)).expect(202);
        let approvals = [office.waits(&patient), office.waits(&impatient), office.waits(&outlived)];
        // Every eight hours each gate is replaced. Replicas overlap; SQLite has one process at a time.
        for hour in [8, 16, 24] {
            let replace = || {
                shim.set(Word::ClockOffset, hour * 3600);
                World::of(&setup, None)
            };
            if database.is_some() {
                let next = replace();
                assert!(std::mem::replace(&mut world, next).gate.stop().status.success());
            } else {
                assert!(world.gate.stop().status.success());
                world = replace();
            }
            office = office.at(&world);
            assert_eq!(world.gate.request("GET", "/readyz", None).1["clock"]["status"], "ok");
            let waiting = if hour < 12 { 3 } else { 2 };
            until("the approvals that are left", || (office.pending().len() == waiting).then_some(()));
        }
        result(&office.agent, &impatient).refused(403, "APPROVAL_TIMED_OUT");
        office.clerk.decides(&approvals[1], "approve", json!({})).refused(410, "APPROVAL_ENDED");
        office.clerk.decides(&approvals[0], "approve", json!({})).ok();

        assert_eq!(result(&office.agent, &patient).ok()["status"], "success");
        office.clerk.decides(&approvals[2], "approve", json!({})).ok();
        result(&office.agent, &outlived).refused(401, "KEY_EXPIRED");
        assert_eq!(office.bank.count(), 1, "once, and a day later");
        let (asked, ended) = (text(&patient, "/id"), office.approval(&approvals[0]));
        let events = office.admin.events(&format!("&run_id={asked}"));
        let times = |kind: &str| {
            let event = events.iter().find(|event| event["type"] == kind).unwrap();
            toolgate_model::time::Timestamp::parse(text(event, "/timestamp")).unwrap()
        };
        let waited = times("approval.granted").as_millis() - times("approval.requested").as_millis();
        assert!(waited >= 24 * 3600 * 1000, "{ended}");
    }
}
