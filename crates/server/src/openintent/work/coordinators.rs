//! Coordinators and their guardrails.

use serde_json::{Map, Value};
use toolgate_api::work::coordinators::{
    BeatCoordinator, Coordinator, CoordinatorScope, CreateCoordinator, EndCoordinator, ListCoordinators,
    ShowCoordinator, UpdateCoordinator,
};
use toolgate_gate::authority::work::NewCoordinator;
use toolgate_gate::ports::ledger::CoordinatorChanges;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::text::Line;
use toolgate_model::work::{self, CoordinatorKind, Guardrails};

use super::version;
use crate::mount::TypedRequest;
use crate::openintent::error::Denied;
use crate::parameters::id;

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
    Ok(shown(app.gate.work.create_coordinator(&caller, new).await?))
}

pub(super) async fn show(request: TypedRequest<ShowCoordinator>) -> Result<Coordinator, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    Ok(shown(app.gate.work.coordinator(&caller, path).await?))
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
    Ok(shown(app.gate.work.change_coordinator(&caller, path, version(&headers)?, changes).await?))
}

pub(super) async fn end(request: TypedRequest<EndCoordinator>) -> Result<Coordinator, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    Ok(shown(app.gate.work.end_coordinator(&caller, path).await?))
}

pub(super) async fn heartbeat(request: TypedRequest<BeatCoordinator>) -> Result<Coordinator, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    Ok(shown(app.gate.work.send_heartbeat(&caller, path).await?))
}

pub(super) async fn list(request: TypedRequest<ListCoordinators>) -> Result<Vec<Coordinator>, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    Ok(app.gate.work.coordinators(&caller, path).await?.into_iter().map(shown).collect())
}

fn guardrails(object: &Map<String, Value>) -> Result<Guardrails, Refusal> {
    Guardrails::from_json(object).map_err(|error| {
        let path = format!("guardrails.{}", error.member);
        Refusal::new(Code::InvalidField, format!("`{path}` {}", error.reason)).with("path", path)
    })
}

fn shown(coordinator: work::Coordinator) -> Coordinator {
    Coordinator {
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
