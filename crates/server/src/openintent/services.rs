//! The registry of services.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use http::StatusCode;
use serde_json::Value;
use toolgate_api::reply::Removed;
use toolgate_api::services::{
    ListServices, RegisteredService, RemoveService, RemovedService, ServiceList, ServiceVersions, ShowService,
};
use toolgate_gate::Caller;
use toolgate_gate::ports::ledger;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::credential::ServiceName;
use toolgate_model::permission::Permission;
use toolgate_model::service::ServiceDefinition;

use super::error::Denied;
use crate::body;
use crate::caller::Identified;
use crate::mount::TypedRequest;
use crate::parameters::Id;
use crate::router::App;

/// The largest definition, in bytes.
const DEFINITION_LIMIT: usize = 32 * 1024 * 1024;

pub(super) async fn create(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    request: Request,
) -> Result<(StatusCode, Json<RegisteredService>), Denied> {
    let definition = read(&app, &caller, request).await?;
    let (registered, _) = app.gate.administration.apply_service(&caller, definition, false).await?;
    Ok((StatusCode::CREATED, Json(shown(&registered))))
}

pub(super) async fn replace(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(service): Id<ServiceName>,
    request: Request,
) -> Result<(StatusCode, Json<RegisteredService>), Denied> {
    let definition = read(&app, &caller, request).await?;
    if definition.service != service {
        let reason = "`service` differs from the service in the path";
        return Err(Refusal::new(Code::InvalidField, reason).with("path", "service").into());
    }
    let (registered, new) = app.gate.administration.apply_service(&caller, definition, true).await?;
    Ok((if new { StatusCode::CREATED } else { StatusCode::OK }, Json(shown(&registered))))
}

/// Reads a definition. Definitions of large services exceed the usual limit: only callers that may register one may
/// send it.
async fn read(app: &App, caller: &Caller, request: Request) -> Result<ServiceDefinition, Refusal> {
    let limit = if caller.may(Permission::ManageTools) { app.max_body.max(DEFINITION_LIMIT) } else { app.max_body };
    let definition: toolgate_api::services::ServiceDefinition = body::json(request, limit).await?;
    Ok(ServiceDefinition::from_json(&Value::Object(definition.0))?)
}

pub(super) async fn list(request: TypedRequest<ListServices>) -> Result<ServiceList, Denied> {
    let TypedRequest { app, caller, .. } = request;
    let registry = app.gate.administration.services(&caller).await?;
    Ok(ServiceList { services: registry.services.iter().map(shown).collect(), revision: registry.revision })
}

pub(super) async fn show(request: TypedRequest<ShowService>) -> Result<ServiceVersions, Denied> {
    let TypedRequest { app, caller, path, query, .. } = request;
    let versions = app.gate.administration.service(&caller, &path, query.version.as_ref()).await?;
    Ok(ServiceVersions { service: path, versions: versions.iter().map(shown).collect() })
}

pub(super) async fn remove(request: TypedRequest<RemoveService>) -> Result<RemovedService, Denied> {
    let TypedRequest { app, caller, path, query, .. } = request;
    let removed_versions = app.gate.administration.remove_service(&caller, path.clone(), query.version).await?;
    Ok(RemovedService { status: Removed::Value, service: path, removed_versions })
}

fn shown(registered: &ledger::RegisteredService) -> RegisteredService {
    RegisteredService::new(&registered.definition, registered.created_at, registered.updated_at)
}
