//! Checks the published rules of events for everything that a test reads from a log: each event matches the schema of
//! its shown form, and the return of a call comes after the call that it names.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;
use toolgate_model::event::StoredEvent;
use toolgate_model::hook::{CALLED, RETURNED};
use toolgate_model::openwop_event::RunEvent;
use toolgate_model::schema::Schema;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::compile(&RunEvent::schema()).expect("the schema of events"));

/// The shown form of a stored event; panics if it does not match its schema.
#[track_caller]
pub fn shown(stored: &Value) -> Value {
    let sequence = stored["sequence"].as_u64().unwrap_or(0);
    let typed = StoredEvent::read(&stored.to_string(), sequence).unwrap_or_else(|error| panic!("{error}: {stored}"));
    assert!(typed.event.payload.kind().is_some(), "an event is not read by its type: {stored}");
    let event = RunEvent::of(&typed, sequence).unwrap_or_else(|error| panic!("{error}: {stored}"));
    let event = serde_json::to_value(event).expect("an event");
    if let Err(violation) = SCHEMA.check(&event) {
        panic!("an event does not match its schema at `{}`: it {}: {event}", violation.path, violation.reason);
    }
    event
}

/// A whole log in its shown form, oldest first: every event matches its schema, ids are unique, and every return that
/// names its call comes after it and has the same agent, tool and run.
#[track_caller]
pub fn whole_trail(stored: &[Value]) -> Vec<Value> {
    let events: Vec<Value> = stored.iter().map(shown).collect();
    let mut seen: BTreeMap<&str, &Value> = BTreeMap::new();
    for event in &events {
        if let Some(cause) = event["causationId"].as_str() {
            let call = seen.get(cause).unwrap_or_else(|| panic!("{cause} is not in the log before {event}"));
            assert_eq!((&call["type"], &event["type"]), (&CALLED.into(), &RETURNED.into()), "{event}");
            assert_eq!(call["runId"], event["runId"], "{event}");
            for member in ["agentId", "callId", "toolName"] {
                assert_eq!(call["payload"][member], event["payload"][member], "{member} of {event}");
            }
        }
        let id = event["eventId"].as_str().expect("an id");
        assert!(seen.insert(id, event).is_none(), "{id} is in the log twice");
    }
    events
}
