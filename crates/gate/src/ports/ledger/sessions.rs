//! Tool sessions.

use async_trait::async_trait;
use toolgate_model::credential::ServiceName;
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

/// A multi-step use of a tool that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSession {
    pub id: SessionId,
    pub principal: PrincipalId,
    /// The tool's id in the catalog.
    pub tool: String,
    /// The run that its events belong to.
    pub run: RunId,
    pub opened_at: Timestamp,
    pub expires_at: Timestamp,
}

/// What the ids of tools of mounted servers begin with.
const MOUNTED: &str = "mcp:";

impl ToolSession {
    /// What stands for the tool in a session of a mounted server as a whole: `mcp:SERVICE`. All its tools share its state.
    pub fn of_mount(service: &ServiceName) -> String {
        format!("{MOUNTED}{service}")
    }
}

#[derive(Debug, Clone)]
pub struct OpenSession {
    pub audit: Mandate,
    pub session: ToolSession,
    /// The maximum number of open sessions of its principal, including this one.
    pub most: u32,
}

/// Closes a session; not while one of its calls is in flight, so that none of its events follows its end in the log.
#[derive(Debug, Clone)]
pub struct CloseSession {
    pub audit: Mandate,
    pub id: SessionId,
    /// Whether it ended successfully.
    pub completed: bool,
}
