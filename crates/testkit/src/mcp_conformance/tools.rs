//! The tools of the fixture that need no input of the client.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::content::{IMAGE, embedded};
use super::{Outcome, input, members, text};
use crate::upstream::Received;

/// The tool that comes and goes, and the one that makes it.
pub(super) const DYNAMIC: &str = "dynamic";
pub(super) const TRIGGER: &str = "trigger_tool_change";

const AUDIO: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

/// The tools of an era.
pub(super) fn listed(modern: bool) -> Vec<Value> {
    let plain = [
        ("simple_text", "Returns a text."),
        ("image_content", "Returns an image."),
        ("audio_content", "Returns a sound."),
        ("embedded_resource", "Returns a resource."),
        ("multiple_content_types", "Returns a text, an image and a resource."),
        ("tool_with_progress", "Reports its progress."),
        ("tool_with_logging", "Writes to the log."),
        ("logging_tool", "Writes to the log where that is wanted."),
        ("error_handling", "Fails."),
        ("missing_capability", "Requires a client with a model."),
        (TRIGGER, "Changes the list of tools."),
        (DYNAMIC, "Comes and goes."),
    ];
    let nothing = json!({"type": "object"});
    let mut tools: Vec<Value> = plain.iter().map(|(name, description)| tool(name, description, &nothing)).collect();
    let region = json!({
        "type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}, "required": ["region"]
    });
    tools.push(tool("header_parameter", "Repeats a parameter that a header repeats.", &region));
    tools.extend(input::listed(modern));
    tools
}

/// The tool whose schema must arrive as it is.
pub(super) fn schema() -> Value {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef", "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"}
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false
    });
    tool("schema_2020_12_tool", "Has a schema with many keywords.", &schema)
}

/// The tools that are called as tasks.
pub(super) fn tasks() -> Vec<Value> {
    let computing = json!({
        "type": "object", "properties": {"seconds": {"type": "number"}, "label": {"type": "string"}}
    });
    let nothing = json!({"type": "object"});
    vec![
        tool("compute", "Computes.", &computing),
        tool("job", "Fails.", &nothing),
        tool("error_job", "Fails without a result.", &nothing),
    ]
}

pub(super) fn tool(name: &str, description: &str, schema: &Value) -> Value {
    json!({"name": name, "description": description, "inputSchema": schema})
}

/// Calls a tool; `None` for one that is not here.
pub(super) fn call(request: &Received, params: &Value) -> Option<Outcome> {
    let image = json!({"type": "image", "data": IMAGE, "mimeType": "image/png"});
    let result = match params["name"].as_str()? {
        "simple_text" => text("This is a simple text response for testing."),
        "image_content" => json!({"content": [image]}),
        "audio_content" => json!({"content": [{"type": "audio", "data": AUDIO, "mimeType": "audio/wav"}]}),
        "embedded_resource" => json!({"content": [embedded("test://embedded-resource")]}),
        "multiple_content_types" => {
            let first = json!({"type": "text", "text": "Multiple content types test:"});
            json!({"content": [first, image, embedded("test://mixed-content-resource")]})
        }
        "tool_with_progress" => return Some(progressing(params)),
        "tool_with_logging" => return Some(logging()),
        // Nobody is told anything who has not asked for it.
        "logging_tool" => text("Nothing was logged."),
        "error_handling" | "job" => {
            let mut result = text("This tool intentionally returns an error for testing");
            result["isError"] = json!(true);
            result
        }
        "missing_capability" if !members(&params["_meta"], CAPABILITIES).contains_key("sampling") => {
            let data = json!({"requiredCapabilities": {"sampling": {}}});
            return Some(Outcome::Error { code: -32_021, message: "a model is required", data });
        }
        "missing_capability" | DYNAMIC | "compute" => text("done"),
        "error_job" => return Some(Outcome::Error { code: -32_603, message: "a defect", data: json!({}) }),
        "header_parameter" => return Some(header(request, params)),
        "schema_2020_12_tool" => text("valid"),
        _ => return None,
    };
    Some(Outcome::Result(result))
}

pub(super) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

fn progressing(params: &Value) -> Outcome {
    let token = &params["_meta"]["progressToken"];
    let result = text("done");
    if token.is_null() {
        return Outcome::Result(result);
    }
    let report = |progress: u64| {
        let params = json!({"progressToken": token, "progress": progress, "total": 100, "message": "working"});
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    };
    Outcome::Noted([0, 50, 100].map(report).to_vec(), result)
}

fn logging() -> Outcome {
    let note = |data: &str| {
        let params = json!({"level": "info", "data": data});
        json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
    };
    let notes = ["Tool execution started", "Tool processing data", "Tool execution completed"];
    Outcome::Noted(notes.map(note).to_vec(), text("done"))
}

/// The gate must repeat the argument in a header, as a client of a server must.
fn header(request: &Received, params: &Value) -> Outcome {
    let wanted = params["arguments"]["region"].as_str().unwrap_or_default();
    let sent = request.header("mcp-param-region").unwrap_or_default();
    let encoded = sent.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let decoded = encoded.and_then(|encoded| String::from_utf8(STANDARD.decode(encoded).ok()?).ok());
    // A session of the legacy era has no such headers.
    let is_modern = request.header("mcp-method").is_some();
    match !is_modern || decoded.as_deref().unwrap_or(sent) == wanted {
        true => Outcome::Result(text(wanted)),
        false => Outcome::Error { code: -32_020, message: "headers and body differ", data: json!({}) },
    }
}
