//! Changes of the active policies: new ones, those of an earlier version, a rule that leaves shadow mode. Each creates
//! a new version.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use toolgate_api::policies::{PoliciesRequest, PolicyVersionRules, PromotePolicy, RollBackPolicies};
use toolgate_gate::authority::policies::NewPolicies;

use super::active::with_rules;
use super::files::{self, policy_files};
use crate::caller::Identified;
use crate::mount::TypedRequest;
use crate::openintent::error::Denied;
use crate::router::App;

pub(super) async fn apply(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    request: Request,
) -> Result<Json<PolicyVersionRules>, Denied> {
    let body: PoliciesRequest = files::read(&app, &caller, request).await?;
    let new = NewPolicies {
        files: policy_files(body.files),
        note: body.note.map(|note| note.as_str().to_owned()),
        expected: body.expected_version,
    };
    let version = app.gate.policies.apply_policies(&caller, new).await?;
    Ok(Json(with_rules(&app, Arc::new(version)).await?))
}

pub(super) async fn roll_back(request: TypedRequest<RollBackPolicies>) -> Result<PolicyVersionRules, Denied> {
    let TypedRequest { app, caller, body, .. } = request;
    let version = app.gate.policies.roll_back_policies(&caller, body.version, body.expected_version).await?;
    Ok(with_rules(&app, Arc::new(version)).await?)
}

pub(super) async fn promote(request: TypedRequest<PromotePolicy>) -> Result<PolicyVersionRules, Denied> {
    let TypedRequest { app, caller, body, .. } = request;
    let version = app.gate.policies.promote_policy(&caller, &body.policy_id).await?;
    Ok(with_rules(&app, Arc::new(version)).await?)
}
