//! The names of prompts and resources here, and the way back to the mount and to the name there. A prompt has the alias that a
//! tool of its name would have. A resource is `toolgate:SERVICE:URI`; its own URI is enough where exactly one of the caller's
//! mounts can have it.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolgate_gate::catalog::Tool;
use toolgate_model::credential::ServiceName;
use toolgate_model::tool_alias::{self, Meaning, ToolAlias};
use toolgate_model::uri_template;

use super::{Context, List, PROMPTS, RESOURCES, RpcError, TEMPLATES, invoke, mounted, of_service};

/// What the URIs of resources begin with.
const SCHEME: &str = "toolgate:";
/// How many pages of a list are read to find a name in it.
const PAGES: usize = 8;
/// Among how many mounts a resource is looked for by its own URI.
const MOUNTS: usize = 8;

/// Whether an element of a list is the one that is looked for, by its name.
type Matches<'a> = &'a (dyn Fn(&str) -> bool + Sync);

/// What a name leads to.
pub(super) struct Found {
    /// The tool of the mount that the request is a call of.
    pub(super) tool: Arc<Tool>,
    /// The name at the server.
    pub(super) own: String,
    /// Whether the client named the service.
    pub(super) is_qualified: bool,
}

/// Puts the service before the name of an element of a list.
pub(in crate::mcp) fn rename(element: &mut Value, member: &str, service: &ServiceName) {
    let Some(Value::String(name)) = element.get_mut(member) else { return };
    *name = match member {
        "name" => ToolAlias::of_upstream(service, name).to_string(),
        _ => format!("{SCHEME}{service}:{name}"),
    };
}

/// The prompt of this name, for a call of the tool that mounts have for such requests. Before prompts had aliases, they were
/// `SERVICE/NAME`, which no alias is.
pub(super) async fn prompt(context: &Context, tool: &str, name: &str) -> Result<Option<Found>, RpcError> {
    if let Some((service, own)) = name.split_once('/') {
        return found(context, tool, service, own).await;
    }
    if let Some(Meaning::Tool(service, named)) = tool_alias::read(name)
        && let Some(own) = tool_alias::upstream_name(&named)
    {
        return found(context, tool, service.as_str(), own).await;
    }
    // The name had to be changed: it is found by comparing.
    let lists = mounted(context, PROMPTS.tool).await?;
    for list in lists.iter().filter(|list| tool_alias::may_be_of(name, &list.service)) {
        let listed = elements(context, &PROMPTS, list).await?;
        let has_it = |own: &&str| ToolAlias::of_upstream(&list.service, own).as_str() == name;
        if let Some(own) = names(&listed, &PROMPTS).find(has_it) {
            return found(context, tool, list.service.as_str(), own).await;
        }
    }
    Ok(None)
}

/// The resource of this URI, or the template, for a call of the tool that mounts have for such requests.
pub(super) async fn resource(context: &Context, tool: &str, uri: &str) -> Result<Option<Found>, RpcError> {
    if let Some(qualified) = uri.strip_prefix(SCHEME) {
        let Some((service, own)) = qualified.split_once(':') else { return Ok(None) };
        return found(context, tool, service, own).await;
    }
    let mut tools = mounted(context, tool).await?;
    let own = |tool| Some(Found { tool, own: uri.to_owned(), is_qualified: false });
    if tools.len() > 1 {
        let Some(service) = only_with(context, uri, &tools).await? else { return Err(ambiguous(uri, &tools)) };
        tools.retain(|tool| tool.service == service);
    }
    Ok(tools.pop().and_then(own))
}

async fn found(context: &Context, tool: &str, service: &str, own: &str) -> Result<Option<Found>, RpcError> {
    let tool = of_service(context, tool, service).await?;
    Ok(tool.map(|tool| Found { tool, own: own.to_owned(), is_qualified: true }))
}

/// The one mount that lists this URI or, if none does, has a template for it. `None` where that is not exactly one, or
/// where it cannot be said of one of them: a server that fails must not hand its resources to another.
async fn only_with(context: &Context, uri: &str, tools: &[Arc<Tool>]) -> Result<Option<ServiceName>, RpcError> {
    if tools.len() > MOUNTS {
        return Ok(None);
    }
    let is_it = |name: &str| name == uri;
    let fits = |template: &str| template == uri || uri_template::fits(template, uri);
    let ways: [(&List, Matches<'_>); 2] = [(&RESOURCES, &is_it), (&TEMPLATES, &fits)];
    for (list, has_it) in ways {
        let mut with: Vec<ServiceName> = Vec::new();
        for tool in tools {
            let Some(lister) = of_service(context, list.tool, tool.service.as_str()).await? else { return Ok(None) };
            let Ok(listed) = elements(context, list, &lister).await else { return Ok(None) };
            if names(&listed, list).any(has_it) {
                with.push(tool.service.clone());
            }
        }
        match with.len() {
            0 => {}
            1 => return Ok(with.pop()),
            _ => return Ok(None),
        }
    }
    Ok(None)
}

fn ambiguous(uri: &str, tools: &[Arc<Tool>]) -> RpcError {
    let services: Vec<&str> = tools.iter().take(MOUNTS).map(|tool| tool.service.as_str()).collect();
    let reason = format!(
        "it is not clear which mounted server has this resource; read {SCHEME}SERVICE:URI, in which SERVICE is one of: {}",
        services.join(", ")
    );
    RpcError { data: Some(json!({"uri": uri, "services": services})), ..RpcError::invalid_params(reason) }
}

/// All elements of a list of one mount.
async fn elements(context: &Context, list: &List, tool: &Tool) -> Result<Vec<Value>, RpcError> {
    let (mut elements, mut arguments) = (Vec::new(), Map::new());
    for _ in 0..PAGES {
        let mut page = invoke(context, tool, arguments).await?;
        if let Some(Value::Array(listed)) = page.remove(list.member) {
            elements.extend(listed);
        }
        let Some(next) = page.remove("nextCursor").filter(Value::is_string) else { return Ok(elements) };
        arguments = Map::from_iter([("cursor".to_owned(), next)]);
    }
    Err(RpcError::internal("the list of the mounted server has more pages than are read"))
}

fn names<'a>(elements: &'a [Value], list: &'a List) -> impl Iterator<Item = &'a str> {
    elements.iter().filter_map(|element| element.get(list.name).and_then(Value::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_listed_under_a_name_that_leads_back_to_its_mount() {
        let files = ServiceName::parse("files").unwrap();
        let mut element = json!({"uri": "file:///a?b=c:d", "name": "a"});
        rename(&mut element, "uri", &files);
        assert_eq!(element["uri"], "toolgate:files:file:///a?b=c:d");
        rename(&mut element, "name", &files);
        assert_eq!(element["name"], "files_a");
    }
}
