//! Server-sent events as the clients of each vendor read them.

use bytes::Bytes;
use serde_json::{Value, json};
use toolgate_model::llm::Api;
use toolgate_model::step::StreamEvent;

use super::error::Failure;

/// A comment, which every client skips: it keeps the connection from being taken for a dead one.
pub(super) const COMMENT: &[u8] = b": the request goes on\n\n";

/// An event as it is sent.
pub(super) fn written(event: &StreamEvent) -> Bytes {
    let mut text = String::with_capacity(event.data.len() + 64);
    if let Some(name) = &event.name {
        text.push_str("event: ");
        text.push_str(name);
        text.push('\n');
    }
    for line in event.data.split('\n') {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    Bytes::from(text)
}

/// What ends a stream that fails. Each client raises an error for exactly this, and takes anything else for an answer that
/// is complete.
pub(super) fn failed(api: Api, failure: &Failure, begun: &Begun) -> Bytes {
    let vendor = api.vendor();
    let error = failure.to_json(vendor);
    let named =
        |name: &str, data: &Value| written(&StreamEvent { name: Some(name.to_owned()), data: data.to_string() });
    match api {
        Api::Messages | Api::CountTokens => named("error", &error),
        Api::Chat | Api::Embeddings => written(&StreamEvent { name: None, data: error.to_string() }),
        Api::Responses | Api::InputTokens => {
            let inner = error.get("error").cloned().unwrap_or_default();
            let raised = json!({
                "type": "error", "error": inner, "code": failure.code, "message": failure.message, "param": null,
                "sequence_number": begun.events + 1,
            });
            let raised = named("error", &raised);
            let Some(mut response) = begun.response.clone() else { return raised };
            if let Some(members) = response.as_object_mut() {
                members.insert("status".to_owned(), json!("failed"));
                members.insert("error".to_owned(), json!({"code": "server_error", "message": failure.message}));
            }
            let failed = json!({"type": "response.failed", "sequence_number": begun.events, "response": response});
            Bytes::from([named("response.failed", &failed), raised].concat())
        }
    }
}

/// What a stream has said so far, as far as its end needs it.
#[derive(Default)]
pub(super) struct Begun {
    events: u64,
    /// The response that the first event announced.
    response: Option<Value>,
}

impl Begun {
    pub(super) fn note(&mut self, api: Api, event: &StreamEvent) {
        if self.events == 0 && api == Api::Responses {
            let first: Option<Value> = serde_json::from_str(&event.data).ok();
            self.response = first.and_then(|mut first| Some(first.get_mut("response")?.take()));
        }
        self.events += 1;
    }
}
