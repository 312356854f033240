//! Results that a service streams: each event is redacted and passed on as it comes, as fast as the caller takes them.

use std::collections::BTreeMap;

use serde_json::Value;
use toolgate_gate::ports::event_stream::{Cut, EventStream};
use toolgate_gate::ports::source::{Execution, FailureKind, ServiceResponse, SourceFailure};
use toolgate_model::redaction::Redactor;
use toolgate_model::step::StreamEvent;
use toolgate_model::strict_json;

use crate::adapter::failure;
use crate::client::OpenResponse;
use crate::events::{Event, Events};

/// How much of a stream is passed on, in bytes.
const STREAM_LIMIT: usize = 64 * 1024 * 1024;
/// How many times its longest form a secret may take when it is escaped and spread over events.
const ESCAPED: usize = 2;
/// In how many places of events texts are remembered.
const PLACES: usize = 256;

/// Passes the events of a response on, up to its end.
pub(super) async fn forward(mut response: OpenResponse, redactor: &Redactor, stream: &dyn EventStream) -> Execution {
    let status = response.status();
    let (mut events, mut size) = (Events::default(), 0);
    let mut redaction = StreamRedaction::new(redactor);
    loop {
        let chunk = response.chunk().await.map_err(|error| {
            let mut failure = failure(&error);
            redactor.redact_text(&mut failure.reason);
            SourceFailure { sent: true, http_status: Some(status), ..failure }
        })?;
        let Some(chunk) = chunk else { break };
        size += chunk.len();
        let complete = events.push(&chunk).ok().filter(|_| size <= STREAM_LIMIT);
        let Some(complete) = complete else {
            let reason = "the service's stream, or an event in it, is too long";
            return Err(broken(status, FailureKind::Service, reason));
        };
        for event in complete {
            let event = redaction.redact(event).map_err(|reason| broken(status, FailureKind::Service, reason))?;
            stream.pass(event).await.map_err(|Cut| cut(status))?;
        }
    }
    let result = stream.end().await.map_err(|Cut| cut(status))?;
    response.release();
    Ok(ServiceResponse { http_status: status, result, truncated: false })
}

fn cut(status: u16) -> SourceFailure {
    broken(status, FailureKind::Cut, "the stream was cut")
}

fn broken(status: u16, kind: FailureKind, reason: &str) -> SourceFailure {
    SourceFailure { http_status: Some(status), sent: true, ..SourceFailure::not_sent(kind, reason) }
}

/// Redacts the secret in events, and finds one that is spread over several.
struct StreamRedaction<'a> {
    redactor: &'a Redactor,
    /// The end of the text that came so far, by the place in the events that it came in.
    texts: BTreeMap<String, String>,
    /// How much of it is remembered, in bytes.
    remembered: usize,
}

impl<'a> StreamRedaction<'a> {
    fn new(redactor: &'a Redactor) -> Self {
        Self { redactor, texts: BTreeMap::new(), remembered: redactor.longest_form() * ESCAPED }
    }

    fn redact(&mut self, event: Event) -> Result<StreamEvent, &'static str> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(|_| "the service's stream is not valid UTF-8");
        let name = event.name.map(text).transpose()?;
        let mut data = text(event.data)?;
        match strict_json::parse(data.as_bytes()) {
            Ok(mut value) => {
                self.search(&value, &mut String::new())?;
                if self.redactor.redact_json(&mut value) {
                    data = value.to_string();
                }
            }
            Err(_) => {
                self.redactor.redact_text(&mut data);
            }
        }
        let name = name.map(|mut name| {
            self.redactor.redact_text(&mut name);
            name
        });
        Ok(StreamEvent { name, data })
    }

    /// Fails if text that continues that of earlier events contains the secret: part of it was passed on already.
    fn search(&mut self, value: &Value, place: &mut String) -> Result<(), &'static str> {
        let length = place.len();
        match value {
            Value::String(text) => return self.search_text(text, place),
            Value::Array(items) => {
                for item in items {
                    place.push_str("/-");
                    self.search(item, place)?;
                    place.truncate(length);
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    place.push('/');
                    place.push_str(name);
                    self.search(member, place)?;
                    place.truncate(length);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn search_text(&mut self, text: &str, place: &str) -> Result<(), &'static str> {
        if self.redactor.hides(text) {
            // It is redacted in the event itself.
            self.texts.remove(place);
            return Ok(());
        }
        if self.texts.len() >= PLACES && !self.texts.contains_key(place) {
            return Err("the service's stream has text in too many places to search it for the credential's secret");
        }
        let before = self.texts.entry(place.to_owned()).or_default();
        before.push_str(text);
        if self.redactor.hides(before) {
            return Err("the service's stream spreads the credential's secret over several events");
        }
        if before.len() > self.remembered {
            let mut from = before.len() - self.remembered;
            while !before.is_char_boundary(from) {
                from += 1;
            }
            before.drain(..from);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_model::secret::{Material, Secret};

    use super::*;

    fn redacted(events: &[Value]) -> Result<Vec<String>, &'static str> {
        let mut material = Material::new();
        material.insert("token".to_owned(), Secret::new("hunter2-hunter2".to_owned()));
        let redactor = Redactor::new(&material);
        let mut redaction = StreamRedaction::new(&redactor);
        let event = |data: &Value| Event { name: None, data: data.to_string().into_bytes() };
        events.iter().map(|data| redaction.redact(event(data)).map(|event| event.data)).collect()
    }

    #[test]
    fn a_secret_inside_of_an_event_is_redacted_and_other_events_stay_as_they_are() {
        let events = redacted(&[json!({"delta": "your key is hunter2-hunter2"}), json!({"delta": "ok"})]).unwrap();
        assert_eq!(events, [r#"{"delta":"your key is [REDACTED]"}"#, r#"{"delta":"ok"}"#]);
    }

    #[test]
    fn a_secret_that_is_spread_over_events_ends_the_stream() {
        for split in 1.."hunter2-hunter2".len() {
            let (first, second) = "hunter2-hunter2".split_at(split);
            let events = [json!({"choices": [{"delta": first}]}), json!({"choices": [{"delta": second}]})];
            assert!(redacted(&events).unwrap_err().contains("spreads"), "{split}");
        }
        let apart = [json!({"a": "hunter2-"}), json!({"b": "hunter2"})];
        assert!(redacted(&apart).is_ok(), "texts in different places are not one text");
    }
}
