//! The way to a guardian of somebody else: bytes there, bytes back. What they mean is the guardian room's business, how
//! they travel is egress's, and neither knows the other.

use std::time::Duration;

use async_trait::async_trait;

/// A way to one guardian.
#[async_trait]
pub trait Link: Send + Sync {
    /// Sends a question once, in JSON, and reads the answer. The whole exchange ends with the timeout; whoever
    /// drops this before then hears nothing of it any more.
    async fn post(&self, question: Vec<u8>, timeout: Duration) -> Result<LinkResponse, LinkFailure>;
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkResponse {
    /// The status. A redirect is an answer like any other; it is not followed.
    pub status: u16,
    /// What the body is said to be.
    pub content_type: Option<String>,
    /// The body, complete.
    pub body: Vec<u8>,
}

/// Why nothing came back that could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkFailure {
    /// No connection: certainly nothing of the question arrived.
    Connect,
    /// A connection that cannot be trusted.
    Tls,
    /// The timeout passed.
    Timeout,
    /// A larger answer than is read.
    Oversize,
    /// Something that is no answer, or the end of the connection.
    Broken,
}
