//! What is in force, and what rules can speak of.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::guard::PolicySetVersion;

use super::shapes;
use crate::caller::Identified;
use crate::openintent::error::Denied;
use crate::router::App;

pub(super) async fn show(State(app): State<Arc<App>>, Identified(caller): Identified) -> Result<Json<Value>, Denied> {
    let policies = app.gate.policies.active_policies(&caller).await?;
    Ok(Json(match &policies.active {
        Some(active) => Value::Object(with_rules(&app, Arc::clone(active)).await?),
        None => shapes::no_version(),
    }))
}

pub(super) async fn schema(State(app): State<Arc<App>>, Identified(caller): Identified) -> Result<Json<Value>, Denied> {
    Ok(Json(json!({"schema": app.gate.policies.policy_schema(&caller).await?})))
}

/// A version with its rules. Those are read from its files beside the requests in flight: many take a while.
pub(super) async fn with_rules(app: &App, version: Arc<PolicySetVersion>) -> Result<Map<String, Value>, Refusal> {
    let mut shape = shapes::version(&version);
    let gate = Arc::clone(&app.gate);
    let rules = tokio::task::spawn_blocking(move || gate.policies.policy_rules(&version)).await;
    let rules = rules.map_err(|_| Refusal::new(Code::Internal, "the rules could not be read; see the gate's log"))?;
    shape.insert("rules".to_owned(), rules.iter().map(shapes::rule).collect());
    Ok(shape)
}
