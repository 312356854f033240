//! A guardian's change: the service gets the changed form, whoever approves sees both, and nothing is changed that must
//! not be.

use serde_json::{Value, json};

use super::office::{Office, said};
use super::third_party::ThirdParty;
use crate::world::{text, until};

const MAY_MODIFY: &str = "may_modify = true";

fn redacted() -> Value {
    json!({"to": "team", "body": "write to [REDACTED-PII]"})
}

#[test]
fn the_service_gets_what_the_guardian_made_of_the_call_in_either_form() {
    for rule in [
        json!({"do": "modify", "reason": "an address was taken out"}),
        json!({"do": "modify", "reason": "an address was taken out", "form": "fragment"}),
        json!({"do": "modify", "reason": "an address was taken out", "dialect": "joch"}),
    ] {
        let guardian = ThirdParty::start(json!([rule]));
        let office = Office::with(&guardian, MAY_MODIFY);
        let reply = office.send("write to ann@example.org");
        reply.ok();
        assert_eq!(office.sent(), [redacted()], "{rule}");
        let decision = office.decision(&reply);
        assert_eq!(decision["effective"], "modify", "{rule}");
        assert_ne!(decision["hash_before"], decision["hash_after"], "{rule}");
        assert!(decision["hash_after"].is_string(), "{rule}");
        let said = said(&decision, "security");
        assert_eq!((&said["verdict"], &said["reason"]), (&json!("modify"), &json!("an address was taken out")));
        assert_eq!(office.record(&reply)["parameters"], redacted(), "{rule}");
    }
}

#[test]
fn whoever_approves_sees_both_forms_and_the_changed_one_runs() {
    let guardian = ThirdParty::start(json!([{"do": "modify"}]));
    let office = Office::with(&guardian, MAY_MODIFY);
    let clerk = office.admin.registers_as(&json!({"id": "ann", "kind": "user", "permissions": ["approvals.decide"]}));
    let agent = office.agent.clone();
    let original = json!({"to": "team", "body": "write to ann@example.org"});
    let body = json!({"tool": "mail.sign", "parameters": original});
    let call = std::thread::spawn(move || agent.invokes(body));
    let approval = until("a call that waits", || {
        let list = clerk.get("/api/v1/approvals?status=pending").ok();
        list["approvals"].get(0).cloned()
    });
    assert_eq!(approval["arguments"], redacted());
    assert_eq!(approval["original_arguments"], original);
    assert_eq!(office.mail.count(), 0);
    clerk.decides(text(&approval, "/id"), "approve", json!({})).ok();
    let reply = call.join().unwrap();
    reply.ok();
    assert_eq!(office.sent(), [redacted()]);
    let decision = office.decision(&reply);
    assert_eq!((&decision["effective"], &decision["approval_id"]), (&json!("modify"), &approval["id"]));
}

#[test]
fn a_guardian_that_may_not_change_anything_is_refused_and_says_no_by_it() {
    let guardian = ThirdParty::start(json!([{"do": "modify"}]));
    let office = Office::with(&guardian, "on_failure = \"allow\"");
    let error = office.send("write to ann@example.org").refused(503, "GUARDIAN_FAILED");
    assert_eq!(error["failure"], "modify_not_allowed");
    office.send("write to nobody").ok();
    assert_eq!(office.mail.count(), 1);
}

#[test]
fn a_change_of_the_tool_or_of_the_agent_is_refused_whatever_a_failure_means() {
    for change in ["other_tool", "other_agent"] {
        for on_failure in ["deny", "allow"] {
            let guardian = ThirdParty::start(json!([{"do": change}]));
            let office = Office::with(&guardian, &format!("{MAY_MODIFY}\non_failure = \"{on_failure}\""));
            let reply = office.send("write to ann@example.org");
            let error = reply.refused(503, "GUARDIAN_FAILED");
            assert_eq!(error["failure"], "identity_change", "{change}, {on_failure}");
            assert_eq!(office.mail.count(), 0, "{change}, {on_failure}");
        }
    }
}

#[test]
fn a_change_is_held_to_the_schema_like_what_the_agent_sent() {
    let rules = |body: Value| json!([{"do": "modify", "method": "steps/toolCallRequest", "set": {"body": body}}]);
    let guardian = ThirdParty::start(rules(json!(7)));
    let office = Office::with(&guardian, MAY_MODIFY);
    for wrong in [json!(7), json!("x".repeat(201))] {
        guardian.follow(&rules(wrong));
        let error = office.send("hello").error();
        assert_ne!(error["code"], "GUARDIAN_DENIED", "{error}");
    }
    assert_eq!(office.mail.count(), 0);
    guardian.follow(&rules(json!("goodbye")));
    office.send("hello").ok();
    assert_eq!(office.sent(), [json!({"to": "team", "body": "goodbye"})]);
}
