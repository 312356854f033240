//! Principals and their keys. The protocol calls them all agents; `kind` tells users and services apart.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_gate::authority::principals::NewPrincipal;
use toolgate_model::id::KeyId;
use toolgate_model::permission::PermissionSet;
use toolgate_model::principal::{PrincipalId, PrincipalKind};
use toolgate_model::scope::ScopeSet;
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use super::error::Denied;
use super::shapes;
use crate::body::{Body, Nothing, OptionalBody};
use crate::caller::{Asked, Identified};
use crate::parameters::{Id, Paging};
use crate::router::App;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewAgent {
    id: PrincipalId,
    kind: Option<PrincipalKind>,
    name: Option<Line>,
    #[serde(default)]
    scopes: ScopeSet,
    permissions: Option<PermissionSet>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewKey {
    label: Option<Line>,
    expires_at: Option<Timestamp>,
}

pub(super) async fn whoami(Identified(caller): Identified) -> Json<Value> {
    Json(shapes::principal(caller.principal()))
}

pub(super) async fn create(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Body(new): Body<NewAgent>,
) -> Result<(StatusCode, Json<Value>), Denied> {
    let new = NewPrincipal {
        id: new.id,
        kind: new.kind.unwrap_or(PrincipalKind::Agent),
        name: new.name,
        scopes: new.scopes,
        permissions: new.permissions,
    };
    let principal = app.gate.create_principal(&caller, new).await?;
    Ok((StatusCode::CREATED, Json(shapes::principal(&principal))))
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Asked(caller, paging): Asked<Paging>,
) -> Result<Json<Value>, Denied> {
    let page = app.gate.principals(&caller, paging.request()?).await?;
    Ok(Json(shapes::page("agents", page, |principal| shapes::principal(&principal))))
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<PrincipalId>,
) -> Result<Json<Value>, Denied> {
    Ok(Json(shapes::principal(&app.gate.principal(&caller, &id).await?)))
}

pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<PrincipalId>,
    OptionalBody(Nothing {}): OptionalBody<Nothing>,
) -> Result<Json<Value>, Denied> {
    let removed = app.gate.remove_principal(&caller, &id).await?;
    Ok(Json(json!({
        "status": "removed",
        "agent_id": id,
        "revoked_keys": removed.keys,
        "revoked_grants": removed.grants,
        "revision": removed.revision,
    })))
}

pub(super) async fn create_key(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<PrincipalId>,
    OptionalBody(new): OptionalBody<NewKey>,
) -> Result<(StatusCode, Json<Value>), Denied> {
    let (record, key) = app.gate.create_key(&caller, &id, new.label, new.expires_at).await?;
    let mut shape = shapes::key(&record);
    shape.insert("key".to_owned(), json!(key.expose()));
    Ok((StatusCode::CREATED, Json(Value::Object(shape))))
}

pub(super) async fn list_keys(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<PrincipalId>,
) -> Result<Json<Value>, Denied> {
    let keys = app.gate.keys(&caller, &id).await?;
    let keys: Vec<Value> = keys.iter().map(|record| Value::Object(shapes::key(record))).collect();
    Ok(Json(json!({"keys": keys})))
}

pub(super) async fn revoke_key(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<KeyId>,
    OptionalBody(Nothing {}): OptionalBody<Nothing>,
) -> Result<Json<Value>, Denied> {
    let record = app.gate.revoke_key(&caller, id).await?;
    let mut shape = shapes::key(&record);
    shape.insert("status".to_owned(), json!("revoked"));
    Ok(Json(Value::Object(shape)))
}
