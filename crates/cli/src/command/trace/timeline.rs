//! The timeline of an execution: events and approvals below their calls, with the time since the first event.

use std::collections::HashMap;

use serde_json::Value;
use toolgate_model::event::{EventPayload, StoredEvent};
use toolgate_model::time::Timestamp;

use super::approval::{Approvals, Moment, is_named_by, moments};
use super::{decision, line};
use crate::output::{at, clean};

const TIME_WIDTH: usize = 11;

pub(super) struct Timeline<'a> {
    begun: Option<Timestamp>,
    ended: Option<Timestamp>,
    events: usize,
    approvals: &'a Approvals,
    /// In the order of their first events.
    parts: Vec<Part<'a>>,
}

/// A call with its events, or an event without a call.
struct Part<'a> {
    call: Option<String>,
    events: Vec<&'a StoredEvent>,
    /// The events of its approvals, in order.
    moments: Vec<Moment>,
}

impl<'a> Timeline<'a> {
    /// Groups events, which are in the order of the log, and approvals by call.
    pub(super) fn of(events: &'a [StoredEvent], approvals: &'a Approvals) -> Self {
        let mut parts = parts(events);
        for approval in &approvals.shown {
            let waited = parts.iter_mut().find(|part| part.waited_for(approval));
            if let Some(part) = waited {
                part.moments.extend(moments(approval));
                part.moments.sort_by_key(|moment| moment.time);
            }
        }
        parts.sort_by_key(Part::begun);
        let begun = parts.iter().filter_map(Part::begun).min();
        let ended = parts.iter().flat_map(Part::times).max();
        Self { begun, ended, events: events.len(), approvals, parts }
    }

    pub(super) fn draw(&self) -> String {
        let mut text = self.heading();
        for part in &self.parts {
            text.push('\n');
            let inset = if part.call.is_some() { "  " } else { "" };
            if let (Some(call), Some(begun)) = (&part.call, part.begun()) {
                text.push_str(&self.line(begun, "", &call_heading(call, &part.events)));
            }
            let mut moments = part.moments.iter().peekable();
            for event in &part.events {
                // The decision that required the approval is recorded after the approval has ended.
                while let Some(moment) = moments.next_if(|moment| moment.time <= event.event.time) {
                    text.push_str(&self.line(moment.time, inset, &moment.line));
                }
                if self.approvals.covers(event) {
                    continue;
                }
                text.push_str(&self.line(event.event.time, inset, &line::described(event)));
                for below in decision::lines(event) {
                    text.push_str(&format!("{:TIME_WIDTH$}{inset}  {below}\n", ""));
                }
            }
            for moment in moments {
                text.push_str(&self.line(moment.time, inset, &moment.line));
            }
        }
        if let Some(notice) = self.approvals.notice() {
            text.push_str(&format!("\n{notice}"));
        }
        text
    }

    fn heading(&self) -> String {
        let calls = self.parts.iter().filter(|part| part.call.is_some()).count();
        let begun = self.begun.map(|time| time.to_string()).unwrap_or_default();
        let span = self.ended.map(|ended| self.since_begun(ended)).unwrap_or_default();
        format!("{calls} calls, {} events in {span}, since {begun}\n", self.events)
    }

    fn line(&self, time: Timestamp, inset: &str, words: &str) -> String {
        format!("{:<TIME_WIDTH$}{inset}{words}\n", format!("+{}", self.since_begun(time)))
    }

    fn since_begun(&self, time: Timestamp) -> String {
        seconds(self.begun.unwrap_or(time), time)
    }
}

impl Part<'_> {
    fn times(&self) -> impl Iterator<Item = Timestamp> {
        let events = self.events.iter().map(|event| event.event.time);
        events.chain(self.moments.iter().map(|moment| moment.time))
    }

    fn begun(&self) -> Option<Timestamp> {
        self.times().min()
    }

    fn waited_for(&self, approval: &Value) -> bool {
        let is_its_call = self.call.is_some() && self.call.as_deref() == at(approval, "invocation_id").as_str();
        is_its_call || self.events.iter().any(|event| is_named_by(approval, event))
    }
}

/// The time between two times, in seconds.
pub(super) fn seconds(from: Timestamp, to: Timestamp) -> String {
    let passed = to.as_millis().saturating_sub(from.as_millis());
    format!("{}.{:03}s", passed / 1000, passed % 1000)
}

/// The call of each event: a call of the gate, or a hook request of another runtime.
pub(super) fn calls(events: &[StoredEvent]) -> Vec<Option<String>> {
    let before = std::iter::once(None).chain(events.iter().map(Some));
    let refused = |before: Option<&StoredEvent>, event| {
        before.filter(|before| is_refusal_of(before, event)).and_then(|before| call_of(&before.event.payload))
    };
    events
        .iter()
        .zip(before)
        .map(|(event, before)| call_of(&event.event.payload).or_else(|| refused(before, event)))
        .collect()
}

/// The call of an event, or the execution that another runtime asked about.
fn call_of(payload: &EventPayload) -> Option<String> {
    match payload {
        EventPayload::HookDecided(decision) => payload.call().or_else(|| decision.ids.execution.clone()),
        _ => payload.call(),
    }
}

/// The event of a missing authority directly follows the refused call, and does not name it.
fn is_refusal_of(before: &StoredEvent, event: &StoredEvent) -> bool {
    let (before, event) = (&before.event, &event.event);
    match (&before.payload, &event.payload) {
        (EventPayload::ToolDenied(_), EventPayload::AuthorizationDecided(decided)) => {
            event.run == before.run
                && event.agent == before.agent
                && before.payload.tool().as_ref() == Some(&decided.resource)
        }
        _ => false,
    }
}

/// Every call with its events, in the order of their first event.
fn parts(events: &[StoredEvent]) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (event, call) in events.iter().zip(calls(events)) {
        let known = call.as_ref().and_then(|call| places.get(call)).and_then(|place| parts.get_mut(*place));
        if let Some(part) = known {
            part.events.push(event);
            continue;
        }
        places.extend(call.clone().map(|call| (call, parts.len())));
        parts.push(Part { call, events: vec![event], moments: Vec::new() });
    }
    parts
}

/// The call, its tool and its agent, from any event that has them.
fn call_heading(call: &str, events: &[&StoredEvent]) -> String {
    let mut heading = format!("call {}", clean(call));
    if let Some(tool) = events.iter().find_map(|event| event.event.payload.tool()) {
        heading.push_str(&format!(" {}", clean(&tool)));
    }
    if let Some(agent) = events.iter().find_map(|event| event.event.agent.as_ref()) {
        heading.push_str(&format!(" by {agent}"));
    }
    heading
}

#[cfg(test)]
mod tests;
