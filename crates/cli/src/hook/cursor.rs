//! Cursor: `preToolUse` runs before every call; older events for the shell, MCP servers, files and subagents have the same
//! content in other members.

use serde_json::{Map, Value, json};
use toolgate_model::strict_json;

use super::fields::Fields;
use super::{Category, HookCall, HookInput, InputError, Reply};

pub const PRE_TOOL: &str = "preToolUse";

/// The prefix of tools of MCP servers.
const SERVER_MARK: &str = "MCP:";

/// Events that decide nothing.
const QUIET: [&str; 14] = [
    "afterAgentResponse",
    "afterAgentThought",
    "afterFileEdit",
    "afterMCPExecution",
    "afterShellExecution",
    "afterTabFileEdit",
    "postToolUse",
    "postToolUseFailure",
    "preCompact",
    "sessionEnd",
    "sessionStart",
    "stop",
    "subagentStop",
    "workspaceOpen",
];

pub fn read(mut fields: Fields) -> Result<HookInput, InputError> {
    let event = fields.need("hook_event_name")?;
    let (tool, category, arguments) = match event.as_str() {
        PRE_TOOL => {
            let tool = fields.need("tool_name")?;
            let category = category(&tool);
            (tool, category, arguments(&mut fields)?)
        }
        "beforeShellExecution" => {
            let mut arguments = fields.some(&["command", "sandbox"]);
            fields.need("command")?;
            arguments.extend(fields.get("cwd").map(|cwd| ("working_directory".to_owned(), cwd.clone())));
            ("Shell".to_owned(), Category::Exec, arguments)
        }
        "beforeMCPExecution" => {
            let tool = fields.need("tool_name")?;
            let tool = if tool.starts_with(SERVER_MARK) { tool } else { format!("{SERVER_MARK}{tool}") };
            // The same name at another server is another tool, so approvers must see the server.
            let server = Value::Object(fields.some(&["url", "command"]));
            let input = Value::Object(arguments(&mut fields)?);
            (tool, Category::Mcp, Map::from_iter([("server".to_owned(), server), ("input".to_owned(), input)]))
        }
        "beforeReadFile" | "beforeTabFileRead" => {
            fields.need("file_path")?;
            let tool = if event == "beforeReadFile" { "Read" } else { "TabRead" };
            // The input also contains the content of the file, which is not needed for the decision.
            (tool.to_owned(), Category::Info, fields.some(&["file_path"]))
        }
        "subagentStart" => {
            let arguments = fields.some(&["subagent_type", "task", "subagent_model", "git_branch"]);
            ("Task".to_owned(), Category::Exec, arguments)
        }
        "beforeSubmitPrompt" => {
            let stdout = json!({"continue": true}).to_string();
            return Ok(HookInput::Nothing(Reply { stdout, ..Reply::nothing() }));
        }
        _ => return fields.no_call(event, &QUIET),
    };
    let call = HookCall {
        session: fields.need("conversation_id")?,
        workspace: workspace(&fields),
        id: fields.text("tool_use_id").or_else(|| fields.text("tool_call_id")),
        tool,
        category,
        arguments,
    };
    Ok(HookInput::Call { event, call })
}

pub fn decision(allow: bool, reason: &str) -> Value {
    if allow {
        return json!({"permission": "allow"});
    }
    json!({"permission": "deny", "user_message": reason, "agent_message": reason})
}

/// The arguments, which for MCP servers are the text of a JSON object.
fn arguments(fields: &mut Fields) -> Result<Map<String, Value>, InputError> {
    if let Some(Value::String(text)) = fields.get("tool_input")
        && let Ok(Value::Object(arguments)) = strict_json::parse(text.as_bytes())
    {
        return Ok(arguments);
    }
    fields.arguments()
}

/// The open directory; the working directory of the call may be below it.
fn workspace(fields: &Fields) -> Option<String> {
    let root = fields.get("workspace_roots").and_then(|roots| roots.get(0)).and_then(Value::as_str);
    root.filter(|root| root.starts_with('/')).map(str::to_owned).or_else(|| fields.directory())
}

fn category(tool: &str) -> Category {
    match tool {
        "Read" | "Grep" | "Glob" | "LS" => Category::Info,
        "Write" | "Edit" | "StrReplace" | "Delete" => Category::Edit,
        _ if tool.starts_with(SERVER_MARK) => Category::Mcp,
        _ => Category::Exec,
    }
}
