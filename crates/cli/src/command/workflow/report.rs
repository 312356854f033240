//! Changes and problems of a file as text.

use serde::Deserialize;
use toolgate_api::workflows::{AppliedWorkflow, WorkflowChange};

use crate::client::{ClientError, Refused};
use crate::command::Failure;
use crate::output::{Report, clean};

/// A problem in a refusal.
#[derive(Deserialize)]
struct Problem {
    line: u32,
    column: u32,
    message: String,
}

pub(super) fn applied(name: &str, applied: AppliedWorkflow) -> Report {
    if !applied.applied {
        return Report::new(&applied, no_changes(name, &applied));
    }
    let mut text: String = applied.changes.iter().map(|change| line(change, false)).collect();
    text.push_str(&format!("{name}: {} {} was applied", applied.workflow, applied.version));
    if let Some(intent) = &applied.intent_id {
        text.push_str(&format!("; its intent is {}", clean(intent)));
    }
    text.push('.');
    Report::new(applied, text)
}

pub(super) fn changes(name: &str, planned: &AppliedWorkflow) -> String {
    if planned.changes.is_empty() {
        return no_changes(name, planned);
    }
    let mut text: String = planned.changes.iter().map(|change| line(change, true)).collect();
    text.push_str(&format!("{name}: {} changes", planned.changes.len()));
    if planned.widening > 0 {
        text.push_str(&format!("; {} widen access and need --allow-widening", planned.widening));
    }
    text.push('.');
    text
}

fn no_changes(name: &str, applied: &AppliedWorkflow) -> String {
    format!("{name}: {} {}: no changes.", applied.workflow, applied.version)
}

/// `+ grant billing: stripe [charges.read]`, with what differs and what it widens below.
fn line(change: &WorkflowChange, with_widening: bool) -> String {
    let sign = match change.action.as_str() {
        "create" => '+',
        "remove" | "revoke" => '-',
        _ => '~',
    };
    let mut text = format!("{sign} {} {} {}\n", clean(&change.action), clean(&change.object), clean(&change.name));
    for detail in &change.details {
        text.push_str(&format!("    {}\n", clean(detail)));
    }
    for widening in change.widens.iter().filter(|_| with_widening) {
        text.push_str(&format!("    widens: {}\n", clean(widening)));
    }
    text
}

/// A refusal with the problems of the file, each with its position, or with the changes that are not allowed.
pub(super) fn explained(name: &str, error: ClientError) -> Failure {
    let sentence = error.to_string();
    let ClientError::Refused { body, .. } = error else { return Failure::Client(error) };
    let problems: Vec<Problem> = list(&body, "problems");
    if !problems.is_empty() {
        let lines: Vec<String> = problems
            .iter()
            .map(|problem| format!("{name}:{}:{}: {}", problem.line, problem.column, clean(&problem.message)))
            .collect();
        let text = format!("the file was refused [{}]\n{}", clean(body.code()), lines.join("\n"));
        return Failure::explained(text, &body);
    }
    let widening: Vec<WorkflowChange> = list(&body, "widening");
    if !widening.is_empty() {
        let lines: String = widening.iter().map(|change| line(change, true)).collect();
        let text = format!(
            "{name}: {} changes widen access; nothing was applied; review them and add \
             --allow-widening [{}]\n{}",
            widening.len(),
            clean(body.code()),
            lines.trim_end()
        );
        return Failure::explained(text, &body);
    }
    let place = body.detail("change").and_then(|change| change.get("line")).and_then(serde_json::Value::as_u64);
    let place = place.map_or_else(|| name.to_owned(), |line| format!("{name}:{line}"));
    Failure::explained(format!("{place}: {sentence}"), &body)
}

fn list<T: serde::de::DeserializeOwned>(body: &Refused, name: &str) -> Vec<T> {
    let items = body.detail(name).and_then(serde_json::Value::as_array).cloned().unwrap_or_default();
    items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect()
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use serde_json::json;

    use super::*;

    #[test]
    fn problems_are_shown_with_file_line_and_column() {
        let problems = json!({"problems": [
            {"line": 3, "column": 7, "path": "a", "message": "`a` is unknown"},
            {"line": 9, "column": 1, "path": "b", "message": "`b` is missing"}
        ]});
        let body = Refused::sample("WORKFLOW_INVALID", "2 problems", problems);
        let refused =
            explained("w.yaml", ClientError::Refused { status: StatusCode::BAD_REQUEST, body: Box::new(body) });
        let expected =
            "the file was refused [WORKFLOW_INVALID]\nw.yaml:3:7: `a` is unknown\nw.yaml:9:1: `b` is missing";
        assert_eq!(refused.to_string(), expected);
    }
}
