//! One-time links to approvals: redeeming one shows its approval and decides nothing.

use toolgate_model::approval::{Approval, LinkToken};
use toolgate_model::id::ApprovalId;
use toolgate_model::permission::Permission;
use toolgate_model::time::Timestamp;

use crate::authority::ApprovalAdministration;
use crate::identify::Caller;
use crate::ports::entropy::random;
use crate::ports::ledger::{CreateApprovalLink, RedeemApprovalLink};
use crate::refusal::Refusal;

impl ApprovalAdministration {
    /// Makes a link to an open approval that the caller may see, for an approver; with the time until which
    /// it leads there.
    pub async fn create_approval_link(
        &self,
        caller: &Caller,
        approval: ApprovalId,
    ) -> Result<(LinkToken, Timestamp), Refusal> {
        let approval = self.approval_of(caller, approval).await?;
        let token = LinkToken::from_entropy(random()?);
        let command = CreateApprovalLink {
            tenant: approval.tenant.clone(),
            approval: approval.id,
            digest: token.digest(),
            expires_at: approval.expires_at,
            now: self.clock.now(),
        };
        self.links.create_approval_link(command).await?;
        Ok((token, approval.expires_at))
    }

    /// Redeems a link and returns its approval, if the caller is an approver.
    pub async fn redeem_approval_link(&self, caller: &Caller, token: &LinkToken) -> Result<Approval, Refusal> {
        // Checked before the link is read: a caller who may not approve must not use it up.
        caller.require(Permission::DecideApprovals)?;
        let command = RedeemApprovalLink { audit: caller.mandate(self.clock.now()), digest: token.digest() };
        self.links.redeem_approval_link(command).await
    }
}
