//! Events as a stream (server-sent events). A page is read when the client has taken the one before, so a slow client
//! costs no memory; between two pages nothing of the ledger is held.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header;
use serde_json::json;
use toolgate_gate::Caller;
use toolgate_gate::ports::ledger::Freshness;
use toolgate_gate::refusal::Refusal;
use toolgate_model::permission::Permission;

use super::reading::{Events, Place, Reading};
use crate::router::App;

/// How many events are read at once.
const PAGE: u32 = 100;
/// How long to wait before looking again.
const PAUSE: Duration = Duration::from_millis(250);
/// After how many such pauses a comment shows that the connection lives: fifteen seconds.
const PAUSES_BETWEEN_SIGNS: u32 = 60;
/// How long a client should wait before it comes back.
const GREETING: &str = "retry: 1000\n\n";
const SIGN_OF_LIFE: &str = ": keepalive\n\n";
const FAREWELL: &str = ": the stream ends here; come back with the id of the last event\n\n";

/// A stream that goes on until the client goes, its key ends or the program ends. What can be refused is refused before it
/// begins.
pub(super) async fn open(app: Arc<App>, caller: Caller, reading: Reading) -> Result<Response, Refusal> {
    let first = reading.page(&app, &caller, PAGE, Freshness::Newest).await?;
    let mut streaming = Streaming { app, caller, reading, ended: false };
    let mut beginning = GREETING.to_owned();
    beginning.push_str(&streaming.written(&first));
    let begun = stream::once(async move { Ok::<_, io::Error>(Bytes::from(beginning)) });
    let rest = stream::unfold(streaming, |mut streaming| async move {
        let text = streaming.next().await?;
        Some((Ok(Bytes::from(text)), streaming))
    });
    let body = Body::from_stream(futures_util::StreamExt::chain(begun, rest));
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        // Proxies that gather answers before they pass them on would hold a stream up for ever.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, body).into_response())
}

struct Streaming {
    app: Arc<App>,
    caller: Caller,
    reading: Reading,
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
        let found = self.reading.page(&self.app, &self.caller, PAGE, Freshness::Recent).await?;
        if found.events.is_empty() {
            return Ok(None);
        }
        // INVARIANT: looked at after the events were read, so that none from after the end of a key is ever sent.
        let now = self.app.gate.identify_again(&self.caller).await?;
        let same_view = now.may(Permission::ReadAudit) == self.caller.may(Permission::ReadAudit);
        self.caller = now;
        Ok(same_view.then(|| self.written(&found)))
    }

    /// Writes events and moves on behind them.
    fn written(&mut self, found: &Events) -> String {
        let mut text = String::new();
        for (place, event) in &found.events {
            let id = Place::cursor(*place).unwrap_or_default();
            text.push_str(&format!("id: {id}\nevent: {}\ndata: {}\n\n", event.kind, json!(event)));
        }
        self.reading.place = found.end().unwrap_or(self.reading.place);
        text
    }
}
