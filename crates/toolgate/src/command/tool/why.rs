//! `toolgate tool why`: what would become of a call, step by step, as the gate says it.

use serde_json::{Map, Value};

use super::explanation::advice;
use crate::output::{Report, align, at, clean, plain};

/// The steps for people, with the verdict on the last line.
pub(super) fn report(answer: Value) -> Report {
    let allowed = at(&answer, "allowed") == &Value::Bool(true);
    let steps = at(&answer, "steps").as_array().map(Vec::as_slice).unwrap_or_default();
    let rows = steps.iter().map(|step| vec![mark(step).to_owned(), plain(at(step, "stage")), sentence(step)]);
    let mut text = align(rows.collect());
    let refused = steps.iter().rfind(|step| at(step, "passed") == &Value::Bool(false));
    if let Some(advice) = refused.filter(|_| !allowed).and_then(|step| advice(&error_of(step))) {
        text.push_str(&format!("What to do: {advice}\n"));
    }
    let (agent, tool) = (plain(at(&answer, "agent_id")), plain(at(&answer, "tool")));
    text.push_str(&format!("{agent} {} call {tool}.\n", if allowed { "can" } else { "cannot" }));
    Report::new(answer, text).refused_if(!allowed)
}

fn mark(step: &Value) -> &'static str {
    match at(step, "passed") {
        Value::Bool(true) => "✓",
        Value::Bool(false) => "✗",
        _ => "-",
    }
}

fn sentence(step: &Value) -> String {
    let subject = plain(at(step, "subject"));
    match (at(step, "reason").as_str(), at(step, "code").as_str()) {
        (Some(reason), Some(code)) => format!("{subject}: {} [{}]", clean(reason), clean(code)),
        _ => subject,
    }
}

/// The refusal of a step in the shape of an error object.
fn error_of(step: &Value) -> Map<String, Value> {
    let mut error = at(step, "details").as_object().cloned().unwrap_or_default();
    error.insert("code".to_owned(), at(step, "code").clone());
    error
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_step_has_its_mark_and_the_verdict_comes_last() {
        let passed = json!({"stage": "identify", "subject": "`clerk` may call tools", "passed": true});
        let note = json!({"stage": "admit", "subject": "3 calls in any hour", "passed": null});
        let report =
            report(json!({"allowed": true, "tool": "mail.send", "agent_id": "clerk", "steps": [passed, note]}));
        assert!(!report.refused);
        assert_eq!(
            report.text,
            "✓  identify  `clerk` may call tools\n-  admit     3 calls in any hour\nclerk can call mail.send.\n"
        );
    }

    #[test]
    fn a_refusal_says_why_and_what_to_do() {
        let step = json!({
            "stage": "authorize", "subject": "through grant g", "passed": false, "code": "GRANT_SUSPENDED",
            "reason": "grant g is \u{1b}[31msuspended", "details": {"grant_id": "g"},
        });
        let report = report(json!({"allowed": false, "tool": "mail.send", "agent_id": "clerk", "steps": [step]}));
        assert!(report.refused);
        let text = report.text;
        assert!(text.starts_with("✗  authorize  through grant g: grant g is \\u{1b}[31msuspended [GRANT_SUSPENDED]\n"));
        assert!(text.ends_with("`toolgate grant resume g`\nclerk cannot call mail.send.\n"), "{text}");
    }
}
