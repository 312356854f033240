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
    /// Removes a principal for good, with its keys and grants. Its id is never assigned again.
    async fn remove_principal(&self, command: RemovePrincipal) -> Result<Removed, Refusal>;
}

/// Registers a principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatePrincipal {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// The principal.
    pub principal: Principal,
    /// What its allowlist names and there is not.
    pub unresolved: Vec<ToolId>,
}

/// Changes a principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdatePrincipal {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// Which.
    pub id: PrincipalId,
    /// The revision that is changed; another one now is a conflict.
    pub expected_revision: u64,
    /// What is to be different.
    pub changes: PrincipalChanges,
    /// What the new allowlist names and there is not.
    pub unresolved: Vec<ToolId>,
}

/// Removes a principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovePrincipal {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// Which.
    pub id: PrincipalId,
}

/// What ended with a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removed {
    /// Keys.
    pub keys: u64,
    /// Grants, those delegated from its own included.
    pub grants: u64,
    /// From which revision on.
    pub revision: Revision,
}
