//! Streams on which a client hears that its lists have changed: `subscriptions/listen` of the modern era, and the GET of a
//! session. A stream is woken when something happens that lists depend on, and says so only if a list of its caller is another
//! one. Of prompts and resources the gate knows which mounts the caller may list, and not what their servers list.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use axum::response::Response;
use axum::response::sse::Event;
use http::StatusCode;
use serde_json::{Map, Value, json};
use toolgate_gate::Caller;
use toolgate_gate::refusal::Refusal;
use toolgate_model::permission::Permission;

use super::call::Context;
use super::message::{Params, RequestId};
use super::reply::{Reply, RpcError, refused, refused_request};
use super::sessions::OpenStream;
use super::sse;
use crate::event_stream::{self, Following};
use crate::router::App;

/// Names the request that a notification belongs to.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The lists, each with its name in a subscription and the notification that it has changed.
const LISTS: [(&str, &str); 3] = [
    ("toolsListChanged", "notifications/tools/list_changed"),
    ("promptsListChanged", "notifications/prompts/list_changed"),
    ("resourcesListChanged", "notifications/resources/list_changed"),
];

/// One for each of [`LISTS`].
type OfLists<T> = [T; 3];

/// Opens the stream of a modern client.
pub(super) async fn subscribe(context: Context, mut params: Params) -> Result<Reply, RpcError> {
    let wanted = params.take_object("notifications")?;
    if !context.takes_stream {
        let error = RpcError::invalid_request("accept text/event-stream to listen");
        return Ok(Reply::Whole(Box::new(error.with_status(StatusCode::NOT_ACCEPTABLE, Some(&context.id)))));
    }
    let hears = LISTS.map(|(name, _)| wanted.get(name) == Some(&Value::Bool(true)));
    let honored =
        LISTS.iter().zip(hears).filter(|(_, hears)| *hears).map(|((name, _), _)| ((*name).to_owned(), json!(true)));
    let honored: Map<String, Value> = honored.collect();
    let RequestId(id) = &context.id;
    let meta = json!({SUBSCRIPTION: id});
    let acknowledged = sse::notification(
        "notifications/subscriptions/acknowledged",
        &json!({"notifications": honored, "_meta": meta}),
    );
    let kind = Kind { params: json!({"_meta": meta}), hears };
    let opened = open(context.app, context.caller, kind, None, vec![acknowledged]).await;
    Ok(Reply::Whole(Box::new(opened.unwrap_or_else(|refusal| refused_request(&refusal, &context.id)))))
}

/// Opens the stream of a session.
pub(super) async fn follow(app: Arc<App>, caller: Caller, session: OpenStream) -> Response {
    let kind = Kind { params: json!({}), hears: [true; 3] };
    // Something is sent at once, so that the client knows that the stream is open.
    let beginning = vec![Event::default().comment("open")];
    open(app, caller, kind, Some(session), beginning).await.unwrap_or_else(|refusal| refused(&refusal))
}

/// What a client wants to hear, and what each notification carries.
struct Kind {
    params: Value,
    hears: OfLists<bool>,
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
    let known = fingerprints(&app, &caller).await?;
    let watching = Watching { kind, known, _session: session };
    Ok(event_stream::open(app, caller, follower, watching, beginning))
}

/// The lists of a caller, as it was last told of.
struct Watching {
    kind: Kind,
    known: OfLists<u64>,
    /// A session does not end while its stream is open.
    _session: Option<OpenStream>,
}

impl Following for Watching {
    type Page = OfLists<u64>;

    // A caller that gains or loses it sees another list, and is notified like of any other change.
    const SEES_MORE: Option<Permission> = None;

    async fn page(&self, app: &App, caller: &Caller) -> Result<Option<OfLists<u64>>, Refusal> {
        if self.kind.hears == [false; 3] {
            return Ok(None);
        }
        // What is listed depends on the principal as it is now.
        let caller = app.gate.authenticator.identify_again(caller).await?;
        let now = fingerprints(app, &caller).await?;
        let mut changed = self.kind.hears.iter().zip(now.iter().zip(&self.known));
        Ok(changed.any(|(hears, (now, known))| *hears && now != known).then_some(now))
    }

    async fn written(&mut self, _: &App, _: &Caller, page: OfLists<u64>) -> Result<Vec<Event>, Refusal> {
        let changed = LISTS.iter().zip(self.kind.hears).zip(page.iter().zip(&self.known));
        let changed = changed.filter(|((_, hears), (now, known))| *hears && now != known);
        let events = changed.map(|(((_, method), _), _)| sse::notification(method, &self.kind.params)).collect();
        self.known = page;
        Ok(events)
    }
}

/// The same for the same lists.
async fn fingerprints(app: &App, caller: &Caller) -> Result<OfLists<u64>, Refusal> {
    let mut hashers: OfLists<DefaultHasher> = Default::default();
    let [tools, prompts, resources] = &mut hashers;
    for tool in app.gate.administration.callable_tools(caller).await? {
        match tool.name.as_str() {
            _ if !tool.forwards_protocol() => tool.listing().hash(tools),
            "mcp.prompts.list" => tool.qualified_name().hash(prompts),
            "mcp.resources.list" => tool.qualified_name().hash(resources),
            _ => {}
        }
    }
    Ok(hashers.map(|hasher| hasher.finish()))
}
