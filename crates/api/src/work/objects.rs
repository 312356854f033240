//! Types that several objects of work share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_model::credential::ServiceName;
use toolgate_model::scope::ScopeSet;

/// A window into a list, as the Python client of OpenIntent asks for it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Offset(pub u32);

impl Offset {
    /// Further on, pages are read with a cursor.
    pub const MAXIMUM: u32 = 10_000;
}

crate::parameters::inline_schema!(
    Offset,
    "Offset",
    serde_json::json!({
        "type": "integer",
        "description": "How many items to leave out.",
        "minimum": 0,
        "maximum": Offset::MAXIMUM,
        "default": 0,
    })
);

/// A tool requirement that the coordinator could not delegate.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct UndelegatedTool {
    pub service: ServiceName,
    pub scopes: ScopeSet,
    pub reason: String,
}

/// A tool requirement that an agent does not meet.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct MissingTool {
    pub service: ServiceName,
    /// The scopes that no grant of the agent has.
    pub scopes: ScopeSet,
}
