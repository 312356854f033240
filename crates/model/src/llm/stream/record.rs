//! What is recorded of a stream: the model and the usage that the provider stated, and sizes. Never content.

use serde_json::{Map, Value, json};

use crate::llm::api::Api;

pub(super) struct Record {
    api: Api,
    model: Option<String>,
    usage: Map<String, Value>,
    events: u64,
    text_bytes: u64,
    /// Whether the provider has said that the answer is complete.
    finished: bool,
}

impl Record {
    pub(super) fn new(api: Api) -> Self {
        Self { api, model: None, usage: Map::new(), events: 0, text_bytes: 0, finished: false }
    }

    /// Notes what an event states. Later numbers replace earlier ones: they are sums.
    pub(super) fn note(&mut self, json: &Value) {
        self.events += 1;
        let around = match self.api {
            Api::Chat => json,
            Api::Messages => json.get("message").unwrap_or(json),
            _ => json.get("response").unwrap_or(json),
        };
        if let Some(model) = around.get("model").and_then(Value::as_str) {
            self.model = Some(model.chars().take(256).collect());
        }
        if let Some(usage) = around.get("usage").and_then(Value::as_object) {
            let stated = usage.iter().filter(|(_, count)| !count.is_null());
            self.usage.extend(stated.map(|(name, count)| (name.clone(), count.clone())));
        }
    }

    pub(super) fn count(&mut self, text: &str) {
        self.text_bytes = self.text_bytes.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
    }

    pub(super) fn finish(&mut self, last: bool, finished: bool) {
        self.finished |= last || finished;
    }

    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    pub(super) fn result(&self) -> Value {
        let usage = if self.usage.is_empty() { Value::Null } else { Value::Object(self.usage.clone()) };
        json!({
            "model": self.model,
            "usage": usage,
            "streamed": {"events": self.events, "text_bytes": self.text_bytes, "finished": self.finished},
        })
    }
}
