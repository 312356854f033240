//! What happens to approvals, as a stream (server-sent events). The id of an event is its place in the log, so that whoever
//! comes back with it misses nothing and sees nothing twice.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, header};
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_gate::Caller;
use toolgate_gate::ports::approver::Attached;
use toolgate_gate::ports::ledger::{Freshness, LoggedEvent};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::id::ApprovalId;
use toolgate_model::permission::Permission;

use super::shapes;
use crate::caller::Asked;
use crate::openintent::error::Denied;
use crate::router::App;

/// How many events are read at once.
const PAGE: u32 = 100;
/// How long to wait before looking again.
const PAUSE: Duration = Duration::from_millis(100);
/// After how many such pauses a comment shows that the connection lives: fifteen seconds.
const PAUSES_BETWEEN_SIGNS: u32 = 150;
const SIGN_OF_LIFE: &str = ": keepalive\n\n";
const FAREWELL: &str = ": the stream ends here; come back with the id of the last event\n\n";
/// The place before the first event.
const START: &str = "start";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamQuery {
    after: Option<String>,
}

/// A stream that goes on until the client goes, its key ends or the program ends. Without a place to begin behind it begins
/// with what happens from now on.
pub(super) async fn open(
    State(app): State<Arc<App>>,
    Asked(caller, query): Asked<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response, Denied> {
    let last = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?").to_owned());
    let after = match last.or(query.after) {
        Some(place) if place == START => None,
        Some(place) => Some(place.parse().map_err(|_| wrong_place())?),
        None => app.gate.end_of_log(&caller).await?,
    };
    let attached = app.gate.attach_approver(&caller);
    let streaming = Streaming { app, caller, after, _attached: attached, ended: false };
    // Whoever is cut off before the first event comes back to where the stream began.
    let place = after.map_or_else(|| START.to_owned(), |sequence| sequence.to_string());
    let greeting = format!("retry: 1000\nid: {place}\n\n");
    let begun = stream::once(async move { Ok::<_, io::Error>(Bytes::from(greeting)) });
    let rest = stream::unfold(streaming, |mut streaming| async move {
        let text = streaming.next().await?;
        Some((Ok(Bytes::from(text)), streaming))
    });
    let body = Body::from_stream(futures_util::StreamExt::chain(begun, rest));
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, body).into_response())
}

fn wrong_place() -> Refusal {
    let reason = format!("`after` and Last-Event-ID must be the id of an event, or `{START}`");
    Refusal::new(Code::InvalidCursor, reason).with("path", "after")
}

struct Streaming {
    app: Arc<App>,
    caller: Caller,
    after: Option<u64>,
    /// Whoever follows the stream can answer.
    _attached: Option<Attached>,
    ended: bool,
}

impl Streaming {
    /// What is sent next; `None` after the end.
    async fn next(&mut self) -> Option<String> {
        if self.ended {
            return None;
        }
        match self.events_or_sign().await {
            Ok(Some(text)) => Some(text),
            // A refusal is told by the answer to the request with which the client comes back.
            Ok(None) | Err(_) => {
                self.ended = true;
                Some(FAREWELL.to_owned())
            }
        }
    }

    /// Waits for events, but not for ever; `None` when the program is to end.
    async fn events_or_sign(&mut self) -> Result<Option<String>, Refusal> {
        for _ in 0..PAUSES_BETWEEN_SIGNS {
            if let Some(text) = self.new_events().await? {
                return Ok(Some(text));
            }
            if self.app.ending.begins_within(PAUSE).await {
                return Ok(None);
            }
        }
        self.caller = self.app.gate.identify_again(&self.caller).await?;
        Ok(Some(SIGN_OF_LIFE.to_owned()))
    }

    async fn new_events(&mut self) -> Result<Option<String>, Refusal> {
        let found = self.app.gate.approval_events(&self.caller, self.after, PAGE, Freshness::Recent).await?;
        let Some(last) = found.last().map(|event| event.sequence) else { return Ok(None) };
        // INVARIANT: looked at after the events were read, so that none from after the end of a key is ever sent.
        let now = self.app.gate.identify_again(&self.caller).await?;
        let same_view = now.may(Permission::DecideApprovals) == self.caller.may(Permission::DecideApprovals);
        self.caller = now;
        if !same_view {
            return Err(Refusal::new(Code::PermissionDenied, "what the caller may see has changed"));
        }
        let mut text = String::new();
        for event in &found {
            text.push_str(&self.written(event).await?);
        }
        self.after = Some(last);
        Ok(Some(text))
    }

    async fn written(&self, logged: &LoggedEvent) -> Result<String, Refusal> {
        let unreadable = |_| Refusal::new(Code::Internal, "an event of the log cannot be read");
        let event: Value = serde_json::from_str(&logged.canonical).map_err(unreadable)?;
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        let id = event.pointer("/data/approval_id").and_then(Value::as_str);
        let approval = match id.map(ApprovalId::parse) {
            Some(Ok(id)) => Some(self.app.gate.approval_of(&self.caller, id).await?),
            _ => None,
        };
        let approval = match &approval {
            Some(approval) => Some(shapes::approval(approval, &self.app.gate.present(approval).await?)),
            None => None,
        };
        let data = json!({
            "sequence": logged.sequence, "type": kind, "timestamp": event.get("timestamp"), "data": event.get("data"),
            "approval": approval,
        });
        Ok(format!("id: {}\nevent: {kind}\ndata: {data}\n\n", logged.sequence))
    }
}
