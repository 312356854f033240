//! Sessions: the mode, the timeout and the attendance of a conversation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolgate_model::approval::{Attendance, Mode, SessionName, Workspace};

use crate::endpoint::RequestBody;
use crate::parameters::inline_schema;

/// The conversation that a call belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallSession {
    pub name: SessionName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
}

/// The terms for the calls of a session.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SessionTerms {
    pub name: SessionName,
    /// The mode in effect.
    #[schemars(with = "ModeName")]
    pub mode: Mode,
    /// How long a call waits for a decision.
    pub ttl_seconds: u64,
    pub attendance: Attendance,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionTermsRequest {
    /// Which calls pass without an approval; the last three are other names for `force`.
    // Read by the server, which also accepts the other names.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ModeAlias>")]
    pub mode: Option<String>,
    /// How long a call waits for a decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 604_800))]
    pub ttl_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attendance: Option<Attendance>,
}

impl RequestBody for SessionTermsRequest {}

struct ModeName;
struct ModeAlias;

inline_schema!(ModeName, "ModeName", json!({"type": "string", "enum": Mode::ALL}));
inline_schema!(
    ModeAlias,
    "ModeAlias",
    json!({
        "type": "string",
        "enum": Mode::ALL.map(Mode::as_str).into_iter().chain(Mode::ALIASES).collect::<Vec<_>>(),
    })
);
