//! What each guardian said at one point, a line for each, and what rules in shadow would have said.

use serde_json::Value;

use crate::output::{align, at, clean, plain};
use crate::siem::StoredEvent;

/// The lines below a decision; none below any other event.
pub(super) fn lines(event: &StoredEvent) -> Vec<String> {
    if event.kind != "hook.decided" {
        return Vec::new();
    }
    let list = |name: &str| event.data.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut lines: Vec<String> =
        align(list("guardians").iter().map(guardian).collect()).lines().map(str::to_owned).collect();
    lines.extend(
        list("shadow")
            .iter()
            .map(|would_be| format!("in shadow: {} would {}", rule(would_be), plain(at(would_be, "verdict")))),
    );
    lines
}

/// Which, what it said, how that counted, how long it took, by which rules, what went wrong, why.
fn guardian(record: &Value) -> Vec<String> {
    let mut mode = plain(at(record, "mode"));
    match at(record, "outcome").as_str() {
        // What happens to a word in each mode goes without saying.
        Some("enforced" | "shadowed") | None => {}
        Some("failed_open") => mode.push_str(" PASSED BY FAILURE"),
        Some(outcome) => mode.push_str(&format!(" {}", clean(&outcome.replace('_', " ")))),
    }
    let rules: Vec<String> = at(record, "policies").as_array().into_iter().flatten().map(rule).collect();
    let failure = at(record, "failure").as_str().map(|failure| format!("failure: {}", clean(failure)));
    let reason = at(record, "reason").as_str().map(|reason| format!("\"{}\"", clean(reason)));
    let why: Vec<String> = rules.into_iter().chain(failure).chain(reason).collect();
    vec![
        plain(at(record, "guardian")),
        plain(at(record, "verdict")),
        mode,
        at(record, "latency_us").as_u64().map(duration).unwrap_or_default(),
        why.join("  "),
    ]
}

/// Microseconds as people read them.
pub(super) fn duration(micros: u64) -> String {
    format!("{}.{:03} ms", micros / 1000, micros % 1000)
}

/// `ID@VERSION`.
fn rule(named: &Value) -> String {
    let id = plain(at(named, "policy_id"));
    match at(named, "policy_version") {
        Value::Null => id,
        version => format!("{id}@{}", plain(version)),
    }
}
