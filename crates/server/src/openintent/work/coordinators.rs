//! Coordinators and their guardrails.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toolgate_api::work::coordinators::{
    BeatCoordinator, Coordinator, CoordinatorScope, CoordinatorUsage, CreateCoordinator, EndCoordinator,
    ListCoordinators, ShowCoordinator, UpdateCoordinator,
};
use toolgate_gate::authority::work::NewCoordinator;
use toolgate_gate::identify::Caller;
use toolgate_gate::ports::ledger::CoordinatorChanges;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::constraint::Cost;
use toolgate_model::id::CoordinatorId;
use toolgate_model::spending::Used;
use toolgate_model::text::Line;
use toolgate_model::work::{self, CoordinatorKind, Guardrails};

use super::version;
use crate::mount::TypedRequest;
use crate::openintent::error::Denied;
use crate::parameters::id;
use crate::router::App;

/// As the Python client of OpenIntent has it.
const USUAL_HEARTBEAT: u32 = 60;

pub(super) async fn create(request: TypedRequest<CreateCoordinator>) -> Result<Coordinator, Denied> {
    let TypedRequest { app, caller, body, .. } = request;
    let new = NewCoordinator {
        intent: id(&body.intent_id)?,
        agent: body.agent_id,
        supervisor: body.supervisor_id,
        role: body.role.as_ref().map_or("coordinator", Line::as_str).to_owned(),
        kind: body.coordinator_type.unwrap_or(CoordinatorKind::Llm),
        guardrails: guardrails(&body.guardrails.unwrap_or_default())?,
        heartbeat_seconds: body.heartbeat_interval_seconds.unwrap_or(USUAL_HEARTBEAT),
        expires_at: body.expires_at,
        metadata: body.metadata.unwrap_or_default(),
    };
    let created = app.gate.work.create_coordinator(&caller, new).await?;
    one(&app, &caller, created).await
}

pub(super) async fn show(request: TypedRequest<ShowCoordinator>) -> Result<Coordinator, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let found = app.gate.work.coordinator(&caller, path).await?;
    one(&app, &caller, found).await
}

pub(super) async fn update(request: TypedRequest<UpdateCoordinator>) -> Result<Coordinator, Denied> {
    let TypedRequest { app, caller, path, body, headers, .. } = request;
    let changes = CoordinatorChanges {
        status: body.status,
        guardrails: body.guardrails.as_ref().map(guardrails).transpose()?,
        heartbeat_seconds: body.heartbeat_interval_seconds,
        expires_at: body.expires_at,
        metadata: body.metadata,
    };
    let changed = app.gate.work.change_coordinator(&caller, path, version(&headers)?, changes).await?;
    one(&app, &caller, changed).await
}

pub(super) async fn end(request: TypedRequest<EndCoordinator>) -> Result<Coordinator, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let ended = app.gate.work.end_coordinator(&caller, path).await?;
    one(&app, &caller, ended).await
}

pub(super) async fn heartbeat(request: TypedRequest<BeatCoordinator>) -> Result<Coordinator, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let alive = app.gate.work.send_heartbeat(&caller, path).await?;
    one(&app, &caller, alive).await
}

pub(super) async fn list(request: TypedRequest<ListCoordinators>) -> Result<Vec<Coordinator>, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let found = app.gate.work.coordinators(&caller, path).await?;
    let used = app.gate.work.coordinator_use(&caller, &found).await?;
    Ok(found.into_iter().map(|coordinator| shown(coordinator, &used)).collect())
}

fn guardrails(object: &Map<String, Value>) -> Result<Guardrails, Refusal> {
    Guardrails::from_json(object).map_err(|error| {
        let path = format!("guardrails.{}", error.member);
        Refusal::new(Code::InvalidField, format!("`{path}` {}", error.reason)).with("path", path)
    })
}

async fn one(app: &App, caller: &Caller, coordinator: work::Coordinator) -> Result<Coordinator, Denied> {
    let used = app.gate.work.coordinator_use(caller, std::slice::from_ref(&coordinator)).await?;
    Ok(shown(coordinator, &used))
}

fn usage(coordinator: &work::Coordinator, used: &BTreeMap<CoordinatorId, Used>) -> Option<CoordinatorUsage> {
    let limit = coordinator.reservation()?.limit;
    let used = used.get(&coordinator.id).copied().unwrap_or_default();
    let left = |max: Cost| Cost::from_micros(max.micros().saturating_sub(used.cost)).map(Cost::dollars);
    Some(CoordinatorUsage {
        calls: used.calls,
        remaining_calls: limit.max_calls.map(|max| max.saturating_sub(used.calls)),
        cost_usd: used.dollars(),
        remaining_cost_usd: limit.max_cost.and_then(left),
    })
}

fn shown(coordinator: work::Coordinator, used: &BTreeMap<CoordinatorId, Used>) -> Coordinator {
    Coordinator {
        usage: usage(&coordinator, used),
        id: coordinator.id,
        intent_id: coordinator.intent,
        agent_id: coordinator.agent,
        role: coordinator.role,
        scope: CoordinatorScope::Value,
        supervisor_id: coordinator.supervisor,
        coordinator_type: coordinator.kind,
        status: coordinator.status,
        guardrails: coordinator.guardrails.to_json(),
        heartbeat_interval_seconds: coordinator.heartbeat_seconds,
        last_heartbeat: coordinator.last_heartbeat,
        granted_at: coordinator.granted_at,
        expires_at: coordinator.expires_at,
        version: coordinator.version,
        metadata: coordinator.metadata,
    }
}
