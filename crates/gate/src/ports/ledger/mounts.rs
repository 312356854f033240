//! Mounted MCP servers. Whatever changes the tools that can be used registers the service of the mount anew, in the same
//! transaction.

use std::collections::BTreeMap;

use async_trait::async_trait;
use toolgate_model::credential::ServiceName;
use toolgate_model::mount::{Mount, MountTool, Offer};
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use super::Mandate;
use crate::refusal::Refusal;

#[async_trait]
pub trait Mounts: Send + Sync {
    /// Adds a mount with the tools that its server offers, all quarantined, and registers its service.
    async fn add_mount(&self, command: AddMount) -> Result<(), Refusal>;
    /// Removes a mount, its tools and its service.
    async fn remove_mount(&self, command: RemoveMount) -> Result<(), Refusal>;
    /// Records what a server offers now; returns the tools whose records changed.
    async fn record_offer(&self, command: RecordOffer) -> Result<OfferRecorded, Refusal>;
    /// Records that a server was looked at and nothing changed, or that it could not be looked at.
    async fn record_check(&self, command: RecordCheck) -> Result<(), Refusal>;
    /// Accepts or rejects what is quarantined.
    async fn decide_mount(&self, command: DecideMount) -> Result<(), Refusal>;
    /// Returns the mounts of a tenant in the order of their names, each with how many of its tools are in each state.
    async fn mounts(&self, tenant: &TenantId) -> Result<Vec<MountSummary>, Refusal>;
    /// Returns a mount with its tools in the order of their names at the server.
    async fn mount(&self, tenant: &TenantId, name: &ServiceName) -> Result<Option<(Mount, Vec<MountTool>)>, Refusal>;
    /// Returns the tenants with mounts that were declared in the configuration.
    async fn declaring_tenants(&self) -> Result<Vec<TenantId>, Refusal>;
    /// Returns the mounts of all tenants that were last looked at before `then`, the longest ago first.
    async fn mounts_to_check(&self, then: Timestamp, limit: usize) -> Result<Vec<(TenantId, ServiceName)>, Refusal>;
}

#[derive(Debug, Clone, PartialEq)]
pub struct AddMount {
    pub audit: Mandate,
    pub mount: Mount,
    pub tools: Vec<MountTool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoveMount {
    pub audit: Mandate,
    pub name: ServiceName,
}

/// Records what a server offers.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordOffer {
    pub audit: Mandate,
    pub name: ServiceName,
    pub offer: Offer,
}

/// What the record of an offer changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OfferRecorded {
    /// How many tools were quarantined.
    pub quarantined: u64,
    /// How many tools are listed again as they were accepted.
    pub restored: u64,
    /// Whether what the server says about itself was quarantined.
    pub server: bool,
}

/// Records a check without news.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordCheck {
    pub tenant: TenantId,
    pub name: ServiceName,
    pub time: Timestamp,
    /// Why the server could not be looked at.
    pub failure: Option<String>,
}

/// Accepts or rejects what is quarantined. Each decision names the hash that the person was shown; another one now is a
/// conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecideMount {
    pub audit: Mandate,
    pub name: ServiceName,
    pub accept: bool,
    /// What the server says about itself. Can only be accepted.
    pub server: Option<Decided>,
    /// Tools by their names at the server.
    pub tools: BTreeMap<String, Decided>,
}

/// What a person decided on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decided {
    pub hash: String,
    /// The codes of blocking findings that the person has overridden.
    pub overridden: Vec<String>,
}

/// A mount in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct MountSummary {
    pub mount: Mount,
    pub accepted: u64,
    pub quarantined: u64,
    pub rejected: u64,
}
