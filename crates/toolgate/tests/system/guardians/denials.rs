//! A guardian's no: the agent is told why, the service is never called, and the log tells who said it.

use serde_json::json;

use super::office::{Office, said};
use super::third_party::ThirdParty;

#[test]
fn a_guardians_no_is_told_with_its_reason_and_the_service_is_never_called() {
    let guardian = ThirdParty::start(json!([{"do": "deny", "reason": "no mail on Sundays"}]));
    let office = Office::with(&guardian, "");
    let reply = office.send("hello");
    let error = reply.refused(403, "GUARDIAN_DENIED");
    assert_eq!(error["message"], "guardian security denied this: no mail on Sundays");
    assert_eq!((&error["stage"], &error["guardian"]), (&json!("guard"), &json!("security")));
    assert_eq!(office.mail.count(), 0);
    let record = office.record(&reply);
    assert_eq!((&record["status"], &record["error"]["code"]), (&json!("denied"), &json!("GUARDIAN_DENIED")));
    let decision = office.decision(&reply);
    assert_eq!((&decision["effective"], &decision["tool"]), (&json!("deny"), &json!("mail.send")));
    let said = said(&decision, "security");
    assert_eq!((&said["verdict"], &said["outcome"]), (&json!("deny"), &json!("enforced")));
    assert_eq!((&said["dialect"], &said["reason"]), (&json!("aos"), &json!("no mail on Sundays")));
    assert_eq!(guardian.questions().len(), 1);
}

#[test]
fn a_no_in_the_words_of_joch_names_the_rule_behind_it() {
    let guardian = ThirdParty::start(json!([{"do": "deny", "dialect": "joch", "reason": "not to strangers"}]));
    let office = Office::with(&guardian, "");
    let reply = office.send("hello");
    let error = reply.refused(403, "GUARDIAN_DENIED");
    assert_eq!(error["message"], "guardian security denied this: not to strangers");
    assert_eq!((&error["policy_id"], &error["policy_version"]), (&json!("third-party"), &json!("v7")));
    let decision = office.decision(&reply);
    let rule = json!([{"policy_id": "third-party", "policy_version": "v7"}]);
    assert_eq!(said(&decision, "security")["policies"], rule);
}

#[test]
fn a_yes_lets_the_call_pass_as_it_is() {
    let guardian = ThirdParty::start(json!([]));
    let office = Office::with(&guardian, "");
    let reply = office.send("hello");
    reply.ok();
    assert_eq!(office.sent(), [json!({"to": "team", "body": "hello"})]);
    let decision = office.decision(&reply);
    assert_eq!(decision["effective"], "allow");
    assert_eq!(decision["hash_after"], json!(null));
    let methods: Vec<_> = guardian.questions().iter().map(|question| question["body"]["method"].clone()).collect();
    assert_eq!(methods, ["steps/toolCallRequest", "steps/toolCallResult"]);
}

#[test]
fn a_guardian_is_asked_only_about_what_it_is_for() {
    let guardian = ThirdParty::start(json!([{"do": "deny"}]));
    let office = Office::with(&guardian, "hooks = [\"tool_call_request\"]\ntools = [\"mail.send\"]");
    office.call("inbox", json!({})).ok();
    assert_eq!(guardian.questions().len(), 0);
    office.send("hello").refused(403, "GUARDIAN_DENIED");
    assert_eq!(guardian.questions().len(), 1);
}
