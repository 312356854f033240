//! The bridge: passes the messages of a client on standard input on to the gate, and those of the gate back. Requests run
//! concurrently; what a client cancels closes its connection to the gate.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::headers::{self, MirroredTools};
use super::message::{Message, Notification, Request, Unreadable, error, on_one_line};
use super::output::Output;
use super::session::Session;
use crate::client::{Client, ClientError, McpResponse};
use crate::clock::pause;
use crate::output::say;

/// The maximum number of in-flight requests; further ones are refused.
const MAX_IN_FLIGHT: usize = 256;
/// How long requests in flight are waited for after the end of the input.
const GRACE: Duration = Duration::from_secs(5);
/// How long the gate has to end a session.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the gate has to open a session, and to take a notification.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// The first delay before the stream of a session is opened again; doubled each time.
const FIRST_RETRY: Duration = Duration::from_millis(500);
const MAX_RETRY: Duration = Duration::from_secs(30);
/// Pages of a list of tools that the bridge reads itself.
const MAX_PAGES: usize = 100;

const INTERNAL: i64 = -32603;
/// A header does not repeat the body.
const HEADER_MISMATCH: i64 = -32020;
const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// Why a request has no response of the gate.
#[derive(Debug, Error)]
pub(super) enum BridgeError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("the gate closed the connection without a response; repeat the request")]
    NoResponse,
    #[error("the gate did not respond in time; check that it runs")]
    TimedOut,
    #[error("the session with the gate has ended and could not be opened again: {0}; restart the client")]
    NotReopened(String),
}

/// A line of the client.
pub(super) type Input = Result<Message, Unreadable>;

pub(super) struct Bridge {
    client: Client,
    output: Output,
    tools: Mutex<MirroredTools>,
    /// Held while a session is opened, so that concurrent requests open one.
    session: tokio::sync::Mutex<Option<Session>>,
    in_flight: Mutex<HashMap<String, InFlight>>,
    following: Mutex<Option<AbortHandle>>,
}

struct InFlight {
    task: AbortHandle,
    /// Whether it ends only when the client cancels it.
    is_endless: bool,
}

impl Bridge {
    pub(super) fn new(client: Client, output: Output) -> Arc<Self> {
        Arc::new(Self {
            client,
            output,
            tools: Mutex::default(),
            session: tokio::sync::Mutex::default(),
            in_flight: Mutex::default(),
            following: Mutex::default(),
        })
    }

    /// Runs until the input ends, the client does not read any more, or `stop` completes.
    pub(super) async fn run(self: Arc<Self>, mut input: mpsc::Receiver<Input>, stop: impl Future<Output = ()>) {
        let mut tasks = JoinSet::new();
        let mut stop = pin!(stop);
        let drains = loop {
            tokio::select! {
                line = input.recv() => match line {
                    Some(line) => tokio::select! {
                        () = self.take(line, &mut tasks) => {}
                        () = &mut stop => break false,
                    },
                    None => break true,
                },
                Some(_) = tasks.join_next() => {}
                () = self.output.closed() => break false,
                () = &mut stop => break false,
            }
        };
        if let Some(following) = lock(&self.following).take() {
            following.abort();
        }
        let endless: Vec<AbortHandle> =
            lock(&self.in_flight).values().filter(|one| one.is_endless).map(|one| one.task.clone()).collect();
        endless.iter().for_each(AbortHandle::abort);
        if drains {
            let finished = async { while tasks.join_next().await.is_some() {} };
            tokio::select! {
                _ = tokio::time::timeout(GRACE, finished) => {}
                () = &mut stop => {}
            }
        }
        tasks.shutdown().await;
        self.end_session().await;
    }

    async fn take(self: &Arc<Self>, line: Input, tasks: &mut JoinSet<()>) {
        match line {
            Err(Unreadable { id, code, reason }) => self.output.send(error(&id, code, reason)).await,
            // In order: what follows belongs to the session that it opens.
            Ok(Message::Request(request)) if request.version().is_none() && request.method == "initialize" => {
                self.initialize(&request).await;
            }
            Ok(Message::Request(request)) => self.begin(request, tasks).await,
            Ok(Message::Notification(notification)) => self.notify(notification, tasks).await,
            Ok(Message::Response(bytes)) => {
                let session = self.session.lock().await.clone();
                match session {
                    Some(session) => self.post_quietly(session.headers(), bytes).await,
                    None => say("toolgate: ignored a response of the client to a request that was not made"),
                }
            }
        }
    }

    /// Starts a request.
    async fn begin(self: &Arc<Self>, request: Request, tasks: &mut JoinSet<()>) {
        let key = request.id.to_string();
        let refused = {
            let mut in_flight = lock(&self.in_flight);
            if in_flight.contains_key(&key) {
                Some((-32600, "a request with this id is in flight"))
            } else if in_flight.len() >= MAX_IN_FLIGHT {
                Some((INTERNAL, "too many requests are in flight; wait for their responses"))
            } else {
                let is_endless = request.method == "subscriptions/listen";
                let bridge = Arc::clone(self);
                let (own_key, own_request) = (key.clone(), request.clone());
                // INVARIANT: it is registered before it can end, because it needs this lock to be removed.
                let task = tasks.spawn(async move {
                    let _registered = Registered { bridge: &bridge, key: own_key };
                    bridge.exchange(&own_request).await;
                });
                in_flight.insert(key, InFlight { task, is_endless });
                None
            }
        };
        if let Some((code, reason)) = refused {
            self.output.send(error(&request.id, code, reason)).await;
        }
    }

    /// Sends a request and passes on what the gate responds; every request gets a response.
    async fn exchange(&self, request: &Request) {
        let outcome = match request.version() {
            Some(version) => self.modern(request, version).await,
            None => self.in_session(request).await,
        };
        if let Err(failure) = outcome {
            self.output.send(error(&request.id, INTERNAL, &failure.to_string())).await;
        }
    }

    async fn modern(&self, request: &Request, version: &str) -> Result<(), BridgeError> {
        let headers = self.modern_headers(version, request);
        let response = self.post(headers.clone(), request.bytes.clone()).await?;
        if response.status() != StatusCode::BAD_REQUEST || request.method != "tools/call" || response.is_stream() {
            return self.pass(request, response).await;
        }
        let unexpected = response.unexpected();
        let body = response.bytes().await?;
        if code_of(&body) == Some(HEADER_MISMATCH) {
            // The client knows the tool from a list that this process has not seen.
            self.learn(request, version).await?;
            let corrected = self.modern_headers(version, request);
            if corrected != headers {
                let response = self.post(corrected, request.bytes.clone()).await?;
                return self.pass(request, response).await;
            }
        }
        self.pass_message(request, &body, unexpected).await
    }

    fn modern_headers(&self, version: &str, request: &Request) -> HeaderMap {
        headers::modern(version, &request.method, &request.params, &lock(&self.tools))
    }

    /// Reads the list of tools, as the client of this request sees it.
    async fn learn(&self, request: &Request, version: &str) -> Result<(), BridgeError> {
        let meta = request.params.get("_meta").cloned().unwrap_or_default();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let mut params = json!({"_meta": meta});
            if let (Some(cursor), Some(params)) = (cursor.take(), params.as_object_mut()) {
                params.insert("cursor".to_owned(), cursor);
            }
            let headers = headers::modern(version, "tools/list", &params, &MirroredTools::default());
            let body = json!({"jsonrpc": "2.0", "id": "toolgate", "method": "tools/list", "params": params});
            let response = self.post(headers, Bytes::from(body.to_string())).await?;
            let body: Value = serde_json::from_slice(&response.bytes().await?).unwrap_or_default();
            self.learn_from(&body);
            match body.pointer("/result/nextCursor") {
                Some(next) if next.is_string() => cursor = Some(next.clone()),
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    fn learn_from(&self, body: &Value) {
        if let Some(tools) = body.pointer("/result/tools").and_then(Value::as_array) {
            lock(&self.tools).learn(tools);
        }
    }

    async fn in_session(&self, request: &Request) -> Result<(), BridgeError> {
        let session = self.session.lock().await.clone();
        let headers = session.as_ref().map(Session::headers).unwrap_or_default();
        let response = self.post(headers, request.bytes.clone()).await?;
        match session {
            // The gate was restarted, or the session was idle for too long.
            Some(ended) if response.status() == StatusCode::NOT_FOUND => {
                drop(response);
                let session = self.reopen(&ended).await?;
                let response = self.post(session.headers(), request.bytes.clone()).await?;
                self.pass(request, response).await
            }
            _ => self.pass(request, response).await,
        }
    }

    async fn initialize(&self, request: &Request) {
        self.end_session().await;
        let mut current = self.session.lock().await;
        let opened = match timely(Session::open(&self.client, request)).await {
            Ok(opened) => opened,
            Err(failure) => return self.output.send(error(&request.id, INTERNAL, &failure.to_string())).await,
        };
        *current = opened.session;
        drop(current);
        let line = on_one_line(&opened.response, &request.id);
        let line = line.unwrap_or_else(|| error(&request.id, INTERNAL, &BridgeError::NoResponse.to_string()));
        self.output.send(line).await;
    }

    /// Opens a session in place of one that has ended, unless another request has done so.
    async fn reopen(&self, ended: &Session) -> Result<Session, BridgeError> {
        let mut current = self.session.lock().await;
        match current.as_ref() {
            Some(newer) if !newer.is_same(ended) => return Ok(newer.clone()),
            Some(_) => {}
            // The client has ended it meanwhile.
            None => return Err(BridgeError::NoResponse),
        }
        let session = timely(ended.reopen(&self.client)).await?;
        say("toolgate: the gate had ended the session of the client; a new one was opened");
        *current = Some(session.clone());
        Ok(session)
    }

    async fn end_session(&self) {
        if let Some(session) = self.session.lock().await.take() {
            let ended = self.client.mcp(Method::DELETE, session.headers(), Bytes::new());
            // A session that is not ended now ends when it is idle.
            let _ = tokio::time::timeout(END_TIMEOUT, ended).await;
        }
    }

    async fn notify(self: &Arc<Self>, notification: Notification, tasks: &mut JoinSet<()>) {
        let Notification { method, params, .. } = &notification;
        if let (true, Some(id)) = (method == "notifications/cancelled", params.get("requestId")) {
            let cancelled = lock(&self.in_flight).get(&id.to_string()).map(|one| one.task.clone());
            cancelled.iter().for_each(AbortHandle::abort);
        }
        let session = self.session.lock().await.clone();
        // Closing its connection has cancelled a request of the modern era; the gate expects no other notification of it.
        if let (None, Some(session)) = (notification.version(), session) {
            self.post_quietly(session.headers(), notification.bytes.clone()).await;
            if method == "notifications/initialized" {
                let following = tasks.spawn(follow(Arc::clone(self)));
                if let Some(earlier) = lock(&self.following).replace(following) {
                    earlier.abort();
                }
            }
        }
    }

    async fn post(&self, headers: HeaderMap, body: Bytes) -> Result<McpResponse<'_>, BridgeError> {
        Ok(self.client.mcp(Method::POST, headers, body).await?)
    }

    /// Sends what has no response. A failure can only be logged.
    async fn post_quietly(&self, headers: HeaderMap, body: Bytes) {
        if let Err(failure) = timely(async { self.post(headers, body).await.map(drop) }).await {
            say(&format!("toolgate: could not pass on a message of the client: {failure}"));
        }
    }

    /// Passes on the response to a request, and what precedes it on a stream.
    async fn pass(&self, request: &Request, response: McpResponse<'_>) -> Result<(), BridgeError> {
        let unexpected = response.unexpected();
        if !response.is_stream() {
            let body = response.bytes().await?;
            return self.pass_message(request, &body, unexpected).await;
        }
        let is_live = request.method == "subscriptions/listen";
        let mut stream = if is_live { response.live_stream() } else { response.stream() };
        let mut is_complete = false;
        while let Some(message) = stream.next().await? {
            let Some(line) = on_one_line(message.as_bytes(), &Value::Null) else { return Err(unexpected.into()) };
            is_complete |= is_response(&line, &request.id);
            self.output.send(line).await;
        }
        if is_complete { Ok(()) } else { Err(BridgeError::NoResponse) }
    }

    async fn pass_message(&self, request: &Request, body: &[u8], unexpected: ClientError) -> Result<(), BridgeError> {
        if body.is_empty() {
            return Err(BridgeError::NoResponse);
        }
        let line = on_one_line(body, &request.id).ok_or(unexpected)?;
        if request.method == "tools/list" {
            self.learn_from(&serde_json::from_str(&line).unwrap_or_default());
        }
        self.output.send(line).await;
        Ok(())
    }
}

/// Follows the stream of the session, and opens it again when it ends.
async fn follow(bridge: Arc<Bridge>) {
    let mut delay = FIRST_RETRY;
    let mut has_missed = false;
    loop {
        let Some(session) = bridge.session.lock().await.clone() else { return };
        match bridge.client.mcp(Method::GET, session.headers(), Bytes::new()).await {
            Ok(response) if response.status() == StatusCode::OK && response.is_stream() => {
                delay = FIRST_RETRY;
                if has_missed {
                    let line = json!({"jsonrpc": "2.0", "method": LIST_CHANGED}).to_string();
                    bridge.output.send(line).await;
                }
                let mut stream = response.live_stream();
                while let Ok(Some(message)) = stream.next().await {
                    if let Some(line) = on_one_line(message.as_bytes(), &Value::Null) {
                        bridge.output.send(line).await;
                    }
                }
            }
            Ok(response) if response.status() == StatusCode::NOT_FOUND => {
                drop(response);
                if let Err(failure) = bridge.reopen(&session).await {
                    say(&format!("toolgate: {failure}"));
                }
            }
            Ok(response) if response.status().is_client_error() && response.status().as_u16() != 429 => {
                say(&format!(
                    "toolgate: no change notifications from the gate ({}); list the tools again",
                    response.status()
                ));
                return;
            }
            Ok(_) | Err(_) => {}
        }
        has_missed = true;
        pause(delay).await;
        delay = (delay * 2).min(MAX_RETRY);
    }
}

/// Removes a request from those in flight when it ends, also if it is cancelled.
struct Registered<'a> {
    bridge: &'a Bridge,
    key: String,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        lock(&self.bridge.in_flight).remove(&self.key);
    }
}

async fn timely<T>(work: impl Future<Output = Result<T, BridgeError>>) -> Result<T, BridgeError> {
    tokio::time::timeout(RESPONSE_TIMEOUT, work).await.unwrap_or(Err(BridgeError::TimedOut))
}

fn code_of(body: &[u8]) -> Option<i64> {
    serde_json::from_slice::<Value>(body).ok()?.pointer("/error/code")?.as_i64()
}

fn is_response(line: &str, id: &Value) -> bool {
    let message = serde_json::from_str::<Value>(line).unwrap_or_default();
    message.get("method").is_none() && message.get("id") == Some(id)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
