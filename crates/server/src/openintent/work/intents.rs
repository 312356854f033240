//! Intents, their state, and the agents that work on them.

use toolgate_api::reading::Object;
use toolgate_api::reply::{NextCursor, Removed};
use toolgate_api::work::intents::{
    AssignIntentAgent, CreateIntent, Intent, IntentAgent, IntentAgentList, IntentList, ListIntentAgents, ListIntents,
    PatchOperation, PatchState, SetIntentStatus, ShowIntent, StateRequest, UnassignIntentAgent, UnassignedAgent,
};
use toolgate_gate::authority::work::NewIntent;
use toolgate_gate::ports::ledger::IntentFilter;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::text::Line;
use toolgate_model::work::{self, IntentChange, IntentStatus, Participant, StatePatch};

use super::{Window, ids, version};
use crate::mount::TypedRequest;
use crate::openintent::error::Denied;
use crate::parameters::id;

pub(super) async fn create(request: TypedRequest<CreateIntent>) -> Result<Intent, Denied> {
    let TypedRequest { app, caller, body, .. } = request;
    let new = NewIntent {
        title: body.title.as_str().to_owned(),
        description: body.description.map(String::from).unwrap_or_default(),
        created_by: body.created_by,
        status: body.status.unwrap_or(IntentStatus::Draft),
        state: body.state.unwrap_or_default(),
        constraints: body.constraints.unwrap_or_default(),
        parent: body.parent_intent_id.as_deref().map(id).transpose()?,
        depends_on: ids(&body.depends_on)?,
    };
    Ok(shown(app.gate.work.create_intent(&caller, new).await?))
}

pub(super) async fn list(request: TypedRequest<ListIntents>) -> Result<IntentList, Denied> {
    let TypedRequest { app, caller, query, .. } = request;
    let window = Window::new(query.limit, query.cursor, query.offset)?;
    let filter = IntentFilter { status: query.status, created_by: query.created_by };
    let found = window.read(|page| app.gate.work.intents(&caller, filter.clone(), page)).await?;
    Ok(IntentList { intents: found.items.into_iter().map(shown).collect(), next_cursor: NextCursor(found.next) })
}

pub(super) async fn show(request: TypedRequest<ShowIntent>) -> Result<Intent, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    Ok(shown(app.gate.work.intent(&caller, path).await?))
}

pub(super) async fn patch_state(request: TypedRequest<PatchState>) -> Result<Intent, Denied> {
    let TypedRequest { app, caller, path, body, headers, .. } = request;
    let version = decided_on(version(&headers)?)?;
    let change = IntentChange::State(patches(body)?);
    Ok(shown(app.gate.work.change_intent(&caller, path, version, change).await?))
}

pub(super) async fn set_status(request: TypedRequest<SetIntentStatus>) -> Result<Intent, Denied> {
    let TypedRequest { app, caller, path, body, headers, .. } = request;
    let version = decided_on(version(&headers)?)?;
    let reason = body.reason.map(|reason| reason.as_str().to_owned());
    let change = IntentChange::Status { status: body.status, reason };
    Ok(shown(app.gate.work.change_intent(&caller, path, version, change).await?))
}

pub(super) async fn agents(request: TypedRequest<ListIntentAgents>) -> Result<IntentAgentList, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let found = app.gate.work.participants(&caller, path).await?;
    Ok(IntentAgentList { agents: found.into_iter().map(shown_agent).collect() })
}

pub(super) async fn assign(request: TypedRequest<AssignIntentAgent>) -> Result<IntentAgent, Denied> {
    let TypedRequest { app, caller, path, body, .. } = request;
    let role = body.role.as_ref().map_or("worker", Line::as_str).to_owned();
    Ok(shown_agent(app.gate.work.assign_participant(&caller, path, body.agent_id, role).await?))
}

pub(super) async fn unassign(request: TypedRequest<UnassignIntentAgent>) -> Result<UnassignedAgent, Denied> {
    let TypedRequest { app, caller, path: (intent_id, agent_id), .. } = request;
    app.gate.work.remove_participant(&caller, intent_id, agent_id.clone()).await?;
    Ok(UnassignedAgent { status: Removed::Value, intent_id, agent_id })
}

/// Without the version, the reference answers 400 for an intent.
fn decided_on(version: Option<u64>) -> Result<u64, Refusal> {
    let advice = "send the header `If-Match` with the version that the change was decided on";
    version.ok_or_else(|| Refusal::new(Code::InvalidField, advice).with("path", "If-Match"))
}

fn patches(body: StateRequest) -> Result<Vec<StatePatch>, Refusal> {
    let invalid = |reason: &str| Refusal::new(Code::InvalidField, reason).with("path", "patches");
    match body {
        StateRequest { patches: Some(patches), state: None } => {
            let patch = |Object(patch): Object<toolgate_api::work::intents::StatePatch>| match patch.op {
                PatchOperation::Set => Ok(StatePatch::Set { path: patch.path, value: patch.value }),
                PatchOperation::Remove if patch.value.is_null() => Ok(StatePatch::Remove { path: patch.path }),
                PatchOperation::Remove => Err(invalid("a patch that removes a member has no `value`")),
            };
            patches.into_iter().map(patch).collect()
        }
        StateRequest { patches: None, state: Some(state) } => {
            Ok(state.into_iter().map(|(path, value)| StatePatch::Set { path, value }).collect())
        }
        StateRequest { patches: Some(_), state: Some(_) } => Err(invalid("send `patches` or `state`, not both")),
        StateRequest { patches: None, state: None } => Err(invalid("`patches` is missing")),
    }
}

fn shown(intent: work::Intent) -> Intent {
    Intent {
        id: intent.id,
        title: intent.title,
        description: intent.description,
        version: intent.version,
        status: intent.status,
        state: intent.state,
        constraints: intent.constraints,
        parent_intent_id: intent.parent,
        depends_on: intent.depends_on,
        created_by: intent.created_by,
        created_at: intent.created_at,
        updated_at: intent.updated_at,
    }
}

fn shown_agent(participant: Participant) -> IntentAgent {
    IntentAgent {
        intent_id: participant.intent,
        agent_id: participant.agent,
        role: participant.role,
        assigned_by: participant.assigned_by,
        assigned_at: participant.assigned_at,
    }
}
