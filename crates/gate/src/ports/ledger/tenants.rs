//! Tenants.

use async_trait::async_trait;
use toolgate_model::principal::{Principal, Tenant, TenantId};

use super::{Mandate, NewKey, Page, PageRequest};
use crate::refusal::Refusal;

#[async_trait]
pub trait Tenants: Send + Sync {
    /// Creates a tenant with its administrator.
    async fn create_tenant(&self, command: CreateTenant) -> Result<(), Refusal>;
    async fn tenants(&self, page: PageRequest) -> Result<Page<Tenant>, Refusal>;
    async fn tenant(&self, id: &TenantId) -> Result<Option<Tenant>, Refusal>;
}

/// Creates a tenant, its administrator and the administrator's first key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateTenant {
    pub audit: Mandate,
    pub tenant: Tenant,
    pub administrator: Principal,
    pub key: NewKey,
}
