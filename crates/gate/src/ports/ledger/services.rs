//! Commands on the registry of services.

use toolgate_model::credential::ServiceName;
use toolgate_model::principal::TenantId;
use toolgate_model::service::{ServiceDefinition, ServiceVersion};
use toolgate_model::time::Timestamp;

use super::Mandate;

/// Registers a version of a service.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplyService {
    /// Who and when, and by which right.
    pub stamp: Mandate,
    /// The definition.
    pub definition: ServiceDefinition,
    /// Whether a version that is registered already is replaced.
    pub replace: bool,
}

/// Removes a version of a service, or all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoveService {
    /// Who and when, and by which right.
    pub stamp: Mandate,
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
