//! Events as OCSF 1.3.0 wants them: calls as API Activity, changes of authority in the classes of identity and access
//! management, what guardians said as findings. Content-free: of a call only what is listed here by name is told, never its parameters.

mod authority;
mod calls;
mod class;
mod findings;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use self::class::{Activity, Class, Outcome, Severity};
use super::StoredEvent;

/// The version of the schema that the lines follow.
const SCHEMA_VERSION: &str = "1.3.0";
/// The name of those who act by the clock.
const SYSTEM: &str = "core.system";

/// What the type of an event decides.
struct Mapped {
    class: Class,
    activity: Activity,
    outcome: Outcome,
    severity: Severity,
    /// What the class has besides the attributes that all classes share.
    attributes: Map<String, Value>,
    /// What OCSF has no attribute for.
    unmapped: Map<String, Value>,
}

/// The event in the terms of OCSF.
pub fn to_ocsf(event: &StoredEvent) -> Map<String, Value> {
    let mapped =
        calls::map(event).or_else(|| authority::map(event)).or_else(|| findings::map(event)).unwrap_or_else(unknown);
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
        ("metadata", metadata(event)),
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

/// An event of a type that is younger than this program. That it happened is told; what is in it cannot be judged here.
fn unknown() -> Mapped {
    Mapped {
        class: Class::Base,
        activity: Activity::other("Other"),
        outcome: Outcome::Unknown,
        severity: Severity::Informational,
        attributes: Map::new(),
        unmapped: Map::new(),
    }
}

fn metadata(event: &StoredEvent) -> Value {
    let mut metadata = object([
        ("event_code", json!(event.kind)),
        ("log_name", json!("audit")),
        ("original_time", json!(event.time)),
        ("product", json!({"name": "Toolgate", "vendor_name": "Toolgate"})),
        ("sequence", json!(event.sequence)),
        ("tenant_uid", json!(event.tenant)),
        ("uid", json!(event.id)),
        ("version", json!(SCHEMA_VERSION)),
    ]);
    if let Some(run) = event.run_or_call() {
        metadata.insert("correlation_uid".to_owned(), json!(run));
    }
    Value::Object(metadata)
}

/// Who did it, and the agent for whom.
fn actor(event: &StoredEvent) -> Value {
    let mut user = object([("uid", json!(event.actor))]);
    if event.actor == SYSTEM {
        user.extend(object([("type", json!("System")), ("type_id", json!(3))]));
    }
    let mut actor = object([("user", Value::Object(user))]);
    if let Some(run) = event.run_or_call() {
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

/// Those members of an object, under their new names, that are there and not null.
fn picked(from: &Map<String, Value>, names: &[(&str, &str)]) -> Map<String, Value> {
    let found = names.iter().filter_map(|(name, shown)| Some(((*shown).to_owned(), from.get(*name)?.clone())));
    found.filter(|(_, value)| !value.is_null()).collect()
}
