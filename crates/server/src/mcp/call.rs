//! `tools/call`: a call of the pipeline like any other. One that must wait for an approver goes on without its connection.

use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderMap;
use serde_json::{Map, Value};
use toolgate_gate::Caller;
use toolgate_gate::call::{CallRequest, Invoked, Presence, Repeated};
use toolgate_gate::refusal::Refusal;
use toolgate_gate::request_context::RequestContext;
use toolgate_model::text::check_identifier;

use super::client::{self, Capabilities};
use super::era::Era;
use super::form::Form;
use super::input::{Asking, Given, Sent};
use super::interruption::{self, Continued};
use super::live::Live;
use super::message::{Params, RequestId};
use super::progressive::{self, Wanted};
use super::reply::{Reply, RpcError};
use super::sessions::SessionCall;
use super::{headers, held, list};
use crate::router::App;

/// A request on its way, with all that a method may need.
pub(super) struct Context {
    pub(super) app: Arc<App>,
    pub(super) caller: Caller,
    pub(super) era: Era,
    pub(super) id: RequestId,
    pub(super) capabilities: Capabilities,
    pub(super) progress_token: Option<Value>,
    /// Whether the client takes a stream as the response.
    pub(super) takes_stream: bool,
    pub(super) presence: Presence,
    pub(super) address: IpAddr,
    /// The headers of a modern request, which repeat some of its arguments.
    pub(super) headers: Option<HeaderMap>,
    /// What the request is a call of.
    pub(super) form: Form,
    /// What the request is, if a mounted server may interrupt it to ask the client for input.
    pub(super) asking: Option<Asking>,
    /// Reaches the client before the response.
    pub(super) live: Option<Live>,
    /// The request in its session, where it has one.
    pub(super) session_call: Option<SessionCall>,
}

impl Context {
    /// Whether a call that waits is a task for this client. Only calls of tools are.
    pub(super) fn follows_tasks(&self) -> bool {
        self.capabilities.follows_tasks && self.form == Form::Tool
    }

    /// A presence that ends with this one, or when the client cancels the request.
    pub(super) fn cancellable(&self, presence: Presence) -> Presence {
        match &self.session_call {
            Some(call) => call.cancellable(&presence),
            None => presence,
        }
    }
}

/// The method of calls of tools.
pub(super) const TOOL_CALL: &str = "tools/call";

pub(super) async fn tool(context: Context, mut params: Params) -> Result<Reply, RpcError> {
    let name = params.take_text("name")?;
    let arguments = params.take_object("arguments")?;
    let sent = Sent::take(&mut params)?;
    let trace = client::trace(&params);
    if let Some(headers) = &context.headers {
        check_headers(&context, headers, &name, &arguments).await?;
    }
    let calling = async move {
        if !progressive::is_on(&context.caller) {
            return named(context, &name, arguments, sent).await;
        }
        match progressive::wanted(&context, &name, arguments).await? {
            Wanted::Result(members) => Ok(Reply::Result(members)),
            Wanted::Call(inner, arguments) => progressive::as_result(named(context, &inner, arguments, sent).await),
        }
    };
    match RequestContext::current() {
        Some(current) if current.trace.is_none() && trace.is_some() => {
            RequestContext { trace, ..current }.scope(calling).await
        }
        _ => calling.await,
    }
}

/// Checks the headers that repeat arguments. A mismatch is reported only for a tool that the caller may see.
async fn check_headers(
    context: &Context,
    headers: &HeaderMap,
    name: &str,
    arguments: &Map<String, Value>,
) -> Result<(), RpcError> {
    let (app, caller) = (&context.app, &context.caller);
    let refused = |refusal: Refusal| RpcError::of_refusal(&refusal);
    let Some(tool) = app.gate.administration.mirroring_tool(caller, name).await.map_err(refused)? else {
        return Ok(());
    };
    let Err(mismatch) = headers::check_arguments(headers, tool.mirrored(), arguments) else { return Ok(()) };
    let visible = list::visible(app, caller).await.map_err(refused)?;
    let is_visible = visible.iter().any(|visible| visible.alias() == tool.alias());
    Err(if is_visible { mismatch } else { RpcError::unknown_tool() })
}

/// Calls the tool of this name.
async fn named(context: Context, name: &str, arguments: Map<String, Value>, sent: Sent) -> Result<Reply, RpcError> {
    let called = context.app.gate.administration.called_by_alias(&context.caller, name);
    let tool = called.filter(|tool| check_identifier(tool).is_ok()).ok_or_else(RpcError::unknown_tool)?;
    call(context, tool, arguments, sent).await
}

/// Makes the call that a request is.
pub(super) async fn call(
    mut context: Context,
    tool: String,
    arguments: Map<String, Value>,
    sent: Sent,
) -> Result<Reply, RpcError> {
    context.asking = Asking::of(&context, &tool, &arguments);
    if let Some(continued) = Continued::of(&sent) {
        let id = continued.call(&context, &tool, &arguments).await?;
        return held::go_on(context, id, continued.is_declined).await;
    }
    let Context { app, caller, presence, address, .. } = &context;
    let digest = interruption::digest(&context, &tool, &arguments);
    let given = Given::of(&context, sent)?;
    let is_continuation = given.is_continuation();
    let live = context.live.as_ref();
    let request = CallRequest {
        presence: Some(presence.clone()),
        observer: live.and_then(|live| live.observer.clone()),
        client: live.and_then(|live| live.client.clone()),
        ..CallRequest::new(tool, arguments, *address)
    };
    let request = given.with(request);
    let pipeline = &app.gate.pipeline;
    let invoked = match context.follows_tasks() || is_continuation {
        // A client that follows its call has no reason to repeat it, and input is sent once.
        true => pipeline.invoke_detaching(caller.clone(), request).await,
        false => match pipeline.invoke_or_pick_up(caller.clone(), request).await {
            Ok(Repeated::Known(id)) => return held::reply(context, id, None).await,
            Ok(Repeated::New(invoked)) => Ok(invoked),
            Err(denial) => Err(denial),
        },
    };
    let outcome = match invoked {
        Ok(Invoked::Detached(id)) => return held::reply(context, id, digest).await,
        Ok(Invoked::Completed(result)) => Ok(*result),
        Err(denial) => Err(denial),
    };
    context.delivered(outcome).map(Reply::Result)
}
