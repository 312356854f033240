//! Cards of agents: what is accepted of one, what of it a person confirms, and the card that callers get, which leads to
//! the gate and to nothing behind it.

use serde_json::{Map, Value, json};

use super::{Binding, Offered, Operation, Version};
use crate::canonical::to_canonical;
use crate::visible::is_honest;

/// The largest card, in bytes of canonical JSON.
pub const CARD_LIMIT: usize = 64 * 1024;
/// How deep a card may be nested.
const DEPTH_LIMIT: usize = 24;
/// The name of our security scheme in cards.
const SCHEME: &str = "toolgate";

/// Why a card cannot be used; nothing if it can.
pub fn check(card: &Value) -> Result<Offered, String> {
    if !card.is_object() {
        return Err("the card is not an object".to_owned());
    }
    if to_canonical(card).len() > CARD_LIMIT || depth(card) > DEPTH_LIMIT {
        return Err(format!("the card is larger than {CARD_LIMIT} bytes or nested deeper than {DEPTH_LIMIT} levels"));
    }
    for name in ["name", "description"] {
        if card.get(name).and_then(Value::as_str).is_none_or(|text| text.trim().is_empty()) {
            return Err(format!("the card has no {name}"));
        }
    }
    let required = |extension: &&Value| extension.get("required") == Some(&Value::Bool(true));
    let extensions = card.pointer("/capabilities/extensions").and_then(Value::as_array);
    if let Some(extension) = extensions.into_iter().flatten().find(required) {
        let uri = extension.get("uri").and_then(Value::as_str).unwrap_or("without a name");
        return Err(format!("the agent requires the extension {uri}, which the gate does not forward"));
    }
    let offered = Offered::of_card(card);
    if offered.is_empty() {
        let reason = "the card lists no interface that the gate can use: JSONRPC or HTTP+JSON, version 1.0 or 0.3, with an \
            http or https URL";
        return Err(reason.to_owned());
    }
    Ok(offered)
}

/// What a person confirms of a card: all of it except its version and signatures, which change without anything else.
pub fn pinned(card: &Value) -> Value {
    let mut pinned = card.clone();
    if let Some(members) = pinned.as_object_mut() {
        members.remove("version");
        members.remove("signatures");
    }
    pinned
}

/// What an agent declares to be able to do.
pub(super) fn declares(card: &Value, operation: Operation) -> bool {
    let capability =
        |name: &str| card.pointer("/capabilities").and_then(|all| all.get(name)) == Some(&Value::Bool(true));
    match operation {
        Operation::Stream | Operation::Subscribe => capability("streaming"),
        Operation::Card => {
            capability("extendedAgentCard") || card.get("supportsAuthenticatedExtendedCard") == Some(&Value::Bool(true))
        }
        operation => !operation.is_push(),
    }
}

/// The card as callers of the gate get it: its interfaces are at `address`, it is called with a key of the gate, and what
/// the gate does not forward is not in it. `accepted` is the card that was accepted, which says where the agent is.
pub fn rewrite(card: &Value, accepted: &Value, address: &str) -> Value {
    let offered = Offered::of_card(accepted);
    let mut card = presented(card);
    let Some(members) = card.as_object_mut() else { return Value::Null };
    for gone in ["additionalInterfaces", "preferredTransport", "protocolVersion", "security", "signatures", "url"] {
        members.remove(gone);
    }
    let entry = |binding: Binding, version: Version| json!({"url": address, "protocolBinding": binding.as_str(), "protocolVersion": version.as_str()});
    let mut interfaces = Vec::new();
    if offered.modern.is_some() {
        interfaces.extend(Binding::ALL.map(|binding| entry(binding, Version::V1_0)));
    }
    let legacy = [(&offered.legacy, Binding::JsonRpc), (&offered.legacy_http, Binding::HttpJson)];
    let legacy: Vec<Binding> =
        legacy.into_iter().filter(|(interface, _)| interface.is_some()).map(|(_, binding)| binding).collect();
    interfaces.extend(legacy.iter().map(|&binding| entry(binding, Version::V0_3)));
    members.insert("supportedInterfaces".to_owned(), Value::Array(interfaces));
    if let Some(preferred) = legacy.first() {
        let more = legacy.iter().map(|binding| json!({"url": address, "transport": binding.as_str()}));
        members.insert("additionalInterfaces".to_owned(), more.collect());
        members.insert("preferredTransport".to_owned(), json!(preferred.as_str()));
        members.insert("protocolVersion".to_owned(), json!("0.3.0"));
        members.insert("url".to_owned(), json!(address));
        members.insert("security".to_owned(), json!([{SCHEME: []}]));
    }
    // One object in the words of both versions.
    let mut scheme = json!({"httpAuthSecurityScheme": {"scheme": "Bearer"}});
    if let (Some(scheme), true) = (scheme.as_object_mut(), offered.has_legacy()) {
        scheme.insert("type".to_owned(), json!("http"));
        scheme.insert("scheme".to_owned(), json!("bearer"));
    }
    members.insert("securitySchemes".to_owned(), json!({SCHEME: scheme}));
    members.insert("securityRequirements".to_owned(), json!([{"schemes": {SCHEME: {"list": []}}}]));
    let extended = declares(accepted, Operation::Card);
    if members.contains_key("supportsAuthenticatedExtendedCard") {
        members.insert("supportsAuthenticatedExtendedCard".to_owned(), json!(extended));
    }
    let capabilities = members.entry("capabilities").or_insert_with(|| json!({}));
    if let Some(capabilities) = capabilities.as_object_mut() {
        capabilities.remove("extensions");
        capabilities.insert("pushNotifications".to_owned(), json!(false));
        capabilities.insert("streaming".to_owned(), json!(declares(accepted, Operation::Stream)));
        if extended || capabilities.contains_key("extendedAgentCard") {
            capabilities.insert("extendedAgentCard".to_owned(), json!(extended));
        }
    }
    for skill in members.get_mut("skills").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(skill) = skill.as_object_mut() {
            skill.remove("security");
            skill.remove("securityRequirements");
        }
    }
    card
}

/// A value in whose texts every hidden character is shown by its code point.
fn presented(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(shown(text)),
        Value::Array(items) => items.iter().map(presented).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (shown(name), presented(value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    for letter in text.chars() {
        let is_picture = letter == '\u{fe0f}' && !before.is_ascii() && !before.is_alphanumeric();
        before = letter;
        match letter {
            '\r' => {}
            letter if is_honest(letter) || is_picture => out.push(letter),
            blank if blank.is_whitespace() && !blank.is_control() => out.push(' '),
            hidden => out.push_str(&format!("<U+{:04X}>", u32::from(hidden))),
        }
    }
    out
}

fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 0usize)];
    while let Some((value, depth)) = open.pop() {
        deepest = deepest.max(depth);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => open.extend(members.values().map(|member| (member, depth + 1))),
            _ => {}
        }
    }
    deepest
}
