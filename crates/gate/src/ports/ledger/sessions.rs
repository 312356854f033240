//! Tool sessions.

use async_trait::async_trait;
use toolgate_model::hook::RunId;
use toolgate_model::id::SessionId;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::Mandate;
use crate::refusal::Refusal;

#[async_trait]
pub trait ToolSessions: Send + Sync {
    async fn open_session(&self, command: OpenSession) -> Result<(), Refusal>;
    async fn close_session(&self, command: CloseSession) -> Result<(), Refusal>;
    /// Returns a tool session if it is open.
    async fn session(&self, tenant: &TenantId, id: SessionId) -> Result<Option<ToolSession>, Refusal>;
    /// Closes the tool sessions that have expired, and those that an earlier run of the only process left open; returns
    /// how many.
    async fn close_sessions(&self, now: Timestamp) -> Result<u64, Refusal>;
}

/// A multi-step use of a tool that has not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSession {
    /// Its id.
    pub id: SessionId,
    /// Whose.
    pub principal: PrincipalId,
    /// Of which tool, by its id in the catalog.
    pub tool: String,
    /// The execution that its events belong to.
    pub run: RunId,
    /// Since when.
    pub opened_at: Timestamp,
    /// Until when at the latest.
    pub expires_at: Timestamp,
}

/// Opens a session.
#[derive(Debug, Clone)]
pub struct OpenSession {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// What.
    pub session: ToolSession,
    /// How many its principal may have open, with this one.
    pub most: u32,
}

/// Closes a session; not while a call of it is in flight, so that nothing of it follows its end in the log.
#[derive(Debug, Clone)]
pub struct CloseSession {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// Which.
    pub id: SessionId,
    /// Whether it was brought to its end.
    pub completed: bool,
}
