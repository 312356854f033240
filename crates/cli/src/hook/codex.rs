//! Codex CLI: the events `PreToolUse`, which calls of its shell, of `apply_patch` and of MCP servers pass, and
//! `PermissionRequest`, with which it asks to leave its sandbox.

use serde_json::{Value, json};

use super::claude_code::{self, PERMISSION};
use super::fields::Fields;
use super::{Category, HookCall, HookInput, InputError};

/// The event before calls.
pub const PRE_TOOL: &str = claude_code::PRE_TOOL;

/// Events that no call depends on.
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

/// Understands an input.
pub fn read(mut fields: Fields) -> Result<HookInput, InputError> {
    let event = fields.need("hook_event_name")?;
    let tool = match event.as_str() {
        PRE_TOOL => fields.need("tool_name")?,
        // A tool of its own: who lets a command run in the sandbox for good has not let it leave.
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

/// The answer in the client's words.
pub fn answer(event: &str, allow: bool, reason: &str) -> Value {
    match event {
        PERMISSION => claude_code::permission_answer(allow, reason),
        // It takes a no and silence here; an explicit yes is an error of the hook to it.
        _ if allow => json!({}),
        _ => claude_code::answer(PRE_TOOL, allow, reason),
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
