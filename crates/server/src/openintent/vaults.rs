//! Vaults.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_model::id::VaultId;
use toolgate_model::principal::PrincipalId;
use toolgate_model::text::Line;

use super::error::Denied;
use super::shapes;
use crate::body::{Body, Nothing, OptionalBody};
use crate::caller::{Asked, Identified};
use crate::parameters::{Id, Paging};
use crate::router::App;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewVault {
    owner_id: Option<PrincipalId>,
    name: Line,
}

pub(super) async fn create(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Body(new): Body<NewVault>,
) -> Result<(StatusCode, Json<Value>), Denied> {
    let vault = app.gate.administration.create_vault(&caller, new.owner_id, new.name).await?;
    Ok((StatusCode::CREATED, Json(shapes::vault(&vault, &[]))))
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Asked(caller, paging): Asked<Paging>,
) -> Result<Json<Value>, Denied> {
    let page = app.gate.administration.vaults(&caller, paging.request()?).await?;
    Ok(Json(shapes::page("vaults", page, |(vault, credentials)| shapes::vault(&vault, &credentials))))
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<VaultId>,
) -> Result<Json<Value>, Denied> {
    let (vault, credentials) = app.gate.administration.vault(&caller, id).await?;
    Ok(Json(shapes::vault(&vault, &credentials)))
}

pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<VaultId>,
    OptionalBody(Nothing {}): OptionalBody<Nothing>,
) -> Result<Json<Value>, Denied> {
    let deleted = app.gate.administration.delete_vault(&caller, id).await?;
    Ok(Json(json!({
        "status": "deleted",
        "vault_id": id,
        "revoked_credentials": deleted.credentials,
        "revoked_grants": deleted.grants,
        "revision": deleted.revision,
    })))
}
