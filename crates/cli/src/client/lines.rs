//! Responses as lines of JSON, one for each step of the work.

use std::marker::PhantomData;

use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use toolgate_api::tools::{CallResponse, SucceededCall};

use super::{Client, ClientError, RESPONSE_LIMIT, Refused};

/// The steps of a response. Dropping it closes the connection.
pub struct Lines<'a, T> {
    client: &'a Client,
    body: Incoming,
    unread: Unread,
    item: PhantomData<T>,
}

impl<'a, T> Lines<'a, T> {
    pub(super) fn new(client: &'a Client, body: Incoming) -> Self {
        Self { client, body, unread: Unread::default(), item: PhantomData }
    }
}

impl<T: DeserializeOwned> Lines<'_, T> {
    /// The next step, without a timeout, because an approver may have to decide. `None` after the last.
    pub async fn next(&mut self) -> Result<Option<T>, ClientError> {
        loop {
            if let Some(line) = self.unread.line() {
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                let step = serde_json::from_slice(&line);
                return step.map(Some).map_err(|_| self.client.broken_off("it contains a line that cannot be parsed"));
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|error| self.client.broken_off(&error.to_string()))?;
            if let Some(data) = frame.data_ref()
                && !self.unread.add(data)
            {
                return Err(self.client.broken_off("it contains a line that is too long"));
            }
        }
    }
}

/// The response in the last step of a call.
pub fn call_outcome(status: u16, body: CallResponse) -> Result<SucceededCall, ClientError> {
    match body {
        CallResponse::Succeeded(call) => Ok(call),
        CallResponse::Failed(call) => Err(refused(status, Refused::Call(call))),
        CallResponse::Refused(body) => Err(refused(status, Refused::Request(body))),
    }
}

/// A refusal with the status that the last step contains.
pub fn refused(status: u16, body: Refused) -> ClientError {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    ClientError::Refused { status, body: Box::new(body) }
}

/// Assembles lines from bytes.
#[derive(Default)]
struct Unread {
    bytes: Vec<u8>,
    /// How many of them are known to contain no line end.
    searched: usize,
}

impl Unread {
    /// Adds received bytes. Returns false if they exceed the limit.
    fn add(&mut self, bytes: &[u8]) -> bool {
        self.bytes.extend_from_slice(bytes);
        self.bytes.len() <= RESPONSE_LIMIT
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.bytes.iter().skip(self.searched).position(|byte| *byte == b'\n');
        let Some(end) = end else {
            self.searched = self.bytes.len();
            return None;
        };
        let rest = self.bytes.split_off(self.searched + end + 1);
        self.searched = 0;
        Some(std::mem::replace(&mut self.bytes, rest))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_response_with_an_error_is_a_refusal_with_its_status() {
        let Refused::Request(body) = Refused::sample("APPROVAL_DENIED", "no", json!({})) else { panic!("a refusal") };
        let denied = call_outcome(403, CallResponse::Refused(body));
        assert!(matches!(denied, Err(ClientError::Refused { status: StatusCode::FORBIDDEN, .. })));
        let done: CallResponse = serde_json::from_value(json!({
            "invocation_id": "inv_01KGYB3881EC1R60R30C1G60R3", "status": "success", "tool_name": "a.b", "grant_id": null,
            "result": null, "error": null, "cost": {"api_units": 1, "estimated_cost_usd": null}, "duration_ms": 1,
            "timestamp": "2026-03-08T10:00:00.000+00:00",
        }))
        .unwrap();
        assert_eq!(call_outcome(200, done).unwrap().tool_name, "a.b");
    }

    #[test]
    fn lines_are_whole_however_the_bytes_are_cut() {
        let text = b"{\"a\":1}\n\n{\"b\":2}\n{\"cut\"";
        for size in [1, 2, 5, text.len()] {
            let mut unread = Unread::default();
            let mut found = Vec::new();
            for piece in text.chunks(size) {
                assert!(unread.add(piece));
                found.extend(std::iter::from_fn(|| unread.line()));
            }
            assert_eq!(found, [&b"{\"a\":1}\n"[..], b"\n", b"{\"b\":2}\n"], "{size}");
        }
    }
}
