//! The dialect of a client, and errors in it.

use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use toolgate_model::a2a::{A2aError, Binding, Version};

/// How a client speaks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spoken {
    pub(super) binding: Binding,
    pub(super) version: Version,
    /// The id of its request, over JSON-RPC.
    pub(super) id: Value,
}

impl Spoken {
    /// A response with this result.
    pub(super) fn result(&self, body: Value) -> Response {
        json_response(StatusCode::OK, &self.enveloped("result", body))
    }

    /// A response with this error. Over JSON-RPC its status says success: official clients keep the text of no other.
    pub(super) fn error(&self, error: &A2aError) -> Response {
        match self.binding {
            Binding::JsonRpc => json_response(StatusCode::OK, &self.enveloped("error", error.json_rpc())),
            Binding::HttpJson => {
                let status = StatusCode::from_u16(error.http()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                json_response(status, &error.http_body())
            }
        }
    }

    /// An event of a stream.
    pub(super) fn event(&self, body: Value) -> Event {
        // INVARIANT: JSON as we write it has no line break.
        Event::default().data(self.enveloped("result", body).to_string())
    }

    /// The last event of a stream that failed. A stream that just ends is taken for one that succeeded.
    pub(super) fn error_event(&self, error: &A2aError) -> Event {
        let data = match self.binding {
            Binding::JsonRpc => self.enveloped("error", error.json_rpc()),
            Binding::HttpJson => error.http_body(),
        };
        Event::default().event("error").data(data.to_string())
    }

    fn enveloped(&self, member: &str, body: Value) -> Value {
        match (self.binding, member) {
            (Binding::JsonRpc, member) => json!({"jsonrpc": "2.0", "id": self.id, member: body}),
            (Binding::HttpJson, _) => body,
        }
    }
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    let kind = HeaderValue::from_static("application/json");
    (status, [(header::CONTENT_TYPE, kind)], body.to_string()).into_response()
}
