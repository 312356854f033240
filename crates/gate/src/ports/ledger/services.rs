//! The registry of services.

use std::sync::Arc;

use async_trait::async_trait;
use toolgate_model::credential::ServiceName;
use toolgate_model::principal::TenantId;
use toolgate_model::service::{ServiceDefinition, ServiceVersion};
use toolgate_model::time::Timestamp;

use super::{Freshness, Mandate};
use crate::refusal::Refusal;

#[async_trait]
pub trait Services: Send + Sync {
    /// Registers or replaces a version of a service; returns true if it is new.
    async fn apply_service(&self, command: ApplyService) -> Result<bool, Refusal>;
    /// Removes versions of a service; returns how many.
    async fn remove_service(&self, command: RemoveService) -> Result<u64, Refusal>;
    /// Returns all services of a tenant.
    async fn registry(&self, tenant: &TenantId, now: Timestamp, freshness: Freshness)
    -> Result<Arc<Registry>, Refusal>;
}

/// Registers a version of a service.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplyService {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// The definition.
    pub definition: ServiceDefinition,
    /// Whether a version that is registered already is replaced.
    pub replace: bool,
}

/// Removes a version of a service, or all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoveService {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// Which service.
    pub service: ServiceName,
    /// Which version; `None` is all.
    pub version: Option<ServiceVersion>,
}

/// A version of a service as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct RegisteredService {
    /// Whose it is.
    pub tenant: TenantId,
    /// The definition.
    pub definition: ServiceDefinition,
    /// When the version was first registered.
    pub created_at: Timestamp,
    /// When it was last replaced.
    pub updated_at: Timestamp,
}

/// All services of a tenant.
#[derive(Debug, Clone, PartialEq)]
pub struct Registry {
    /// Counts the changes.
    pub revision: u64,
    /// The versions, each service's newest first.
    pub services: Vec<RegisteredService>,
}
