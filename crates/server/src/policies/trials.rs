//! Policies without consequences: what is wrong with a draft, what it would have said about the last days, what rules in
//! shadow would have done, and whether an execution is judged again as it was.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use serde::Deserialize;
use serde_json::Value;
use toolgate_model::hook::RunId;
use toolgate_model::time::Timestamp;

use super::files::{self, Files, policy_files};
use super::shapes;
use crate::caller::{Asked, Identified};
use crate::openintent::error::Denied;
use crate::parameters::Id;
use crate::router::App;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckBody {
    files: Files,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SimulateBody {
    files: Files,
    since: Timestamp,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShadowQuery {
    since: Timestamp,
}

pub(super) async fn check(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    request: Request,
) -> Result<Json<Value>, Denied> {
    let body: CheckBody = files::read(&app, &caller, request).await?;
    let checked = app.gate.check_policies(&caller, policy_files(body.files)).await?;
    Ok(Json(shapes::checked(&checked)))
}

pub(super) async fn simulate(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    request: Request,
) -> Result<Json<Value>, Denied> {
    let body: SimulateBody = files::read(&app, &caller, request).await?;
    let simulation = app.gate.simulate_policies(&caller, policy_files(body.files), body.since).await?;
    Ok(Json(shapes::simulation(&simulation)))
}

pub(super) async fn shadow(
    State(app): State<Arc<App>>,
    Asked(caller, query): Asked<ShadowQuery>,
) -> Result<Json<Value>, Denied> {
    let report = app.gate.shadow_report(&caller, query.since).await?;
    Ok(Json(shapes::shadow(&report)))
}

pub(super) async fn replay(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(run): Id<RunId>,
) -> Result<Json<Value>, Denied> {
    let replay = app.gate.replay_policies(&caller, run.as_str()).await?;
    Ok(Json(shapes::replay(&run, &replay)))
}
