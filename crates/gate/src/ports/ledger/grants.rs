//! Grants.

use async_trait::async_trait;
use toolgate_model::credential::ServiceName;
use toolgate_model::grant::{DelegationRequest, Grant, GrantStatus, Lineage};
use toolgate_model::id::{CredentialId, GrantId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::{Mandate, Page, PageRequest, Revision};
use crate::refusal::Refusal;

#[async_trait]
pub trait Grants: Send + Sync {
    /// Returns the grant with its whole context: a task of this ledger implies its plan and its intent.
    async fn create_grant(&self, command: CreateGrant) -> Result<Grant, Refusal>;
    async fn delegate_grant(&self, command: DelegateGrant) -> Result<Grant, Refusal>;
    /// Returns a grant with every grant that it was delegated from.
    async fn lineage(&self, tenant: &TenantId, id: GrantId) -> Result<Option<Lineage>, Refusal>;
    /// Returns the grants that match the filter, each with its lineage.
    async fn grants(&self, tenant: &TenantId, filter: GrantFilter, page: PageRequest)
    -> Result<Page<Lineage>, Refusal>;
    /// Returns the descendants of a grant, nearest levels first, at most `limit`.
    async fn descendants(&self, tenant: &TenantId, id: GrantId, limit: u32) -> Result<Vec<Grant>, Refusal>;
    /// Revokes a grant with all its descendants.
    async fn revoke_grant(&self, command: RevokeGrant) -> Result<Revoked, Refusal>;
    async fn suspend_grant(&self, command: SuspendGrant) -> Result<Grant, Refusal>;
    async fn resume_grant(&self, command: ResumeGrant) -> Result<Grant, Refusal>;
    /// Records the expiry of grants and credentials, once each; returns how many.
    async fn announce_expired(&self, now: Timestamp) -> Result<u64, Refusal>;
}

/// Creates a direct grant. The ledger checks in the same transaction that the credential is active and has the scopes.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateGrant {
    pub audit: Mandate,
    pub grant: Grant,
}

/// Delegates a grant. The ledger checks in the same transaction that the whole lineage is active and that the request is
/// within it.
#[derive(Debug, Clone, PartialEq)]
pub struct DelegateGrant {
    pub audit: Mandate,
    pub id: GrantId,
    /// The grant to delegate.
    pub source: GrantId,
    pub target: PrincipalId,
    /// The holder of the source.
    pub granted_by: PrincipalId,
    pub request: DelegationRequest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokeGrant {
    pub audit: Mandate,
    pub id: GrantId,
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revoked {
    /// The number of revoked grants, including the named one. Zero if it had already ended.
    pub grants: u64,
    /// The first revision that includes the change.
    pub revision: Revision,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuspendGrant {
    pub audit: Mandate,
    pub id: GrantId,
    pub reason: String,
    /// Whether it replaces a suspension by another principal: a manager's does.
    pub overrides: bool,
}

/// Resumes a suspended grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeGrant {
    pub audit: Mandate,
    pub id: GrantId,
    /// Only if the caller suspended it. Checked in the transaction: another principal may suspend it concurrently.
    pub only_own: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantSource {
    Delegated,
    /// Created by a principal with the permission to grant.
    Direct,
}

/// Filters grants. An absent member does not filter.
#[derive(Debug, Clone, PartialEq)]
pub struct GrantFilter {
    pub agent: Option<PrincipalId>,
    pub service: Option<ServiceName>,
    pub credential: Option<CredentialId>,
    /// The grant's own status.
    pub status: Option<GrantStatus>,
    pub source: Option<GrantSource>,
    /// The grant that they were delegated from.
    pub source_grant: Option<GrantId>,
    /// Only on credentials in vaults of this owner.
    pub vault_owner: Option<PrincipalId>,
    /// The time at which the status is evaluated.
    pub now: Timestamp,
}

impl GrantFilter {
    pub fn all(now: Timestamp) -> Self {
        Self {
            agent: None,
            service: None,
            credential: None,
            status: None,
            source: None,
            source_grant: None,
            vault_owner: None,
            now,
        }
    }
}
