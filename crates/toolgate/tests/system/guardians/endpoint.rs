//! The gate as the guardian of somebody else's agent, which asks at every hook of the specification's table and checks
//! each answer itself.

use serde_json::{Value, json};

use super::office::{Office, decisions, open};
use super::third_party::{ThirdParty, walk};
use crate::world::{Actor, World, on_both_engines, send};

on_both_engines! {
    an_agent_of_somebody_else_is_answered_rightly_at_every_hook,
    a_tool_of_the_gate_is_none_of_somebody_elses_whoever_asks_and_however_it_is_written,
    an_agent_asks_only_about_itself_unless_it_may_act_for_others,
    what_is_no_question_gets_the_error_of_json_rpc,
}

/// The hooks of the specification's table, with those about tools and messages in each of their kinds.
const HOOKS: [&str; 21] = [
    "agent_trigger",
    "user_message",
    "memory_context_retrieval",
    "knowledge_retrieval",
    "tool_call_request",
    "tool_call_result",
    "mcp_outbound",
    "mcp_inbound",
    "a2a_send",
    "a2a_stream",
    "a2a_cancel",
    "a2a_get_task",
    "a2a_set_notification",
    "a2a_get_notification",
    "a2a_resubscribe",
    "a2a_send_1_0",
    "a2a_get_task_1_0",
    "a2a_cancel_1_0",
    "memory_store",
    "agent_response",
    "system_message",
];

fn an_agent_of_somebody_else_is_answered_rightly_at_every_hook(world: &World) {
    let (mail, _, agent) = open(world);
    let walked =
        walk(&world.gate.url(), &agent, &["--tool", "mail.send", "--inputs", r#"{"to": "team", "body": "hello"}"#]);
    assert!(walked.right, "{:?}", walked.lines);
    let hooks: Vec<_> = walked.lines.iter().map(|line| line["hook"].as_str().unwrap()).collect();
    assert_eq!(hooks, [&["ping"], HOOKS.as_slice()].concat());
    for hook in HOOKS {
        assert_eq!(walked.line(hook)["decision"], "allow", "{}", walked.line(hook));
    }
    assert_eq!(mail.count(), 0, "whoever asks carries it out");
}

fn a_tool_of_the_gate_is_none_of_somebody_elses_whoever_asks_and_however_it_is_written(world: &World) {
    let (_, _, agent) = open(world);
    let stranger = world.agent("stranger", &["tools.invoke"]);
    let asked = |who: &Actor, tool: &str| {
        let question = json!({"jsonrpc": "2.0", "id": 1, "method": "steps/toolCallRequest", "params": {
            "toolCallRequest": {"executionId": "e", "toolId": tool, "inputs": [{"name": "to", "value": "team"}]},
            "context": {"agent": {"id": who.id}},
        }});
        let answer = who.post("/v1/hooks/aos", &question).ok();
        answer["result"]["decision"].as_str().unwrap_or_default().to_owned()
    };
    for tool in ["mail.send", "connector:mail.send"] {
        assert_eq!(asked(&agent, tool), "allow", "{tool}: who has the grant");
        assert_eq!(asked(&stranger, tool), "deny", "{tool}: who has none");
    }
    for tool in ["MAIL.send", " mail.send", "mail.send\u{200b}", "\u{ff4d}ail.send"] {
        assert_eq!(asked(&agent, tool), "deny", "{tool:?}: who has the grant, and could not call it so either");
        assert_eq!(asked(&stranger, tool), "deny", "{tool:?}: who has none");
    }
    for tool in ["mail.nothing", "toolgate-workspace.Bash"] {
        assert_eq!(asked(&stranger, tool), "deny", "{tool}: a service of the gate has no unknown tools");
    }
}

fn an_agent_asks_only_about_itself_unless_it_may_act_for_others(world: &World) {
    let (_, admin, _) = open(world);
    let other = world.agent("other", &["tools.invoke"]);
    let posing = world.actor("clerk", &other.key);
    let walked = walk(&world.gate.url(), &posing, &["--tool", "mail.send"]);
    assert!(walked.right, "a no is a right answer: {:?}", walked.lines);
    for hook in HOOKS {
        let line = walked.line(hook);
        assert_eq!((&line["decision"], &line["performed"]), (&json!("deny"), &Value::Null), "{line}");
    }
    assert!(decisions(&admin).iter().all(|decision| decision["effective"] == "deny"));
    let allowed = admin.registers_as(&json!({
        "id": "runtime", "kind": "service", "permissions": ["tools.invoke", "agents.act_as"],
    }));
    let speaking = world.actor("clerk", &allowed.key);
    let walked = walk(&world.gate.url(), &speaking, &["--tool", "mail.send", "--inputs", r#"{"to": "team"}"#]);
    assert!(walked.lines.iter().all(|line| line["decision"] != "deny"), "{:?}", walked.lines);
}

fn what_is_no_question_gets_the_error_of_json_rpc(world: &World) {
    let (_, _, agent) = open(world);
    let key = format!("Bearer {}", agent.key);
    let headers = [("Authorization", key.as_str()), ("Content-Type", "application/json")];
    let ask = |body: &str| send(world.gate.address(), "POST", "/v1/hooks/aos", &headers, body.as_bytes());
    for (body, code) in [
        ("{", -32700),
        ("[]", -32600),
        ("7", -32600),
        (r#"{"jsonrpc": "1.0", "id": 1, "method": "ping"}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "steps/nothing", "params": {}}"#, -32601),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "steps/memoryStore", "params": {}}"#, -32602),
    ] {
        let answer = ask(body).ok();
        assert_eq!(answer["error"]["code"], code, "{body}: {answer}");
        assert!(answer.get("result").is_none() && answer["jsonrpc"] == "2.0", "{body}: {answer}");
    }
    send(world.gate.address(), "POST", "/v1/hooks/aos", &[], b"{}").expect(401);
}

#[test]
fn what_one_third_party_asks_another_answers_through_the_gate() {
    let guardian = ThirdParty::start(json!([{"do": "deny", "reason": "not today"}]));
    let office = Office::with(&guardian, "");
    let walked =
        walk(&office.world.gate.url(), &office.agent, &["--tool", "mail.send", "--inputs", r#"{"to": "team"}"#]);
    assert!(walked.right, "{:?}", walked.lines);
    for hook in HOOKS {
        let line = walked.line(hook);
        assert_eq!((&line["decision"], &line["performed"]), (&json!("deny"), &Value::Null), "{line}");
        assert!(line["message"].as_str().unwrap().ends_with("denied this: not today"), "{line}");
        assert_eq!(line["reasonCode"], json!(["guardian_denied"]), "{line}");
    }
    assert_eq!(guardian.questions().len(), HOOKS.len());
    let decided = decisions(&office.admin);
    assert_eq!(decided.len(), HOOKS.len(), "each was written down");
    assert!(decided.iter().all(|one| one["effective"] == "deny" && one["dialect"] == "aos"), "{decided:?}");
    assert!(!json!(guardian.questions()).to_string().contains(&office.agent.key));
}

#[test]
fn a_change_by_one_third_party_reaches_the_other_through_the_gate() {
    let guardian = ThirdParty::start(json!([{"do": "modify"}]));
    let office = Office::with(&guardian, "may_modify = true");
    let key = &office.agent.key;
    let inputs = json!({"body": "by ann@example.org", "password": key}).to_string();
    let walked = walk(&office.world.gate.url(), &office.agent, &["--tool", "mail.send", "--inputs", &inputs]);
    assert!(walked.right, "{:?}", walked.lines);
    let line = walked.line("tool_call_request");
    assert_eq!(line["decision"], "modify");
    let inputs = json!([{"name": "body", "value": "by [REDACTED-PII]"}, {"name": "password", "value": key}]);
    assert_eq!(line["performed"]["inputs"], inputs, "what the guardian was not shown stays as it was: {line}");
    let questions = json!(guardian.asked_about("steps/toolCallRequest")).to_string();
    assert!(!questions.contains(key), "{questions}");
}
