//! The transport to an external guardian: bytes in both directions. The guardian crate defines their meaning, egress
//! sends them, and neither knows the other.

use std::time::Duration;

use async_trait::async_trait;

/// A connection to one guardian.
#[async_trait]
pub trait Link: Send + Sync {
    /// Sends a request once, as JSON, and reads the response. The timeout covers the whole exchange; dropping the
    /// future abandons it.
    async fn post(&self, question: Vec<u8>, timeout: Duration) -> Result<LinkResponse, LinkFailure>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkResponse {
    /// A redirect is a response like any other; it is not followed.
    pub status: u16,
    pub content_type: Option<String>,
    /// Complete.
    pub body: Vec<u8>,
}

/// Why there is no readable response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkFailure {
    /// No connection: the guardian certainly received nothing.
    Connect,
    /// A connection that cannot be trusted.
    Tls,
    Timeout,
    /// The response exceeds the limit.
    Oversize,
    /// The response is not valid HTTP, or the connection was closed.
    Broken,
}
