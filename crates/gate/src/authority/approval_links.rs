//! One-time links to approvals: using one shows the approval that it leads to, and decides nothing.

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
    /// Makes a link to an open approval that the caller may see, for somebody who may decide it; with the time until which
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

    /// Uses a link up and shows what it leads to, to whoever may answer there.
    pub async fn redeem_approval_link(&self, caller: &Caller, token: &LinkToken) -> Result<Approval, Refusal> {
        // Before the link is looked at: whoever may not answer must not use it up either.
        caller.require(Permission::DecideApprovals)?;
        let command = RedeemApprovalLink { audit: caller.mandate(self.clock.now()), digest: token.digest() };
        self.links.redeem_approval_link(command).await
    }
}
