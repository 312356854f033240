//! Messages of the Model Context Protocol, which `toolgate mcp` passes on as they are. Unlike the endpoints of the API they
//! have no types here, and a response of any status is one.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;

use super::events::{Blocks, MAX_SILENCE};
use super::{Client, ClientError};

/// Where gates serve the protocol.
pub const MCP_PATH: &str = "/mcp";

const ACCEPTED: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENT_STREAM: &str = "text/event-stream";

/// A response. Dropping it closes the connection, by which the gate learns that the request was cancelled.
pub struct McpResponse<'a> {
    client: &'a Client,
    response: Response<Incoming>,
}

/// A response that is a stream of messages.
pub struct McpStream<'a> {
    client: &'a Client,
    body: Incoming,
    blocks: Blocks,
    silence: Option<Duration>,
}

impl Client {
    /// Sends a message (POST), follows a session (GET) or ends it (DELETE). There is no timeout, because an approver may
    /// have to decide.
    pub async fn mcp(&self, method: Method, headers: HeaderMap, body: Bytes) -> Result<McpResponse<'_>, ClientError> {
        let uri = format!("{}{MCP_PATH}", self.url);
        let wrong = |_| ClientError::Url(self.url.clone());
        let mut request = Request::builder().method(method).uri(uri).body(Full::new(body)).map_err(wrong)?;
        let own = request.headers_mut();
        own.extend(headers);
        own.insert(header::AUTHORIZATION, self.authorization.clone());
        own.insert(header::USER_AGENT, HeaderValue::from_static(concat!("toolgate/", env!("CARGO_PKG_VERSION"))));
        own.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        own.insert(header::ACCEPT, ACCEPTED);
        let response = self.http.request(request).await.map_err(|error| self.unreachable(&error))?;
        Ok(McpResponse { client: self, response })
    }
}

impl<'a> McpResponse<'a> {
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub fn header(&self, name: &str) -> Option<&HeaderValue> {
        self.response.headers().get(name)
    }

    pub fn is_stream(&self) -> bool {
        let kind = self.response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        kind.is_some_and(|kind| kind.split(';').next().is_some_and(|kind| kind.trim() == EVENT_STREAM))
    }

    /// The body of a response that is one message.
    pub async fn bytes(self) -> Result<Bytes, ClientError> {
        self.client.collect(self.response.into_body()).await
    }

    /// The messages of a stream, however long they take.
    pub fn stream(self) -> McpStream<'a> {
        McpStream { client: self.client, body: self.response.into_body(), blocks: Blocks::default(), silence: None }
    }

    /// The same for a stream on which the gate sends something every few seconds.
    pub fn live_stream(self) -> McpStream<'a> {
        McpStream { silence: Some(MAX_SILENCE), ..self.stream() }
    }

    /// The error for a response that no gate sends.
    pub fn unexpected(&self) -> ClientError {
        ClientError::UnexpectedServer { url: self.client.url.clone(), status: self.response.status() }
    }
}

impl McpStream<'_> {
    /// The next message; `None` at the end of the stream.
    pub async fn next(&mut self) -> Result<Option<String>, ClientError> {
        loop {
            if let Some(event) = self.blocks.next() {
                // An event without data only says where the stream can be resumed.
                if event.data.is_empty() {
                    continue;
                }
                return Ok(Some(event.data));
            }
            let frame = match self.silence {
                None => self.body.frame().await,
                Some(silence) => tokio::time::timeout(silence, self.body.frame())
                    .await
                    .map_err(|_| self.client.broken_off("no data arrived in time"))?,
            };
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| self.client.broken_off(&error.to_string()))?;
            if let Some(data) = frame.data_ref()
                && !self.blocks.add(data)
            {
                return Err(self.client.broken_off("a message is too long"));
            }
        }
    }
}
