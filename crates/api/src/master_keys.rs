//! Master keys.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_model::time::Timestamp;

use crate::endpoint::endpoints;

endpoints! {
    tag "master keys" = "Which key wraps the material, and its rotation.";

    /// Show what each master key wraps
    ///
    /// Needs `tenants.manage` in the tenant `default`.
    ShowMasterKeys = GET "/api/v1/master-keys" as "show_master_keys" {
        reply: OK MasterKeys = "The keys.",
    }

    /// Wrap all material by the current master key
    ///
    /// Needs `tenants.manage` in the tenant `default`. The work continues in the background.
    Rekey = POST "/api/v1/master-keys/rekey" as "rekey" {
        reply: ACCEPTED MasterKeys = "Started; `remaining` says how much is left.",
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct MasterKeys {
    /// The id of the key under which new material is sealed.
    pub current: String,
    /// Data keys that another key still wraps.
    pub remaining: u64,
    pub keys: Vec<MasterKey>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct MasterKey {
    pub key_id: String,
    pub current: bool,
    /// The number of data keys that it wraps.
    pub wraps: u64,
    pub retired_at: Option<Timestamp>,
}
