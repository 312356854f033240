//! One-time links, for callers that have a key and may decide. Redeeming a link takes a POST, so that programs that
//! preview links redeem none.

use toolgate_api::approvals::{Approval, RedeemApprovalLink};

use super::shown::shown;
use crate::mount::TypedRequest;
use crate::openintent::error::Denied;

pub(super) async fn redeem(request: TypedRequest<RedeemApprovalLink>) -> Result<Approval, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let approval = app.gate.approvals.redeem_approval_link(&caller, &path).await?;
    Ok(shown(&app, &approval).await?)
}
