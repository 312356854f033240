//! One-time links to approvals: redeeming one shows its approval and decides nothing.

use toolgate_model::approval::{Approval, LinkToken};
use toolgate_model::permission::Permission;

use crate::authority::ApprovalAdministration;
use crate::identify::Caller;
use crate::ports::ledger::RedeemApprovalLink;
use crate::refusal::Refusal;

impl ApprovalAdministration {
    /// Redeems a link and returns its approval, if the caller is an approver.
    pub async fn redeem_approval_link(&self, caller: &Caller, token: &LinkToken) -> Result<Approval, Refusal> {
        // Checked before the link is read: a caller who may not approve must not use it up.
        caller.require(Permission::DecideApprovals)?;
        let command = RedeemApprovalLink { audit: caller.mandate(self.clock.now()), digest: token.digest() };
        self.links.redeem_approval_link(command).await
    }
}
