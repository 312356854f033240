//! The endpoint: one message in each POST. A GET follows what happens in a session, a DELETE ends it; both are for legacy
//! clients.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Map, Value};
use toolgate_gate::Caller;
use toolgate_gate::call::Presence;
use toolgate_gate::ports::ledger::Freshness;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_gate::request_context::in_current_request;

use super::call::{self, Context};
use super::client::{self, Capabilities};
use super::era::{Era, LegacyVersion};
use super::form::Form;
use super::live::InSession;
use super::log_level::LogLevel;
use super::message::{self, Message, Params, RequestId};
use super::reply::{Reply, RpcError, challenged, forbidden, only_post, refused, refused_request};
use super::sessions::{Known, Owner, SessionId};
use super::{discover, forward, headers, list, listen, live, origin, tasks};
use crate::body::{self, Nothing};
use crate::limiter::BodyShare;
use crate::protected_resource::ProtectedResource;
use crate::router::App;
use crate::{accepted, caller, challenge, parameters};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const EVENT_STREAM: &str = "text/event-stream";

/// Reads and answers a message in a task of its own: a client that disconnects takes its call back, and the refusal is
/// recorded all the same.
pub(super) async fn post(State(app): State<Arc<App>>, request: Request) -> Response {
    let (_waiting, presence) = Presence::new();
    let responding = tokio::spawn(in_current_request(Box::pin(respond(app, request, presence))));
    responding.await.unwrap_or_else(|_| {
        refused(&Refusal::new(Code::Internal, "the request broke off inside the gate; see its log"))
    })
}

pub(super) async fn get(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let (parts, caller, _) = match admitted(&app, parts, Freshness::Newest).await {
        Ok(admitted) => admitted,
        Err(response) => return *response,
    };
    let Some(session) = session_id(&parts.headers).filter(|_| !Era::of_headers(&parts.headers).is_modern()) else {
        return only_post();
    };
    if !accepted::names(&parts.headers, EVENT_STREAM) {
        return RpcError::invalid_request("accept text/event-stream").with_status(StatusCode::NOT_ACCEPTABLE, None);
    }
    let found = session.ok().and_then(|id| Some((id, app.mcp.sessions.find(&owner(&caller), id)?)));
    let Some((id, known)) = found else { return no_session(None) };
    if !Era::agrees(&parts.headers, known.version) {
        return other_version(known.version, None);
    }
    match app.mcp.sessions.open_stream(&owner(&caller), id) {
        Some(stream) => listen::follow(app, caller, stream).await,
        None => no_session(None),
    }
}

pub(super) async fn delete(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let (parts, caller, _) = match admitted(&app, parts, Freshness::Newest).await {
        Ok(admitted) => admitted,
        Err(response) => return *response,
    };
    match session_id(&parts.headers) {
        Some(Ok(id)) if app.mcp.sessions.close(&owner(&caller), id) => StatusCode::NO_CONTENT.into_response(),
        Some(_) => no_session(None),
        None => only_post(),
    }
}

/// Checks where a request comes from, and who sends it.
async fn admitted(app: &App, mut parts: Parts, freshness: Freshness) -> Result<(Parts, Caller, IpAddr), Box<Response>> {
    let refuse = |refusal: Refusal| Box::new(refused(&refusal));
    let address = caller::peer(&parts.extensions).map_err(refuse)?.address;
    origin::check(&parts, address, &app.mcp.settings).map_err(|reason| Box::new(forbidden(reason)))?;
    let (caller, agent) = match caller::identify(&mut parts, app, freshness).await {
        Ok(identified) => identified,
        Err(refusal) => return Err(Box::new(unidentified(app, &parts.headers, &refusal))),
    };
    if agent.is_some_and(|agent| agent != *caller.id()) {
        let reason = "X-Agent-ID is not supported over MCP; a client acts as the principal of its key";
        return Err(refuse(Refusal::new(Code::InvalidField, reason)));
    }
    let query: Result<Nothing, Refusal> = parameters::query(&parts.uri);
    query.map_err(refuse)?;
    Ok((parts, caller, address))
}

fn unidentified(app: &App, headers: &HeaderMap, refusal: &Refusal) -> Response {
    let metadata = app.protected_resource.as_ref().map(ProtectedResource::mcp_metadata);
    let presented = caller::presented_key(headers).is_ok_and(|key| key.is_some());
    challenged(refusal, challenge::Request { presented, metadata: metadata.as_deref() })
}

async fn respond(app: Arc<App>, request: Request, presence: Presence) -> Response {
    let (parts, body) = request.into_parts();
    // A call is checked again when it is admitted; what else there is asks for the newest state itself.
    let (parts, caller, address) = match admitted(&app, parts, Freshness::Recent).await {
        Ok(admitted) => admitted,
        Err(response) => return *response,
    };
    // The call may outlive its request, and with it what was read from the body.
    let _held = parts.extensions.get::<Arc<BodyShare>>().cloned();
    let bytes = match body::json_bytes(&parts, body, app.max_body).await {
        Ok(bytes) => bytes,
        Err(refusal) => return refused(&refusal),
    };
    let message = message::read(&bytes);
    drop(bytes);
    let incoming = Incoming { app, caller, address, headers: parts.headers, presence };
    match message {
        Ok(Message::Request { id, method, params }) => incoming.request(id, &method, params).await,
        Ok(Message::Notification { method, params }) => incoming.notification(&method, &params),
        Ok(Message::Response { id, result }) => incoming.response(id.as_ref(), result),
        Err(unreadable) => unreadable.error.response(Era::of_headers(&incoming.headers), unreadable.id.as_ref()),
    }
}

/// A request whose caller is known.
struct Incoming {
    app: Arc<App>,
    caller: Caller,
    address: IpAddr,
    headers: HeaderMap,
    presence: Presence,
}

impl Incoming {
    async fn request(self, id: RequestId, method: &str, params: Params) -> Response {
        match Era::of(&self.headers, &params) {
            Era::Modern => {
                let reply = match headers::check(&self.headers, method, &params) {
                    Ok(()) => {
                        let capabilities = Capabilities::of_request(&params);
                        modern(self.context(Era::Modern, id.clone(), capabilities, &params), method, params).await
                    }
                    Err(error) => Err(error),
                };
                responded(Era::Modern, &id, reply)
            }
            Era::Legacy(version) if method == "initialize" => self.initialize(version, &id, params),
            Era::Legacy(_) => self.in_session(id, method, params).await,
        }
    }

    async fn in_session(self, id: RequestId, method: &str, params: Params) -> Response {
        let (session, known) = match self.session(Some(&id)) {
            Ok(found) => found,
            Err(response) => return *response,
        };
        let era = Era::Legacy(known.version);
        let app = Arc::clone(&self.app);
        let mut context = self.context(era, id.clone(), known.capabilities, &params);
        let Some(call) = app.mcp.sessions.begin_call(session, &id) else {
            let error = RpcError::invalid_request("a request of this session with the same id is in flight");
            return error.response(era, Some(&id));
        };
        context.presence = call.cancellable(&context.presence);
        // It ends with the context: after the response, also where that is a stream.
        context.session_call = Some(call);
        let in_session = InSession { id: session, log_level: known.log_level };
        responded(era, &id, legacy(context, method, params, in_session).await)
    }

    /// Opens a session.
    fn initialize(self, version: LegacyVersion, id: &RequestId, mut params: Params) -> Response {
        let era = Era::Legacy(version);
        let version = match params.take_text("protocolVersion") {
            Ok(asked) => LegacyVersion::parse(&asked).unwrap_or(LegacyVersion::NEWEST),
            Err(error) => return error.response(era, Some(id)),
        };
        let capabilities = Capabilities::of(params.get("capabilities"));
        let known = Known { version, capabilities, log_level: None };
        let session = match self.app.mcp.sessions.open(&owner(&self.caller), known) {
            Ok(session) => session,
            Err(refusal) => return refused_request(&refusal, id),
        };
        let mut response = Reply::Result(discover::initialized(version)).response(era, id);
        if let Ok(value) = HeaderValue::try_from(session.to_string()) {
            response.headers_mut().insert(SESSION, value);
        }
        response
    }

    /// The response to a request that was sent on a stream of a session.
    fn response(self, id: Option<&RequestId>, result: Result<Map<String, Value>, i64>) -> Response {
        if Era::of_headers(&self.headers).is_modern() {
            return RpcError::invalid_request("this server sends no requests").response(Era::Modern, None);
        }
        let session = match self.session(None) {
            Ok((session, _)) => session,
            Err(response) => return *response,
        };
        // One that nobody waits for is of no use, and does no harm.
        if let Some(RequestId(Value::String(id))) = id {
            self.app.mcp.sessions.respond(session, id, result);
        }
        StatusCode::ACCEPTED.into_response()
    }

    fn notification(self, method: &str, params: &Params) -> Response {
        if Era::of(&self.headers, params).is_modern() {
            return StatusCode::ACCEPTED.into_response();
        }
        let session = match self.session(None) {
            Ok((session, _)) => session,
            Err(response) => return *response,
        };
        if let (true, Some(request)) = (method == "notifications/cancelled", params.get("requestId")) {
            self.app.mcp.sessions.cancel_call(session, &RequestId(request.clone()));
        }
        StatusCode::ACCEPTED.into_response()
    }

    /// The session that the headers name, if it is the caller's.
    fn session(&self, request: Option<&RequestId>) -> Result<(SessionId, Known), Box<Response>> {
        let Some(named) = session_id(&self.headers) else {
            let reason = "Mcp-Session-Id is missing: open a session with `initialize` first";
            return Err(Box::new(RpcError::invalid_request(reason).with_status(StatusCode::BAD_REQUEST, request)));
        };
        let found = named.ok().and_then(|id| Some((id, self.app.mcp.sessions.find(&owner(&self.caller), id)?)));
        let (id, known) = found.ok_or_else(|| Box::new(no_session(request)))?;
        match Era::agrees(&self.headers, known.version) {
            true => Ok((id, known)),
            false => Err(Box::new(other_version(known.version, request))),
        }
    }

    fn context(self, era: Era, id: RequestId, capabilities: Capabilities, params: &Params) -> Context {
        Context {
            era,
            id,
            capabilities,
            progress_token: client::progress_token(params),
            takes_stream: accepted::names(&self.headers, EVENT_STREAM),
            headers: era.is_modern().then_some(self.headers),
            app: self.app,
            caller: self.caller,
            presence: self.presence,
            address: self.address,
            form: Form::Tool,
            asking: None,
            live: None,
            session_call: None,
        }
    }
}

fn responded(era: Era, id: &RequestId, reply: Result<Reply, RpcError>) -> Response {
    match reply {
        Ok(reply) => reply.response(era, id),
        Err(error) => error.response(era, Some(id)),
    }
}

/// The methods of the modern era.
async fn modern(mut context: Context, method: &str, mut params: Params) -> Result<Reply, RpcError> {
    match method {
        call::TOOL_CALL => return live::tool(context, params, None).await,
        "server/discover" => return Ok(discover::discover()),
        _ => context.refresh().await?,
    }
    match method {
        "tools/list" => list::tools(&context.app, &context.caller, context.era, &mut params).await,
        "subscriptions/listen" => listen::subscribe(context, params).await,
        "tasks/get" => tasks::get(&context, params).await,
        "tasks/update" => tasks::update(&context, params).await,
        "tasks/cancel" => tasks::cancel(&context, params).await,
        other => forwarded(context, other, params).await,
    }
}

/// The methods of a session.
async fn legacy(mut context: Context, method: &str, mut params: Params, session: InSession) -> Result<Reply, RpcError> {
    match method {
        call::TOOL_CALL => return live::tool(context, params, Some(session)).await,
        "ping" => return Ok(Reply::Result(Map::new())),
        // What mounted servers log during a call is passed on from here on.
        "logging/setLevel" => {
            let level = LogLevel::parse(&params.take_text("level")?);
            let level = level.ok_or_else(|| RpcError::invalid_params("`params.level` is no level of log messages"))?;
            context.app.mcp.sessions.set_log_level(session.id, level);
            return Ok(Reply::Result(Map::new()));
        }
        _ => context.refresh().await?,
    }
    match method {
        "tools/list" => list::tools(&context.app, &context.caller, context.era, &mut params).await,
        other => forwarded(context, other, params).await,
    }
}

/// The methods that mounted servers answer.
async fn forwarded(context: Context, method: &str, params: Params) -> Result<Reply, RpcError> {
    forward::method(context, method, params).await.unwrap_or_else(|| Err(RpcError::unknown_method()))
}

impl Context {
    /// The caller as it is now: what is not a call is not checked again later.
    async fn refresh(&mut self) -> Result<(), RpcError> {
        let caller = self.app.gate.authenticator.identify_again(&self.caller).await;
        self.caller = caller.map_err(|refusal| RpcError::of_refusal(&refusal))?;
        Ok(())
    }
}

fn owner(caller: &Caller) -> Owner {
    (caller.tenant().clone(), caller.id().clone())
}

/// The session that the headers name; `None` where they name none.
fn session_id(headers: &HeaderMap) -> Option<Result<SessionId, ()>> {
    let mut values = headers.get_all(SESSION).iter();
    let first = values.next()?;
    let parsed = first.to_str().ok().filter(|_| values.next().is_none()).and_then(SessionId::parse);
    Some(parsed.ok_or(()))
}

/// A request that names another version than the one that its session was opened with.
fn other_version(version: LegacyVersion, id: Option<&RequestId>) -> Response {
    let reason = format!("MCP-Protocol-Version is not the version of the session, which is {}", version.as_str());
    RpcError::invalid_request(reason).with_status(StatusCode::BAD_REQUEST, id)
}

/// The same response for a session that has ended, one of another principal and one that never existed.
fn no_session(id: Option<&RequestId>) -> Response {
    RpcError::invalid_request("there is no such session: open one with `initialize`")
        .with_status(StatusCode::NOT_FOUND, id)
}
