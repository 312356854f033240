//! Streams on which a client hears that its list of tools has changed: `subscriptions/listen` of the modern era, and the GET
//! of a session. A stream is woken when something happens that lists depend on, and says so only if the list of its caller
//! is another one.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use axum::response::Response;
use axum::response::sse::Event;
use http::StatusCode;
use serde_json::{Value, json};
use toolgate_gate::Caller;
use toolgate_gate::refusal::Refusal;
use toolgate_model::permission::Permission;

use super::call::Context;
use super::message::{Params, RequestId};
use super::reply::{Reply, RpcError, refused};
use super::sessions::OpenStream;
use super::{list, sse};
use crate::event_stream::{self, Following};
use crate::router::App;

/// Names the request that a notification belongs to.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// Opens the stream of a modern client.
pub(super) async fn subscribe(context: Context, mut params: Params) -> Result<Reply, RpcError> {
    let wanted = params.take_object("notifications")?;
    if !context.takes_stream {
        let error = RpcError::invalid_request("accept text/event-stream to listen");
        return Ok(Reply::Whole(Box::new(error.with_status(StatusCode::NOT_ACCEPTABLE, Some(&context.id)))));
    }
    let hears_of_tools = wanted.get("toolsListChanged") == Some(&Value::Bool(true));
    let honored = if hears_of_tools { json!({"toolsListChanged": true}) } else { json!({}) };
    let RequestId(id) = &context.id;
    let meta = json!({SUBSCRIPTION: id});
    let acknowledged = sse::notification(
        "notifications/subscriptions/acknowledged",
        &json!({"notifications": honored, "_meta": meta}),
    );
    let kind = Kind { params: json!({"_meta": meta}), hears_of_tools };
    let opened = open(context.app, context.caller, kind, None, vec![acknowledged]).await;
    Ok(Reply::Whole(Box::new(opened.unwrap_or_else(|refusal| refused(&refusal)))))
}

/// Opens the stream of a session.
pub(super) async fn follow(app: Arc<App>, caller: Caller, session: OpenStream) -> Response {
    let kind = Kind { params: json!({}), hears_of_tools: true };
    // Something is sent at once, so that the client knows that the stream is open.
    let beginning = vec![Event::default().comment("open")];
    open(app, caller, kind, Some(session), beginning).await.unwrap_or_else(|refusal| refused(&refusal))
}

/// What a client wants to hear, and what each notification carries.
struct Kind {
    params: Value,
    hears_of_tools: bool,
}

async fn open(
    app: Arc<App>,
    caller: Caller,
    kind: Kind,
    session: Option<OpenStream>,
    beginning: Vec<Event>,
) -> Result<Response, Refusal> {
    // INVARIANT: there before the list is read, so that every later change wakes it.
    let follower = app.gate.streams.follow_catalog(&caller)?;
    let known = fingerprint(&app, &caller).await?;
    let watching = Watching { kind, known, _session: session };
    Ok(event_stream::open(app, caller, follower, watching, beginning))
}

/// The list of a caller, as it was last told of.
struct Watching {
    kind: Kind,
    known: u64,
    /// A session does not end while its stream is open.
    _session: Option<OpenStream>,
}

impl Following for Watching {
    type Page = u64;

    // A caller that gains or loses it sees another list, and is told like of any other change.
    const SEES_MORE: Option<Permission> = None;

    async fn page(&self, app: &App, caller: &Caller) -> Result<Option<u64>, Refusal> {
        if !self.kind.hears_of_tools {
            return Ok(None);
        }
        // What is listed depends on the principal as it is now.
        let caller = app.gate.authenticator.identify_again(caller).await?;
        let now = fingerprint(app, &caller).await?;
        Ok((now != self.known).then_some(now))
    }

    async fn written(&mut self, _: &App, _: &Caller, page: u64) -> Result<Vec<Event>, Refusal> {
        self.known = page;
        Ok(vec![sse::notification(LIST_CHANGED, &self.kind.params)])
    }
}

/// The same for the same list.
async fn fingerprint(app: &App, caller: &Caller) -> Result<u64, Refusal> {
    let mut hasher = DefaultHasher::new();
    list::visible(app, caller).await?.iter().for_each(|tool| tool.listing().hash(&mut hasher));
    Ok(hasher.finish())
}
