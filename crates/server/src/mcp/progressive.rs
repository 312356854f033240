//! Progressive discovery: a client of an agent with many tools gets three, to search for tools, to look at one and to call
//! it. They show nothing that the agent may not call, and a call is the call of the real tool.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolgate_gate::Caller;
use toolgate_gate::catalog::Tool;
use toolgate_model::text::Line;
use toolgate_model::visible::visible;

use super::call::Context;
use super::reply::{Reply, RpcError};
use super::{list, result};

pub(super) const SEARCH: &str = "search_tools";
pub(super) const DESCRIBE: &str = "describe_tool";
pub(super) const CALL: &str = "call_tool";

/// How many tools a search returns where nothing else is said, and at most.
const FOUND: u64 = 10;
const MOST_FOUND: u64 = 50;
/// How much of a description a search shows, in characters.
const SHOWN: usize = 300;

/// How much of the name of an unknown argument is repeated, in characters.
const NAMED: usize = 64;

/// Whether the clients of a caller search for tools.
pub(super) fn is_on(caller: &Caller) -> bool {
    caller.principal().progressive_discovery
}

/// The three tools, as a list shows them.
pub(super) fn listings() -> [Value; 3] {
    let reads = json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false});
    let calls = json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true});
    let name = json!({"type": "string", "description": "The name of a tool, as a search returned it."});
    [
        json!({
            "name": CALL, "title": "Call a tool", "annotations": calls,
            "description": "Calls a tool by its name. Look at its inputSchema with describe_tool first.",
            "inputSchema": {
                "type": "object", "required": ["name"], "additionalProperties": false,
                "properties": {"name": name, "arguments": {"type": "object", "description": "The arguments of the tool."}}
            }
        }),
        json!({
            "name": DESCRIBE, "title": "Describe a tool", "annotations": reads,
            "description": "Returns the description and the inputSchema of a tool.",
            "inputSchema": {
                "type": "object", "required": ["name"], "additionalProperties": false, "properties": {"name": name}
            }
        }),
        json!({
            "name": SEARCH, "title": "Search for tools", "annotations": reads,
            "description": "Finds tools by words of their names and descriptions. Without words it lists the first ones.",
            "inputSchema": {
                "type": "object", "additionalProperties": false,
                "properties": {
                    "query": {"type": "string", "description": "Words that say what the tool should do."},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MOST_FOUND, "default": FOUND}
                }
            }
        }),
    ]
}

/// What a client that searches for tools wants.
pub(super) enum Wanted {
    /// The call of this tool.
    Call(String, Map<String, Value>),
    Result(Map<String, Value>),
}

/// Reads the call of one of the three.
pub(super) async fn wanted(
    context: &Context,
    name: &str,
    mut arguments: Map<String, Value>,
) -> Result<Wanted, RpcError> {
    let known: &[&str] = match name {
        CALL => &["name", "arguments"],
        DESCRIBE => &["name"],
        SEARCH => &["query", "limit"],
        _ => return Err(RpcError::unknown_tool()),
    };
    if let Some(unknown) = arguments.keys().find(|member| !known.contains(&member.as_str())) {
        let unknown: String = visible(unknown).chars().take(NAMED).collect();
        let known = known.join("` and `");
        let hint = if name == CALL { ": what the tool takes goes into `arguments`" } else { "" };
        let reason = format!("`{name}` takes `{known}`, and no `{unknown}`{hint}");
        return Ok(Wanted::Result(result::error_result(&reason)));
    }
    let named = match arguments.remove("name") {
        Some(Value::String(named)) => Some(named),
        _ => None,
    };
    let missing = || Wanted::Result(result::error_result("`name` is missing: give the name of a tool"));
    match (name, named) {
        (CALL, Some(named)) => match arguments.remove("arguments") {
            None | Some(Value::Null) => Ok(Wanted::Call(named, Map::new())),
            Some(Value::Object(inner)) => Ok(Wanted::Call(named, inner)),
            Some(_) => Ok(Wanted::Result(result::error_result("`arguments` must be an object"))),
        },
        (DESCRIBE, Some(named)) => {
            let found = tools(context).await?.into_iter().find(|tool| tool.alias().as_str() == named);
            let listing = found.and_then(|tool| serde_json::from_str(tool.listing()).ok());
            Ok(Wanted::Result(listing.map_or_else(unknown, result::structured)))
        }
        (CALL | DESCRIBE, None) => Ok(missing()),
        (SEARCH, _) => {
            let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default().to_owned();
            let limit = arguments.get("limit").and_then(Value::as_u64).unwrap_or(FOUND).clamp(1, MOST_FOUND);
            let found = search(&tools(context).await?, &query, usize::try_from(limit).unwrap_or(usize::MAX));
            Ok(Wanted::Result(result::structured(json!({"tools": found}))))
        }
        _ => Err(RpcError::unknown_tool()),
    }
}

async fn tools(context: &Context) -> Result<Vec<Arc<Tool>>, RpcError> {
    let visible = list::visible(&context.app, &context.caller).await;
    visible.map_err(|refusal| RpcError::of_refusal(&refusal))
}

/// A name that no tool has for this caller. The three tools themselves exist, so that the model reads it.
pub(super) fn unknown() -> Map<String, Value> {
    result::error_result("there is no tool of this name; search for tools, and use one of the names that are returned")
}

/// The reply to a call that named a tool inside.
pub(super) fn as_result(reply: Result<Reply, RpcError>) -> Result<Reply, RpcError> {
    match reply {
        Err(error) if error == RpcError::unknown_tool() => Ok(Reply::Result(unknown())),
        reply => reply,
    }
}

/// The tools that have most of the words, in their names before their descriptions; then by name.
fn search(tools: &[Arc<Tool>], query: &str, limit: usize) -> Vec<Value> {
    let words: Vec<String> = words(query).collect();
    let mut found: Vec<(usize, &Arc<Tool>)> = tools
        .iter()
        .map(|tool| (score(tool, &words), tool))
        .filter(|(score, _)| *score > 0 || words.is_empty())
        .collect();
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.into_iter().take(limit).map(|(_, tool)| shown(tool)).collect()
}

fn score(tool: &Tool, wanted: &[String]) -> usize {
    let of_name: Vec<String> = words(tool.qualified_name()).collect();
    let title = tool.definition.title.as_ref().map_or("", Line::as_str);
    let text = [title, tool.definition.description.as_deref().unwrap_or_default()].join(" ");
    let of_text: Vec<String> = words(&text).collect();
    let has = |own: &[String], word: &String| own.iter().any(|own| own.starts_with(word.as_str()));
    wanted.iter().map(|word| 3 * usize::from(has(&of_name, word)) + usize::from(has(&of_text, word))).sum()
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

fn shown(tool: &Tool) -> Value {
    let description = tool.definition.description.as_deref().map(|text| text.chars().take(SHOWN).collect::<String>());
    json!({"name": tool.alias(), "title": tool.definition.title, "description": description})
}
