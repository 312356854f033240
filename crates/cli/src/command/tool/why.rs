//! `toolgate tool why`: a dry run of a call, step by step.

use toolgate_api::tools::{Explanation, ExplanationStep};

use super::explanation::advice;
use crate::output::{Report, align, clean};

pub(super) fn report(explanation: &Explanation) -> Report {
    let steps = &explanation.steps;
    let rows = steps.iter().map(|step| vec![mark(step).to_owned(), clean(&step.stage), sentence(step)]);
    let mut text = align(rows.collect());
    let refused = steps.iter().rfind(|step| step.passed == Some(false)).and_then(|step| step.refused.as_ref());
    let refused = refused.filter(|_| !explanation.allowed);
    if let Some(advice) = refused.and_then(|refused| advice(&refused.code.0, &refused.details)) {
        text.push_str(&format!("To do: {advice}\n"));
    }
    let verdict = if explanation.allowed { "can" } else { "cannot" };
    text.push_str(&format!("{} {verdict} call {}.\n", explanation.agent_id, clean(&explanation.tool)));
    Report::new(explanation, text).refused_if(!explanation.allowed)
}

fn mark(step: &ExplanationStep) -> &'static str {
    match step.passed {
        Some(true) => "✓",
        Some(false) => "✗",
        None => "-",
    }
}

fn sentence(step: &ExplanationStep) -> String {
    let subject = clean(&step.subject);
    match &step.refused {
        Some(refused) => format!("{subject}: {} [{}]", clean(&refused.reason), clean(&refused.code.0)),
        None => subject,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(explanation: Value) -> Report {
        report(&serde_json::from_value(explanation).unwrap())
    }

    #[test]
    fn every_step_has_its_mark_and_the_verdict_comes_last() {
        let passed = json!({"stage": "identify", "subject": "`clerk` may call tools", "passed": true});
        let note = json!({"stage": "admit", "subject": "3 calls in any hour", "passed": null});
        let report = read(json!({"allowed": true, "tool": "mail.send", "agent_id": "clerk", "steps": [passed, note]}));
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
        let report = read(json!({"allowed": false, "tool": "mail.send", "agent_id": "clerk", "steps": [step]}));
        assert!(report.refused);
        let text = report.text;
        assert!(text.starts_with("✗  authorize  through grant g: grant g is \\u{1b}[31msuspended [GRANT_SUSPENDED]\n"));
        assert!(text.ends_with("`toolgate grant resume g`\nclerk cannot call mail.send.\n"), "{text}");
    }
}
