//! One-time links to approvals: using one shows the approval that it leads to, and decides nothing.

use toolgate_model::approval::{Approval, LinkToken};
use toolgate_model::permission::Permission;

use crate::authority::ApprovalAdministration;
use crate::identify::Caller;
use crate::ports::ledger::RedeemApprovalLink;
use crate::refusal::Refusal;

impl ApprovalAdministration {
    /// Uses a link up and shows what it leads to, to whoever may answer there.
    pub async fn redeem_approval_link(&self, caller: &Caller, token: &LinkToken) -> Result<Approval, Refusal> {
        // Before the link is looked at: whoever may not answer must not use it up either.
        caller.require(Permission::DecideApprovals)?;
        let command = RedeemApprovalLink { audit: caller.mandate(self.clock.now()), digest: token.digest() };
        self.links.redeem_approval_link(command).await
    }
}
