//! The events of an intent together with the calls and grants in its context, which only the audit log has.

use serde_json::{Map, Value};
use toolgate_model::context::ContextId;
use toolgate_model::event::{EventKind, StoredEvent};
use toolgate_model::id::{EventId, IntentId};
use toolgate_model::time::Timestamp;
use toolgate_model::work::{IntentEvent, IntentEventKind};

use super::WorkAdministration;
use crate::identify::Caller;
use crate::ports::ledger::{EventFilter, IntentEventFilter, Page, PageRequest};
use crate::refusal::{Code, Refusal};

/// The types of RFC-0014 that the official client knows, as both name them.
const LOGGED: [(EventKind, IntentEventKind); 8] = [
    (EventKind::ToolInvoked, IntentEventKind::ToolInvoked),
    (EventKind::ToolDenied, IntentEventKind::ToolDenied),
    (EventKind::GrantCreated, IntentEventKind::GrantCreated),
    (EventKind::GrantDelegated, IntentEventKind::GrantDelegated),
    (EventKind::GrantRevoked, IntentEventKind::GrantRevoked),
    (EventKind::GrantExpired, IntentEventKind::GrantExpired),
    (EventKind::GrantSuspended, IntentEventKind::GrantSuspended),
    (EventKind::GrantResumed, IntentEventKind::GrantResumed),
];

/// What agents of the intent may know of them: nothing that a call contained.
const SHOWN: [&str; 15] = [
    "cascade_count",
    "cost",
    "credential_id",
    "delegation_depth",
    "duration_ms",
    "error_code",
    "expires_at",
    "grant_id",
    "invocation_id",
    "scopes",
    "service",
    "source_grant_id",
    "status",
    "target_agent_id",
    "tool",
];

impl WorkAdministration {
    /// Returns the events of an intent, oldest first, with the calls and grants in its context.
    pub async fn timeline(
        &self,
        caller: &Caller,
        id: IntentId,
        filter: IntentEventFilter,
        page: PageRequest,
    ) -> Result<Page<IntentEvent>, Refusal> {
        let after = page.after.as_deref().map(EventId::parse).transpose().map_err(|_| {
            let reason = "`cursor` must be the `next_cursor` of an earlier response";
            Refusal::new(Code::InvalidCursor, reason).with("path", "cursor")
        })?;
        let own = self.intent_events(caller, id, filter.clone(), page.clone()).await?;
        let logged = self.logged_events(caller, id, &filter, after, page.limit).await?;
        let more = own.next.is_some() || logged.next.is_some();
        let mut events = own.items;
        events.extend(logged.items);
        events.sort_by_key(|event| event.id);
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
        let more = more || events.len() > limit;
        events.truncate(limit);
        let next = events.last().filter(|_| more).map(|event| event.id.to_string());
        Ok(Page { items: events, next })
    }

    /// The events of the audit log that belong to the intent, after the one with this id.
    async fn logged_events(
        &self,
        caller: &Caller,
        id: IntentId,
        filter: &IntentEventFilter,
        after: Option<EventId>,
        limit: u32,
    ) -> Result<Page<IntentEvent>, Refusal> {
        let kinds = LOGGED.iter().filter(|(_, kind)| filter.kind.is_none_or(|wanted| wanted == *kind));
        let kinds: Vec<EventKind> = kinds.map(|(logged, _)| *logged).collect();
        let Some(intent) = ContextId::parse(&id.to_string()).ok().filter(|_| !kinds.is_empty()) else {
            return Ok(Page { items: Vec::new(), next: None });
        };
        // The log is read by time: what the cursor has passed in its millisecond is left out again below.
        let since: Option<Timestamp> = filter.since.max(after.map(EventId::time));
        let wanted = EventFilter { intent: Some(intent), since, ..EventFilter::of_kinds(kinds) };
        let page = PageRequest::first(limit.saturating_add(100));
        self.audit.integrate_if_possible().await;
        let found = self.log.events(caller.tenant(), wanted, page).await?;
        let mut items = Vec::with_capacity(found.items.len());
        for event in &found.items {
            items.extend(shown(event.read()?, id).filter(|event| after.is_none_or(|after| event.id > after)));
        }
        Ok(Page { items, next: found.next })
    }
}

fn shown(stored: StoredEvent, intent: IntentId) -> Option<IntentEvent> {
    let kind = stored.event.payload.kind()?;
    let (_, kind) = LOGGED.iter().find(|(logged, _)| *logged == kind)?;
    let data = stored.whole.get("data").and_then(Value::as_object);
    let mut payload = Map::new();
    for name in SHOWN {
        if let Some(value) = data.and_then(|data| data.get(name)) {
            payload.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(task) = &stored.event.context.task_id {
        payload.insert("task_id".to_owned(), Value::String(task.to_string()));
    }
    Some(IntentEvent {
        id: stored.event.id,
        tenant: stored.event.tenant,
        intent,
        kind: *kind,
        actor: stored.event.actor,
        payload,
        created_at: stored.event.time,
    })
}
