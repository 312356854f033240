//! Tool sessions (RFC 0078 §D): opened before the first call of a multi-step use of a tool, closed after the last one.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_gate::authority::sessions::SessionRequest;
use toolgate_gate::ports::ledger::ToolSession;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::descriptor::ToolId;
use toolgate_model::hook::RunId;
use toolgate_model::id::SessionId;

use super::caller::{Asked, PathName};
use super::error::Flat;
use crate::body::{self, Nothing};
use crate::router::App;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NewSession {
    tool_id: String,
    run_id: Option<RunId>,
    ttl_seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CloseQuery {
    outcome: Option<Outcome>,
}

/// How a session ends. The protocol's texts agree on these two.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Completed,
    Failed,
}

pub(super) async fn open(
    State(app): State<Arc<App>>,
    Asked(caller, Nothing {}): Asked<Nothing>,
    request: Request,
) -> Result<Response, Flat> {
    let wanted: NewSession = body::json(request, app.max_body).await?;
    let missing = |_| Refusal::new(Code::ToolNotFound, "there is no such tool, or none that you may use");
    let request = SessionRequest {
        tool: ToolId::parse(&wanted.tool_id).map_err(missing)?,
        run: wanted.run_id,
        lifetime: wanted.ttl_seconds.map(Duration::from_secs),
    };
    let session = app.gate.administration.open_session(&caller, request).await?;
    Ok((StatusCode::CREATED, Json(shape(&session))).into_response())
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Asked(caller, Nothing {}): Asked<Nothing>,
    PathName(id): PathName,
) -> Result<Json<Value>, Flat> {
    Ok(Json(shape(&app.gate.administration.session(&caller, read(&id)?).await?)))
}

pub(super) async fn close(
    State(app): State<Arc<App>>,
    Asked(caller, query): Asked<CloseQuery>,
    PathName(id): PathName,
) -> Result<StatusCode, Flat> {
    let completed = query.outcome != Some(Outcome::Failed);
    app.gate.administration.close_session(&caller, read(&id)?, completed).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn read(id: &str) -> Result<SessionId, Refusal> {
    SessionId::parse(id).map_err(|_| Refusal::new(Code::SessionNotFound, "there is no such session"))
}

fn shape(session: &ToolSession) -> Value {
    json!({
        "sessionId": session.id, "toolId": session.tool, "runId": session.run, "openedAt": session.opened_at,
        "expiresAt": session.expires_at,
    })
}
