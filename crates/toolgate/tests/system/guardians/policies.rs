//! The gate's own policies over AOS: what they deny, take out or ask a person about comes out rightly in the agent of
//! somebody else.

use serde_json::{Value, json};
use toolgate_testkit::upstream::Upstream;

use super::office::{Office, TOKEN, decisions, open};
use super::third_party::walk;
use crate::world::{Actor, World, on_both_engines, text, until};

on_both_engines! {
    what_a_policy_denies_is_denied_with_its_reason_and_its_name,
    what_a_policy_takes_out_is_taken_out_at_every_hook,
    what_a_policy_asks_about_is_held_until_a_person_has_answered,
    the_same_policies_hold_for_calls_that_the_gate_makes_itself,
    another_runtime_does_not_learn_the_credential_from_what_a_policy_takes_out,
}

const POLICIES: &str = r#"
@id("nothing-to-the-press")
@reason("the press is not written to")
forbid (principal, action == Action::"call:mail.send", resource)
when { context.arguments has to && context.arguments.to == "press" };

@id("addresses-are-taken-out")
@reason("an address was taken out")
@remedy("redact")
@fields("*")
@detectors("email")
forbid (principal, action in Action::"call", resource);

@id("addresses-are-taken-out-of-what-is-kept")
@reason("an address was taken out")
@remedy("redact")
@detectors("email")
forbid (principal, action in Action::"hook", resource);

@id("the-board-is-asked-about")
@reason("a mail to the board")
@remedy("ask")
@within("15m")
forbid (principal, action == Action::"call:mail.send", resource)
when { context.arguments has to && context.arguments.to == "board" };
"#;

/// A mail service, its administrator, an agent, a person who answers, and these policies.
fn open_with_policies(world: &World) -> (Upstream, Actor, Actor, Actor) {
    let (mail, admin, agent) = open(world);
    let clerk = lay_down_policies(&admin);
    (mail, admin, agent, clerk)
}

/// Applies the policies; answers a person who answers.
fn lay_down_policies(admin: &Actor) -> Actor {
    let files = json!([{"name": "mail.cedar", "text": POLICIES}]);
    admin.ask("PUT", "/api/v1/policies", Some(&json!({"files": files}))).ok();
    admin.registers_as(&json!({"id": "ann", "kind": "user", "permissions": ["approvals.decide"]}))
}

fn mail_to(to: &str, body: &str) -> Vec<String> {
    let inputs = json!({"to": to, "body": body}).to_string();
    ["--hook", "tool_call_request", "--tool", "mail.send", "--inputs", &inputs].map(str::to_owned).to_vec()
}

fn asks(gate: &str, agent: &Actor, to: &str, body: &str) -> Value {
    let arguments = mail_to(to, body);
    let walked = walk(gate, agent, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(walked.right, "{:?}", walked.lines);
    walked.line("tool_call_request").clone()
}

fn pending(clerk: &Actor) -> Option<Value> {
    clerk.get("/api/v1/approvals?status=pending").ok()["approvals"].get(0).cloned()
}

fn what_a_policy_denies_is_denied_with_its_reason_and_its_name(world: &World) {
    let (_mail, admin, agent, _) = open_with_policies(world);
    let line = asks(&world.gate.url(), &agent, "press", "hello");
    assert_eq!((&line["decision"], &line["performed"]), (&json!("deny"), &Value::Null), "{line}");
    assert_eq!(line["policyId"], "nothing-to-the-press", "{line}");
    assert!(line["message"].as_str().unwrap().contains("the press is not written to"), "{line}");
    assert_eq!(line["reasonCode"], json!(["policy_denied"]), "{line}");
    let decided = decisions(&admin);
    let [decision] = decided.as_slice() else { panic!("one decision: {decided:?}") };
    assert_eq!((&decision["effective"], &decision["dialect"]), (&json!("deny"), &json!("aos")));
    assert_eq!(decision["policy_version"], 1);
}

fn what_a_policy_takes_out_is_taken_out_at_every_hook(world: &World) {
    let (_mail, _, agent, _) = open_with_policies(world);
    let line = asks(&world.gate.url(), &agent, "team", "from ann@example.org");
    assert_eq!(line["decision"], "modify", "{line}");
    assert!(!line["performed"].to_string().contains("ann@example.org"), "{line}");
    assert!(line["performed"].to_string().contains("team"), "{line}");
    let memory = json!({
        "jsonrpc": "2.0", "id": 1, "method": "steps/memoryStore",
        "params": {"memory": ["ann@example.org called", "nothing else"], "context": {"agent": {"id": "clerk"}}},
    });
    let answer = agent.post("/v1/hooks/aos", &memory).ok();
    assert_eq!(answer["result"]["decision"], "modify", "{answer}");
    let kept = &answer["result"]["modifiedRequest"]["params"]["memory"];
    assert_eq!(kept[1], "nothing else");
    assert!(!kept.to_string().contains("ann@example.org"), "{answer}");
}

fn what_a_policy_asks_about_is_held_until_a_person_has_answered(world: &World) {
    let (_mail, _, agent, clerk) = open_with_policies(world);
    let gate = world.gate.url();
    for (decision, told) in [("approve", "modify"), ("deny", "deny")] {
        let line = std::thread::scope(|scope| {
            let asking = scope.spawn(|| asks(&gate, &agent, "board", "from ann@example.org"));
            let approval = until("a question that waits", || pending(&clerk));
            assert!(!approval["arguments"].to_string().contains("ann@example.org"), "{approval}");
            assert_eq!(approval["original_arguments"]["body"], "from ann@example.org");
            assert!(approval["reasons"].to_string().contains("a mail to the board"), "{approval}");
            clerk.decides(text(&approval, "/id"), decision, json!({})).ok();
            asking.join().unwrap()
        });
        assert_eq!(line["decision"], told, "{line}");
        assert_eq!(line["performed"].is_null(), told == "deny", "{line}");
        assert!(line["data"]["approvalId"].is_string(), "{line}");
    }
}

fn the_same_policies_hold_for_calls_that_the_gate_makes_itself(world: &World) {
    let (mail, _, agent, _) = open_with_policies(world);
    let send =
        |to: &str| agent.invokes(json!({"tool": "mail.send", "parameters": {"to": to, "body": "by ann@example.org"}}));
    let error = send("press").refused(403, "POLICY_DENIED");
    assert_eq!(error["policy_id"], "nothing-to-the-press");
    assert_eq!(mail.count(), 0);
    send("team").ok();
    assert!(!mail.received()[0].text().contains("ann@example.org"));
}

#[test]
fn a_runtime_that_is_not_held_is_told_which_approval_to_wait_for_and_is_then_allowed_once() {
    let office = Office::agreed("[[caller]]\nid = \"clerk\"\nask = \"deny\"\n");
    let clerk = lay_down_policies(&office.admin);
    let gate = office.world.gate.url();
    // The same conversation, or it would be another question.
    let inputs = json!({"to": "board", "body": "hello"}).to_string();
    let arguments = ["--hook", "tool_call_request", "--session", "s-1", "--tool", "mail.send", "--inputs", &inputs];
    let asks = || {
        let walked = walk(&gate, &office.agent, &arguments);
        assert!(walked.right, "{:?}", walked.lines);
        walked.line("tool_call_request").clone()
    };
    let first = asks();
    assert_eq!((&first["decision"], &first["reasonCode"]), (&json!("deny"), &json!(["approval_required"])), "{first}");
    let approval = first["data"]["approvalId"].as_str().unwrap().to_owned();
    assert_eq!(asks()["data"]["approvalId"], approval.as_str(), "nobody is asked twice");
    clerk.decides(&approval, "approve", json!({})).ok();
    let allowed = until("an answer that rests on the approval", || {
        let line = asks();
        (line["decision"] != "deny").then_some(line)
    });
    assert_eq!(
        (&allowed["decision"], &allowed["data"]["approvalId"]),
        (&json!("allow"), &json!(approval)),
        "{allowed}"
    );
    let again = asks();
    assert_eq!(again["decision"], "deny", "it was good for once: {again}");
    assert_ne!(again["data"]["approvalId"], approval.as_str(), "{again}");
}

#[test]
fn a_runtime_that_is_not_held_cannot_bury_the_approver() {
    let office = Office::agreed("[hooks]\nask = \"deny\"\n");
    let clerk = lay_down_policies(&office.admin);
    let credential = text(&office.admin.get("/api/v1/grants").ok(), "/grants/0/credential_id").to_owned();
    let busy = office.world.agent("busy", &["tools.invoke"]);
    let rated = json!({"scopes": ["send"], "constraints": {"max_invocations_per_hour": 5}});
    office.admin.grants(&credential, "busy", rated);
    let asks = |tool: &str, number: usize| {
        let inputs = json!([{"name": "to", "value": "board"}, {"name": "body", "value": number.to_string()}]);
        let question = json!({"jsonrpc": "2.0", "id": 1, "method": "steps/toolCallRequest", "params": {
            "toolCallRequest": {"executionId": "e", "toolId": tool, "inputs": inputs},
            "context": {"agent": {"id": "busy"}},
        }});
        let result = busy.post("/v1/hooks/aos", &question).ok()["result"].clone();
        assert_eq!(result["decision"], "deny", "{result}");
        text(&result, "/reasonCode/0").to_owned()
    };
    let open = || clerk.get("/api/v1/approvals?status=pending&limit=100").ok()["approvals"].as_array().unwrap().len();
    for number in 0..5 {
        assert_eq!(asks("mail.send", number), "approval_required");
    }
    for number in 5..50 {
        assert_eq!(asks("mail.send", number), "grant_rate_limited", "calls that wait count");
    }
    assert_eq!(open(), 5);
    for number in 0..50 {
        let expected = if number < 15 { "approval_required" } else { "too_many_approvals" };
        assert_eq!(asks("browser.search", number), expected, "{number}");
    }
    assert_eq!(open(), 20);
}

#[test]
fn a_runtime_that_wants_fragments_is_told_only_what_changed() {
    let office = Office::agreed("[hooks]\nmodified_request = \"fragment\"\n");
    lay_down_policies(&office.admin);
    let inputs = json!({"to": "team", "body": "from ann@example.org"}).to_string();
    let arguments = ["--fragments", "--hook", "tool_call_request", "--tool", "mail.send", "--inputs", &inputs];
    let walked = walk(&office.world.gate.url(), &office.agent, &arguments);
    assert!(walked.right, "{:?}", walked.lines);
    let line = walked.line("tool_call_request");
    assert_eq!((&line["decision"], &line["performed"]["toolId"]), (&json!("modify"), &json!("mail.send")), "{line}");
    assert!(!line["performed"].to_string().contains("ann@example.org"), "{line}");
}

#[test]
fn a_runtime_may_be_denied_tools_that_the_gate_does_not_know() {
    let office = Office::agreed("[hooks]\nunknown_tools = \"deny\"\n");
    let gate = office.world.gate.url();
    let asks = |tool: &str, inputs: &str| {
        let arguments = ["--hook", "tool_call_request", "--tool", tool, "--inputs", inputs];
        walk(&gate, &office.agent, &arguments).line("tool_call_request").clone()
    };
    assert_eq!(asks("somebody.elses", "{}")["reasonCode"], json!(["tool_not_found"]));
    assert_eq!(asks("mail.send", r#"{"to": "team"}"#)["decision"], "allow");
}

fn another_runtime_does_not_learn_the_credential_from_what_a_policy_takes_out(world: &World) {
    let (_, admin, agent) = open(world);
    let rule = r#"@id("secrets") @remedy("redact") @detectors("secret") forbid (principal, action, resource);"#;
    let files = json!([{"name": "mail.cedar", "text": rule}]);
    admin.ask("PUT", "/api/v1/policies", Some(&json!({"files": files}))).ok();
    let asked = |body: &str| {
        let inputs = json!([{"name": "to", "value": "team"}, {"name": "body", "value": body}]);
        let question = json!({"jsonrpc": "2.0", "id": 1, "method": "steps/toolCallRequest", "params": {
            "toolCallRequest": {"executionId": "e", "toolId": "mail.send", "inputs": inputs},
            "context": {"agent": {"id": agent.id}},
        }});
        agent.post("/v1/hooks/aos", &question).ok()["result"]["decision"].clone()
    };
    assert_eq!(asked("six green bottles on the wall"), "allow");
    assert_eq!(asked(TOKEN), "allow", "as with any other guess");
    assert_eq!(asked("sk_live_4eC39HqLyjWDarjtT1zdp7dc"), "modify", "what has the shape of a secret is taken out");
}
