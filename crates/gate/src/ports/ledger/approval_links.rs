//! One-time links to approvals.

use async_trait::async_trait;
use toolgate_model::approval::{Approval, LinkDigest};
use toolgate_model::id::ApprovalId;
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use super::Mandate;
use crate::refusal::Refusal;

/// One-time links to approvals.
#[async_trait]
pub trait ApprovalLinks: Send + Sync {
    async fn create_approval_link(&self, command: CreateApprovalLink) -> Result<(), Refusal>;
    /// Uses a link up; returns its approval.
    async fn redeem_approval_link(&self, command: RedeemApprovalLink) -> Result<Approval, Refusal>;
}

/// Makes a link to an approval.
#[derive(Debug, Clone)]
pub struct CreateApprovalLink {
    /// Whose.
    pub tenant: TenantId,
    /// To which.
    pub approval: ApprovalId,
    /// The digest of its token.
    pub digest: LinkDigest,
    /// Until when it can be used.
    pub expires_at: Timestamp,
    /// Now.
    pub now: Timestamp,
}

/// Uses a link up: compare-and-set, the first use wins.
#[derive(Debug, Clone)]
pub struct RedeemApprovalLink {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// The digest of the token that was shown.
    pub digest: LinkDigest,
}
