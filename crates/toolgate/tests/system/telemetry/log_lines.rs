//! The line of a finished call: who, what, how it ended and how long that took, and nothing of what was in it.

use serde_json::{Value, json};

use crate::calls::shop::{Shop, TOKEN, read};
use crate::world::{World, setup, text};

fn lines(stderr: &str) -> Vec<Value> {
    let lines = stderr.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["target"] == "toolgate::calls").collect()
}

fn number(line: &Value, field: &str) -> u64 {
    line[field].as_u64().unwrap_or_else(|| panic!("no {field} in {line}"))
}

#[test]
fn every_finished_call_gets_one_line_where_the_operator_says_so() {
    let world = World::of(&setup().reaching_loopback().environment("TOOLGATE_LOG_CALLS", "all"), None);
    let shop = Shop::open(&world);
    shop.grant(json!({}));
    let done = shop.agent.invokes(read(json!({})));
    let body = done.ok();
    let refused =
        shop.agent.invokes(json!({"tool": "payments.nothing", "parameters": {"secret": "geheim-in-arguments"}}));
    let error = refused.error();
    let ids = [&done, &refused].map(|reply| reply.answer.header("x-request-id").unwrap().to_owned());

    let (ended, _) = world.stop();
    let lines = lines(&ended.stderr);
    let [first, second] = lines.as_slice() else { panic!("two lines: {}", ended.stderr) };
    assert_eq!((&first["call_id"], &first["request_id"]), (&body["invocation_id"], &json!(ids[0])));
    assert_eq!((&first["tenant"], &first["agent"]), (&json!("default"), &json!("billing")));
    assert_eq!((&first["tool"], &first["outcome"]), (&json!("payments.charges.read"), &json!("success")), "{first}");
    let stages =
        ["identify", "resolve", "authorize", "constrain", "guard", "approve", "admit", "execute", "inspect", "settle"];
    let sum: u64 = stages.iter().map(|stage| number(first, &format!("{stage}_us"))).sum();
    let total = number(first, "duration_us");
    assert!(sum <= total + 10 && total <= sum + 20, "the stages are the call: {first}");
    assert!(number(first, "admission_commit_us") <= number(first, "admit_us"));
    assert!(number(first, "settlement_commit_us") <= number(first, "settle_us"));
    assert_eq!((first.get("code"), first.get("stage")), (None, None));

    assert_eq!((&second["outcome"], &second["request_id"]), (&json!("denied"), &json!(ids[1])));
    assert_eq!((&second["code"], &second["stage"]), (&error["code"], &error["stage"]), "{second}");
    assert_eq!((&second["tool"], second.get("execute_us")), (&json!("payments.nothing"), None));
    let logged = format!("{first} {second}");
    for secret in [TOKEN, "geheim-in-arguments", &shop.agent.key, "Bearer"] {
        assert!(!logged.contains(secret), "{secret} in {logged}");
    }
}

#[test]
fn only_refusals_are_logged_where_nothing_else_is_said_and_no_flood_of_them() {
    let world = World::of(&setup().reaching_loopback().environment("TOOLGATE_AUDIT_REFUSALS_PER_SECOND", "1"), None);
    let shop = Shop::open(&world);
    shop.grant(json!({}));
    shop.agent.invokes(read(json!({}))).ok();
    let tool = "payments.\u{202e}\u{1b}[31m";
    for _ in 0..30 {
        shop.agent.invokes(json!({"tool": tool, "parameters": {}})).error();
    }
    let approval = shop.agent.invokes(json!({"tool": "payments.nothing", "parameters": {}}));
    assert!(text(&approval.error(), "/code").len() > 3);
    let (ended, _) = world.stop();
    let lines = lines(&ended.stderr);
    assert!(!lines.is_empty() && lines.len() < 20, "ten at once and one a second: {}", lines.len());
    assert!(lines.iter().all(|line| line["outcome"] == "denied"), "{lines:?}");
    assert!(!ended.stderr.contains('\u{1b}'), "what a caller writes is escaped");
}

#[test]
fn nothing_is_logged_of_calls_where_the_operator_says_so() {
    let world = World::of(&setup().reaching_loopback().environment("TOOLGATE_LOG_CALLS", "off"), None);
    let shop = Shop::open(&world);
    shop.call("payments.nothing", json!({})).error();
    let (ended, _) = world.stop();
    assert_eq!(lines(&ended.stderr), Vec::<Value>::new());
}
