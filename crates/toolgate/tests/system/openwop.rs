//! OpenWOP through the real binary: discovery, the catalog, events and runs, and that strangers learn nothing.

use serde_json::Value;
use toolgate_model::openwop_event::RunEvent;
use toolgate_model::schema::Schema;

use crate::world::{Reply, names};

mod catalog;
mod conformance;
mod discovery;
mod events;
mod fetch;
pub mod follower;
mod runs;
mod sessions;
mod stream;
mod unauthorized;

impl Reply {
    /// The body of a refusal in the flat envelope, whose whole shape is checked on the way.
    #[track_caller]
    fn flat(&self, status: u16, error: &str) -> Value {
        let body = self.expect(status);
        assert_eq!(names(&body), ["details", "error", "message"], "{}: {body}", self.asked);
        assert_eq!(body["error"], error, "{}: {body}", self.asked);
        assert!(body["message"].as_str().is_some_and(|message| !message.is_empty()), "{}: {body}", self.asked);
        assert!(body["details"].is_object(), "{}: {body}", self.asked);
        assert_eq!(self.answer.header("content-type"), Some("application/json"), "{}", self.asked);
        body
    }
}

/// Checks every event against the protocol's rules.
#[track_caller]
fn assert_events(events: &[Value]) {
    let schema = Schema::compile(&RunEvent::schema()).unwrap();
    for event in events {
        let checked = schema.check(event);
        assert!(checked.is_ok(), "{event}: {checked:?}");
    }
}

/// The events of an answer, after a look at their shape.
#[track_caller]
fn events_of(body: &Value) -> Vec<Value> {
    let events = body["events"].as_array().unwrap_or_else(|| panic!("no events: {body}")).clone();
    assert_events(&events);
    events
}
