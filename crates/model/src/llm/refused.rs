//! What may not be sent to a provider: it would run tools that no guardian sees, keep state under ids that belong to nobody,
//! or switch on what is not known here.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::api::Api;
use crate::step::StepError;

/// The tools that the client itself executes, by the beginning of their type.
const CLIENT_TOOLS: [&str; 11] = [
    "apply_patch",
    "bash_",
    "browser_toolset_",
    "computer",
    "computer_",
    "custom",
    "function",
    "local_shell",
    "memory_",
    "namespace",
    "text_editor_",
];
/// Service tiers at the usual price or below.
const TIERS: [&str; 5] = ["auto", "batch", "default", "flex", "standard_only"];

/// What a definition allows besides.
pub(crate) struct Allowed<'a> {
    /// Types of hosted tools, without their dates.
    pub(crate) hosted_tools: &'a BTreeSet<String>,
    /// Whether the provider may fetch addresses that a request names.
    pub(crate) fetched_urls: bool,
    /// Members of requests besides those that are known.
    pub(crate) members: &'a BTreeSet<String>,
    pub(crate) max_choices: u64,
    pub(crate) has_prices: bool,
}

/// Checks a request.
pub(crate) fn check(api: Api, request: &Map<String, Value>, allowed: &Allowed<'_>) -> Result<(), StepError> {
    let is_known = |name: &&String| api.members().contains(&name.as_str()) || allowed.members.contains(*name);
    for (name, value) in request.iter().filter(|(_, value)| !value.is_null()) {
        check_state(name, value)?;
        if !is_known(&name) {
            let shown: String = name.chars().take(64).collect();
            let reason = format!(
                "`{shown}` is not a member of such requests that this gate knows; leave it out, or let an operator add \
                 it to `members` of the step"
            );
            return Err(StepError::new(format!("/{shown}"), reason));
        }
    }
    check_choices(request, allowed)?;
    check_tier(request, allowed)?;
    check_tools(request, allowed)?;
    ["messages", "input", "system"]
        .iter()
        .filter_map(|name| Some((name, request.get(*name)?)))
        .try_for_each(|(name, value)| check_content(value, &format!("/{name}"), api, allowed.fetched_urls))
}

/// Nothing is kept at the provider: there, all callers of this gate are one.
fn check_state(name: &str, value: &Value) -> Result<(), StepError> {
    let reason = match name {
        "store" | "background" if *value == Value::Bool(false) => return Ok(()),
        "store" => "the provider may keep nothing: send `store: false`, or leave it out",
        "background" => "an answer in the background would reach nobody who checks it; leave `background` out",
        "previous_response_id" | "conversation" => {
            "ids of the provider are shared by all callers of this gate; send the messages themselves"
        }
        "prompt" => "stored prompts are not seen by this gate; send the messages themselves",
        "container" => "containers of the provider are shared by all callers of this gate; leave `container` out",
        _ => return Ok(()),
    };
    Err(StepError::new(format!("/{name}"), reason))
}

fn check_choices(request: &Map<String, Value>, allowed: &Allowed<'_>) -> Result<(), StepError> {
    let Some(choices) = request.get("n").filter(|choices| !choices.is_null()) else { return Ok(()) };
    if choices.as_u64().is_some_and(|choices| (1..=allowed.max_choices).contains(&choices)) {
        return Ok(());
    }
    Err(StepError::new("/n", format!("`n` must be an integer from 1 to {}", allowed.max_choices)))
}

/// A dearer tier would cost more than was reserved.
fn check_tier(request: &Map<String, Value>, allowed: &Allowed<'_>) -> Result<(), StepError> {
    let Some(tier) = request.get("service_tier").filter(|tier| !tier.is_null()) else { return Ok(()) };
    if !allowed.has_prices || tier.as_str().is_some_and(|tier| TIERS.contains(&tier)) {
        return Ok(());
    }
    let reason = format!("`service_tier` has no price here; use one of {}", TIERS.join(", "));
    Err(StepError::new("/service_tier", reason))
}

fn check_tools(request: &Map<String, Value>, allowed: &Allowed<'_>) -> Result<(), StepError> {
    for (member, kind) in [("web_search_options", "web_search"), ("mcp_servers", "mcp")] {
        if request.get(member).is_some_and(|value| !value.is_null()) {
            check_hosted(kind, &format!("/{member}"), allowed)?;
        }
    }
    match request.get("tools") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Array(tools)) => tools
            .iter()
            .enumerate()
            .try_for_each(|(number, tool)| check_tool(tool, &format!("/tools/{number}"), allowed)),
        Some(_) => Err(StepError::new("/tools", "`tools` must be a list")),
    }
}

fn check_tool(tool: &Value, path: &str, allowed: &Allowed<'_>) -> Result<(), StepError> {
    let kind = match tool.get("type") {
        // Tools of Anthropic's messages need no type.
        None | Some(Value::Null) if tool.is_object() => return Ok(()),
        Some(Value::String(kind)) => kind.as_str(),
        _ => return Err(StepError::new(path, "a tool must be an object whose `type` is a string")),
    };
    let is_clients =
        |known: &&str| kind == known.trim_end_matches('_') || (known.ends_with('_') && kind.starts_with(*known));
    // A shell of the provider has an environment there; one of the client's is local.
    let is_local_shell = kind == "shell" && tool.pointer("/environment/type").is_some_and(|kind| kind == "local");
    if !is_local_shell && !CLIENT_TOOLS.iter().any(is_clients) {
        check_hosted(kind, path, allowed)?;
    }
    match tool.get("tools").and_then(Value::as_array) {
        Some(inner) if kind == "namespace" => inner
            .iter()
            .enumerate()
            .try_for_each(|(number, tool)| check_tool(tool, &format!("{path}/tools/{number}"), allowed)),
        _ => Ok(()),
    }
}

/// Tools of the provider go round this gate: they need a definition that has them.
fn check_hosted(kind: &str, path: &str, allowed: &Allowed<'_>) -> Result<(), StepError> {
    let undated = kind.trim_end_matches(|letter: char| letter.is_ascii_digit()).trim_end_matches('_');
    if allowed.hosted_tools.contains(kind) || allowed.hosted_tools.contains(undated) {
        return Ok(());
    }
    let shown: String = undated.chars().take(64).collect();
    let reason = format!(
        "the tool `{shown}` runs at the provider, past this gate; use a tool of this gate, or let an operator add it to \
         `hosted_tools` of the step"
    );
    Err(StepError::new(path, reason))
}

/// Checks the parts of messages for ids and addresses that the provider would resolve.
fn check_content(value: &Value, path: &str, api: Api, fetched_urls: bool) -> Result<(), StepError> {
    match value {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(number, item)| check_content(item, &format!("{path}/{number}"), api, fetched_urls)),
        Value::Object(members) => {
            check_object(members, path, api, fetched_urls)?;
            // What a tool was called with is data of the model's answer, not a request to the provider.
            let is_data = |name: &str| matches!(name, "input" | "arguments" | "action" | "operation");
            let mut inner =
                members.iter().filter(|(name, value)| !is_data(name) && (value.is_array() || value.is_object()));
            inner.try_for_each(|(name, value)| check_content(value, &format!("{path}/{name}"), api, fetched_urls))
        }
        _ => Ok(()),
    }
}

fn check_object(members: &Map<String, Value>, path: &str, api: Api, fetched_urls: bool) -> Result<(), StepError> {
    let kind = members.get("type").and_then(Value::as_str);
    let is_set = |name: &str| members.get(name).is_some_and(|value| !value.is_null());
    let is_reference = kind == Some("item_reference")
        || (api == Api::Responses && kind.is_none() && is_set("id") && !is_set("role") && !is_set("content"));
    if is_reference || is_set("file_id") || kind == Some("container_upload") || kind == Some("file") && is_set("id") {
        let reason = "ids of the provider are shared by all callers of this gate; send the content itself";
        return Err(StepError::new(path, reason));
    }
    if fetched_urls {
        return Ok(());
    }
    let is_address = |value: Option<&Value>| {
        value
            .and_then(Value::as_str)
            .is_some_and(|text| !text.get(..5).is_some_and(|begin| begin.eq_ignore_ascii_case("data:")))
    };
    let image = members.get("image_url");
    let fetched = is_address(image)
        || is_address(image.and_then(|image| image.get("url")))
        || is_set("file_url")
        || (kind == Some("url") && is_set("url"));
    if fetched {
        let reason = "the provider would fetch this address, past this gate; send the content itself, or let an operator \
             set `fetched_urls` of the step";
        return Err(StepError::new(path, reason));
    }
    Ok(())
}
