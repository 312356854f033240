//! One event of a timeline on one line.

use serde_json::Value;

use crate::output::{clean, plain};
use crate::siem::StoredEvent;

/// How wide the name of an event is, so that what is said about it stands in a column.
const NAME_WIDTH: usize = 20;
/// How much of a hash tells it from others.
const HASH_LENGTH: usize = 12;

/// What happened, and what matters about it.
pub(super) fn described(event: &StoredEvent) -> String {
    let words = match event.kind.as_str() {
        "agent.toolCalled" => called(event),
        "agent.toolReturned" => vec![text(event, "", "status")],
        "hook.decided" => decided(event),
        "tool.invoked" => invoked(event),
        "tool.denied" => denied(event),
        "approval.requested" => vec![
            text(event, "", "approval_id"),
            text(event, "asked by ", "asked_by"),
            text(event, "needs ", "approvers_needed"),
            text(event, "until ", "expires_at"),
        ],
        kind if kind.starts_with("approval.") => vec![
            text(event, "", "approval_id"),
            text(event, "by ", "principal"),
            text(event, "through ", "channel"),
            text(event, "now covered by ", "standing_approval_id"),
            text(event, "", "reason"),
        ],
        "standing_approval.used" => {
            vec![text(event, "", "standing_approval_id"), text(event, "used so often: ", "used")]
        }
        _ => vec![Some(plain(&Value::Object(event.data.clone())))],
    };
    let words: Vec<String> = words.into_iter().flatten().collect();
    columns(&name(event), &words)
}

/// What happened, and in the column beside it what is said about it.
pub(super) fn columns(name: &str, words: &[String]) -> String {
    format!("{name:<NAME_WIDTH$}  {}", words.join(", ")).trim_end().to_owned()
}

/// The point at which guardians were asked says more than that they were.
fn name(event: &StoredEvent) -> String {
    let hook = event.text("hook").filter(|_| event.kind == "hook.decided");
    clean(hook.unwrap_or(&event.kind))
}

fn called(event: &StoredEvent) -> Vec<Option<String>> {
    vec![text(event, "", "transport"), hash(event, "arguments ", "argsHash")]
}

fn decided(event: &StoredEvent) -> Vec<Option<String>> {
    let changed = event.data.contains_key("hash_after");
    let content = hash(event, if changed { "content changed: " } else { "content " }, "hash_before");
    let after = hash(event, "-> ", "hash_after");
    let content = content.map(|before| after.map_or_else(|| before.clone(), |after| format!("{before} {after}")));
    let subject = event.text("invocation_id").is_none().then(|| text(event, "", "tool")).flatten();
    let dialect = text(event, "asked in ", "dialect").filter(|_| event.text("dialect") != Some("native"));
    let version = text(event, "policies of version ", "policy_version");
    vec![verdict(event), subject, dialect, version, content, text(event, "", "approval_id")]
}

fn verdict(event: &StoredEvent) -> Option<String> {
    event.text("effective").map(|verdict| clean(&verdict.to_uppercase()))
}

fn invoked(event: &StoredEvent) -> Vec<Option<String>> {
    let reported = event.data.contains_key("reported").then(|| "reported by the caller".to_owned());
    let duration = text(event, "", "duration_ms").map(|duration| format!("{duration} ms"));
    vec![
        text(event, "", "status"),
        text(event, "", "error_code"),
        text(event, "http ", "http_status"),
        duration,
        reported,
    ]
}

fn denied(event: &StoredEvent) -> Vec<Option<String>> {
    vec![text(event, "at ", "stage"), text(event, "", "error_code"), text(event, "", "reason")]
}

/// A member, where there is one and it says something.
fn text(event: &StoredEvent, before: &str, name: &str) -> Option<String> {
    let value = event.data.get(name).filter(|value| !value.is_null())?;
    Some(format!("{before}{}", plain(value)))
}

fn hash(event: &StoredEvent, before: &str, name: &str) -> Option<String> {
    let hash: String = event.text(name)?.chars().take(HASH_LENGTH).collect();
    Some(format!("{before}{}", clean(&hash)))
}
