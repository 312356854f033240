//! An execution that was re-evaluated: the recorded verdicts, the verdicts now, and whether they are the same.

use serde::Serialize;
use serde_json::json;
use toolgate_api::policies::{Replay, ReplayStep};

use super::decision::duration;
use crate::output::{Report, clean, plain};

/// How wide the outcome before each step is.
const WIDTH: usize = 13;

/// Only the steps of one call.
pub(super) fn of_call(mut replay: Replay, call: &str) -> Replay {
    replay.steps.retain(|step| step.invocation_id.as_deref() == Some(call));
    replay
}

/// The steps, and their number on the last line. A verdict that differs makes it a refusal.
pub(super) fn report(replay: &Replay) -> Report {
    let count = |same: Option<bool>| replay.steps.iter().filter(|step| step.same == same).count();
    let (same, different, unknown) = (count(Some(true)), count(Some(false)), count(None));
    let mut text: String = replay.steps.iter().map(drawn).collect();
    if replay.truncated {
        text.push_str("The execution has more decisions than were read.\n");
    }
    text.push_str(&match replay.steps.len() {
        0 => "No decision of this execution was made by policies; there is nothing to re-evaluate.\n".to_owned(),
        all => format!("{all} steps: {same} the same, {different} different, {unknown} undecidable\n"),
    });
    Report::new(replay, text).refused_if(different > 0)
}

fn drawn(step: &ReplayStep) -> String {
    let outcome = match step.same {
        Some(true) => "same",
        Some(false) => "DIFFERENT",
        None => "undecidable",
    };
    let call = step.invocation_id.as_deref().unwrap_or("-");
    let place = [&step.timestamp, call, &step.hook, &step.subject].map(clean).join("  ");
    let then = verdict(step.recorded.verdict, &step.recorded.policies, &[]);
    let (version, took) = (step.policy_version.0, duration(step.latency_us));
    let mut text = format!("{outcome:<WIDTH$}{place}\n");
    text.push_str(&format!("{:WIDTH$}then: {then}, policy version {version}, in {took}\n", ""));
    if step.same != Some(true) {
        let now = verdict(step.replayed.verdict, &step.replayed.policies, &step.replayed.missing);
        text.push_str(&format!("{:WIDTH$}now:  {now}\n", ""));
    }
    text
}

/// A verdict with the rules that gave it, and what they read that was not recorded.
fn verdict(verdict: impl Serialize, rules: &[String], missing: &[String]) -> String {
    let mut text = plain(&json!(verdict));
    for (named, before) in [(rules, " by "), (missing, "; not recorded: ")] {
        if !named.is_empty() {
            text.push_str(&format!("{before}{}", plain(&json!(named))));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn step(call: &str, then: &str, now: Value, same: Value) -> Value {
        json!({
            "sequence": 4, "invocation_id": call, "timestamp": "T", "hook": "tool_call_request", "subject": "mail.send",
            "policy_version": 3, "recorded": {"verdict": then, "policies": ["no-mail"]}, "latency_us": 1234,
            "replayed": now, "same": same,
        })
    }

    fn replay() -> Replay {
        let verdict = |verdict: &str, rules: &[&str]| json!({"verdict": verdict, "policies": rules, "missing": []});
        let unknown = json!({"verdict": "undecidable", "policies": ["no-mail"], "missing": ["arguments.to"]});
        let steps = json!([
            step("inv_1", "deny", verdict("deny", &["no-mail"]), json!(true)),
            step("inv_2", "deny", verdict("allow", &[]), json!(false)),
            step("inv_3", "ask", unknown, Value::Null),
        ]);
        serde_json::from_value(json!({"run_id": "run-1", "steps": steps, "truncated": false})).unwrap()
    }

    #[test]
    fn a_verdict_that_differs_is_shown_and_is_a_no() {
        let report = report(&replay());
        assert!(report.refused);
        assert_eq!(
            report.text,
            "same         T  inv_1  tool_call_request  mail.send\n             \
             then: deny by no-mail, policy version 3, in 1.234 ms\n\
             DIFFERENT    T  inv_2  tool_call_request  mail.send\n             \
             then: deny by no-mail, policy version 3, in 1.234 ms\n             \
             now:  allow\n\
             undecidable  T  inv_3  tool_call_request  mail.send\n             \
             then: ask by no-mail, policy version 3, in 1.234 ms\n             \
             now:  undecidable by no-mail; not recorded: arguments.to\n\
             3 steps: 1 the same, 1 different, 1 undecidable\n"
        );
    }

    #[test]
    fn what_is_undecidable_is_no_difference() {
        let only = |call| report(&of_call(replay(), call));
        assert!(!only("inv_1").refused && !only("inv_3").refused && only("inv_2").refused);
        let nothing = only("inv_4");
        assert!(!nothing.refused && nothing.text.starts_with("No decision of this execution"), "{}", nothing.text);
    }
}
