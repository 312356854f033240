//! Claude Code: the events `PreToolUse`, which every call passes, and `PermissionRequest`, which stands in for its own
//! dialog. A yes to `PreToolUse` leaves the client's own deny rules in force.

use serde_json::{Value, json};

use super::fields::Fields;
use super::{Category, HookCall, HookInput, InputError};

/// The event before every call.
pub const PRE_TOOL: &str = "PreToolUse";
/// The event before the client would ask the person at its terminal.
pub const PERMISSION: &str = "PermissionRequest";

/// Events that no call depends on.
const QUIET: [&str; 14] = [
    "ConfigChange",
    "Notification",
    "PermissionDenied",
    "PostCompact",
    "PostToolUse",
    "PostToolUseFailure",
    "PreCompact",
    "SessionEnd",
    "SessionStart",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "UserPromptSubmit",
];

/// Understands an input.
pub fn read(mut fields: Fields) -> Result<HookInput, InputError> {
    let event = fields.need("hook_event_name")?;
    if event != PRE_TOOL && event != PERMISSION {
        return fields.no_call(event, &QUIET);
    }
    let tool = fields.need("tool_name")?;
    let call = HookCall {
        session: fields.need("session_id")?,
        workspace: fields.directory(),
        id: fields.text("tool_use_id"),
        category: category(&tool),
        arguments: fields.arguments()?,
        tool,
    };
    Ok(HookInput::Call { event, call })
}

/// The answer in the client's words.
pub fn answer(event: &str, allow: bool, reason: &str) -> Value {
    let decision = if allow { "allow" } else { "deny" };
    if event == PERMISSION {
        return permission_answer(allow, reason);
    }
    json!({"hookSpecificOutput": {
        "hookEventName": PRE_TOOL,
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    }})
}

/// The answer to a request for permission, which Codex words alike.
pub fn permission_answer(allow: bool, reason: &str) -> Value {
    let decision = if allow { json!({"behavior": "allow"}) } else { json!({"behavior": "deny", "message": reason}) };
    json!({"hookSpecificOutput": {"hookEventName": PERMISSION, "decision": decision}})
}

fn category(tool: &str) -> Category {
    match tool {
        "Read" | "Glob" | "Grep" | "LS" | "NotebookRead" | "TodoWrite" | "BashOutput" => Category::Info,
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => Category::Edit,
        _ if tool.starts_with("mcp__") => Category::Mcp,
        _ => Category::Exec,
    }
}
