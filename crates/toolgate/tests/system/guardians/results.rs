//! Guardians on results: a no withholds what the service said, a change replaces it.

use serde_json::json;

use super::office::{Office, said};
use super::third_party::ThirdParty;

const RESULTS: &str = "steps/toolCallResult";

#[test]
fn a_result_that_a_guardian_says_no_to_is_withheld_and_kept_nowhere() {
    let guardian = ThirdParty::start(json!([{"do": "deny", "method": RESULTS, "reason": "not for clerks"}]));
    let office = Office::with(&guardian, "");
    let reply = office.call("inbox", json!({}));
    let body = reply.json();
    assert_eq!((&body["status"], &body["error"]["code"]), (&json!("error"), &json!("GUARDIAN_DENIED")), "{body}");
    assert_eq!(body["message"], "guardian security denied this: not for clerks");
    assert_eq!(office.mail.count(), 1, "it was called");
    assert!(!reply.answer.text().contains("lunch"));
    assert!(!office.record(&reply).to_string().contains("lunch"));
    let decisions = office.decisions(&reply);
    let hooks: Vec<_> = decisions.iter().map(|one| (&one["hook"], &one["effective"])).collect();
    assert_eq!(hooks, [(&json!("tool_call_request"), &json!("allow")), (&json!("tool_call_result"), &json!("deny"))]);
}

#[test]
fn the_agent_gets_what_a_guardian_made_of_a_result_in_either_form() {
    for form in ["whole", "fragment"] {
        let guardian = ThirdParty::start(json!([{"do": "modify", "method": RESULTS, "form": form}]));
        let office = Office::with(&guardian, "may_modify = true");
        let reply = office.call("inbox", json!({}));
        assert_eq!(reply.ok()["result"], json!({"from": "[REDACTED-PII]", "text": "lunch?"}), "{form}");
        assert!(!office.record(&reply).to_string().contains("ann@example.org"), "{form}");
        let decisions = office.decisions(&reply);
        assert_eq!((&decisions[1]["hook"], &decisions[1]["effective"]), (&json!("tool_call_result"), &json!("modify")));
        assert_eq!(said(&decisions[1], "security")["verdict"], "modify");
    }
}

#[test]
fn a_result_that_a_guardian_does_not_answer_about_is_withheld_unless_failures_pass() {
    let rules = json!([{"do": "status", "method": RESULTS}]);
    let guardian = ThirdParty::start(rules);
    let office = Office::with(&guardian, "on_failure = \"deny\"");
    let reply = office.call("inbox", json!({}));
    assert_eq!(reply.json()["error"]["code"], "GUARDIAN_FAILED", "{}", reply.answer.text());
    assert!(!reply.answer.text().contains("lunch"));

    let office = Office::with(&guardian, "on_failure = \"allow\"");
    let reply = office.call("inbox", json!({}));
    assert_eq!(reply.ok()["result"]["text"], "lunch?");
    let decisions = office.decisions(&reply);
    assert_eq!(said(&decisions[1], "security")["outcome"], "failed_open");
}
