//! Messages as server-sent events.

use axum::response::sse::Event;
use http::{HeaderName, HeaderValue, header};
use serde_json::{Value, json};

/// The headers of a stream. Proxies that buffer responses would hold it up.
pub(super) const HEADERS: [(HeaderName, HeaderValue); 2] = [
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
];

/// A message of the stream.
pub(super) fn event(message: &str) -> Event {
    // INVARIANT: JSON as we write it has no line break.
    Event::default().event("message").data(message)
}

pub(super) fn notification(method: &str, params: &Value) -> Event {
    event(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string())
}
