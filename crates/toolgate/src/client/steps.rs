//! Answers that come in steps: a line of JSON for each, until the work is done.

use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;
use zeroize::Zeroizing;

use super::{Client, ClientError, RESPONSE_LIMIT};
use crate::output::at;

/// What asks for steps instead of one answer.
const LINES: (HeaderName, HeaderValue) = (header::ACCEPT, HeaderValue::from_static("application/x-ndjson"));

/// The steps of one piece of work. Dropped, nobody waits for it any more.
pub struct Steps<'a> {
    client: &'a Client,
    body: Incoming,
    unread: Unread,
}

impl Client {
    /// Changes something that may take long, and is told how far it has come.
    pub async fn change_in_steps(&self, path: &str, body: &Value) -> Result<Steps<'_>, ClientError> {
        let body = Zeroizing::new(body.to_string().into_bytes());
        let answer = self.open_with(Some(LINES), Method::POST, path, Some(body)).await?;
        Ok(Steps { client: self, body: answer.into_body(), unread: Unread::default() })
    }

    /// Follows something that is under work already.
    pub async fn follow_steps(&self, path: &str) -> Result<Steps<'_>, ClientError> {
        let answer = self.open_with(Some(LINES), Method::GET, path, None).await?;
        Ok(Steps { client: self, body: answer.into_body(), unread: Unread::default() })
    }
}

impl Steps<'_> {
    /// The next step, however long it takes: a person may have to answer. `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Value>, ClientError> {
        loop {
            if let Some(line) = self.unread.line() {
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                let value = serde_json::from_slice(&line);
                return value.map(Some).map_err(|_| self.client.broken_off("a line of it is not JSON"));
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|error| self.client.broken_off(&error.to_string()))?;
            if let Some(data) = frame.data_ref()
                && !self.unread.add(data)
            {
                return Err(self.client.broken_off("a line of it is too long"));
            }
        }
    }
}

/// The response in the last step.
pub fn answered(step: &Value) -> Result<Value, ClientError> {
    let body = at(step, "body").clone();
    if body.pointer("/error/code").is_none() {
        return Ok(body);
    }
    let status = at(step, "status").as_u64().and_then(|status| u16::try_from(status).ok());
    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
    Err(ClientError::Refused { status: status.unwrap_or(StatusCode::BAD_GATEWAY), body: Box::new(body) })
}

/// Bytes on their way to becoming lines.
#[derive(Default)]
struct Unread {
    bytes: Vec<u8>,
    /// How many of them are known to hold no line end.
    searched: usize,
}

impl Unread {
    /// Takes bytes as they come; answers whether there is still room for them.
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
    fn an_answer_with_an_error_is_a_refusal_with_its_status() {
        let refused =
            answered(&json!({"event": "answered", "status": 403, "body": {"error": {"code": "APPROVAL_DENIED"}}}));
        assert!(matches!(refused, Err(ClientError::Refused { status: StatusCode::FORBIDDEN, .. })));
        let done = answered(&json!({"event": "answered", "status": 200, "body": {"status": "success", "error": null}}));
        assert_eq!(done.unwrap()["status"], "success");
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
