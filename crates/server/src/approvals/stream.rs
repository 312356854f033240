//! The events of approvals as a stream (server-sent events). The id of an event is its position in the log, so that a
//! client that reconnects with it misses nothing and sees nothing twice.

use axum::response::Response;
use axum::response::sse::Event;
use serde_json::json;
use toolgate_api::approvals::{ApprovalEvent, FollowApprovals};
use toolgate_gate::Caller;
use toolgate_gate::ports::approver::Attached;
use toolgate_gate::ports::ledger::{Freshness, LoggedEvent};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::permission::Permission;

use super::shown::shown;
use crate::event_stream::{self, Following};
use crate::mount::TypedRequest;
use crate::openintent::error::Denied;
use crate::router::App;

/// The number of events per read.
const PAGE: u32 = 100;
/// The position before the first event.
const START: &str = "start";

/// Opens a stream of approval events. Without a start position it begins with the next event.
pub(super) async fn open(request: TypedRequest<FollowApprovals>) -> Result<Response, Denied> {
    let TypedRequest { app, caller, query, headers, .. } = request;
    let follower = app.gate.streams.follow_approvals(&caller)?;
    let last = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?").to_owned());
    let after = match last.or(query.after) {
        Some(place) if place == START => None,
        Some(place) => Some(place.parse().map_err(|_| wrong_place())?),
        None => app.gate.approvals.end_of_log(&caller).await?,
    };
    // A client that is disconnected before the first event reconnects to where the stream began.
    let place = after.map_or_else(|| START.to_owned(), |sequence: u64| sequence.to_string());
    let beginning = vec![event_stream::greeting(Some(&place))];
    let changes = Changes { after, _attached: app.gate.approvals.attach_approver(&caller) };
    Ok(event_stream::open(app, caller, follower, changes, beginning))
}

fn wrong_place() -> Refusal {
    let reason = format!("`after` and Last-Event-ID must be the id of an event, or `{START}`");
    Refusal::new(Code::InvalidCursor, reason).with("path", "after")
}

/// The events of approvals after a position in the log.
struct Changes {
    after: Option<u64>,
    /// A follower counts as a connected approver.
    _attached: Option<Attached>,
}

impl Following for Changes {
    type Page = Vec<LoggedEvent>;

    const SEES_MORE: Option<Permission> = Some(Permission::DecideApprovals);

    async fn page(&self, app: &App, caller: &Caller) -> Result<Option<Vec<LoggedEvent>>, Refusal> {
        let found = app.gate.approvals.approval_events(caller, self.after, PAGE, Freshness::Recent).await?;
        Ok((!found.is_empty()).then_some(found))
    }

    async fn written(&mut self, app: &App, caller: &Caller, page: Vec<LoggedEvent>) -> Result<Vec<Event>, Refusal> {
        let mut events = Vec::with_capacity(page.len());
        for event in &page {
            events.push(written(app, caller, event).await?);
        }
        self.after = page.last().map_or(self.after, |event| Some(event.sequence));
        Ok(events)
    }
}

async fn written(app: &App, caller: &Caller, logged: &LoggedEvent) -> Result<Event, Refusal> {
    let stored = logged.read()?;
    let kind = stored.event.payload.name();
    let approval = match stored.event.payload.approval_id() {
        Some(id) => Some(shown(app, &app.gate.approvals.approval_of(caller, id).await?).await?),
        None => None,
    };
    let data = ApprovalEvent {
        sequence: logged.sequence,
        kind: kind.to_owned(),
        timestamp: stored.event.time,
        data: stored.data().clone(),
        approval,
    };
    Ok(event_stream::event(&logged.sequence.to_string(), kind, &json!(data)))
}
