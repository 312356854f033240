//! Results that a service returns as a stream of events, on their way to the caller.

use async_trait::async_trait;
use serde_json::Value;
use toolgate_model::step::StreamEvent;

/// Takes the events of the result of one call. Guardians decide about what they contain before they are passed on.
#[async_trait]
pub trait EventStream: Send + Sync {
    /// Takes the next event, without any form of the secret. Returns when the caller has room for more.
    async fn pass(&self, event: StreamEvent) -> Result<(), Cut>;

    /// The stream is complete. Returns what is recorded as the result of the call.
    async fn end(&self) -> Result<Value, Cut>;
}

/// No more events are taken: close the stream, and fail with [`FailureKind::Cut`](super::source::FailureKind::Cut).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut;
