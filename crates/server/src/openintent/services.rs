//! The registry of services.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolgate_gate::Caller;
use toolgate_gate::ports::ledger::RegisteredService;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::credential::ServiceName;
use toolgate_model::permission::Permission;
use toolgate_model::service::{ServiceDefinition, ServiceVersion};

use super::error::Denied;
use crate::body::{self, Nothing, OptionalBody};
use crate::caller::{Asked, Identified};
use crate::parameters::Id;
use crate::router::App;

/// The largest definition, in bytes.
const DEFINITION_LIMIT: usize = 32 * 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VersionQuery {
    version: Option<ServiceVersion>,
}

pub(super) async fn create(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    request: Request,
) -> Result<(StatusCode, Json<Value>), Denied> {
    let definition = read(&app, &caller, request).await?;
    let (registered, _) = app.gate.administration.apply_service(&caller, definition, false).await?;
    Ok((StatusCode::CREATED, Json(shape(&registered))))
}

pub(super) async fn replace(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(service): Id<ServiceName>,
    request: Request,
) -> Result<(StatusCode, Json<Value>), Denied> {
    let definition = read(&app, &caller, request).await?;
    if definition.service != service {
        let reason = "`service` names another service than the path";
        return Err(Refusal::new(Code::InvalidField, reason).with("path", "service").into());
    }
    let (registered, new) = app.gate.administration.apply_service(&caller, definition, true).await?;
    Ok((if new { StatusCode::CREATED } else { StatusCode::OK }, Json(shape(&registered))))
}

/// Reads a definition. Those of large services are larger than any other body: only who may register one may send it.
async fn read(app: &App, caller: &Caller, request: Request) -> Result<ServiceDefinition, Refusal> {
    let limit = if caller.may(Permission::ManageTools) { app.max_body.max(DEFINITION_LIMIT) } else { app.max_body };
    let definition: Map<String, Value> = body::json(request, limit).await?;
    Ok(ServiceDefinition::from_json(&Value::Object(definition))?)
}

pub(super) async fn list(State(app): State<Arc<App>>, Identified(caller): Identified) -> Result<Json<Value>, Denied> {
    let registry = app.gate.administration.services(&caller).await?;
    let services: Vec<Value> = registry.services.iter().map(shape).collect();
    Ok(Json(json!({"services": services, "revision": registry.revision})))
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Asked(caller, query): Asked<VersionQuery>,
    Id(service): Id<ServiceName>,
) -> Result<Json<Value>, Denied> {
    let versions = app.gate.administration.service(&caller, &service, query.version.as_ref()).await?;
    let shapes: Vec<Value> = versions.iter().map(shape).collect();
    Ok(Json(json!({"service": service, "versions": shapes})))
}

pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Asked(caller, query): Asked<VersionQuery>,
    Id(service): Id<ServiceName>,
    OptionalBody(Nothing {}): OptionalBody<Nothing>,
) -> Result<Json<Value>, Denied> {
    let removed = app.gate.administration.remove_service(&caller, service.clone(), query.version).await?;
    Ok(Json(json!({"status": "removed", "service": service, "removed_versions": removed})))
}

fn shape(registered: &RegisteredService) -> Value {
    let mut shape = registered.definition.to_json();
    if let Value::Object(members) = &mut shape {
        members.insert("created_at".to_owned(), json!(registered.created_at));
        members.insert("updated_at".to_owned(), json!(registered.updated_at));
    }
    shape
}
