//! One-time links to approvals.

use async_trait::async_trait;
use toolgate_model::approval::{Approval, LinkDigest};
use toolgate_model::id::ApprovalId;
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use super::Mandate;
use crate::refusal::Refusal;

#[async_trait]
pub trait ApprovalLinks: Send + Sync {
    async fn create_approval_link(&self, command: CreateApprovalLink) -> Result<(), Refusal>;
    /// Redeems a link and returns its approval.
    async fn redeem_approval_link(&self, command: RedeemApprovalLink) -> Result<Approval, Refusal>;
}

#[derive(Debug, Clone)]
pub struct CreateApprovalLink {
    pub tenant: TenantId,
    pub approval: ApprovalId,
    /// The digest of its token.
    pub digest: LinkDigest,
    pub expires_at: Timestamp,
    pub now: Timestamp,
}

/// Redeems a link: compare-and-set, the first use wins.
#[derive(Debug, Clone)]
pub struct RedeemApprovalLink {
    pub audit: Mandate,
    /// The digest of the presented token.
    pub digest: LinkDigest,
}
