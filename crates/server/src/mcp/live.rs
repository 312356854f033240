//! Calls whose client hears something before the response: how far a mounted server is, what it logs, and in a session what it
//! asks the client for. The response becomes a stream only if there is something to say; other calls are answered as ever.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response, Sse};
use futures_util::stream;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use toolgate_gate::call::{Presence, Progress, UpstreamProgress, Waiting};
use toolgate_gate::ports::client_link::{ClientLink, Unanswered};
use toolgate_gate::ports::clock::pause;
use toolgate_gate::request_context::in_current_request;
use toolgate_model::client_input::InputCapabilities;

use super::call::{self, Context};
use super::era::Era;
use super::log_level::LogLevel;
use super::message::{Params, RequestId};
use super::reply::{Reply, RpcError, completed, message};
use super::sessions::{Asked, SessionId};
use super::sse;
use crate::router::App;

/// How many messages wait for a client that reads slowly. What a server logs beyond that is left out.
const QUEUE: usize = 64;
/// The interval of keep-alive comments, for proxies that close a silent connection.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// What a client hears of a call before its response.
pub(super) struct Heard {
    /// The name under which it hears of progress.
    token: Option<Value>,
    progress: mpsc::UnboundedReceiver<Progress>,
    messages: mpsc::Receiver<String>,
}

/// The side of the call.
pub(super) struct Live {
    pub(super) observer: Option<mpsc::UnboundedSender<Progress>>,
    pub(super) client: Option<Arc<dyn ClientLink>>,
}

/// A session in which a client can be asked.
#[derive(Clone, Copy)]
pub(super) struct InSession {
    pub(super) id: SessionId,
    pub(super) log_level: Option<LogLevel>,
}

/// Calls a tool for a client that may hear something before the response.
pub(super) async fn tool(mut context: Context, params: Params, session: Option<InSession>) -> Result<Reply, RpcError> {
    let Some(heard) = open(&mut context, session) else { return call::tool(context, params).await };
    // The call ends with the connection that its response is sent on, which is the stream's if there is one.
    let (waiting, presence) = Presence::new();
    let presence = context.cancellable(presence);
    let connection = std::mem::replace(&mut context.presence, presence);
    let (era, id) = (context.era, context.id.clone());
    let calling = tokio::spawn(in_current_request(Box::pin(call::tool(context, params))));
    let mut spoken = Spoken { heard, calling, era, id, ended: false, waiting: Some(waiting) };
    let first = tokio::select! {
        biased;
        Some(first) = spoken.heard.next() => Some(first),
        ended = &mut spoken.calling => return returned(ended),
        () = connection.gone() => None,
    };
    match first {
        Some(first) => Ok(Reply::Whole(Box::new(spoken.into_response(first)))),
        // Nobody listens: what comes of the call is recorded all the same.
        None => {
            spoken.waiting = None;
            returned((&mut spoken.calling).await)
        }
    }
}

/// Lets the client hear of its call; `None` where it does not want to, or could not.
fn open(context: &mut Context, session: Option<InSession>) -> Option<Heard> {
    let token = context.progress_token.clone();
    let asks = session
        .filter(|session| context.capabilities.input != InputCapabilities::default() || session.log_level.is_some());
    if !context.takes_stream || (token.is_none() && asks.is_none()) {
        return None;
    }
    let (observer, progress) = mpsc::unbounded_channel();
    let (sender, messages) = mpsc::channel(QUEUE);
    let client = asks.map(|session| -> Arc<dyn ClientLink> {
        let capabilities = context.capabilities.input;
        Arc::new(SessionClient { app: Arc::clone(&context.app), session, capabilities, sender })
    });
    context.live = Some(Live { observer: token.is_some().then_some(observer), client });
    Some(Heard { token, progress, messages })
}

fn returned(ended: Result<Result<Reply, RpcError>, tokio::task::JoinError>) -> Result<Reply, RpcError> {
    ended.unwrap_or_else(|_| Err(RpcError::internal("the request broke off inside the gate; see its log")))
}

impl Heard {
    /// The next message. Waits as long as there may be one; `None` once there can be none.
    async fn next(&mut self) -> Option<Event> {
        loop {
            let progress = tokio::select! {
                Some(message) = self.messages.recv() => return Some(sse::event(&message)),
                Some(progress) = self.progress.recv() => progress,
                else => return None,
            };
            if let (Progress::Upstream(progress), Some(token)) = (progress, &self.token) {
                return Some(sse::notification("notifications/progress", &reported(token, &progress)));
            }
        }
    }
}

fn reported(token: &Value, progress: &UpstreamProgress) -> Value {
    let UpstreamProgress { progress, total, message } = progress;
    let mut params =
        Map::from_iter([("progressToken".to_owned(), token.clone()), ("progress".to_owned(), json!(progress))]);
    params.extend(total.map(|total| ("total".to_owned(), json!(total))));
    params.extend(message.as_ref().map(|message| ("message".to_owned(), json!(message))));
    Value::Object(params)
}

/// A call whose response has become a stream.
struct Spoken {
    heard: Heard,
    calling: JoinHandle<Result<Reply, RpcError>>,
    era: Era,
    id: RequestId,
    ended: bool,
    /// Dropped with the stream, which takes the call back.
    waiting: Option<Waiting>,
}

impl Spoken {
    fn into_response(self, first: Event) -> Response {
        let events = stream::unfold((Some(first), self), |(first, mut spoken)| async move {
            let event = match first {
                Some(first) => first,
                None => spoken.next().await?,
            };
            Some((Ok::<Event, Infallible>(event), (None, spoken)))
        });
        (sse::HEADERS, Sse::new(events)).into_response()
    }

    /// The next message; `None` after the response.
    async fn next(&mut self) -> Option<Event> {
        if self.ended {
            return None;
        }
        tokio::select! {
            biased;
            // Before the response: what was said earlier is heard earlier.
            Some(event) = self.heard.next() => Some(event),
            () = pause(KEEPALIVE_INTERVAL) => Some(Event::default().comment("keepalive")),
            ended = &mut self.calling => {
                self.ended = true;
                let reply = returned(ended);
                let written = match reply {
                    Ok(Reply::Result(members)) => message(&self.id, &completed(self.era, &members)),
                    Ok(Reply::Written(_) | Reply::Whole(_)) => {
                        Err(RpcError::internal("the call waits; make the same call again to get its result"))
                    }
                    Err(error) => Err(error),
                };
                Some(sse::event(&written.unwrap_or_else(|error| error.body(Some(&self.id)).to_string())))
            }
        }
    }
}

/// The client of a session, during one call.
struct SessionClient {
    app: Arc<App>,
    session: InSession,
    capabilities: InputCapabilities,
    sender: mpsc::Sender<String>,
}

impl std::fmt::Debug for SessionClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SessionClient").field("capabilities", &self.capabilities).finish_non_exhaustive()
    }
}

#[async_trait]
impl ClientLink for SessionClient {
    fn capabilities(&self) -> InputCapabilities {
        self.capabilities
    }

    async fn ask(&self, method: &str, params: Map<String, Value>) -> Result<Map<String, Value>, Unanswered> {
        let sessions = &self.app.mcp.sessions;
        let Asked { id, response } = sessions.ask(self.session.id).ok_or(Unanswered::Unreachable)?;
        let request = json!({"jsonrpc": "2.0", "id": id.as_str(), "method": method, "params": params});
        self.sender.send(request.to_string()).await.map_err(|_| Unanswered::Unreachable)?;
        tokio::select! {
            response = response => {
                let response = response.map_err(|_| Unanswered::Unreachable)?;
                response.map_err(|code| Unanswered::Refused { code })
            }
            // Nobody reads the stream any more.
            () = self.sender.closed() => Err(Unanswered::Unreachable),
        }
    }

    fn log(&self, params: Map<String, Value>) {
        let level = params.get("level").and_then(Value::as_str).and_then(LogLevel::parse);
        if level.is_some_and(|level| self.session.log_level.is_some_and(|least| level >= least)) {
            let notification = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params});
            let _ = self.sender.try_send(notification.to_string());
        }
    }
}
