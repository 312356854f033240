//! Standing approvals: listing, explaining, revoking.

use serde_json::Value;
use toolgate_api::approvals::{
    CoverageExplanation, ExplainStandingApprovals, ListStandingApprovals, RevokeStandingApproval, ShowStandingApproval,
    StandingApproval, StandingApprovalPage,
};
use toolgate_api::reply::NextCursor;
use toolgate_model::approval::{self, ApprovalSession};

use crate::mount::TypedRequest;
use crate::openintent::error::Denied;
use crate::parameters::page;

pub(super) async fn list(request: TypedRequest<ListStandingApprovals>) -> Result<StandingApprovalPage, Denied> {
    let TypedRequest { app, caller, query, .. } = request;
    let request = page(query.limit, query.cursor)?;
    let tool = query.tool.map(|tool| tool.as_str().to_owned());
    let active = query.active.unwrap_or(false);
    let found = app.gate.approvals.standing_approvals(&caller, query.agent_id, tool, active, request).await?;
    let now = app.gate.clock.now();
    let standing_approvals = found.items.iter().map(|standing| StandingApproval::new(standing, now)).collect();
    Ok(StandingApprovalPage { standing_approvals, next_cursor: NextCursor(found.next) })
}

pub(super) async fn show(request: TypedRequest<ShowStandingApproval>) -> Result<StandingApproval, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let standing = app.gate.approvals.standing_approval(&caller, path).await?;
    Ok(StandingApproval::new(&standing, app.gate.clock.now()))
}

pub(super) async fn revoke(request: TypedRequest<RevokeStandingApproval>) -> Result<StandingApproval, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let standing = app.gate.approvals.revoke_standing_approval(&caller, path).await?;
    Ok(StandingApproval::new(&standing, app.gate.clock.now()))
}

pub(super) async fn explain(request: TypedRequest<ExplainStandingApprovals>) -> Result<CoverageExplanation, Denied> {
    let TypedRequest { app, caller, body, .. } = request;
    let agent = body.agent_id.unwrap_or_else(|| caller.id().clone());
    let owner = caller.id().clone();
    let session =
        body.session.map(|session| ApprovalSession { owner, name: session.name, workspace: session.workspace });
    let arguments = Value::Object(body.arguments);
    let explained =
        app.gate.approvals.explain_standing(&caller, &agent, body.tool.as_str(), &arguments, session.as_ref()).await?;
    Ok(match explained {
        Ok(standing) => {
            let rules: Vec<String> = standing.iter().map(approval::StandingApproval::rule).collect();
            let standing_approval_ids = standing.iter().map(|standing| standing.id).collect();
            CoverageExplanation { covered: true, why: rules.join("; "), standing_approval_ids }
        }
        Err(why) => CoverageExplanation { covered: false, why, standing_approval_ids: Vec::new() },
    })
}
