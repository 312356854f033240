//! What rules can see of a call, and that a call is refused where a rule reads what cannot be shown to it.

use serde_json::{Value, json};

use super::office::{Office, call, call_with};
use crate::world::{World, on_both_engines, text};

on_both_engines! {
    an_argument_that_a_rule_reads_and_that_cannot_be_shown_to_it_refuses,
    a_rule_that_cannot_be_computed_refuses_and_tells_no_value,
    a_rule_sees_why_the_agent_makes_a_call,
    a_rule_sees_who_acts_from_where_in_which_session_and_when,
    a_rule_sees_how_much_was_called_and_spent_in_an_execution,
    a_rule_about_the_result_sees_it_and_the_arguments,
}

fn when(condition: &str) -> String {
    format!(
        "@id(\"rule\")\nforbid (principal, action == Action::\"call:desk.note\", resource)\nwhen {{ {condition} }};"
    )
}

fn an_argument_that_a_rule_reads_and_that_cannot_be_shown_to_it_refuses(world: &World) {
    let office = Office::open(world);
    office.applies(&when("context.arguments has count && context.arguments.count > 100"));
    let beyond = json!({"count": 9_223_372_036_854_775_808_u64});
    let error = office.call("note", beyond.clone()).refused(403, "POLICY_UNEVALUABLE");
    assert_eq!((&error["policy_id"], &error["policy_version"]), (&json!("rule"), &json!("1")), "{error}");
    let reason = text(&error, "/message");
    assert!(reason.contains("`count`") && !reason.contains("9223372036854775808"), "{reason}");
    assert_eq!(office.desk.count(), 0);
    office.call("note", json!({"count": 100})).ok();
    office.call("note", json!({"count": 101})).refused(403, "POLICY_DENIED");
    // Where no rule reads it, it is nobody's business.
    office.call("send", beyond.clone()).ok();
    office.applies(&when("context.arguments has text"));
    office.call("note", beyond).ok();
}

fn a_rule_that_cannot_be_computed_refuses_and_tells_no_value(world: &World) {
    let office = Office::open(world);
    office.applies(&when("context.arguments has count && context.arguments.count + 1 > 100"));
    let error = office.call("note", json!({"count": i64::MAX})).refused(403, "POLICY_UNEVALUABLE");
    let reason = text(&error, "/message");
    assert!(reason.contains("integer overflow") && !reason.contains(&i64::MAX.to_string()), "{reason}");
    office.call("note", json!({"count": 1})).ok();
    assert_eq!(office.desk.count(), 1);
    // In shadow it would have been a refusal, and changes nothing.
    office.applies(&format!(
        "@mode(\"shadow\")\n{}",
        when("context.arguments has count && context.arguments.count + 1 > 9")
    ));
    let reply = office.call("note", json!({"count": i64::MAX}));
    reply.ok();
    assert_eq!(office.decisions(&reply)[0]["shadow"][0]["verdict"], "deny");
}

fn a_rule_sees_why_the_agent_makes_a_call(world: &World) {
    let office = Office::open(world);
    office.applies(&when("context has reasoning && context.reasoning like \"*send it all to*\""));
    let note = |reasoning: &str| {
        office.agent.invokes(call_with("note", json!({"text": "x"}), json!({"reasoning": reasoning})))
    };
    note("the user wants a note").ok();
    note("the page says to send it all to somebody").refused(403, "POLICY_DENIED");
    office.note("x").ok();
    assert!(!json!(office.admin.events("")).to_string().contains("send it all to"), "the log has the reasoning");
    note(&"x".repeat(8 * 1024 + 1)).refused(400, "INVALID_FIELD");
}

fn a_rule_sees_who_acts_from_where_in_which_session_and_when(world: &World) {
    let office = Office::open(world);
    office.admin.patch("/api/v1/agents/clerk", &json!({"labels": ["apprentice"]})).ok();
    let as_host =
        |text: &str| office.host.invokes(call_with("note", json!({"text": text}), json!({"agent_id": "clerk"})));
    for (is_true, is_false) in [
        ("context.address.isLoopback()", "context.address.isInRange(ip(\"10.0.0.0/8\"))"),
        ("principal.labels.contains(\"apprentice\")", "principal in Label::\"master\""),
        ("context.time.now > datetime(\"2026-01-01\")", "context.time.now < datetime(\"2026-01-01\")"),
        (
            "context.time.hour >= 0 && context.time.hour < 24 && context.time.minute < 60",
            "context.time.hour > 23 || context.time.weekday == \"someday\" || context.time.date == \"2026-01-01\"",
        ),
        ("context.dialect == \"native\"", "context has user"),
        ("resource.tier == \"write\" && !resource.idempotent", "resource.labels.contains(\"private-data\")"),
        ("context.actor == Principal::\"clerk\"", "context.actor == Principal::\"host\""),
        ("principal.kind == \"agent\"", "context has session && context.session == \"s-1\""),
    ] {
        office.applies(&when(is_true));
        office.note("x").refused(403, "POLICY_DENIED");
        office.applies(&when(is_false));
        office.note("x").ok();
    }
    office.applies(&when("context.actor == Principal::\"host\" && principal == Principal::\"clerk\""));
    as_host("x").refused(403, "POLICY_DENIED");
    office.note("x").ok();
    office.applies(&when("context has session && context.session == \"s-1\""));
    let in_session = json!({"approval_session": {"name": "s-1"}});
    office.agent.invokes(call_with("note", json!({"text": "x"}), in_session)).refused(403, "POLICY_DENIED");
}

fn a_rule_sees_how_much_was_called_and_spent_in_an_execution(world: &World) {
    let office = Office::open(world);
    // The host names the runs: one that the agent names itself would count with its whole day.
    let note = |run: &str| {
        let more = json!({"agent_id": "clerk", "context": {"run_id": run}});
        office.host.invokes(call_with("note", json!({"text": "x"}), more)).status()
    };
    // A note costs two cents.
    office.applies(&when("context.spent.run.greaterThanOrEqual(decimal(\"0.06\"))"));
    assert_eq!([note("a"), note("a"), note("a"), note("a"), note("b")], [200, 200, 200, 403, 200]);
    office.applies(&when("context has run && context.calls.run >= 2"));
    assert_eq!([note("c"), note("c"), note("c"), note("d")], [200, 200, 403, 200]);
    // What was refused was no call, and cost nothing.
    office.applies(&when("context.calls.run > 2"));
    assert_eq!(note("c"), 200);
    office.applies(&when("context.calls.today >= 0 && context.spent.today.greaterThanOrEqual(decimal(\"0.0\"))"));
    assert_eq!(note("e"), 403);
}

fn a_rule_about_the_result_sees_it_and_the_arguments(world: &World) {
    let office = Office::open(world);
    let result = |condition: &str| {
        format!(
            "@id(\"rule\")\n@reason(\"not for you\")\nforbid (principal, action == Action::\"result:desk.note\", \
             resource)\nwhen {{ {condition} }};"
        )
    };
    let judged = |condition: &str| -> Value {
        office.applies(&result(condition));
        office.agent.invokes(call("note", json!({"text": "lunch"}))).json()
    };
    for condition in [
        "context.result.text like \"*done*\" && !context.result.isError",
        "context.arguments has text && context.arguments.text == \"lunch\"",
    ] {
        let answer = judged(condition);
        assert_eq!(
            (&answer["status"], &answer["error"]["code"]),
            (&json!("error"), &json!("POLICY_DENIED")),
            "{answer}"
        );
        assert_eq!((&answer["result"], &answer["message"]), (&Value::Null, &json!("not for you")), "{answer}");
    }
    let answer = judged("context.result.isError");
    assert_eq!((&answer["status"], &answer["result"]), (&json!("success"), &json!({"done": true})), "{answer}");
    assert_eq!(office.desk.count(), 3, "the service was called every time");
}
