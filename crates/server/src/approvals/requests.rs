//! The inbox: approvals that wait, and those that have ended.

use toolgate_api::approvals::{Approval, ApprovalPage, ListApprovals, ShowApproval};
use toolgate_api::reply::NextCursor;
use toolgate_gate::ports::ledger::ApprovalFilter;

use super::shown::shown;
use crate::mount::TypedRequest;
use crate::openintent::error::Denied;
use crate::parameters::page;

pub(super) async fn list(request: TypedRequest<ListApprovals>) -> Result<ApprovalPage, Denied> {
    let TypedRequest { app, caller, query, .. } = request;
    let request = page(query.limit, query.cursor)?;
    let tool = query.tool.map(|tool| tool.as_str().to_owned());
    let filter = ApprovalFilter { status: query.status, agent: query.agent_id, tool, invocation: None };
    let found = app.gate.approvals.approvals(&caller, filter, request).await?;
    let mut approvals = Vec::with_capacity(found.items.len());
    for approval in &found.items {
        approvals.push(shown(&app, approval).await?);
    }
    Ok(ApprovalPage { approvals, next_cursor: NextCursor(found.next) })
}

pub(super) async fn show(request: TypedRequest<ShowApproval>) -> Result<Approval, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let approval = app.gate.approvals.approval_of(&caller, path).await?;
    Ok(shown(&app, &approval).await?)
}
