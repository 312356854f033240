//! Reads requests from others: one message or a batch, each a hook, a ping or invalid. A message that AOS's forms allow
//! to be read in two ways is rejected instead of guessed.

use std::borrow::Cow;

use serde_json::{Map, Value};
use toolgate_model::guard::{AgentRef, Content, Dialect, Hook, HookEvent, Role};
use toolgate_model::strict_json;
use toolgate_model::time::Timestamp;

use super::context::{self, Context};
use super::fields::{InvalidMember, Object};
use super::shape::shape;
use super::{a2a, mcp, payload};
use crate::jsonrpc::{self, Id, RpcError};

/// The messages of one body.
#[derive(Debug)]
pub enum Incoming {
    Single(Message),
    /// Several messages with one response each. Never empty.
    Batch(Vec<Message>),
}

#[derive(Debug)]
pub enum Message {
    /// A hook that needs a decision.
    Hook(Box<HookQuestion>),
    /// A liveness check.
    Ping(Ping),
    /// A message without a response.
    Notification,
    /// A message whose response is an error.
    Invalid {
        /// `None` if the id could not be read.
        id: Option<Id>,
        error: RpcError,
    },
}

/// A liveness check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ping {
    pub id: Id,
}

/// A hook that needs a decision.
#[derive(Debug)]
pub struct HookQuestion {
    pub id: Id,
    /// Its time is the time of receipt, because the sender's clock is not trusted.
    pub event: HookEvent<'static>,
    pub dialect: Dialect,
    /// Whether the message names its agent. AOS's own examples of MCP and A2A do not: then the event's agent id is
    /// empty and the server must set that of the caller.
    pub agent_named: bool,
    pub(super) request: Map<String, Value>,
    pub(super) form: Form,
}

/// The forms that AOS shows for the same message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The payload in its own member of `params`.
    Usual,
    /// The members of a tool's result directly in `params`.
    FlatResult,
    /// An MCP message as `params` itself.
    BareMessage,
    /// The payload and the context of A2A next to `id`.
    BesideId,
}

/// Reads a body. An error is the response to the whole body, with a null id.
pub fn read(bytes: &[u8], received: Timestamp) -> Result<Incoming, RpcError> {
    match strict_json::parse(bytes).map_err(RpcError::parse_error)? {
        Value::Array(messages) if messages.is_empty() => Err(RpcError::invalid_request("the batch is empty")),
        Value::Array(messages) => {
            Ok(Incoming::Batch(messages.into_iter().map(|message| read_message(message, received)).collect()))
        }
        message => Ok(Incoming::Single(read_message(message, received))),
    }
}

fn read_message(message: Value, received: Timestamp) -> Message {
    let Value::Object(request) = message else {
        return Message::Invalid { id: None, error: RpcError::invalid_request("the message must be an object") };
    };
    let envelope = match jsonrpc::read_envelope(&request) {
        Ok(envelope) => envelope,
        Err(bad) => return Message::Invalid { id: bad.id, error: bad.error },
    };
    let is_ping = envelope.method == "ping";
    let (id, method) = match (envelope.id, Method::find(envelope.method)) {
        (Some(id), _) if is_ping => return Message::Ping(Ping { id }),
        (Some(id), Some(method)) => (id, method),
        (Some(id), None) => return Message::Invalid { id: Some(id), error: RpcError::method_not_found() },
        // INVARIANT: a hook always gets a response; one that cannot get one is an error and never a silent allow.
        (None, Some(_)) => {
            let error = RpcError::invalid_request("`id` is missing; a hook requires one");
            return Message::Invalid { id: None, error };
        }
        (None, None) => return Message::Notification,
    };
    match read_hook(method, &request, received) {
        Ok(read) => Message::Hook(Box::new(HookQuestion {
            id,
            agent_named: !read.event.agent.id.is_empty(),
            event: read.event,
            dialect: read.dialect,
            form: read.form,
            request,
        })),
        Err(invalid_member) => Message::Invalid { id: Some(id), error: invalid_member.into() },
    }
}

enum Method {
    /// The role determines the hook.
    Message,
    /// The direction determines the hook.
    Mcp,
    Hook(Hook),
}

impl Method {
    fn find(name: &str) -> Option<Self> {
        Some(match name {
            "steps/agentTrigger" => Self::Hook(Hook::AgentTrigger),
            "steps/toolCallRequest" => Self::Hook(Hook::ToolCallRequest),
            "steps/toolCallResult" => Self::Hook(Hook::ToolCallResult),
            "steps/message" => Self::Message,
            "steps/memoryContextRetrieval" => Self::Hook(Hook::MemoryContextRetrieval),
            "steps/memoryStore" => Self::Hook(Hook::MemoryStore),
            "steps/knowledgeRetrieval" => Self::Hook(Hook::KnowledgeRetrieval),
            "protocols/MCP" => Self::Mcp,
            other => Self::Hook(a2a::find(other)?.1),
        })
    }
}

struct Read {
    event: HookEvent<'static>,
    dialect: Dialect,
    form: Form,
}

fn read_hook(method: Method, request: &Map<String, Value>, received: Timestamp) -> Result<Read, InvalidMember> {
    let request = Object::new(request, "");
    match method {
        Method::Message => {
            let message = request.object("params")?.object("message")?;
            let role = match message.text("role")? {
                "user" => Role::User,
                "agent" => Role::Agent,
                "system" => Role::System,
                _ => return Err(message.invalid_member("role", "must be \"user\", \"agent\" or \"system\"")),
            };
            read_step(Hook::Message(role), &request, received)
        }
        Method::Mcp => read_mcp(&request, received),
        Method::Hook(
            hook @ (Hook::AgentTrigger
            | Hook::ToolCallRequest
            | Hook::ToolCallResult
            | Hook::Message(_)
            | Hook::MemoryContextRetrieval
            | Hook::MemoryStore
            | Hook::KnowledgeRetrieval),
        ) => read_step(hook, &request, received),
        Method::Hook(hook) => read_a2a(hook, &request, received),
    }
}

fn read_step(hook: Hook, request: &Object<'_>, received: Timestamp) -> Result<Read, InvalidMember> {
    let params = request.object("params")?;
    let (payload, form) = match shape(hook).holder {
        Some(holder) if hook == Hook::ToolCallResult && params.has("result") => {
            if params.has(holder) {
                return Err(
                    params.invalid_member("result", "conflicts with the result members in `params`; send only one")
                );
            }
            (params.clone(), Form::FlatResult)
        }
        Some(holder) => (params.object(holder)?, Form::Usual),
        None => (params.clone(), Form::Usual),
    };
    let content = payload::read(hook, &payload)?;
    let mut read = put_together(hook, &params, context::read_step(&params)?, content, form, received)?;
    if let Hook::ToolCallRequest | Hook::ToolCallResult = hook {
        read.event.execution = payload.optional_text("executionId")?.map(owned);
        read.event.tool = payload.optional_text("toolId")?.map(owned);
    }
    if hook == Hook::ToolCallRequest {
        payload.name("toolId")?;
    }
    Ok(read)
}

fn read_mcp(request: &Object<'_>, received: Timestamp) -> Result<Read, InvalidMember> {
    let params = request.object("params")?;
    let (message, form, about) = if mcp::is_bare(&params)? {
        let message = mcp::unwrap(params.members());
        let about = mcp::about(&params, &Object::new(&message, "params"))?;
        (message, Form::BareMessage, about)
    } else {
        let message = params.object("message")?;
        let about = mcp::about(&params, &message)?;
        (message.members().clone(), Form::Usual, about)
    };
    let content = Content::Message(Cow::Owned(Value::Object(message)));
    let hook = Hook::Mcp(about.direction);
    let mut read = put_together(hook, &params, context::read(&params)?, content, form, received)?;
    read.event.method = about.method.map(Cow::Owned);
    read.event.tool = about.tool.map(Cow::Owned);
    Ok(read)
}

fn read_a2a(hook: Hook, request: &Object<'_>, received: Timestamp) -> Result<Read, InvalidMember> {
    let (outer, form) = if request.has("payload") {
        if request.optional_object("params")?.is_some_and(|params| params.has("payload")) {
            return Err(request.invalid_member("payload", "conflicts with another payload; send only one"));
        }
        (request.clone(), Form::BesideId)
    } else {
        (request.object("params")?, Form::Usual)
    };
    let message = outer.object("payload")?;
    if let Some(method) = message.optional_text("method")?
        && a2a::find(method).is_none_or(|(_, inner)| inner != hook)
    {
        return Err(message.invalid_member("method", "must equal the method of the request"));
    }
    let content = payload::read(hook, &outer)?;
    let mut read = put_together(hook, &outer, context::read(&outer)?, content, form, received)?;
    read.event.method = a2a::find(request.text("method")?).map(|(name, _)| Cow::Borrowed(name));
    Ok(read)
}

fn put_together(
    hook: Hook,
    outer: &Object<'_>,
    context: Context,
    content: Content<'static>,
    form: Form,
    received: Timestamp,
) -> Result<Read, InvalidMember> {
    let event = HookEvent {
        hook,
        agent: AgentRef { id: Cow::Owned(context.agent.unwrap_or_default()), name: context.name.map(Cow::Owned) },
        tool: None,
        execution: None,
        session: context.session.map(Cow::Owned),
        turn: context.turn.map(Cow::Owned),
        step: context.step.map(Cow::Owned),
        user: context.user.map(Cow::Owned),
        method: None,
        reasoning: outer.optional_text("reasoning")?.map(owned),
        time: received,
        content,
    };
    Ok(Read { event, dialect: context.dialect, form })
}

fn owned(text: &str) -> Cow<'static, str> {
    Cow::Owned(text.to_owned())
}
