//! The policies of a tenant.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PoliciesChanged {
    pub change: PolicyChangeKind,
    /// SHA-256 of the canonical files.
    pub digest: String,
    pub note: Option<String>,
    /// The number of rules.
    pub rules: u64,
    /// The number of rules in shadow mode.
    pub shadowed: u64,
    /// The version or the rule that the change is about.
    pub subject: Option<String>,
    /// The version that is active now.
    pub version: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyChangeKind {
    Applied,
    Promoted,
    RolledBack,
}
