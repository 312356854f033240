//! Grants and delegation.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_gate::authority::grants::{NewDelegation, NewGrant};
use toolgate_gate::ports::ledger::{GrantFilter, GrantSource, PageRequest};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::constraint::Constraints;
use toolgate_model::context::GrantContext;
use toolgate_model::credential::ServiceName;
use toolgate_model::grant::{DelegationDepth, DelegationRequest, GrantStatus, Lineage};
use toolgate_model::id::{CredentialId, GrantId};
use toolgate_model::principal::PrincipalId;
use toolgate_model::scope::ScopeSet;
use toolgate_model::time::Timestamp;

use super::credentials::{ReasonBody, present};
use super::error::Denied;
use super::shapes;
use crate::body::{Body, Nothing, OptionalBody, optional_object};
use crate::caller::{Asked, Identified};
use crate::parameters::{Id, id, page};
use crate::router::App;

/// The most grants of one agent in the SDK's unpaged list.
const UNPAGED_LIMIT: usize = 10_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GrantBody {
    credential_id: String,
    agent_id: PrincipalId,
    granted_by: Option<PrincipalId>,
    #[serde(default)]
    scopes: ScopeSet,
    #[serde(default)]
    constraints: Value,
    #[serde(default, deserialize_with = "optional_object")]
    context: Option<GrantContext>,
    delegatable: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    delegation_depth: Option<Option<u32>>,
    #[serde(default, deserialize_with = "present")]
    expires_at: Option<Option<Timestamp>>,
    #[serde(default)]
    allow_indefinite: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DelegationBody {
    action: Option<String>,
    source_grant_id: Option<String>,
    target_agent_id: Option<PrincipalId>,
    agent_id: Option<PrincipalId>,
    #[serde(default)]
    scopes: ScopeSet,
    #[serde(default)]
    constraints: Value,
    #[serde(default, deserialize_with = "optional_object")]
    context: Option<GrantContext>,
    delegatable: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    delegation_depth: Option<Option<u32>>,
    #[serde(default, deserialize_with = "present")]
    expires_at: Option<Option<Timestamp>>,
    #[serde(default)]
    allow_indefinite: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GrantQuery {
    agent_id: Option<PrincipalId>,
    service: Option<ServiceName>,
    credential_id: Option<String>,
    status: Option<GrantStatus>,
    source: Option<SourceQuery>,
    source_grant_id: Option<String>,
    limit: Option<u32>,
    cursor: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SourceQuery {
    Delegated,
    Direct,
}

pub(super) async fn create(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Body(body): Body<GrantBody>,
) -> Result<(StatusCode, Json<Value>), Denied> {
    let credential = id(&body.credential_id)?;
    let new = NewGrant {
        credential,
        agent: body.agent_id,
        granted_by: body.granted_by,
        scopes: body.scopes,
        constraints: Constraints::from_json(&body.constraints).map_err(Refusal::from)?,
        context: body.context.unwrap_or_default(),
        delegatable: body.delegatable.unwrap_or(false),
        delegation_depth: body.delegation_depth.map(DelegationDepth::from_option),
        expires_at: body.expires_at,
        allow_indefinite: body.allow_indefinite,
    };
    let lineage = app.gate.administration.create_grant(&caller, new).await?;
    Ok((StatusCode::CREATED, shown(&app, &lineage)))
}

pub(super) async fn delegate(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(source): Id<GrantId>,
    Body(body): Body<DelegationBody>,
) -> Result<(StatusCode, Json<Value>), Denied> {
    let invalid = |path: &str, reason: &str| Refusal::new(Code::InvalidField, reason).with("path", path);
    if body.action.as_deref().is_some_and(|action| action != "delegate_grant") {
        return Err(invalid("action", "`action` must be delegate_grant, or be left out").into());
    }
    if body.source_grant_id.as_ref().is_some_and(|named| *named != source.to_string()) {
        return Err(
            invalid("source_grant_id", "`source_grant_id` names another grant than the path; leave it out").into()
        );
    }
    let target = match (body.target_agent_id, body.agent_id) {
        (Some(target), None) | (None, Some(target)) => target,
        (Some(target), Some(agent)) if target == agent => target,
        (Some(_), Some(_)) => {
            return Err(invalid("agent_id", "`agent_id` and `target_agent_id` differ; send one").into());
        }
        (None, None) => return Err(invalid("target_agent_id", "`target_agent_id` is missing").into()),
    };
    let request = DelegationRequest {
        scopes: body.scopes,
        constraints: Constraints::from_json(&body.constraints).map_err(Refusal::from)?,
        context: body.context.unwrap_or_default(),
        delegatable: body.delegatable,
        delegation_depth: body.delegation_depth.map(DelegationDepth::from_option),
        expires_at: body.expires_at,
    };
    let new = NewDelegation { source, target, request, allow_indefinite: body.allow_indefinite };
    let lineage = app.gate.administration.delegate_grant(&caller, new).await?;
    Ok((StatusCode::CREATED, shown(&app, &lineage)))
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Asked(caller, query): Asked<GrantQuery>,
) -> Result<Json<Value>, Denied> {
    let request = page(query.limit, query.cursor)?;
    let now = app.gate.clock.now();
    // An id that is none fits no grant.
    let nothing = || Json(json!({"grants": [], "next_cursor": null}));
    let Ok(credential) = query.credential_id.as_deref().map(CredentialId::parse).transpose() else {
        return Ok(nothing());
    };
    let Ok(source_grant) = query.source_grant_id.as_deref().map(GrantId::parse).transpose() else {
        return Ok(nothing());
    };
    let filter = GrantFilter {
        agent: query.agent_id,
        service: query.service,
        credential,
        status: query.status,
        source: query.source.map(|source| match source {
            SourceQuery::Delegated => GrantSource::Delegated,
            SourceQuery::Direct => GrantSource::Direct,
        }),
        source_grant,
        ..GrantFilter::all(now)
    };
    let found = app.gate.administration.grants(&caller, filter, request).await?;
    Ok(Json(shapes::page("grants", found, |lineage| Value::Object(shapes::grant(&lineage, now)))))
}

/// The SDK's list: all grants of an agent, ended ones included, as a bare array.
pub(super) async fn of_agent(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(agent): Id<PrincipalId>,
) -> Result<Json<Value>, Denied> {
    let now = app.gate.clock.now();
    let mut grants: Vec<Value> = Vec::new();
    let mut request = PageRequest::first(PageRequest::LIMIT);
    loop {
        let filter = GrantFilter { agent: Some(agent.clone()), ..GrantFilter::all(now) };
        let found = app.gate.administration.grants(&caller, filter, request.clone()).await?;
        grants.extend(found.items.iter().map(|lineage| Value::Object(shapes::grant(lineage, now))));
        match found.next {
            Some(next) if grants.len() < UNPAGED_LIMIT => request.after = Some(next),
            Some(_) => {
                let reason = format!("`{agent}` has more than {UNPAGED_LIMIT} grants; page through GET /api/v1/grants");
                return Err(Refusal::new(Code::InvalidField, reason).into());
            }
            None => return Ok(Json(Value::Array(grants))),
        }
    }
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<GrantId>,
) -> Result<Json<Value>, Denied> {
    let (lineage, revision) = app.gate.administration.grant(&caller, id).await?;
    let mut shape = shapes::grant(&lineage, app.gate.clock.now());
    shape.insert("revision".to_owned(), json!(revision));
    Ok(Json(Value::Object(shape)))
}

pub(super) async fn tree(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<GrantId>,
) -> Result<Json<Value>, Denied> {
    let tree = app.gate.administration.grant_tree(&caller, id).await?;
    let now = app.gate.clock.now();
    // From the deepest level up, each grant is hung below its source.
    let mut below: std::collections::BTreeMap<GrantId, Vec<Value>> = std::collections::BTreeMap::new();
    for grant in tree.below.iter().rev() {
        let mut shape = shapes::bare_grant(grant, now);
        let mut own = below.remove(&grant.id).unwrap_or_default();
        own.reverse();
        shape.insert("delegations".to_owned(), Value::Array(own));
        if let Some(source) = grant.source {
            below.entry(source).or_default().push(Value::Object(shape));
        }
    }
    let mut root = shapes::grant(&tree.root, now);
    let mut own = below.remove(&id).unwrap_or_default();
    own.reverse();
    root.insert("delegations".to_owned(), Value::Array(own));
    Ok(Json(json!({"tree": root, "count": tree.below.len(), "truncated": tree.truncated})))
}

pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<GrantId>,
    OptionalBody(body): OptionalBody<ReasonBody>,
) -> Result<Json<Value>, Denied> {
    let (revoked, lineage) = app.gate.administration.revoke_grant(&caller, id, body.reason).await?;
    Ok(Json(json!({
        "status": lineage.grant().status(app.gate.clock.now()),
        "grant_id": id,
        "revoked_count": revoked.grants,
        "cascade_count": revoked.grants.saturating_sub(1),
        "revoked_at": lineage.grant().revoked_at,
        "revision": revoked.revision,
    })))
}

pub(super) async fn suspend(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<GrantId>,
    OptionalBody(body): OptionalBody<ReasonBody>,
) -> Result<Json<Value>, Denied> {
    let lineage = app.gate.administration.suspend_grant(&caller, id, body.reason).await?;
    Ok(shown(&app, &lineage))
}

pub(super) async fn resume(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<GrantId>,
    OptionalBody(Nothing {}): OptionalBody<Nothing>,
) -> Result<Json<Value>, Denied> {
    let lineage = app.gate.administration.resume_grant(&caller, id).await?;
    Ok(shown(&app, &lineage))
}

fn shown(app: &App, lineage: &Lineage) -> Json<Value> {
    Json(Value::Object(shapes::grant(lineage, app.gate.clock.now())))
}
