//! Principals and their keys. The protocol calls them all agents; `kind` tells users and services apart.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_gate::authority::principals::{NewPrincipal, Stored};
use toolgate_model::certificate::CertificateName;
use toolgate_model::descriptor::ToolId;
use toolgate_model::id::KeyId;
use toolgate_model::permission::PermissionSet;
use toolgate_model::principal::{PrincipalChanges, PrincipalId, PrincipalKind, ToolRateLimits};
use toolgate_model::principal_scope::HeldScopes;
use toolgate_model::text::{Label, Line};
use toolgate_model::time::Timestamp;

use super::credentials::present;
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
    scopes: HeldScopes,
    permissions: Option<PermissionSet>,
    #[serde(default)]
    rate_limits: ToolRateLimits,
    tool_allowlist: Option<BTreeSet<ToolId>>,
    #[serde(default)]
    labels: BTreeSet<Label>,
    #[serde(default)]
    detach_calls: bool,
}

/// What is left out stays as it is; `null` takes away what can be missing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentChanges {
    #[serde(default, deserialize_with = "present")]
    name: Option<Option<Line>>,
    #[serde(default, deserialize_with = "present")]
    scopes: Option<HeldScopes>,
    #[serde(default, deserialize_with = "present")]
    permissions: Option<PermissionSet>,
    #[serde(default, deserialize_with = "present")]
    rate_limits: Option<ToolRateLimits>,
    #[serde(default, deserialize_with = "present")]
    tool_allowlist: Option<Option<BTreeSet<ToolId>>>,
    #[serde(default, deserialize_with = "present")]
    labels: Option<BTreeSet<Label>>,
    #[serde(default, deserialize_with = "present")]
    detach_calls: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewKey {
    label: Option<Line>,
    expires_at: Option<Timestamp>,
    certificate: Option<CertificateName>,
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
        rate_limits: new.rate_limits,
        tool_allowlist: new.tool_allowlist,
        labels: new.labels,
        detaches: new.detach_calls,
    };
    let stored = app.gate.administration.create_principal(&caller, new).await?;
    Ok((StatusCode::CREATED, Json(stored_shape(&stored))))
}

pub(super) async fn update(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<PrincipalId>,
    Body(changes): Body<AgentChanges>,
) -> Result<Json<Value>, Denied> {
    let changes = PrincipalChanges {
        name: changes.name,
        scopes: changes.scopes,
        permissions: changes.permissions,
        rate_limits: changes.rate_limits,
        tool_allowlist: changes.tool_allowlist,
        labels: changes.labels,
        detaches: changes.detach_calls,
    };
    let stored = app.gate.administration.update_principal(&caller, &id, changes).await?;
    Ok(Json(stored_shape(&stored)))
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Asked(caller, paging): Asked<Paging>,
) -> Result<Json<Value>, Denied> {
    let page = app.gate.administration.principals(&caller, paging.request()?).await?;
    Ok(Json(shapes::page("agents", page, |principal| shapes::principal(&principal))))
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<PrincipalId>,
) -> Result<Json<Value>, Denied> {
    Ok(Json(shapes::principal(&app.gate.administration.principal(&caller, &id).await?)))
}

pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<PrincipalId>,
    OptionalBody(Nothing {}): OptionalBody<Nothing>,
) -> Result<Json<Value>, Denied> {
    let removed = app.gate.administration.remove_principal(&caller, &id).await?;
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
    let shape = match new.certificate {
        // Whoever presents the certificate shows by it that they have its private key: there is nothing to hand out.
        Some(certificate) => {
            let certified =
                app.gate.administration.register_certificate(&caller, &id, certificate, new.label, new.expires_at);
            shapes::key(&certified.await?)
        }
        None => {
            let (record, key) = app.gate.administration.create_key(&caller, &id, new.label, new.expires_at).await?;
            let mut shape = shapes::key(&record);
            shape.insert("key".to_owned(), json!(key.expose()));
            shape
        }
    };
    Ok((StatusCode::CREATED, Json(Value::Object(shape))))
}

pub(super) async fn list_keys(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<PrincipalId>,
) -> Result<Json<Value>, Denied> {
    let keys = app.gate.administration.keys(&caller, &id).await?;
    let keys: Vec<Value> = keys.iter().map(|record| Value::Object(shapes::key(record))).collect();
    Ok(Json(json!({"keys": keys})))
}

pub(super) async fn revoke_key(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<KeyId>,
    OptionalBody(Nothing {}): OptionalBody<Nothing>,
) -> Result<Json<Value>, Denied> {
    let record = app.gate.administration.revoke_key(&caller, id).await?;
    let mut shape = shapes::key(&record);
    shape.insert("status".to_owned(), json!("revoked"));
    Ok(Json(Value::Object(shape)))
}

/// A principal, and what its new allowlist names in vain.
fn stored_shape(stored: &Stored) -> Value {
    let mut shape = shapes::principal(&stored.principal);
    if let Value::Object(members) = &mut shape {
        members.insert("unresolved_tools".to_owned(), json!(stored.unresolved_tools));
    }
    shape
}
