//! Writes a question to a guardian, in the form of AOS's schema. AOS requires ids that an event may not have: they are
//! replaced by the execution id, and without one by the id of the question.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use toolgate_model::guard::{Dialect, Hook, HookEvent};

use super::shape::{role_name, shape};
use super::{a2a, payload};
use crate::jsonrpc;

/// The question about an event. `None` if the content is not of the hook's kind, or a tool request names no tool:
/// neither occurs in the gate.
pub fn ask(event: &HookEvent<'_>, id: &str, dialect: Dialect) -> Option<Value> {
    let stand_in = event.execution.as_deref().unwrap_or(id);
    let mut members = about(event, stand_in)?;
    members.extend(payload::write(event.hook, &event.content, None)?);
    let mut params = match shape(event.hook).holder {
        Some(holder) => Map::from_iter([(holder.to_owned(), Value::Object(members))]),
        None => members,
    };
    if let Some(reasoning) = &event.reasoning {
        params.insert("reasoning".to_owned(), json!(reasoning));
    }
    params.insert("context".to_owned(), context(event, stand_in, dialect));
    Some(json!({"jsonrpc": jsonrpc::VERSION, "id": id, "method": method(event)?, "params": params}))
}

fn method(event: &HookEvent<'_>) -> Option<&'static str> {
    Some(match event.hook {
        Hook::AgentTrigger => "steps/agentTrigger",
        Hook::ToolCallRequest => "steps/toolCallRequest",
        Hook::ToolCallResult => "steps/toolCallResult",
        Hook::Message(_) => "steps/message",
        Hook::MemoryContextRetrieval => "steps/memoryContextRetrieval",
        Hook::MemoryStore => "steps/memoryStore",
        Hook::KnowledgeRetrieval => "steps/knowledgeRetrieval",
        Hook::Mcp(_) => "protocols/MCP",
        hook => return a2a::name_for(hook, event.method.as_deref()),
    })
}

/// The members of the payload that identify its subject.
fn about(event: &HookEvent<'_>, stand_in: &str) -> Option<Map<String, Value>> {
    let members = match event.hook {
        Hook::AgentTrigger => json!({"type": "autonomous", "event": {"type": "execution", "id": stand_in}}),
        Hook::Message(role) => {
            json!({"id": event.step.as_deref().unwrap_or(stand_in), "role": role_name(role)})
        }
        Hook::ToolCallRequest => json!({"executionId": stand_in, "toolId": event.tool.as_deref()?}),
        Hook::ToolCallResult => match event.tool.as_deref() {
            Some(tool) => json!({"executionId": stand_in, "toolId": tool}),
            None => json!({"executionId": stand_in}),
        },
        Hook::Mcp(direction) => json!({"direction": direction.as_str()}),
        _ => json!({}),
    };
    match members {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

fn context(event: &HookEvent<'_>, stand_in: &str, dialect: Dialect) -> Value {
    let or_stand_in = |id: &Option<Cow<'_, str>>| json!(id.as_deref().unwrap_or(stand_in));
    let mut agent = json!({"id": event.agent.id, "name": event.agent.name.as_ref().unwrap_or(&event.agent.id)});
    if let (Dialect::Aos, Value::Object(members)) = (dialect, &mut agent) {
        for name in ["instructions", "version", "url"] {
            members.insert(name.to_owned(), json!(""));
        }
        members.insert("provider".to_owned(), json!({"name": "Toolgate", "url": ""}));
    }
    let mut context = Map::new();
    if let Hook::A2aSend
    | Hook::A2aStream
    | Hook::A2aCancel
    | Hook::A2aGetTask
    | Hook::A2aNotificationConfig
    | Hook::A2aOther = event.hook
    {
        context.insert("from".to_owned(), json!({"agent": agent, "role": "client"}));
        let peer = json!({"name": "", "url": "", "version": ""});
        context.insert("to".to_owned(), json!({"agent": peer, "role": "server"}));
    }
    context.insert("agent".to_owned(), agent);
    context.insert("session".to_owned(), json!({"id": or_stand_in(&event.session)}));
    context.insert("turnId".to_owned(), or_stand_in(&event.turn));
    context.insert("stepId".to_owned(), or_stand_in(&event.step));
    context.insert("timestamp".to_owned(), json!(event.time));
    if let Some(user) = &event.user {
        context.insert("user".to_owned(), json!({"id": user}));
    }
    Value::Object(context)
}
