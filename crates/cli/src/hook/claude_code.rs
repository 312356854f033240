//! Claude Code: `PreToolUse` runs before every call, `PermissionRequest` instead of its permission dialog. If `PreToolUse`
//! allows a call, the deny rules of the client still apply.

use serde_json::{Value, json};

use super::fields::Fields;
use super::{Category, HookCall, HookInput, InputError};

pub const PRE_TOOL: &str = "PreToolUse";
/// The event before the permission dialog of the client.
pub const PERMISSION: &str = "PermissionRequest";

/// Events that decide nothing.
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

pub fn decision(event: &str, allow: bool, reason: &str) -> Value {
    let decision = if allow { "allow" } else { "deny" };
    if event == PERMISSION {
        return permission_decision(allow, reason);
    }
    json!({"hookSpecificOutput": {
        "hookEventName": PRE_TOOL,
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    }})
}

/// The decision on a permission request, which Codex formats in the same way.
pub fn permission_decision(allow: bool, reason: &str) -> Value {
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
