//! Events in OCSF 1.3.0: calls as API Activity, changes of authority as identity and access management, decisions of
//! guardians as findings. Only attributes that are listed here are exported, and never the parameters of a call.

mod authority;
mod calls;
mod class;
mod findings;
mod mounts;
mod stores;
#[cfg(test)]
mod tests;
mod work;

use serde::Serialize;
use serde_json::{Map, Value, json};
use toolgate_model::event::{Event, EventKind, EventPayload, StoredEvent};
use toolgate_model::principal::PrincipalId;

use self::class::{Activity, Class, Outcome, Severity};

const SCHEMA_VERSION: &str = "1.3.0";

struct Mapped {
    class: Class,
    activity: Activity,
    outcome: Outcome,
    severity: Severity,
    /// The attributes that are specific to the class.
    attributes: Map<String, Value>,
    /// Attributes that OCSF does not have.
    unmapped: Map<String, Value>,
}

pub fn to_ocsf(stored: &StoredEvent) -> Map<String, Value> {
    let event = &stored.event;
    let mapped = calls::map(event).or_else(|| authority::map(event));
    let mapped = mapped
        .or_else(|| findings::map(event))
        .or_else(|| mounts::map(event))
        .or_else(|| stores::map(event))
        .or_else(|| work::map(event));
    let mapped = mapped.unwrap_or_else(|| other(&event.payload));
    let Mapped { class, activity, outcome, severity, attributes, unmapped } = mapped;
    let (category_uid, category_name) = class.category();
    let type_activity = if activity.id == Activity::OTHER { "Other" } else { activity.name };
    let mut line = object([
        ("activity_id", json!(activity.id)),
        ("activity_name", json!(activity.name)),
        ("actor", actor(event)),
        ("category_name", json!(category_name)),
        ("category_uid", json!(category_uid)),
        ("class_name", json!(class.name())),
        ("class_uid", json!(class.uid())),
        ("metadata", metadata(stored)),
        ("severity", json!(severity.name())),
        ("severity_id", json!(severity.id())),
        ("status", json!(outcome.name())),
        ("status_id", json!(outcome.id())),
        ("time", json!(event.time.as_millis())),
        ("type_name", json!(format!("{}: {type_activity}", class.name()))),
        ("type_uid", json!(class.uid() * 100 + activity.id)),
    ]);
    line.extend(attributes);
    if !unmapped.is_empty() {
        line.insert("unmapped".to_owned(), Value::Object(unmapped));
    }
    line
}

/// An event without a class, or of an unknown type: exported without its payload. A payload of a known type that cannot be
/// parsed may be a refusal.
fn other(payload: &EventPayload) -> Mapped {
    let unreadable = matches!(payload, EventPayload::Unknown(unknown) if EventKind::parse(&unknown.kind).is_some());
    Mapped {
        class: Class::Base,
        activity: Activity::other("Other"),
        outcome: Outcome::Unknown,
        severity: if unreadable { Severity::High } else { Severity::Informational },
        attributes: Map::new(),
        unmapped: Map::new(),
    }
}

fn metadata(stored: &StoredEvent) -> Value {
    let event = &stored.event;
    let mut metadata = object([
        ("event_code", json!(event.payload.name())),
        ("log_name", json!("audit")),
        ("original_time", json!(event.time)),
        ("product", json!({"name": "Toolgate", "vendor_name": "Toolgate"})),
        ("sequence", json!(stored.sequence)),
        ("tenant_uid", json!(event.tenant)),
        ("uid", json!(event.id)),
        ("version", json!(SCHEMA_VERSION)),
    ]);
    if let Some(run) = run_or_call(event) {
        metadata.insert("correlation_uid".to_owned(), json!(run));
    }
    Value::Object(metadata)
}

/// The actor, and the agent that it acted for.
fn actor(event: &Event) -> Value {
    let mut user = object([("uid", json!(event.actor))]);
    if event.actor == PrincipalId::system() {
        user.extend(object([("type", json!("System")), ("type_id", json!(3))]));
    }
    let mut actor = object([("user", Value::Object(user))]);
    if let Some(run) = run_or_call(event) {
        actor.insert("session".to_owned(), json!({"uid": run}));
        if let Some(agent) = &event.agent {
            actor.insert("app_uid".to_owned(), json!(agent));
        }
    }
    Value::Object(actor)
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Members with a value.
fn present<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    let mut members = object(members);
    members.retain(|_, value| !value.is_null());
    members
}

/// The run of an event: the named one, or the call itself.
fn run_or_call(event: &Event) -> Option<String> {
    event.run.clone().or_else(|| event.payload.call())
}

fn value(value: impl Serialize) -> Value {
    json!(value)
}
