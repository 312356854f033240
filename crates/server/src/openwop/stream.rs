//! The trail as a stream (server-sent events).

use std::sync::Arc;

use axum::response::Response;
use axum::response::sse::Event;
use serde_json::json;
use toolgate_gate::Caller;
use toolgate_gate::ports::ledger::Freshness;
use toolgate_gate::refusal::Refusal;
use toolgate_model::permission::Permission;

use super::reading::{Events, Place, Reading, Seen};
use crate::event_stream::{self, Following};
use crate::router::App;

/// The number of events per read.
const PAGE: u32 = 100;

/// A stream of the events. Refusals happen before it begins.
pub(super) async fn open(app: Arc<App>, caller: Caller, mut reading: Reading) -> Result<Response, Refusal> {
    let follower = app.gate.streams.follow_events(&caller, reading.filter.clone())?;
    let first = reading.page(&app, &caller, PAGE, Freshness::Newest).await?;
    let mut beginning = vec![event_stream::greeting(None)];
    beginning.extend(write(&mut reading, &first));
    Ok(event_stream::open(app, caller, follower, reading, beginning))
}

impl Following for Reading {
    type Page = Events;

    const SEES_MORE: Option<Permission> = Some(Permission::ReadAudit);

    async fn page(&self, app: &App, caller: &Caller) -> Result<Option<Events>, Refusal> {
        let found = Reading::page(self, app, caller, PAGE, Freshness::Recent).await?;
        Ok((!found.events.is_empty()).then_some(found))
    }

    async fn written(&mut self, _: &App, _: &Caller, page: Events) -> Result<Vec<Event>, Refusal> {
        Ok(write(self, &page))
    }
}

/// Writes events and moves on behind them.
fn write(reading: &mut Reading, found: &Events) -> Vec<Event> {
    let written = |seen: &Seen| {
        let id = Place::cursor(seen.place).unwrap_or_default();
        event_stream::event(&id, &seen.shown.kind, &json!(seen.shown))
    };
    let events = found.events.iter().map(written).collect();
    reading.place = found.end().unwrap_or(reading.place);
    events
}
