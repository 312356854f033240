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

#[derive(Debug, Clone, PartialEq)]
pub struct ApplyService {
    pub audit: Mandate,
    pub definition: ServiceDefinition,
    /// Whether a version that is already registered is replaced.
    pub replace: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoveService {
    pub audit: Mandate,
    pub service: ServiceName,
    /// `None` for all.
    pub version: Option<ServiceVersion>,
}

/// A registered version of a service.
#[derive(Debug, Clone, PartialEq)]
pub struct RegisteredService {
    pub tenant: TenantId,
    pub definition: ServiceDefinition,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Registry {
    /// Counts the changes.
    pub revision: u64,
    /// Each service's newest version first.
    pub services: Vec<RegisteredService>,
}
