//! What guardians said, as detection findings. What is told is picked by name: their reasons, what they were shown and what
//! they knew may have the content of a call in it, and stay in the log.

use serde_json::{Map, Value, json};

use super::class::{Activity, Class, Outcome, Severity};
use super::{Mapped, StoredEvent, object, picked};

/// The line of a decision; `None` for any other event.
pub fn map(event: &StoredEvent) -> Option<Mapped> {
    if event.kind != "hook.decided" {
        return None;
    }
    let effective = event.text("effective").unwrap_or_default();
    let (severity, action_id, action) = match effective {
        "allow" => (Severity::Informational, 1, "Allowed"),
        "modify" => (Severity::Low, 4, "Modified"),
        "ask" => (Severity::Medium, 99, "Asked"),
        // What is neither is no yes.
        _ => (Severity::High, 2, "Denied"),
    };
    let hook = event.text("hook").unwrap_or("unknown");
    let mut attributes = object([
        ("action", json!(action)),
        ("action_id", json!(action_id)),
        ("finding_info", json!({"title": format!("guardians at {hook}: {effective}"), "uid": event.id})),
    ]);
    if let Some(tool) = event.text("tool") {
        attributes.insert("resources".to_owned(), json!([{"name": tool, "type": "tool"}]));
    }
    Some(Mapped {
        class: Class::DetectionFinding,
        activity: Activity::new(1, "Create"),
        outcome: Outcome::New,
        severity,
        attributes,
        unmapped: unmapped(&event.data),
    })
}

fn unmapped(data: &Map<String, Value>) -> Map<String, Value> {
    let names = [
        "approval_id",
        "dialect",
        "effective",
        "execution_id",
        "hash_after",
        "hash_before",
        "hook",
        "invocation_id",
        "policy_version",
        "request_id",
        "session_id",
        "shadow",
        "step_id",
        "turn_id",
    ];
    let mut details = picked(data, &names.map(|name| (name, name)));
    let guardians = data.get("guardians").and_then(Value::as_array).into_iter().flatten();
    let guardians: Vec<Value> = guardians.filter_map(Value::as_object).map(guardian).collect();
    details.insert("guardians".to_owned(), Value::Array(guardians));
    details
}

/// Who said what by which rules, without the words.
fn guardian(said: &Map<String, Value>) -> Value {
    let names = ["dialect", "failure", "guardian", "latency_us", "mode", "outcome", "policies", "verdict"];
    Value::Object(picked(said, &names.map(|name| (name, name))))
}
