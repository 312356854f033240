//! The starter set, from the folder that the command line writes to calls of a real service.

use serde_json::{Value, json};

use super::office::{KEY, Office, Waiting, call, call_with};
use super::terminal::Terminal;
use crate::world::{Reply, World, on_both_engines, text};

on_both_engines! {
    the_starter_set_is_written_checked_tested_and_applied_by_the_command_line,
    a_secret_in_an_argument_never_reaches_the_service_and_the_call_goes_on,
    a_secret_in_a_result_never_reaches_the_agent,
    a_command_asks_and_runs_after_approval_as_whoever_approved_saw_it,
    a_write_after_text_of_strangers_asks_and_reading_goes_on,
    nothing_is_sent_outside_after_private_data_and_text_of_strangers,
    an_agent_that_names_another_session_itself_does_not_shed_its_marks,
    sessions_that_a_host_names_for_the_agent_are_separate,
}

/// An office under the starter set, which was applied as people do it.
fn open(world: &World) -> Office {
    let office = Office::open(world);
    let terminal = Terminal::of(world, &office.admin);
    terminal.reads(&["policy", "init", "policies"]);
    terminal.reads(&["policy", "apply", "policies", "--yes"]);
    office
}

/// A message of the host in the name of the agent, in this conversation.
fn in_session(tool: &str, session: &str) -> Value {
    let parameters = if tool == "note" || tool == "send" { json!({"to": "team"}) } else { json!({}) };
    call_with(tool, parameters, json!({"agent_id": "clerk", "approval_session": {"name": session}}))
}

#[track_caller]
fn denied_by(reply: &Reply, policy: &str) {
    let error = reply.refused(403, "POLICY_DENIED");
    assert_eq!((&error["policy_id"], &error["policy_version"]), (&json!(policy), &json!("1")), "{error}");
    assert_eq!(error["stage"], "guard", "{error}");
}

fn the_starter_set_is_written_checked_tested_and_applied_by_the_command_line(world: &World) {
    let office = Office::open(world);
    let terminal = Terminal::of(world, &office.admin);
    assert!(terminal.reads(&["policy", "init", "policies"]).contains("toolgate policy check policies"));
    assert!(terminal.fails(&["policy", "init", "policies"]).contains("policies"), "nothing is written over");
    let checked = terminal.reads(&["policy", "check", "policies"]);
    assert!(checked.ends_with("no problems\n"), "{checked}");
    let tested = terminal.reads(&["policy", "test", "policies"]);
    assert!(tested.ends_with(" tests, 0 failed\n") && tested.contains("a command asks"), "{tested}");
    let made = terminal.gets(&["policy", "apply", "policies", "--yes", "--note", "the first day"]);
    assert_eq!((&made["version"], &made["note"]), (&json!(1), &json!("the first day")));
    let shown = terminal.reads(&["policy", "show"]);
    for rule in ["exec-asks", "secrets-are-redacted", "untrusted-sessions-ask", "no-way-out-with-private-data"] {
        assert!(shown.contains(rule), "{shown}");
    }
    let again = terminal.reads(&["policy", "apply", "policies", "--yes"]);
    assert!(again.contains("nothing was changed"), "{again}");
    assert_eq!(terminal.gets(&["policy", "list"])["versions"].as_array().unwrap().len(), 1);
}

fn a_secret_in_an_argument_never_reaches_the_service_and_the_call_goes_on(world: &World) {
    let office = open(world);
    let reply = office.note(&format!("use {KEY} for it"));
    assert_eq!(reply.ok()["result"], json!({"done": true}));
    let sent = office.sent("note");
    let [note] = sent.as_slice() else { panic!("one note: {sent:?}") };
    let left = text(note, "/text");
    assert!(left.starts_with("use ") && left.ends_with(" for it") && !left.contains(KEY), "{left}");
    let decisions = office.decisions(&reply);
    let request = &decisions[0];
    assert_eq!((&request["effective"], &request["policy_version"]), (&json!("modify"), &json!(1)), "{request}");
    assert_eq!(request["guardians"][0]["policies"][0]["policy_id"], "secrets-are-redacted", "{request}");
    assert!(!json!(office.admin.events("")).to_string().contains(KEY), "the log has it");
    let record = office.admin.get(&format!("/api/v1/invocations/{}", text(&reply.json(), "/invocation_id"))).ok();
    assert!(!record.to_string().contains(KEY), "{record}");
}

fn a_secret_in_a_result_never_reaches_the_agent(world: &World) {
    let office = open(world);
    let reply = office.call("file", json!({}));
    let result = reply.ok()["result"].clone();
    assert_eq!(result["lines"], 1);
    assert!(text(&result, "/text").starts_with("the key is ") && !result.to_string().contains(KEY), "{result}");
    let decisions = office.decisions(&reply);
    let after = decisions.iter().find(|decision| decision["hook"] == "tool_call_result").unwrap();
    assert_eq!(after["effective"], "modify", "{after}");
    assert_eq!(after["guardians"][0]["policies"][0]["policy_id"], "secrets-in-results-are-redacted", "{after}");
}

fn a_command_asks_and_runs_after_approval_as_whoever_approved_saw_it(world: &World) {
    let office = open(world);
    // A command that stays as it is has one form only.
    let Waiting { approval, .. } = &office.asks(call("run", json!({"command": "make"})));
    assert_eq!((&approval["arguments"], &approval["original_arguments"]), (&json!({"command": "make"}), &Value::Null));
    assert!(approval["reasons"].to_string().contains("exec-asks"), "{approval}");
    let waiting = office.asks(call("run", json!({"command": format!("login {KEY}")})));
    let shown = waiting.approval.clone();
    assert_eq!(shown["original_arguments"], json!({"command": format!("login {KEY}")}));
    assert!(!shown["arguments"].to_string().contains(KEY), "{shown}");
    assert_eq!(office.desk.count(), 0, "nothing ran before the answer");
    waiting.decided(&office.ann, "approve").ok();
    assert_eq!(office.sent("run"), [shown["arguments"].clone()]);
    let refused = office.asks(call("run", json!({"command": "make"})));
    refused.decided(&office.ann, "deny").refused(403, "APPROVAL_DENIED");
    assert_eq!(office.desk.count(), 1);
}

fn a_write_after_text_of_strangers_asks_and_reading_goes_on(world: &World) {
    let office = open(world);
    office.note("before").ok();
    office.call("page", json!({})).ok();
    office.call("file", json!({})).ok();
    let waiting = office.asks(call("note", json!({"text": "after"})));
    assert!(waiting.approval["reasons"].to_string().contains("untrusted-sessions-ask"), "{}", waiting.approval);
    assert_eq!(office.sent("note").len(), 1);
    waiting.decided(&office.ann, "approve").ok();
    assert_eq!(office.sent("note").len(), 2);
}

fn nothing_is_sent_outside_after_private_data_and_text_of_strangers(world: &World) {
    let office = open(world);
    let mail = || office.call("send", json!({"to": "team", "text": "hello"}));
    mail().ok();
    office.call("customers", json!({})).ok();
    mail().ok();
    office.call("page", json!({})).ok();
    denied_by(&mail(), "no-way-out-with-private-data");
    assert_eq!(office.sent("send").len(), 2);
    assert!(office.pending().is_empty(), "nobody is asked about it");
}

fn an_agent_that_names_another_session_itself_does_not_shed_its_marks(world: &World) {
    let office = open(world);
    for tool in ["customers", "page"] {
        office.call(tool, json!({})).ok();
    }
    for session in ["one", "another"] {
        denied_by(&office.agent.invokes(in_session("send", session)), "no-way-out-with-private-data");
    }
    assert_eq!(office.sent("send").len(), 0);
}

fn sessions_that_a_host_names_for_the_agent_are_separate(world: &World) {
    let office = open(world);
    // In a session its mode asks about services; but no policy does.
    let approved = |tool: &str, session: &str| {
        let waiting = office.asks_as(&office.host, in_session(tool, session));
        assert!(!waiting.approval["reasons"].to_string().contains("policy"), "{}", waiting.approval);
        waiting.decided(&office.ann, "approve").ok();
    };
    approved("customers", "one");
    approved("page", "one");
    denied_by(&office.host.invokes(in_session("send", "one")), "no-way-out-with-private-data");
    approved("send", "two");
    assert_eq!(office.sent("send").len(), 1);
}
