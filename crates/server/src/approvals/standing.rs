//! Standing approvals: listing, explaining, taking back.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolgate_model::approval::ApprovalSession;
use toolgate_model::id::StandingApprovalId;
use toolgate_model::principal::PrincipalId;
use toolgate_model::text::Line;

use super::sessions::SessionBody;
use super::shapes;
use crate::body::{Body, Nothing, OptionalBody, optional_object};
use crate::caller::{Asked, Identified};
use crate::openintent::error::Denied;
use crate::parameters::{Id, page};
use crate::router::App;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StandingQuery {
    agent_id: Option<PrincipalId>,
    tool: Option<Line>,
    active: Option<bool>,
    limit: Option<u32>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExplainBody {
    agent_id: Option<PrincipalId>,
    tool: Line,
    arguments: Map<String, Value>,
    #[serde(default, deserialize_with = "optional_object")]
    session: Option<SessionBody>,
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Asked(caller, query): Asked<StandingQuery>,
) -> Result<Json<Value>, Denied> {
    let request = page(query.limit, query.cursor)?;
    let tool = query.tool.map(|tool| tool.as_str().to_owned());
    let active = query.active.unwrap_or(false);
    let found = app.gate.approvals.standing_approvals(&caller, query.agent_id, tool, active, request).await?;
    let now = app.gate.clock.now();
    let shown: Vec<Value> = found.items.iter().map(|standing| shapes::standing(standing, now)).collect();
    Ok(Json(json!({"standing_approvals": shown, "next_cursor": found.next})))
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<StandingApprovalId>,
) -> Result<Json<Value>, Denied> {
    let standing = app.gate.approvals.standing_approval(&caller, id).await?;
    Ok(Json(shapes::standing(&standing, app.gate.clock.now())))
}

pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<StandingApprovalId>,
    OptionalBody(Nothing {}): OptionalBody<Nothing>,
) -> Result<Json<Value>, Denied> {
    let standing = app.gate.approvals.revoke_standing_approval(&caller, id).await?;
    Ok(Json(shapes::standing(&standing, app.gate.clock.now())))
}

pub(super) async fn explain(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Body(body): Body<ExplainBody>,
) -> Result<Json<Value>, Denied> {
    let agent = body.agent_id.unwrap_or_else(|| caller.id().clone());
    let owner = caller.id().clone();
    let session = body.session.map(|SessionBody { name, workspace }| ApprovalSession { owner, name, workspace });
    let arguments = Value::Object(body.arguments);
    let explained =
        app.gate.approvals.explain_standing(&caller, &agent, body.tool.as_str(), &arguments, session.as_ref()).await?;
    Ok(Json(match explained {
        Ok(standing) => {
            let rules: Vec<String> = standing.iter().map(toolgate_model::approval::StandingApproval::rule).collect();
            let ids: Vec<_> = standing.iter().map(|standing| standing.id).collect();
            json!({"covered": true, "why": rules.join("; "), "standing_approval_ids": ids})
        }
        Err(why) => json!({"covered": false, "why": why, "standing_approval_ids": []}),
    }))
}
