//! Tool sessions (OpenWOP RFC 0078): identifiers only.

use serde::{Deserialize, Serialize};

use crate::id::SessionId;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSessionClosed {
    pub outcome: SessionOutcome,
    pub session_id: SessionId,
    pub tool_id: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSessionOpened {
    pub session_id: SessionId,
    pub tool_id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionOutcome {
    Completed,
    Failed,
}
