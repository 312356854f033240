//! A guardian in shadow: asked and written down, and the outcome is as if it were not there.

use serde_json::{Value, json};

use super::office::{Guarding, Office, said};
use super::third_party::ThirdParty;

#[test]
fn what_a_guardian_in_shadow_says_is_written_down_and_changes_nothing() {
    let guardian = ThirdParty::start(json!([]));
    let office = Office::with(
        &guardian,
        "mode = \"shadow\"\nmay_modify = true\nbreaker_failures = 1000\ntimeout_milliseconds = 1000",
    );
    for (rule, verdict, failure) in [
        (json!({"do": "deny", "reason": "I would not"}), json!("deny"), Value::Null),
        (json!({"do": "modify"}), json!("modify"), Value::Null),
        (json!({"do": "garbage"}), Value::Null, json!("malformed")),
        (json!({"do": "unknown_decision"}), Value::Null, json!("unknown_decision")),
        (json!({"do": "hold"}), Value::Null, json!("timeout")),
    ] {
        guardian.follow(&json!([rule]));
        assert_eq!(office.call("inbox", json!({})).ok()["result"]["from"], "ann@example.org", "{rule}");
        let reply = office.send("write to ann@example.org");
        reply.ok();
        let sent = json!({"to": "team", "body": "write to ann@example.org"});
        assert_eq!(office.sent().last(), Some(&sent), "{rule}");
        let decision = office.decision(&reply);
        assert_eq!((&decision["effective"], &decision["hash_after"]), (&json!("allow"), &Value::Null), "{rule}");
        let said = said(&decision, "security");
        assert_eq!((&said["mode"], &said["outcome"]), (&json!("shadow"), &json!("shadowed")), "{rule}");
        let found = (said["verdict"].clone(), said["failure"].clone());
        // A busy machine may make even a quick answer come too late for one that nobody waits for.
        assert!(found == (verdict, failure) || said["failure"] == "timeout", "{rule}: {said}");
    }
}

#[test]
fn a_guardian_in_shadow_that_says_yes_does_not_lift_anothers_no() {
    let (strict, lenient) = (ThirdParty::start(json!([{"do": "deny"}])), ThirdParty::start(json!([])));
    let office = Office::with_all(&[
        Guarding { name: "strict", url: strict.url(), settings: "" },
        Guarding { name: "lenient", url: lenient.url(), settings: "mode = \"shadow\"" },
    ]);
    office.send("hello").refused(403, "GUARDIAN_DENIED");
}

#[test]
fn a_guardian_that_is_off_is_not_asked() {
    let guardian = ThirdParty::start(json!([{"do": "deny"}]));
    let office = Office::with(&guardian, "mode = \"off\"");
    office.send("hello").ok();
    assert_eq!(guardian.questions().len(), 0);
}
