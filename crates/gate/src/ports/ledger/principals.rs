//! Principals.

use async_trait::async_trait;
use toolgate_model::descriptor::ToolId;
use toolgate_model::principal::{Principal, PrincipalChanges, PrincipalId, TenantId};

use super::{Mandate, Page, PageRequest, Revision};
use crate::refusal::Refusal;

#[async_trait]
pub trait Principals: Send + Sync {
    async fn create_principal(&self, command: CreatePrincipal) -> Result<(), Refusal>;
    /// Returns removed principals too.
    async fn principal(&self, tenant: &TenantId, id: &PrincipalId) -> Result<Option<Principal>, Refusal>;
    /// Returns the principals that are not removed.
    async fn principals(&self, tenant: &TenantId, page: PageRequest) -> Result<Page<Principal>, Refusal>;
    /// Returns the principal after the change.
    async fn update_principal(&self, command: UpdatePrincipal) -> Result<Principal, Refusal>;
    /// Removes a principal permanently, with its keys and grants. Its id is never assigned again.
    async fn remove_principal(&self, command: RemovePrincipal) -> Result<Removed, Refusal>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatePrincipal {
    pub audit: Mandate,
    pub principal: Principal,
    /// Entries of its allowlist that name no existing tool.
    pub unresolved: Vec<ToolId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdatePrincipal {
    pub audit: Mandate,
    pub id: PrincipalId,
    /// The revision that is changed; any other present revision is a conflict.
    pub expected_revision: u64,
    pub changes: PrincipalChanges,
    /// Entries of the new allowlist that name no existing tool.
    pub unresolved: Vec<ToolId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovePrincipal {
    pub audit: Mandate,
    pub id: PrincipalId,
}

/// What was removed with a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removed {
    pub keys: u64,
    /// Including those delegated from its own.
    pub grants: u64,
    /// The first revision that includes the change.
    pub revision: Revision,
}
