//! Stores of texts: created and removed, and what left them. No event has anything of a text.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::credential::ServiceName;
use crate::document::RemovedParts;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoreCreated {
    /// `memory` or `knowledge`.
    pub kind: String,
    pub store: ServiceName,
    /// Its limits.
    pub terms: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoreRemoved {
    pub kind: String,
    pub store: ServiceName,
}

/// Entries of a memory were deleted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryForgotten {
    pub count: u64,
    /// SHA-256 of their ids.
    pub items: Vec<String>,
    /// `administrator`, `agent` or `expired`.
    pub reason: String,
    pub store: ServiceName,
}

/// A document can be found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnowledgeIngested {
    /// The size of its text.
    pub bytes: u64,
    pub chunks: u64,
    pub document: String,
    /// What was removed because a reader does not see it.
    pub removed: RemovedParts,
    /// Whether it replaces an earlier one with its id.
    pub replaced: bool,
    pub store: ServiceName,
}

/// A document can no longer be found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnowledgeRemoved {
    pub document: String,
    pub store: ServiceName,
}
