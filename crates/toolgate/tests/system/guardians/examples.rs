//! The specification's own examples, word for word and in both roles.

use serde_json::{Value, json};
use toolgate_testkit::upstream::{Reply as Answer, Upstream};

use super::office::{Guarding, Office, decisions, said};
use crate::world::{World, on_both_engines, text, until};

on_both_engines! {
    the_request_of_the_specification_is_answered,
}

const REQUEST: &str = include_str!("../../../../dialect/src/aos/tests/examples/request.json");
const DENY: &str = include_str!("../../../../dialect/src/aos/tests/examples/deny.json");
const MODIFY: &str = include_str!("../../../../dialect/src/aos/tests/examples/modify.json");

/// A guardian that gives the specification's answer to every request of a tool, under the id that it was asked with.
fn answering(example: &'static str) -> Upstream {
    Upstream::start(move |question| {
        let mut answer: Value = serde_json::from_str(example).unwrap();
        if question.json()["method"] != "steps/toolCallRequest" {
            answer["result"] = json!({"decision": "allow"});
        }
        answer["id"] = question.json()["id"].clone();
        Answer::json(200, answer)
    })
}

fn office(guardian: &Upstream) -> Office {
    let settings = "may_modify = true";
    let office = Office::with_all(&[Guarding { name: "joch", url: guardian.url(), settings }]);
    office.world.agent("support-triage", &["tools.invoke"]);
    office
}

fn ask(office: &Office) -> Value {
    let request: Value = serde_json::from_str(REQUEST).unwrap();
    let asking = office.admin.post("/api/v1/agents/support-triage/keys", &json!({})).created();
    let agent = office.world.actor("support-triage", asking["key"].as_str().unwrap());
    agent.post("/v1/hooks/aos", &request).ok()
}

fn the_request_of_the_specification_is_answered(world: &World) {
    let agent = world.agent("support-triage", &["tools.invoke"]);
    let clerk = world.admin().registers_as(&json!({"id": "ann", "kind": "user", "permissions": ["approvals.decide"]}));
    // The gate does not know the tool: it is allowed once a person agrees.
    let answer = std::thread::scope(|scope| {
        let asking = scope.spawn(|| agent.post("/v1/hooks/aos", &serde_json::from_str(REQUEST).unwrap()).ok());
        let approval = until("a question that waits", || {
            clerk.get("/api/v1/approvals?status=pending").ok()["approvals"].get(0).cloned()
        });
        assert!(approval["reasons"].to_string().contains("the gate does not know this tool"), "{approval}");
        clerk.decides(text(&approval, "/id"), "approve", json!({})).ok();
        asking.join().unwrap()
    });
    assert_eq!((&answer["jsonrpc"], &answer["result"]["decision"]), (&json!("2.0"), &json!("allow")), "{answer}");
    assert_eq!(answer["id"], "13fa8d6f-8f9f-4d01-ba6b-db99d84d77de");
    let unknown = world.agent("somebody", &["tools.invoke"]);
    let answer = unknown.post("/v1/hooks/aos", &serde_json::from_str(REQUEST).unwrap()).ok();
    assert_eq!(answer["result"]["decision"], "deny", "{answer}");
}

#[test]
fn the_deny_of_the_specification_is_understood_and_passed_on() {
    let guardian = answering(DENY);
    let office = office(&guardian);
    let answer = ask(&office);
    let result = &answer["result"];
    assert_eq!(result["decision"], "deny");
    let reason = "guardian joch denied this: external_write requires approval; approval not granted";
    assert_eq!((&result["reason"], &result["message"]), (&json!(reason), &json!(reason)));
    assert_eq!(result["policyId"], "external-send-requires-approval");
    assert_eq!(result["policyVersion"], "v3");
    let decided = decisions(&office.admin);
    assert_eq!(said(&decided[0], "joch")["reason"], "external_write requires approval; approval not granted");
    let asked = guardian.received()[0].json();
    let tool = asked["params"]["toolCallRequest"]["toolId"].as_str().unwrap();
    assert!(tool.ends_with("c264f381-10cf-4403-bd11-383014c0fcc6"), "{tool}");
    assert_eq!(asked["params"]["reasoning"], "Customer is eligible for refund. I will create a Zendesk ticket.");
    assert_eq!(asked["params"]["context"]["session"]["id"], "84c36ebb-83aa-4bc9-8670-7aba4cedc70f");
}

#[test]
fn the_modify_of_the_specification_is_understood_and_passed_on() {
    let guardian = answering(MODIFY);
    let answer = ask(&office(&guardian));
    let result = &answer["result"];
    assert_eq!(result["decision"], "modify", "{answer}");
    let changed = json!([
        {"name": "subject", "value": "Refund request for order 12345"},
        {"name": "body", "value": "[REDACTED-PII] reported the item never arrived."},
    ]);
    assert_eq!(result["modifiedRequest"]["params"]["toolCallRequest"]["inputs"], changed, "{answer}");
}
