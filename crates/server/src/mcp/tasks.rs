//! The extension for calls that take long (`io.modelcontextprotocol/tasks`): a client that declares it gets the id of the
//! detached call in the place of its result, and may poll it. The call is stored before its id is returned.

use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate_gate::call::DetachedView;
use toolgate_gate::refusal::Code;
use toolgate_model::id::InvocationId;

use super::call::Context;
use super::client::TASKS;
use super::message::Params;
use super::reply::{Reply, RpcError, completed};
use super::result;

/// How often a client should ask, in milliseconds.
const POLL_INTERVAL: u64 = 5_000;

/// How long the beginning of a call may take before its client gets a task.
const BEGINNING: Duration = Duration::from_secs(2);

/// The result of a call that was detached: a task, unless it has ended at once. That needs no place among the stored ones.
pub(super) async fn created(context: &Context, id: InvocationId) -> Result<Reply, RpcError> {
    let begun = context.app.gate.detached.detached_call_begun(&context.caller, id, BEGINNING).await;
    if let Ok(DetachedView::Ended(outcome)) = begun {
        // Its result is sent now: if it is lost with the connection, so is every other result.
        if let Err(refusal) = context.app.gate.pipeline.picked_up(&context.caller, id).await {
            tracing::warn!(%id, %refusal, "the result of a call was sent and could not be forgotten");
        }
        return context.delivered(*outcome).map(Reply::Result);
    }
    let mut members = task(context, id, "working");
    members.insert("resultType".to_owned(), json!("task"));
    members.insert("statusMessage".to_owned(), json!("waiting for a person's approval"));
    Ok(Reply::Result(members))
}

/// How far a task has come, with its result where it has ended.
pub(super) async fn get(context: &Context, params: Params) -> Result<Reply, RpcError> {
    let id = named(context, params)?;
    let view = context.app.gate.detached.detached_call(&context.caller, id).await.map_err(|_| unknown())?;
    let outcome = match view {
        DetachedView::Open(_) => return Ok(Reply::Result(task(context, id, "working"))),
        DetachedView::Ended(outcome) => *outcome,
    };
    // It can be fetched again, until another call needs its place.
    if let Err(refusal) = context.app.gate.detached.fetched(&context.caller, id).await {
        tracing::warn!(%id, %refusal, "could not note that the result of a task was fetched");
    }
    if outcome.as_ref().is_err_and(|denial| denial.refusal.code() == Code::CallCancelled) {
        return Ok(Reply::Result(task(context, id, "cancelled")));
    }
    let (status, name, value) = match result::of_outcome(outcome) {
        Ok(members) => ("completed", "result", json!(completed(context.era, &members))),
        Err(error) => ("failed", "error", error.body(None).get("error").cloned().unwrap_or_default()),
    };
    let mut members = task(context, id, status);
    members.insert(name.to_owned(), value);
    Ok(Reply::Result(members))
}

/// Takes a call back that was not executed yet. One that has ended stays as it ended.
pub(super) async fn cancel(context: &Context, params: Params) -> Result<Reply, RpcError> {
    let id = named(context, params)?;
    context.app.gate.detached.cancel_detached(&context.caller, id).await.map_err(|_| unknown())?;
    Ok(Reply::Result(Map::new()))
}

/// Takes what the client was asked for. A task asks its client for nothing: an approver decides elsewhere.
pub(super) async fn update(context: &Context, params: Params) -> Result<Reply, RpcError> {
    let id = named(context, params)?;
    context.app.gate.detached.detached_call(&context.caller, id).await.map_err(|_| unknown())?;
    Ok(Reply::Result(Map::new()))
}

fn named(context: &Context, mut params: Params) -> Result<InvocationId, RpcError> {
    if !context.capabilities.follows_tasks {
        return Err(RpcError::missing_capability(json!({"extensions": {TASKS: {}}})));
    }
    InvocationId::parse(&params.take_text("taskId")?).map_err(|_| unknown())
}

fn unknown() -> RpcError {
    RpcError::invalid_params("there is no such task")
}

fn task(context: &Context, id: InvocationId, status: &str) -> Map<String, Value> {
    let now = context.app.gate.clock.now();
    let kept = u64::try_from(context.app.gate.detached.kept_for().as_millis()).unwrap_or(u64::MAX);
    Map::from_iter([
        ("taskId".to_owned(), json!(id)),
        ("status".to_owned(), json!(status)),
        ("createdAt".to_owned(), json!(id.time())),
        ("lastUpdatedAt".to_owned(), json!(now)),
        ("ttlMs".to_owned(), json!(kept)),
        ("pollIntervalMs".to_owned(), json!(POLL_INTERVAL)),
    ])
}
