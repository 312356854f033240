//! Definitions of services.

use serde::{Deserialize, Serialize};

use crate::credential::ServiceName;
use crate::service::ServiceVersion;

/// A version of a definition was registered or replaced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceApplied {
    /// SHA-256 of the canonical definition.
    pub digest: String,
    pub service: ServiceName,
    /// The number of tools.
    pub tools: u64,
    pub version: ServiceVersion,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceRemoved {
    pub service: ServiceName,
    pub version: ServiceVersion,
}
