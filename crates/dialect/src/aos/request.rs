//! Reading what others ask us: one message or a batch, each a hook, a ping or something to be refused. Where the forms
//! of AOS leave two readings, the question is refused instead of guessed.

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

/// What came in one body.
#[derive(Debug)]
pub enum Incoming {
    /// One message.
    Single(Message),
    /// Several, each answered on its own. Never empty.
    Batch(Vec<Message>),
}

/// One message.
#[derive(Debug)]
pub enum Message {
    /// A hook that wants a decision.
    Hook(Box<HookQuestion>),
    /// Somebody asks whether we are there.
    Ping(Ping),
    /// Something that is not answered.
    Notification,
    /// Something that is answered with an error.
    Invalid {
        /// Whom to tell; `None` where the id could not be read.
        id: Option<Id>,
        /// What is wrong.
        error: RpcError,
    },
}

/// Somebody asks whether we are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ping {
    /// The id of the question.
    pub id: Id,
}

/// A hook that wants a decision.
#[derive(Debug)]
pub struct HookQuestion {
    /// The id of the question.
    pub id: Id,
    /// What it is about. Its time is when it was received, since nobody vouches for the sender's clock.
    pub event: HookEvent<'static>,
    /// Whose words it uses.
    pub dialect: Dialect,
    /// Whether it names its agent. AOS's own examples of MCP and A2A do not: then the event's agent id is empty and
    /// whoever serves it has to put the caller's there.
    pub agent_named: bool,
    pub(super) request: Map<String, Value>,
    pub(super) form: Form,
}

/// The forms in which AOS shows the same thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The payload in its own member of `params`.
    Usual,
    /// The members of a tool's result directly in `params`.
    FlatResult,
    /// A message of MCP as `params` itself.
    BareMessage,
    /// The payload and the context of A2A beside `id`.
    BesideId,
}

/// Reads a body. An error is the answer to all of it, with a null id.
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
        return Message::Invalid { id: None, error: RpcError::invalid_request("send an object") };
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
        // INVARIANT: a hook is answered, always; one that cannot be answered is an error and not a silent yes.
        (None, Some(_)) => {
            let error = RpcError::invalid_request("`id` is missing; a hook needs one");
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
    /// The role tells the hook.
    Message,
    /// The direction tells the hook.
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

/// What the question is about, before it is put together.
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
                return Err(params.invalid_member("result", "stands beside another result; give one of the two"));
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
            return Err(request.invalid_member("payload", "stands beside another payload; give one of the two"));
        }
        (request.clone(), Form::BesideId)
    } else {
        (request.object("params")?, Form::Usual)
    };
    let message = outer.object("payload")?;
    if let Some(method) = message.optional_text("method")?
        && a2a::find(method).is_none_or(|(_, inner)| inner != hook)
    {
        return Err(message.invalid_member("method", "must be the method that is asked about"));
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
