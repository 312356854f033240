//! The published rules of events, for whatever a test reads from a log: each can be shown and fits the schema of what is
//! shown, and the return of a call comes after the call that it names.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;
use toolgate_model::event::StoredEvent;
use toolgate_model::hook::{CALLED, RETURNED};
use toolgate_model::openwop_event::RunEvent;
use toolgate_model::schema::Schema;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::compile(&RunEvent::schema()).expect("the schema of events"));

/// The stored event as it is shown; one that does not fit its schema ends the test.
#[track_caller]
pub fn shown(stored: &Value) -> Value {
    let sequence = stored["sequence"].as_u64().unwrap_or(0);
    let typed = StoredEvent::read(&stored.to_string(), sequence).unwrap_or_else(|error| panic!("{error}: {stored}"));
    assert!(typed.event.payload.kind().is_some(), "an event is not read by its type: {stored}");
    let event = RunEvent::of(&typed, sequence).unwrap_or_else(|error| panic!("{error}: {stored}"));
    let event = serde_json::to_value(event).expect("an event");
    if let Err(violation) = SCHEMA.check(&event) {
        panic!("an event does not fit its schema at `{}`: it {}: {event}", violation.path, violation.reason);
    }
    event
}

/// A whole log, oldest first, as it is shown: every event fits, no two have one id, and every return that names its call
/// comes after it and tells of the same agent, tool and run.
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
