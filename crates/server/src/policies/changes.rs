//! Changes to what is in force: other policies, those of an earlier version, a rule that is no longer in shadow. Each makes
//! a new version.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use serde::Deserialize;
use serde_json::Value;
use toolgate_gate::authority::policies::NewPolicies;
use toolgate_model::text::Line;

use super::active::with_rules;
use super::files::{self, Files, policy_files};
use crate::body::Body;
use crate::caller::Identified;
use crate::openintent::error::Denied;
use crate::router::App;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApplyBody {
    files: Files,
    note: Option<Line>,
    expected_version: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RollbackBody {
    version: u64,
    expected_version: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PromoteBody {
    policy_id: String,
}

pub(super) async fn apply(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    request: Request,
) -> Result<Json<Value>, Denied> {
    let body: ApplyBody = files::read(&app, &caller, request).await?;
    let new = NewPolicies {
        files: policy_files(body.files),
        note: body.note.map(|note| note.as_str().to_owned()),
        expected: body.expected_version,
    };
    let version = app.gate.policies.apply_policies(&caller, new).await?;
    Ok(Json(Value::Object(with_rules(&app, Arc::new(version)).await?)))
}

pub(super) async fn roll_back(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Body(body): Body<RollbackBody>,
) -> Result<Json<Value>, Denied> {
    let version = app.gate.policies.roll_back_policies(&caller, body.version, body.expected_version).await?;
    Ok(Json(Value::Object(with_rules(&app, Arc::new(version)).await?)))
}

pub(super) async fn promote(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Body(body): Body<PromoteBody>,
) -> Result<Json<Value>, Denied> {
    let version = app.gate.policies.promote_policy(&caller, &body.policy_id).await?;
    Ok(Json(Value::Object(with_rules(&app, Arc::new(version)).await?)))
}
