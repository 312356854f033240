//! The location of each hook's payload in `params`, with the members that are content and those that identify it.

use serde_json::Value;
use toolgate_model::guard::{Hook, Role};

use super::a2a;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// The member of `params` that is the payload; `None` if the payload is `params` itself.
    pub(crate) holder: Option<&'static str>,
    /// The members that a guardian may change.
    pub(crate) content: &'static [&'static str],
    /// The members that must stay unchanged.
    pub(crate) identity: &'static [&'static str],
}

pub(crate) fn shape(hook: Hook) -> Shape {
    let (holder, content, identity): (Option<&str>, &[&str], &[&str]) = match hook {
        Hook::AgentTrigger => (Some("trigger"), &["content"], &["type", "event"]),
        Hook::Message(_) => (Some("message"), &["content"], &["id", "role"]),
        Hook::ToolCallRequest => (Some("toolCallRequest"), &["inputs"], &["executionId", "toolId"]),
        Hook::ToolCallResult => (Some("toolCallResult"), &["result"], &["executionId", "toolId"]),
        Hook::MemoryContextRetrieval | Hook::MemoryStore => (None, &["memory"], &["context"]),
        Hook::KnowledgeRetrieval => (Some("knowledgeStep"), &["query", "keywords", "results"], &[]),
        Hook::Mcp(_) => (None, &["message"], &["context", "direction"]),
        Hook::A2aSend
        | Hook::A2aStream
        | Hook::A2aCancel
        | Hook::A2aGetTask
        | Hook::A2aNotificationConfig
        | Hook::A2aOther => (None, &["payload"], &["context"]),
    };
    Shape { holder, content, identity }
}

pub(crate) fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Agent => "agent",
        Role::System => "system",
    }
}

/// Whether AOS lets a guardian change the content of this hook.
pub(crate) fn may_change(hook: Hook, method: Option<&str>) -> bool {
    match hook {
        Hook::A2aCancel | Hook::A2aOther => false,
        Hook::A2aNotificationConfig => method.is_some_and(a2a::sets_a_config),
        _ => true,
    }
}

/// Whether two messages of another protocol are about the same request, tool and task.
pub(crate) fn same_identity(hook: Hook, before: &Value, after: &Value) -> bool {
    let places: &[&str] = match hook {
        Hook::Mcp(_) if before.get("method").and_then(Value::as_str) == Some("tools/call") => {
            &["/jsonrpc", "/id", "/method", "/params/name"]
        }
        Hook::Mcp(_) => &["/jsonrpc", "/id", "/method"],
        _ => a2a::IDENTITY,
    };
    places.iter().all(|place| before.pointer(place) == after.pointer(place))
}
