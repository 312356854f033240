//! The events of an intent.

use serde_json::Value;
use toolgate_api::reply::NextCursor;
use toolgate_api::work::events::{IntentEvent, IntentEventList, ListIntentEvents, LogIntentEvent};
use toolgate_gate::ports::ledger::IntentEventFilter;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::work;

use super::Window;
use crate::mount::TypedRequest;
use crate::openintent::error::Denied;

pub(super) async fn list(request: TypedRequest<ListIntentEvents>) -> Result<IntentEventList, Denied> {
    let TypedRequest { app, caller, path, query, .. } = request;
    let window = Window::new(query.limit, query.cursor, query.offset)?;
    let filter = IntentEventFilter { kind: query.event_type, since: query.since };
    let found = window.read(|page| app.gate.work.timeline(&caller, path, filter.clone(), page)).await?;
    Ok(IntentEventList { events: found.items.into_iter().map(shown).collect(), next_cursor: NextCursor(found.next) })
}

pub(super) async fn log(request: TypedRequest<LogIntentEvent>) -> Result<IntentEvent, Denied> {
    let TypedRequest { app, caller, path, body, .. } = request;
    let mut payload = body.payload.unwrap_or_default();
    for (name, given) in [("trace_id", body.trace_id), ("parent_event_id", body.parent_event_id)] {
        let Some(given) = given else { continue };
        let replaced = payload.insert(name.to_owned(), Value::String(given.to_string()));
        if replaced.is_some_and(|replaced| replaced != given.as_str()) {
            let reason = format!("`{name}` differs from the one in `payload`; send one");
            return Err(Refusal::new(Code::InvalidField, reason).with("path", name).into());
        }
    }
    Ok(shown(app.gate.work.log_intent_event(&caller, path, body.event_type, body.actor, payload).await?))
}

fn shown(event: work::IntentEvent) -> IntentEvent {
    let named = |name: &str| event.payload.get(name).and_then(Value::as_str).map(str::to_owned);
    IntentEvent {
        trace_id: named("trace_id"),
        parent_event_id: named("parent_event_id"),
        id: event.id,
        intent_id: event.intent,
        event_type: event.kind,
        actor: event.actor,
        payload: event.payload,
        created_at: event.created_at,
    }
}
