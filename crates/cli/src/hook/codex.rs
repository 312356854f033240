//! Codex CLI: `PreToolUse` runs before calls of its shell, `apply_patch` and MCP servers, `PermissionRequest` before it leaves
//! its sandbox.

use serde_json::{Value, json};

use super::claude_code::{self, PERMISSION};
use super::fields::Fields;
use super::{Category, HookCall, HookInput, InputError};

pub const PRE_TOOL: &str = claude_code::PRE_TOOL;

/// Events that decide nothing.
const QUIET: [&str; 10] = [
    "Interrupt",
    "PostCompact",
    "PostToolUse",
    "PreCompact",
    "SessionEnd",
    "SessionStart",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "UserPromptSubmit",
];

pub fn read(mut fields: Fields) -> Result<HookInput, InputError> {
    let event = fields.need("hook_event_name")?;
    let tool = match event.as_str() {
        PRE_TOOL => fields.need("tool_name")?,
        // A separate tool: a standing approval for a command in the sandbox must not cover leaving it.
        PERMISSION => format!("{PERMISSION}:{}", fields.need("tool_name")?),
        _ => return fields.no_call(event, &QUIET),
    };
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
    match event {
        PERMISSION => claude_code::permission_decision(allow, reason),
        // It accepts a denial or no decision; an explicit approval is a failed hook.
        _ if allow => json!({}),
        _ => claude_code::decision(PRE_TOOL, allow, reason),
    }
}

fn category(tool: &str) -> Category {
    match tool {
        "update_plan" | "view_image" => Category::Info,
        "apply_patch" | "Edit" | "Write" => Category::Edit,
        _ if tool.starts_with("mcp__") => Category::Mcp,
        _ => Category::Exec,
    }
}
