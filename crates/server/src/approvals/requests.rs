//! The inbox: approvals that wait, and those that have ended.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_gate::ports::ledger::ApprovalFilter;
use toolgate_model::approval::ApprovalStatus;
use toolgate_model::id::ApprovalId;
use toolgate_model::principal::PrincipalId;
use toolgate_model::text::Line;

use super::shapes;
use crate::caller::{Asked, Identified};
use crate::openintent::error::Denied;
use crate::parameters::{Id, page};
use crate::router::App;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApprovalQuery {
    status: Option<ApprovalStatus>,
    agent_id: Option<PrincipalId>,
    tool: Option<Line>,
    limit: Option<u32>,
    cursor: Option<String>,
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Asked(caller, query): Asked<ApprovalQuery>,
) -> Result<Json<Value>, Denied> {
    let request = page(query.limit, query.cursor)?;
    let tool = query.tool.map(|tool| tool.as_str().to_owned());
    let filter = ApprovalFilter { status: query.status, agent: query.agent_id, tool, invocation: None };
    let found = app.gate.approvals.approvals(&caller, filter, request).await?;
    let mut approvals = Vec::with_capacity(found.items.len());
    for approval in &found.items {
        approvals.push(shapes::approval(approval, &app.gate.approvals.present(approval).await?));
    }
    Ok(Json(json!({"approvals": approvals, "next_cursor": found.next})))
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<ApprovalId>,
) -> Result<Json<Value>, Denied> {
    let approval = app.gate.approvals.approval_of(&caller, id).await?;
    Ok(Json(shapes::approval(&approval, &app.gate.approvals.present(&approval).await?)))
}
