//! Credentials, at the RFC's nested path and at the SDK's flat one.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use toolgate_gate::Caller;
use toolgate_gate::authority::credentials::{NewCredential, NewMaterial};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::credential::{AuthType, ServiceName, material_from_json};
use toolgate_model::id::{CredentialId, VaultId};
use toolgate_model::scope::ScopeSet;
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use super::error::Denied;
use super::shapes;
use crate::body::{Body, Nothing, OptionalBody};
use crate::caller::{Asked, Identified};
use crate::parameters::{Id, Paging, id};
use crate::router::App;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CredentialBody {
    vault_id: Option<String>,
    service: ServiceName,
    label: Line,
    #[serde(default = "api_key")]
    auth_type: AuthType,
    #[serde(default)]
    scopes_available: ScopeSet,
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
    // Read as any JSON: a mistake in it must not be quoted by the deserialiser.
    #[serde(default)]
    material: Value,
    expires_at: Option<Timestamp>,
}

fn api_key() -> AuthType {
    AuthType::ApiKey
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RotateBody {
    #[serde(default)]
    material: Value,
    metadata: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "present")]
    expires_at: Option<Option<Timestamp>>,
}

/// The reason for something, in the body or left out.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReasonBody {
    /// The reason.
    pub reason: Option<Line>,
}

/// Tells `null` from absent: what this reads was present.
pub(super) fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

pub(super) async fn create(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Body(body): Body<CredentialBody>,
) -> Result<(StatusCode, Json<Value>), Denied> {
    let Some(text) = &body.vault_id else {
        return Err(Refusal::new(Code::InvalidField, "`vault_id` is missing").with("path", "vault_id").into());
    };
    let vault = id(text)?;
    create_credential(&app, &caller, vault, body).await
}

pub(super) async fn create_in_vault(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(vault): Id<VaultId>,
    Body(body): Body<CredentialBody>,
) -> Result<(StatusCode, Json<Value>), Denied> {
    if body.vault_id.as_ref().is_some_and(|named| *named != vault.to_string()) {
        let reason = "`vault_id` names another vault than the path; leave it out";
        return Err(Refusal::new(Code::InvalidField, reason).with("path", "vault_id").into());
    }
    create_credential(&app, &caller, vault, body).await
}

async fn create_credential(
    app: &App,
    caller: &Caller,
    vault: VaultId,
    body: CredentialBody,
) -> Result<(StatusCode, Json<Value>), Denied> {
    let new = NewCredential {
        vault,
        service: body.service,
        label: body.label,
        auth_type: body.auth_type,
        scopes_available: body.scopes_available,
        metadata: body.metadata.unwrap_or_default(),
        material: material_from_json(body.material).map_err(Refusal::from)?,
        expires_at: body.expires_at,
    };
    let credential = app.gate.administration.create_credential(caller, new).await?;
    Ok((StatusCode::CREATED, Json(shapes::credential(&credential, app.gate.clock.now()))))
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Asked(caller, paging): Asked<Paging>,
    Id(vault): Id<VaultId>,
) -> Result<Json<Value>, Denied> {
    let page = app.gate.administration.credentials(&caller, vault, paging.request()?).await?;
    let now = app.gate.clock.now();
    Ok(Json(shapes::page("credentials", page, |credential| shapes::credential(&credential, now))))
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<CredentialId>,
) -> Result<Json<Value>, Denied> {
    let credential = app.gate.administration.credential(&caller, id).await?;
    Ok(Json(shapes::credential(&credential, app.gate.clock.now())))
}

pub(super) async fn rotate(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<CredentialId>,
    Body(body): Body<RotateBody>,
) -> Result<Json<Value>, Denied> {
    let new = NewMaterial {
        material: material_from_json(body.material).map_err(Refusal::from)?,
        metadata: body.metadata,
        expires_at: body.expires_at,
    };
    let credential = app.gate.administration.rotate_credential(&caller, id, new).await?;
    Ok(Json(shapes::credential(&credential, app.gate.clock.now())))
}

pub(super) async fn verify(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<CredentialId>,
    OptionalBody(Nothing {}): OptionalBody<Nothing>,
) -> Result<Json<Value>, Denied> {
    let (credential, material) = app.gate.administration.verify_credential(&caller, id).await?;
    Ok(Json(json!({
        "credential_id": id,
        "version": credential.version,
        "status": credential.status(app.gate.clock.now()),
        "material": material,
    })))
}

pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<CredentialId>,
    OptionalBody(body): OptionalBody<ReasonBody>,
) -> Result<Json<Value>, Denied> {
    let revoked = app.gate.administration.revoke_credential(&caller, id, body.reason).await?;
    Ok(Json(json!({
        "status": "revoked",
        "credential_id": id,
        "affected_grants_count": revoked.grants,
        "revision": revoked.revision,
    })))
}
