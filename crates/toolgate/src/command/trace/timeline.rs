//! The timeline of an execution: its events, each below the call that it belongs to, with the time since the first.

use std::collections::HashMap;

use toolgate_model::time::Timestamp;

use super::{decision, line};
use crate::output::clean;
use crate::siem::StoredEvent;

/// How wide the time before each line is.
const TIME_WIDTH: usize = 11;

/// The events of an execution.
pub(super) struct Timeline<'a> {
    begun: Option<Timestamp>,
    ended: Option<Timestamp>,
    events: usize,
    /// In the order of their first event.
    parts: Vec<Part<'a>>,
}

/// A call with its events, or an event of no call.
struct Part<'a> {
    call: Option<&'a str>,
    events: Vec<&'a StoredEvent>,
}

impl<'a> Timeline<'a> {
    /// Puts every event below its call; events come in the order of the log.
    pub(super) fn of(events: &'a [StoredEvent]) -> Self {
        let mut parts: Vec<Part<'a>> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for event in events {
            let call = call_of(event);
            let known = call.and_then(|call| places.get(call)).and_then(|place| parts.get_mut(*place));
            if let Some(part) = known {
                part.events.push(event);
                continue;
            }
            places.extend(call.map(|call| (call, parts.len())));
            parts.push(Part { call, events: vec![event] });
        }
        let begun = events.iter().map(|event| event.time).min();
        let ended = events.iter().map(|event| event.time).max();
        Self { begun, ended, events: events.len(), parts }
    }

    /// For people.
    pub(super) fn draw(&self) -> String {
        let mut text = self.heading();
        for part in &self.parts {
            text.push('\n');
            let Some(first) = part.events.first() else { continue };
            let inset = if let Some(call) = part.call {
                text.push_str(&self.line(first.time, "", &call_heading(call, &part.events)));
                "  "
            } else {
                ""
            };
            for event in &part.events {
                text.push_str(&self.line(event.time, inset, &line::told(event)));
                for below in decision::lines(event) {
                    text.push_str(&format!("{:TIME_WIDTH$}{inset}  {below}\n", ""));
                }
            }
        }
        text
    }

    fn heading(&self) -> String {
        let calls = self.parts.iter().filter(|part| part.call.is_some()).count();
        let begun = self.begun.map(|time| time.to_string()).unwrap_or_default();
        format!("{calls} calls, {} events in {}, from {begun} on\n", self.events, self.span(self.ended))
    }

    fn line(&self, time: Timestamp, inset: &str, words: &str) -> String {
        format!("{:<TIME_WIDTH$}{inset}{words}\n", format!("+{}", self.span(Some(time))))
    }

    /// How long after the first event, in seconds and thousandths.
    fn span(&self, time: Option<Timestamp>) -> String {
        let millis = |time: Option<Timestamp>| time.map_or(0, Timestamp::as_millis);
        let passed = millis(time).saturating_sub(millis(self.begun));
        format!("{}.{:03}s", passed / 1000, passed % 1000)
    }
}

/// The call that an event belongs to: one of the gate, or one that another runtime asked about.
pub(super) fn call_of(event: &StoredEvent) -> Option<&str> {
    event.text("callId").or_else(|| event.text("invocation_id")).or_else(|| event.text("execution_id"))
}

/// The call, its tool and whose it is; whichever event tells it.
fn call_heading(call: &str, events: &[&StoredEvent]) -> String {
    let mut heading = format!("call {}", clean(call));
    if let Some(tool) = events.iter().find_map(|event| tool_of(event)) {
        heading.push_str(&format!(" {}", clean(&tool)));
    }
    if let Some(agent) = events.iter().find_map(|event| event.agent.as_deref()) {
        heading.push_str(&format!(" by {}", clean(agent)));
    }
    heading
}

/// The tool with its service.
fn tool_of(event: &StoredEvent) -> Option<String> {
    let alone = event.text("toolName").map(str::to_owned);
    alone.or_else(|| match (event.text("service"), event.text("tool")?) {
        (Some(service), tool) => Some(format!("{service}.{tool}")),
        (None, tool) => Some(tool.to_owned()),
    })
}

#[cfg(test)]
mod tests;
