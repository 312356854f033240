//! Streamed answers: events as they pass the gate, a comment where there is nothing to say for a while, and an error event
//! where the stream does not end well.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::Event;
use axum::response::{IntoResponse, Response, Sse};
use futures_util::stream;
use http::{HeaderName, HeaderValue, header};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use toolgate_gate::call::{CallRequest, CallResult, Denial, Presence, Waiting};
use toolgate_gate::ports::clock::pause;
use toolgate_gate::request_context::in_current_request;
use toolgate_model::a2a::{A2aError, ErrorKind};
use toolgate_model::step::StreamEvent;
use toolgate_model::strict_json;

use super::call::Context;
use super::outcome;

/// How many events wait for a client that reads slowly; beyond that the agent waits as well.
const QUEUE: usize = 16;
/// Official clients give up after five seconds without a byte.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
/// How long a response waits for what it should be: a refusal is clearer as a response of its own than in a stream.
const BEGINNING: Duration = Duration::from_millis(1_500);
const HEADERS: [(HeaderName, HeaderValue); 2] = [
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    // Proxies that buffer responses would hold the stream up.
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
];

type Outcome = Result<CallResult, Denial>;

/// Makes the call. As long as it is not admitted it ends with the connection; the task of the agent goes on in any case.
pub(super) async fn respond(context: Context, request: CallRequest) -> Response {
    let (sender, events) = mpsc::channel(QUEUE);
    // The call ends with the stream, not with the request.
    let (waiting, presence) = Presence::new();
    let request = CallRequest { stream: Some(sender), presence: Some(presence), ..request };
    let (pipeline, caller) = (Arc::clone(&context.app.gate.pipeline), context.caller.clone());
    let calling = tokio::spawn(in_current_request(async move { pipeline.invoke(caller, request).await }));
    let connection = context.presence.clone();
    let mut streaming = Streaming { context, events, calling, passed: 0, ended: false, _waiting: waiting };
    let first = tokio::select! {
        biased;
        event = streaming.events.recv() => event,
        () = pause(BEGINNING) => None,
        () = connection.gone() => None,
    };
    if first.is_none() && streaming.events.is_closed() {
        return streaming.whole().await;
    }
    let events = stream::unfold((first, streaming), |(first, mut streaming)| async move {
        let event = match first {
            Some(first) => streaming.written(&first),
            None => streaming.next().await?,
        };
        Some((Ok::<Event, Infallible>(event), (None, streaming)))
    });
    (HEADERS, Sse::new(events)).into_response()
}

struct Streaming {
    context: Context,
    events: mpsc::Receiver<StreamEvent>,
    calling: JoinHandle<Outcome>,
    passed: u64,
    ended: bool,
    /// Dropped with the stream, and with it the call, as long as that was not admitted.
    _waiting: Waiting,
}

impl Streaming {
    /// The next event; `None` at the end.
    async fn next(&mut self) -> Option<Event> {
        if self.ended {
            return None;
        }
        tokio::select! {
            biased;
            Some(event) = self.events.recv() => Some(self.written(&event)),
            ended = &mut self.calling => {
                self.ended = true;
                // What was passed on before the end is still there.
                match self.events.try_recv() {
                    Ok(event) => {
                        self.ended = false;
                        let written = self.written(&event);
                        self.calling = tokio::spawn(async move { joined(ended) });
                        Some(written)
                    }
                    Err(_) => self.last(joined(ended)).await,
                }
            }
            () = pause(KEEPALIVE_INTERVAL) => Some(Event::default().comment("keepalive")),
        }
    }

    /// An event of the agent in the form of the client.
    fn written(&mut self, event: &StreamEvent) -> Event {
        self.passed += 1;
        let spoken = &self.context.spoken;
        let is_error = event.name.as_deref() == Some("error");
        let Ok(data) = strict_json::parse(event.data.as_bytes()) else {
            return spoken.error_event(&A2aError::new(ErrorKind::Internal, event.data.clone(), Map::new()));
        };
        match outcome::body(data) {
            Ok(body) if is_error => spoken.error_event(&A2aError::of_http(500, &body)),
            Ok(body) => spoken.event(body),
            Err(error) => spoken.error_event(&error),
        }
    }

    /// What a stream ends with: nothing if all went well.
    async fn last(&mut self, outcome: Outcome) -> Option<Event> {
        match self.returned(outcome).await {
            Ok(_) if self.passed > 0 => None,
            Ok(Some(body)) => Some(self.context.spoken.event(body)),
            Ok(None) => None,
            Err(error) => Some(self.context.spoken.error_event(&error)),
        }
    }

    /// The response to a call that ended without an event.
    async fn whole(mut self) -> Response {
        let outcome = joined((&mut self.calling).await);
        match self.returned(outcome).await {
            Ok(body) => {
                let event = body.map(|body| self.context.spoken.event(body));
                let events = stream::iter(event.map(Ok::<Event, Infallible>));
                (HEADERS, Sse::new(events)).into_response()
            }
            Err(error) => self.context.spoken.error(&error),
        }
    }

    /// What came of the call besides events.
    async fn returned(&self, outcome: Outcome) -> Result<Option<Value>, A2aError> {
        match outcome {
            Ok(result) => {
                let body = outcome::returned(result.invocation, result.outcome)?;
                Ok(Some(body).filter(|body| body.get("streamed_events").is_none()))
            }
            Err(denial) => Err(self.context.explained(&denial.refusal, outcome::denied(&denial)).await),
        }
    }
}

fn joined(ended: Result<Outcome, tokio::task::JoinError>) -> Outcome {
    ended.unwrap_or_else(|_| Err(broke_off()))
}

fn broke_off() -> Denial {
    use toolgate_gate::refusal::{Code, Refusal};
    let refusal = Refusal::new(Code::Internal, "the call broke off inside the gate; see its log");
    Denial { invocation: None, refusal, admitted: true }
}
