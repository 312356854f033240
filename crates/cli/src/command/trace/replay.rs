//! An execution that was judged again: what was said then, what is said now, and whether that is the same.

use serde_json::{Value, json};

use super::decision::duration;
use crate::output::{Report, at, plain};

/// How wide the outcome before each step is.
const WIDTH: usize = 13;

/// Only the steps of one call.
pub(super) fn of_call(mut answer: Value, call: &str) -> Value {
    if let Some(Value::Array(steps)) = answer.get_mut("steps") {
        steps.retain(|step| at(step, "invocation_id").as_str() == Some(call));
    }
    answer
}

/// The steps for people, with the outcome on the last line. It is a no where a verdict differs.
pub(super) fn report(answer: Value) -> Report {
    let steps = at(&answer, "steps").as_array().map(Vec::as_slice).unwrap_or_default();
    let count = |same: Value| steps.iter().filter(|step| *at(step, "same") == same).count();
    let (different, unknown) = (count(json!(false)), count(Value::Null));
    let mut text: String = steps.iter().map(drawn).collect();
    if at(&answer, "truncated") == &Value::Bool(true) {
        text.push_str("The execution has more than was looked through.\n");
    }
    text.push_str(&match steps.len() {
        0 => "No decision of this execution was made by policies; there is nothing to judge again.\n".to_owned(),
        all => {
            let same = all.saturating_sub(different).saturating_sub(unknown);
            format!("{all} steps: {same} the same, {different} different, {unknown} undecidable\n")
        }
    });
    Report::new(answer, text).refused_if(different > 0)
}

fn drawn(step: &Value) -> String {
    let outcome = match at(step, "same") {
        Value::Bool(true) => "same",
        Value::Bool(false) => "DIFFERENT",
        _ => "undecidable",
    };
    let report = ["timestamp", "invocation_id", "hook", "subject"].map(|name| plain(at(step, name)));
    let took = at(step, "latency_us").as_u64().map(duration).unwrap_or_default();
    let then = judged(at(step, "recorded"));
    let version = plain(at(step, "policy_version"));
    let mut text = format!("{outcome:<WIDTH$}{}\n", report.join("  "));
    text.push_str(&format!("{:WIDTH$}then: {then}, by version {version} of the policies in {took}\n", ""));
    if outcome != "same" {
        text.push_str(&format!("{:WIDTH$}now:  {}\n", "", judged(at(step, "replayed"))));
    }
    text
}

/// A verdict with the rules that it comes from, and what they would have to know.
fn judged(judgement: &Value) -> String {
    let mut text = plain(at(judgement, "verdict"));
    for (member, before) in [("policies", " by "), ("missing", "; not recorded: ")] {
        match at(judgement, member) {
            Value::Array(named) if !named.is_empty() => {
                text.push_str(&format!("{before}{}", plain(at(judgement, member))));
            }
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(call: &str, then: &str, now: Value, same: Value) -> Value {
        json!({
            "sequence": 4, "invocation_id": call, "timestamp": "T", "hook": "tool_call_request", "subject": "mail.send",
            "policy_version": 3, "recorded": {"verdict": then, "policies": ["no-mail"]}, "latency_us": 1234,
            "replayed": now, "same": same,
        })
    }

    fn answer() -> Value {
        let verdict = |verdict: &str, rules: &[&str]| json!({"verdict": verdict, "policies": rules, "missing": []});
        let unknown = json!({"verdict": "undecidable", "policies": ["no-mail"], "missing": ["arguments.to"]});
        let steps = json!([
            step("inv_1", "deny", verdict("deny", &["no-mail"]), json!(true)),
            step("inv_2", "deny", verdict("allow", &[]), json!(false)),
            step("inv_3", "ask", unknown, Value::Null),
        ]);
        json!({"run_id": "run-1", "steps": steps, "truncated": false})
    }

    #[test]
    fn a_verdict_that_differs_is_shown_and_is_a_no() {
        let report = report(answer());
        assert!(report.refused);
        assert_eq!(
            report.text,
            "same         T  inv_1  tool_call_request  mail.send\n             \
             then: deny by no-mail, by version 3 of the policies in 1.234 ms\n\
             DIFFERENT    T  inv_2  tool_call_request  mail.send\n             \
             then: deny by no-mail, by version 3 of the policies in 1.234 ms\n             \
             now:  allow\n\
             undecidable  T  inv_3  tool_call_request  mail.send\n             \
             then: ask by no-mail, by version 3 of the policies in 1.234 ms\n             \
             now:  undecidable by no-mail; not recorded: arguments.to\n\
             3 steps: 1 the same, 1 different, 1 undecidable\n"
        );
    }

    #[test]
    fn what_is_undecidable_is_no_difference() {
        let only = |call| report(of_call(answer(), call));
        assert!(!only("inv_1").refused && !only("inv_3").refused && only("inv_2").refused);
        let nothing = only("inv_4");
        assert!(!nothing.refused && nothing.text.starts_with("No decision of this execution"), "{}", nothing.text);
    }
}
