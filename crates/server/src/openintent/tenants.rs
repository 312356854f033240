//! Tenants.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_model::principal::TenantId;
use toolgate_model::text::Line;

use super::error::Denied;
use super::shapes;
use crate::body::Body;
use crate::caller::{Asked, Identified};
use crate::parameters::{Id, Paging};
use crate::router::App;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewTenant {
    id: TenantId,
    name: Option<Line>,
}

pub(super) async fn create(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Body(new): Body<NewTenant>,
) -> Result<(StatusCode, Json<Value>), Denied> {
    let (tenant, administrator, key) = app.gate.administration.create_tenant(&caller, new.id, new.name).await?;
    let body = json!({
        "id": tenant.id,
        "name": tenant.name,
        "created_at": tenant.created_at,
        "administrator": {"id": administrator, "key": key.expose()},
    });
    Ok((StatusCode::CREATED, Json(body)))
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Asked(caller, paging): Asked<Paging>,
) -> Result<Json<Value>, Denied> {
    let page = app.gate.administration.tenants(&caller, paging.request()?).await?;
    Ok(Json(shapes::page("tenants", page, |tenant| json!(tenant))))
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<TenantId>,
) -> Result<Json<Value>, Denied> {
    Ok(Json(json!(app.gate.administration.tenant(&caller, &id).await?)))
}
