//! The client of a call, as long as it waits on a connection on which it can be asked.

use std::fmt;

use async_trait::async_trait;
use serde_json::{Map, Value};
use toolgate_model::client_input::InputCapabilities;

/// Reaches the client that has made a call. What it says is input of the agent's side, never an approval.
#[async_trait]
pub trait ClientLink: fmt::Debug + Send + Sync {
    /// What it can be asked for.
    fn capabilities(&self) -> InputCapabilities;

    /// Asks it by this method, and waits for the result. Dropping the future cancels the request.
    async fn ask(&self, method: &str, params: Map<String, Value>) -> Result<Map<String, Value>, Unanswered>;

    /// Passes a log message of the server on, if the client wants to see such messages.
    fn log(&self, params: Map<String, Value>);
}

/// Why the client has given no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unanswered {
    /// It refused the request with this code.
    Refused { code: i64 },
    /// It was not asked, or what it said was not passed on.
    Denied { reason: String },
    /// It is gone, or asked too much already.
    Unreachable,
}
