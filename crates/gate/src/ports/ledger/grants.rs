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
    async fn create_grant(&self, command: CreateGrant) -> Result<(), Refusal>;
    async fn delegate_grant(&self, command: DelegateGrant) -> Result<Grant, Refusal>;
    /// Returns a grant with every grant that it was delegated from.
    async fn lineage(&self, tenant: &TenantId, id: GrantId) -> Result<Option<Lineage>, Refusal>;
    /// Returns the grants that match the filter, each with its lineage.
    async fn grants(&self, tenant: &TenantId, filter: GrantFilter, page: PageRequest)
    -> Result<Page<Lineage>, Refusal>;
    /// Returns the grants below one, nearest levels first, at most `limit`.
    async fn descendants(&self, tenant: &TenantId, id: GrantId, limit: u32) -> Result<Vec<Grant>, Refusal>;
    /// Revokes a grant with everything below it.
    async fn revoke_grant(&self, command: RevokeGrant) -> Result<Revoked, Refusal>;
    async fn suspend_grant(&self, command: SuspendGrant) -> Result<Grant, Refusal>;
    async fn resume_grant(&self, command: ResumeGrant) -> Result<Grant, Refusal>;
    /// Records the expiry of grants and credentials, once each; returns how many.
    async fn announce_expired(&self, now: Timestamp) -> Result<u64, Refusal>;
}

/// Makes a direct grant. The ledger checks in the same transaction that the credential is active and has the scopes.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateGrant {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// The grant.
    pub grant: Grant,
}

/// Delegates a grant. The ledger checks in the same transaction that the whole lineage is active and that the request is
/// within it.
#[derive(Debug, Clone, PartialEq)]
pub struct DelegateGrant {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// The id of the new grant.
    pub id: GrantId,
    /// The grant to delegate.
    pub source: GrantId,
    /// Who receives it.
    pub target: PrincipalId,
    /// Who passes it on: the source's agent.
    pub granted_by: PrincipalId,
    /// What is passed on.
    pub request: DelegationRequest,
}

/// Takes a grant back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokeGrant {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// Which.
    pub id: GrantId,
    /// Why.
    pub reason: String,
}

/// What a revocation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revoked {
    /// How many grants it ended, the named one included. Zero when it had ended before.
    pub grants: u64,
    /// From which revision on.
    pub revision: Revision,
}

/// Pauses a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuspendGrant {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// Which.
    pub id: GrantId,
    /// Why.
    pub reason: String,
    /// Whether it takes the place of somebody else's pause: a manager's does.
    pub overrides: bool,
}

/// Ends a pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeGrant {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// Which.
    pub id: GrantId,
    /// Only if it was paused by whoever resumes it. Checked in the transaction: somebody else may pause it meanwhile.
    pub only_own: bool,
}

/// Where a grant comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantSource {
    /// From delegation.
    Delegated,
    /// From a person with the permission to grant.
    Direct,
}

/// Which grants to list. What is absent does not filter.
#[derive(Debug, Clone, PartialEq)]
pub struct GrantFilter {
    /// By holder.
    pub agent: Option<PrincipalId>,
    /// By service.
    pub service: Option<ServiceName>,
    /// By credential.
    pub credential: Option<CredentialId>,
    /// By the grant's own status.
    pub status: Option<GrantStatus>,
    /// Direct or delegated.
    pub source: Option<GrantSource>,
    /// By the grant that they were delegated from.
    pub source_grant: Option<GrantId>,
    /// Only on credentials in vaults of this owner.
    pub vault_owner: Option<PrincipalId>,
    /// The moment at which the status is judged.
    pub now: Timestamp,
}

impl GrantFilter {
    /// All grants, judged at this moment.
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
