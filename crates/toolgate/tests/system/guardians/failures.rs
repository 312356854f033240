//! Everything that can go wrong with a guardian, and what comes of it: a no by default, a marked pass where that is
//! configured, and always a no where the guardian did answer and the answer was no yes.

use serde_json::{Value, json};

use super::office::{Office, said};
use super::third_party::ThirdParty;

/// Never left alone, so that each failure shows as what it is.
const SETTINGS: &str = "may_modify = true\nbreaker_failures = 1000";

/// What a guardian does, the class of that, and whether it is a no whatever a failure means.
fn table() -> Vec<(Value, &'static str, bool)> {
    vec![
        (json!({"do": "close"}), "malformed", false),
        (json!({"do": "garbage"}), "malformed", false),
        (json!({"do": "half"}), "malformed", false),
        (json!({"do": "oversized"}), "oversize", false),
        (json!({"do": "status", "status": 500}), "status", false),
        (json!({"do": "status", "status": 302}), "status", false),
        (json!({"do": "status", "status": 403}), "status", false),
        (json!({"do": "wrong_type"}), "content_type", false),
        (json!({"do": "wrong_id"}), "id_mismatch", false),
        (json!({"do": "error"}), "guardian_error", false),
        (json!({"do": "hold"}), "timeout", false),
        (json!({"do": "slow", "milliseconds": 10_000}), "timeout", false),
        (json!({"do": "unknown_decision"}), "unknown_decision", true),
        (json!({"do": "no_request"}), "incomplete_decision", true),
        (json!({"do": "other_tool"}), "identity_change", true),
    ]
}

/// Only requests: results have their own tests.
fn rules(mut rule: Value) -> Value {
    rule["method"] = json!("steps/toolCallRequest");
    json!([rule])
}

/// A gate with a guardian that is waited for, and one with a guardian that is not: no failure may pass for a timeout.
struct Offices {
    patient: Office,
    impatient: Office,
}

impl Offices {
    fn open(guardian: &ThirdParty, more: &str) -> Self {
        let settings = format!("{SETTINGS}\n{more}");
        let patient = Office::with(guardian, &settings);
        Self { patient, impatient: Office::with(guardian, &format!("{settings}\ntimeout_milliseconds = 300")) }
    }

    fn of(&self, class: &str) -> &Office {
        if class == "timeout" { &self.impatient } else { &self.patient }
    }
}

fn code(class: &str) -> &'static str {
    if class == "timeout" { "GUARDIAN_TIMED_OUT" } else { "GUARDIAN_FAILED" }
}

#[test]
fn every_failure_is_a_no_that_says_which_and_the_service_is_never_called() {
    let guardian = ThirdParty::start(json!([]));
    let offices = Offices::open(&guardian, "");
    for (rule, class, _) in table() {
        let office = offices.of(class);
        guardian.follow(&rules(rule.clone()));
        let reply = office.send("hello");
        let error = reply.refused(503, code(class));
        assert_eq!((&error["failure"], &error["guardian"]), (&json!(class), &json!("security")), "{rule}");
        assert!(!error["message"].as_str().unwrap().contains("denied this"), "{rule}: {error}");
        let decision = office.decision(&reply);
        assert_eq!(decision["effective"], "deny", "{rule}");
        let said = said(&decision, "security");
        assert_eq!((&said["outcome"], &said["failure"]), (&json!("failed_closed"), &json!(class)), "{rule}");
        assert_eq!(office.mail.count(), 0, "{rule}");
    }
}

#[test]
fn where_failures_pass_each_pass_is_marked_and_answers_that_are_no_yes_still_deny() {
    let guardian = ThirdParty::start(json!([]));
    let offices = Offices::open(&guardian, "on_failure = \"allow\"");
    for (rule, class, always_denies) in table() {
        let office = offices.of(class);
        guardian.follow(&rules(rule.clone()));
        let before = office.mail.count();
        let reply = office.send("hello");
        let decision = office.decision(&reply);
        let said = said(&decision, "security");
        assert_eq!(said["failure"], class, "{rule}");
        if always_denies {
            reply.refused(503, code(class));
            assert_eq!((&said["outcome"], &decision["effective"]), (&json!("failed_closed"), &json!("deny")), "{rule}");
            assert_eq!(office.mail.count(), before, "{rule}");
        } else {
            reply.ok();
            assert_eq!((&said["outcome"], &decision["effective"]), (&json!("failed_open"), &json!("allow")), "{rule}");
            assert_eq!(office.mail.count(), before + 1, "{rule}");
        }
    }
}

#[test]
fn a_timeout_reads_differently_from_a_no_and_a_late_yes_runs_nothing() {
    let guardian = ThirdParty::start(rules(json!({"do": "hold"})));
    let office = Office::with(&guardian, "timeout_milliseconds = 300");
    let reply = office.send("hello");
    let error = reply.refused(503, "GUARDIAN_TIMED_OUT");
    let told = "guardian security did not respond within 300 ms; the call was not executed; try again";
    assert_eq!(error["message"], told);
    let record = office.record(&reply);
    guardian.release();
    guardian.wait_until_it_answered(1);
    assert_eq!(office.mail.count(), 0);
    assert_eq!(office.record(&reply), record);
}

#[test]
fn a_late_no_takes_nothing_back_and_counts_for_no_later_call() {
    let guardian = ThirdParty::start(rules(json!({"do": "hold", "then": "deny"})));
    let office = Office::with(&guardian, "timeout_milliseconds = 2000\non_failure = \"allow\"");
    let reply = office.send("hello");
    reply.ok();
    guardian.follow(&json!([]));
    guardian.release();
    guardian.wait_until_it_answered(2);
    let later = office.send("hello again");
    later.ok();
    assert_eq!(said(&office.decision(&reply), "security")["failure"], "timeout");
    assert_eq!(said(&office.decision(&later), "security")["verdict"], "allow");
    assert_eq!(office.mail.count(), 2);
}

#[test]
fn a_guardian_that_takes_its_time_is_waited_for() {
    let guardian = ThirdParty::start(rules(json!({"do": "slow", "milliseconds": 200, "then": "deny"})));
    let office = Office::with(&guardian, "");
    office.send("hello").refused(403, "GUARDIAN_DENIED");
    assert_eq!(office.mail.count(), 0);
}
