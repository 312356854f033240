//! The session of a legacy client at the gate. A session that the gate has forgotten, as after a restart, is opened again
//! with the message by which the client opened it, and the client notices nothing.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::Value;

use super::bridge::BridgeError;
use super::headers::{self, SESSION};
use super::message::Request;
use crate::client::Client;

const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// An open session.
#[derive(Debug, Clone)]
pub(super) struct Session {
    id: HeaderValue,
    version: String,
    /// The message by which the client opened it.
    initialize: Bytes,
}

/// A session, and the response of the gate.
pub(super) struct Opened {
    pub(super) session: Option<Session>,
    pub(super) response: Bytes,
}

impl Session {
    /// Opens the session that the client asks for. Without a session, the response says why the gate refused.
    pub(super) async fn open(client: &Client, request: &Request) -> Result<Opened, BridgeError> {
        let initialize = request.bytes.clone();
        let response = client.mcp(Method::POST, HeaderMap::new(), initialize.clone()).await?;
        let id = response.header(SESSION.as_str()).cloned().filter(|_| response.status() == StatusCode::OK);
        let response = if response.is_stream() {
            let message = response.stream().next().await?;
            Bytes::from(message.ok_or(BridgeError::NoResponse)?)
        } else {
            response.bytes().await?
        };
        let version = serde_json::from_slice::<Value>(&response).ok();
        let version = version.and_then(|body| Some(body.pointer("/result/protocolVersion")?.as_str()?.to_owned()));
        let session = id.zip(version).map(|(id, version)| Self { id, version, initialize });
        Ok(Opened { session, response })
    }

    /// Opens a session in place of this one, which has ended.
    pub(super) async fn reopen(&self, client: &Client) -> Result<Self, BridgeError> {
        let request =
            Request { id: Value::Null, method: String::new(), params: Value::Null, bytes: self.initialize.clone() };
        let opened = Self::open(client, &request).await?;
        let session = opened.session.ok_or_else(|| BridgeError::NotReopened(reason(&opened.response)))?;
        if session.version != self.version {
            let reason = format!("it now uses version {} instead of {}", session.version, self.version);
            return Err(BridgeError::NotReopened(reason));
        }
        client.mcp(Method::POST, session.headers(), Bytes::from_static(INITIALIZED)).await?;
        Ok(session)
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.id == other.id
    }

    pub(super) fn headers(&self) -> HeaderMap {
        headers::legacy(&self.version, &self.id)
    }
}

/// What the gate says in an error.
fn reason(response: &[u8]) -> String {
    let body = serde_json::from_slice::<Value>(response).unwrap_or_default();
    let message = body.pointer("/error/message").and_then(Value::as_str);
    message.unwrap_or("it sent no session").to_owned()
}
