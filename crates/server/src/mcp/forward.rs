//! Resources, prompts and completions of mounted servers. Each is a call of the tool that the mount has for it, so that grants,
//! guardians and the log apply; a caller without a grant for that tool sees nothing of the mount.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolgate_gate::call::CallRequest;
use toolgate_gate::catalog::Tool;
use toolgate_gate::refusal::Refusal;

use super::call::{self, Context};
use super::discover::cached;
use super::form::{Form, members};
use super::input::Sent;
use super::message::Params;
use super::reply::{Reply, RpcError};

pub(super) mod names;

/// How long a client may rely on a list, in milliseconds.
pub(super) const LIFETIME: u64 = 10_000;

/// A list of a mounted server.
struct List {
    /// The tool that returns it.
    tool: &'static str,
    /// Its name in the result.
    member: &'static str,
    /// What names an element.
    name: &'static str,
}

const RESOURCES: List = List { tool: "mcp.resources.list", member: "resources", name: "uri" };
const TEMPLATES: List = List { tool: "mcp.resources.templates", member: "resourceTemplates", name: "uriTemplate" };
const PROMPTS: List = List { tool: "mcp.prompts.list", member: "prompts", name: "name" };

/// Answers a method of mounted servers; `None` where it is none.
pub(super) async fn method(context: Context, method: &str, params: Params) -> Option<Result<Reply, RpcError>> {
    Some(match method {
        "resources/list" => list(&context, &RESOURCES, params).await,
        "resources/templates/list" => list(&context, &TEMPLATES, params).await,
        "prompts/list" => list(&context, &PROMPTS, params).await,
        "resources/read" => read(context, params).await,
        "prompts/get" => prompt(context, params).await,
        "completion/complete" => complete(&context, params).await,
        _ => return None,
    })
}

/// One page: that of the mount that the cursor names. A mount that fails is left out, so that the others are seen.
async fn list(context: &Context, list: &List, mut params: Params) -> Result<Reply, RpcError> {
    let cursor = params.take_optional_text("cursor")?;
    let mut tools = mounted(context, list.tool).await?;
    let mut inner = None;
    if let Some(cursor) = cursor.as_deref() {
        let service = match cursor.split_once('\n') {
            Some((service, of_server)) => {
                inner = Some(of_server.to_owned());
                service
            }
            None => cursor,
        };
        tools.retain(|tool| tool.service.as_str() >= service);
        // Where the mount is gone meanwhile, the client begins again.
        if tools.first().is_none_or(|first| first.service.as_str() != service) {
            return Err(RpcError::unknown_cursor());
        }
    }
    let mut members = Map::from_iter([(list.member.to_owned(), json!([]))]);
    for (number, tool) in tools.iter().enumerate() {
        let arguments = inner.take().map(|cursor| Map::from_iter([("cursor".to_owned(), json!(cursor))]));
        let has_cursor = arguments.is_some();
        let mut found = match invoke(context, tool, arguments.unwrap_or_default()).await {
            Ok(found) => found,
            // The server does not know its own cursor.
            Err(error) if has_cursor && error.code == RpcError::unknown_cursor().code => {
                return Err(RpcError::unknown_cursor());
            }
            Err(_) => continue,
        };
        let mut elements = match found.remove(list.member) {
            Some(Value::Array(elements)) => elements,
            _ => Vec::new(),
        };
        elements.iter_mut().for_each(|element| names::rename(element, list.name, &tool.service));
        let next = match found.get("nextCursor").and_then(Value::as_str) {
            Some(next) => Some(format!("{}\n{next}", tool.service)),
            None => tools.get(number + 1).map(|next| next.service.to_string()),
        };
        members.insert(list.member.to_owned(), Value::Array(elements));
        if let Some(next) = next {
            members.insert("nextCursor".to_owned(), json!(next));
        }
        break;
    }
    Ok(Reply::Result(private(context, members)))
}

async fn read(mut context: Context, mut params: Params) -> Result<Reply, RpcError> {
    let uri = params.take_text("uri")?;
    let missing =
        || RpcError { data: Some(json!({"uri": uri})), ..RpcError::invalid_params("there is no such resource") };
    let resource = names::resource(&context, "mcp.resources.read", &uri).await?.ok_or_else(missing)?;
    let arguments = Map::from_iter([("uri".to_owned(), json!(resource.own))]);
    let sent = Sent::take(&mut params)?;
    let tool = resource.tool.qualified_name().to_owned();
    let (service, is_qualified) = (resource.tool.service.clone(), resource.is_qualified);
    context.form = Form::Resource { uri, service, is_qualified };
    call::call(context, tool, arguments, sent).await
}

async fn prompt(mut context: Context, mut params: Params) -> Result<Reply, RpcError> {
    let name = params.take_text("name")?;
    let arguments = params.take_object("arguments")?;
    let missing = || RpcError::invalid_params("there is no such prompt");
    let prompt = names::prompt(&context, "mcp.prompts.get", &name).await?.ok_or_else(missing)?;
    let arguments =
        Map::from_iter([("name".to_owned(), json!(prompt.own)), ("arguments".to_owned(), json!(arguments))]);
    let sent = Sent::take(&mut params)?;
    context.form = Form::Prompt;
    call::call(context, prompt.tool.qualified_name().to_owned(), arguments, sent).await
}

async fn complete(context: &Context, mut params: Params) -> Result<Reply, RpcError> {
    let mut reference = params.take_object("ref")?;
    let argument = params.take_object("argument")?;
    let missing = || RpcError::invalid_params("`params.ref` names no prompt and no resource");
    let text = |member: &str| reference.get(member).and_then(Value::as_str).map(str::to_owned);
    let (member, found) = match (text("name"), text("uri")) {
        (Some(name), None) => ("name", names::prompt(context, "mcp.complete", &name).await?),
        (None, Some(uri)) => ("uri", names::resource(context, "mcp.complete", &uri).await?),
        _ => return Err(missing()),
    };
    let found = found.ok_or_else(missing)?;
    reference.insert(member.to_owned(), json!(found.own));
    let mut arguments =
        Map::from_iter([("ref".to_owned(), json!(reference)), ("argument".to_owned(), json!(argument))]);
    if let Some(given) = params.take("context") {
        arguments.insert("context".to_owned(), given);
    }
    invoke(context, &found.tool, arguments).await.map(Reply::Result)
}

/// Calls a tool of a mount; returns the members of its result.
async fn invoke(context: &Context, tool: &Tool, arguments: Map<String, Value>) -> Result<Map<String, Value>, RpcError> {
    members(context.app.gate.pipeline.invoke(context.caller.clone(), request(context, tool, arguments)).await)
}

fn request(context: &Context, tool: &Tool, arguments: Map<String, Value>) -> CallRequest {
    CallRequest {
        presence: Some(context.presence.clone()),
        ..CallRequest::new(tool.qualified_name().to_owned(), arguments, context.address)
    }
}

/// The tools of this name that the caller may call, by service.
async fn mounted(context: &Context, name: &str) -> Result<Vec<Arc<Tool>>, RpcError> {
    let refused = |refusal: Refusal| RpcError::of_refusal(&refusal);
    let mut tools = context.app.gate.administration.callable_tools(&context.caller).await.map_err(refused)?;
    // A colon ends the service in the URI of a resource.
    let is_nameable = |tool: &Tool| !name.starts_with("mcp.resources.") || !tool.service.as_str().contains(':');
    tools.retain(|tool| tool.forwards_protocol() && tool.name.as_str() == name && is_nameable(tool));
    tools.sort_by(|one, other| one.service.cmp(&other.service));
    Ok(tools)
}

async fn of_service(context: &Context, name: &str, service: &str) -> Result<Option<Arc<Tool>>, RpcError> {
    Ok(mounted(context, name).await?.into_iter().find(|tool| tool.service.as_str() == service))
}

/// What one caller sees is nobody else's.
fn private(context: &Context, mut members: Map<String, Value>) -> Map<String, Value> {
    if context.era.is_modern() {
        cached(&mut members, LIFETIME);
    }
    members
}
