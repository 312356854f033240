//! MCP over streamable HTTP: one POST for each request, whose response is JSON or a stream of events that ends with it.
//! Through the guarded client and the adapter of the credential, like every other request to a service.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use serde_json::Value;
use tokio::time::Instant;
use toolgate_gate::ports::mount::{McpEra, MountSession};
use toolgate_gate::ports::source::{FailureKind, Renewal, SourceFailure};
use toolgate_gate::ports::telemetry::TracedCall;
use toolgate_model::client_input::InputCapabilities;
use toolgate_model::connection::{AdapterName, AuthPlacement, Connection};
use toolgate_model::constraint::HostSet;
use toolgate_model::credential::AuthType;
use toolgate_model::id::InvocationId;
use toolgate_model::redaction::Redactor;
use toolgate_model::secret::Material;
use toolgate_model::service::{HttpMethod, RenderedBody, RenderedRequest, ToolName};
use toolgate_model::time::Timestamp;
use url::Url;

use super::greeting::{Greeting, may_be_legacy};
use super::headers::{self, Header};
use super::incoming::Incoming;
use super::message::{self, Envelope, Request};
use super::questions::{Questions, UNANSWERED};
use super::reporter::Reporter;
use super::result::{Raw, malformed};
use crate::adapter::{OutboundCall, not_executable};
use crate::body::DEFAULT_BODY_LIMIT;
use crate::client::{GuardedClient, OpenResponse};
use crate::connectors::adapter;
use crate::pool::PoolKey;
use crate::time::now;

/// How many requests of a server are answered on one stream.
const REQUEST_LIMIT: usize = 16;
/// How long telling a server that a call is over may take.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);
const SESSION_HEADER: &str = "mcp-session-id";
/// The longest id of a session.
const SESSION_LIMIT: usize = 1024;

/// A server, and how requests to it are sent within one call.
pub(crate) struct Endpoint<'a> {
    pub(crate) client: &'a GuardedClient,
    pub(crate) url: &'a Url,
    pub(crate) invocation: InvocationId,
    pub(crate) tool: &'a ToolName,
    pub(crate) adapter: AdapterName,
    pub(crate) pool: PoolKey,
    pub(crate) auth_type: AuthType,
    pub(crate) connection: &'a Connection,
    pub(crate) placement: &'a AuthPlacement,
    pub(crate) hosts: &'a [&'a HostSet],
    pub(crate) deadline: Instant,
    pub(crate) now: Timestamp,
    pub(crate) material: &'a Material,
    pub(crate) renewal: &'a dyn Renewal,
    pub(crate) traced: Option<&'a TracedCall>,
    pub(crate) reporter: Option<&'a Reporter<'a>>,
    /// The client of the call, if the server may ask it.
    pub(crate) questions: Option<&'a Questions<'a>>,
}

/// What is spoken with a server, as the handshake has shown.
pub(crate) struct Session {
    pub(crate) greeting: Greeting,
    /// Whether the server gave the session an id.
    pub(crate) has_id: bool,
    /// The headers of every request of the legacy era.
    headers: Vec<Header>,
    /// The record of what the server keeps for a principal in it.
    pub(crate) kept: Mutex<Option<MountSession>>,
}

/// What became of a request.
pub(crate) enum Responded {
    Message(Raw),
    /// The server does not know the session, and has done nothing.
    NoSession,
}

/// What a request brought.
struct Posted {
    status: u16,
    headers: HeaderMap,
    body: PostedBody,
}

enum PostedBody {
    Whole { bytes: Vec<u8>, truncated: bool },
    Events(Box<OpenResponse>),
}

/// What a server has announced on the way, for whoever keeps its list.
#[derive(Default)]
pub(crate) struct Announced {
    pub(crate) list_changed: bool,
}

impl Endpoint<'_> {
    /// Finds out the era and begins a session where it needs one.
    pub(crate) async fn greet(
        &self,
        known: Option<McpEra>,
        redactor: &mut Redactor,
        ids: &impl Fn() -> u64,
    ) -> Result<Session, SourceFailure> {
        if known != Some(McpEra::Legacy)
            && let Some(greeting) = self.discover(redactor, ids()).await?
        {
            return Ok(Session::of(greeting, None));
        }
        self.initialize(redactor, ids()).await
    }

    /// What a modern server says about itself; `None` for one that may be legacy.
    async fn discover(&self, redactor: &mut Redactor, id: u64) -> Result<Option<Greeting>, SourceFailure> {
        let request = Request::of_protocol("server/discover", "");
        let body = request.write(id, McpEra::Modern, self.traced);
        let posted = self.post(body, &headers::modern(&request), self.deadline, redactor).await?;
        let status = posted.status;
        // Who may not ask, or asks too often, or finds nobody there, learns nothing about the server.
        if matches!(status, 401 | 403 | 407 | 429 | 502..=504) || (300..400).contains(&status) {
            return Err(refused(status));
        }
        let raw = match self.response(posted, id, None, redactor, &mut Announced::default()).await {
            Ok(raw) => raw,
            Err(_) if status >= 400 => return Ok(None),
            Err(failure) => return Err(failure),
        };
        match message::response(&raw.message, id) {
            Ok(Ok(result)) => Greeting::modern(&result).map(Some).map_err(|reason| malformed(status, reason)),
            Ok(Err(error)) if may_be_legacy(&error) => Ok(None),
            Ok(Err(_)) => {
                Err(malformed(status, "the server supports no revision of the protocol that the gate speaks"))
            }
            Err(_) if status >= 400 => Ok(None),
            Err(reason) => Err(malformed(status, &format!("the server's response {reason}"))),
        }
    }

    async fn initialize(&self, redactor: &mut Redactor, id: u64) -> Result<Session, SourceFailure> {
        let body = Request::initialize(self.capabilities()).write(id, McpEra::Legacy, None);
        let posted = self.post(body, &headers::legacy(None, None), self.deadline, redactor).await?;
        let session = session_id(&posted.headers).map_err(|reason| malformed(posted.status, reason))?;
        let raw = self.response(posted, id, None, redactor, &mut Announced::default()).await?;
        let status = raw.http_status;
        let result = match message::response(&raw.message, id) {
            Ok(Ok(result)) => result,
            Ok(Err(error)) => {
                let reason = format!("the server refused the handshake with error {}", error.code);
                return Err(SourceFailure { kind: FailureKind::Service, ..malformed(status, &reason) });
            }
            Err(reason) => return Err(malformed(status, &format!("the server's response {reason}"))),
        };
        let greeting = Greeting::legacy(&result).map_err(|reason| malformed(status, reason))?;
        let session = Session::of(greeting, session.as_deref());
        self.notify(message::notification("notifications/initialized", ""), &session, self.deadline, redactor).await?;
        Ok(session)
    }

    /// What a server of the legacy era may ask for in a session that is begun here.
    pub(crate) fn capabilities(&self) -> InputCapabilities {
        self.questions.map(Questions::capabilities).unwrap_or_default()
    }

    /// Sends a request in a session.
    pub(crate) async fn request(
        &self,
        request: &Request<'_>,
        id: u64,
        session: &Arc<Session>,
        redactor: &mut Redactor,
        announced: &mut Announced,
    ) -> Result<Responded, SourceFailure> {
        let era = session.greeting.era;
        let body = request.write(id, era, self.traced);
        let of_request = if era == McpEra::Modern { headers::modern(request) } else { Vec::new() };
        let headers = if era == McpEra::Modern { &of_request } else { &session.headers };
        let sent = async {
            let posted = self.post(body, headers, self.deadline, redactor).await?;
            if posted.status == 404 && session.has_id {
                return Ok(Responded::NoSession);
            }
            let responded = self.response(posted, id, Some(session), redactor, announced).await;
            // The server has the request, whatever became of what was sent to it since.
            responded.map(Responded::Message).map_err(|failure| SourceFailure { sent: true, ..failure })
        };
        let sent = sent.await;
        // For a modern server the end of the connection is enough.
        if let (McpEra::Legacy, Err(SourceFailure { timed_out: true, sent: true, .. })) = (era, &sent) {
            let _ = self.notify(message::cancelled(id), session, now() + CANCEL_TIMEOUT, redactor).await;
        }
        sent
    }

    /// Sends something that has no response.
    async fn notify(
        &self,
        message: Vec<u8>,
        session: &Session,
        deadline: Instant,
        redactor: &mut Redactor,
    ) -> Result<(), SourceFailure> {
        let posted = self.post(message, &session.headers, deadline, redactor).await?;
        if (200..300).contains(&posted.status) { Ok(()) } else { Err(refused(posted.status)) }
    }

    async fn post(
        &self,
        body: Vec<u8>,
        headers: &[Header],
        deadline: Instant,
        redactor: &mut Redactor,
    ) -> Result<Posted, SourceFailure> {
        if self.adapter == AdapterName::Webhook {
            return Err(not_executable("an MCP server takes no webhooks; give its credential another adapter"));
        }
        let body = RenderedBody { content_type: "application/json".into(), bytes: body };
        let request =
            RenderedRequest { method: HttpMethod::Post, url: self.url.clone(), headers: Vec::new(), body: Some(body) };
        let events = Mutex::new(None);
        let outbound = OutboundCall {
            body_limit: DEFAULT_BODY_LIMIT,
            invocation: self.invocation,
            pool: self.pool,
            auth_type: self.auth_type,
            connection: self.connection,
            placement: self.placement,
            tool: self.tool,
            parameters: &Value::Null,
            request: &request,
            hosts: self.hosts,
            deadline,
            now: self.now,
            material: self.material,
            renewal: self.renewal,
            // In the headers and in the body: proxies see the one, servers the other.
            traced: self.traced,
            more_headers: headers,
            events: Some(&events),
        };
        let response = adapter(self.adapter).carry_out(self.client, outbound, redactor).await?;
        let (status, headers) = (response.status, response.headers);
        let body = match events.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(stream) => PostedBody::Events(Box::new(stream)),
            None => PostedBody::Whole { bytes: response.body, truncated: response.truncated },
        };
        Ok(Posted { status, headers, body })
    }

    /// The response to the request of this id.
    async fn response(
        &self,
        posted: Posted,
        id: u64,
        session: Option<&Session>,
        redactor: &mut Redactor,
        announced: &mut Announced,
    ) -> Result<Raw, SourceFailure> {
        let status = posted.status;
        let stream = match posted.body {
            PostedBody::Events(stream) => stream,
            PostedBody::Whole { truncated: true, .. } => return Err(too_large(status)),
            PostedBody::Whole { bytes, .. } if (200..300).contains(&status) && !bytes.is_empty() => {
                return Ok(Raw { message: bytes, id, http_status: status });
            }
            // A refusal may say why, in the words of the protocol.
            PostedBody::Whole { bytes, .. } => {
                return match message::response(&bytes, id) {
                    Ok(Err(_)) if status >= 400 => Ok(Raw { message: bytes, id, http_status: status }),
                    _ => Err(refused(status)),
                };
            }
        };
        self.response_of_stream(*stream, id, session, redactor, announced).await
    }

    async fn response_of_stream(
        &self,
        stream: OpenResponse,
        id: u64,
        session: Option<&Session>,
        redactor: &mut Redactor,
        announced: &mut Announced,
    ) -> Result<Raw, SourceFailure> {
        let status = stream.status();
        let (mut incoming, mut requests) = (Incoming::of(stream), 0);
        loop {
            let message = incoming.next().await?;
            match Envelope::of(&message) {
                Ok(Envelope::Response(_)) => {
                    incoming.release();
                    return Ok(Raw { message, id, http_status: status });
                }
                Ok(Envelope::Notification { method }) => {
                    announced.list_changed |= method == "notifications/tools/list_changed";
                    if let Some(reporter) = self.reporter.filter(|_| method == message::PROGRESS) {
                        reporter.report(&message, id, redactor);
                    }
                    if let Some(questions) = self.questions.filter(|_| method == message::LOG) {
                        questions.log(&message, redactor);
                    }
                }
                Ok(Envelope::Request { id, method }) => {
                    requests += 1;
                    if requests > REQUEST_LIMIT {
                        return Err(malformed(status, "the server sent too many messages before its response"));
                    }
                    if let Some(session) = session.filter(|session| session.greeting.era == McpEra::Legacy) {
                        let answering = self.answer((&message, (&id, &method)), session, redactor);
                        let answered = incoming.unless_responded(answering).await;
                        answered.and_then(Option::transpose).map_err(|failure| self.unanswered(failure))?;
                    }
                }
                Err(_) => return Err(malformed(status, "the server's stream has an event that is no message")),
            }
        }
    }

    /// Sends the server what it gets for a request of its own.
    async fn answer(
        &self,
        (message, (id, method)): (&[u8], (&Value, &str)),
        session: &Session,
        redactor: &mut Redactor,
    ) -> Result<(), SourceFailure> {
        let response = match self.questions {
            Some(questions) => questions.response(message, (id, method), redactor, self.deadline).await,
            None => message::refusal(id, method),
        };
        self.notify(response, session, self.deadline, redactor).await
    }

    /// The failure of a call that ended while its server waited for something.
    fn unanswered(&self, failure: SourceFailure) -> SourceFailure {
        match self.questions.filter(|questions| failure.timed_out && questions.is_open()) {
            Some(_) => SourceFailure { reason: UNANSWERED.to_owned(), ..failure },
            None => failure,
        }
    }
}

impl Session {
    fn of(greeting: Greeting, id: Option<&str>) -> Self {
        let headers = match greeting.era {
            McpEra::Modern => Vec::new(),
            McpEra::Legacy => headers::legacy(Some(&greeting.version), id),
        };
        Self { has_id: id.is_some(), headers, greeting, kept: Mutex::default() }
    }

    /// The server has forgotten it.
    pub(crate) fn lost(&self) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.into_iter().for_each(MountSession::fail);
    }
}

fn session_id(headers: &HeaderMap) -> Result<Option<String>, &'static str> {
    let Some(id) = headers.get(SESSION_HEADER) else { return Ok(None) };
    let is_id = |id: &&str| id.len() <= SESSION_LIMIT && id.bytes().all(|byte| byte.is_ascii_graphic());
    let id = id.to_str().ok().filter(is_id).ok_or("the server gave a session an id that is none")?;
    Ok(Some(id.to_owned()))
}

fn refused(status: u16) -> SourceFailure {
    let reason = match status {
        200..=299 => "the server's response is empty".to_owned(),
        300..=399 => {
            format!("the server responded with status {status}: redirects are not followed; mount its address")
        }
        401 | 403 => format!("the server responded with status {status}: it does not accept the credential"),
        _ => format!("the server responded with status {status}"),
    };
    let kind = if status < 300 { FailureKind::Proxy } else { FailureKind::Service };
    SourceFailure { kind, ..malformed(status, &reason) }
}

pub(crate) fn too_large(status: u16) -> SourceFailure {
    SourceFailure { truncated: true, ..malformed(status, "the server's response is larger than is read; ask for less") }
}
