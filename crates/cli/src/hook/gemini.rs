//! Gemini CLI: `BeforeTool` runs before every call that the policy of the client allows.

use serde_json::{Value, json};

use super::fields::Fields;
use super::{Category, HookCall, HookInput, InputError};

pub const PRE_TOOL: &str = "BeforeTool";

/// Events that decide nothing.
const QUIET: [&str; 10] = [
    "AfterAgent",
    "AfterModel",
    "AfterTool",
    "BeforeAgent",
    "BeforeModel",
    "BeforeToolSelection",
    "Notification",
    "PreCompress",
    "SessionEnd",
    "SessionStart",
];

pub fn read(mut fields: Fields) -> Result<HookInput, InputError> {
    let event = fields.need("hook_event_name")?;
    if event != PRE_TOOL {
        return fields.no_call(event, &QUIET);
    }
    let tool = fields.need("tool_name")?;
    // A server can give its tool any name, also that of a read-only tool.
    let of_server = tool.starts_with("mcp_") || fields.get("mcp_context").is_some_and(|context| !context.is_null());
    let call = HookCall {
        session: fields.need("session_id")?,
        workspace: fields.directory(),
        id: None,
        category: if of_server { Category::Mcp } else { category(&tool) },
        arguments: fields.arguments()?,
        tool,
    };
    Ok(HookInput::Call { event, call })
}

pub fn decision(allow: bool, reason: &str) -> Value {
    json!({"decision": if allow { "allow" } else { "deny" }, "reason": reason})
}

fn category(tool: &str) -> Category {
    match tool {
        "read_file" | "read_many_files" | "list_directory" | "glob" | "search_file_content" | "grep_search" => {
            Category::Info
        }
        "write_file" | "replace" | "edit" => Category::Edit,
        _ => Category::Exec,
    }
}
