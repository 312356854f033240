//! Writes a definition as YAML, in reading order, with comments on what to review.

use serde_json::{Map, Value};

use crate::output::is_deceptive;

use super::Imported;

/// The order of members where it helps; the others follow by name.
const TOOL_ORDER: [&str; 8] =
    ["title", "description", "safety_tier", "scope", "http", "idempotent", "parameters", "returns"];
const SERVICE_ORDER: [&str; 4] = ["service", "version", "description", "base_url"];
/// Words that are no texts to some readers unless they are quoted.
const WORDS: [&str; 9] = ["false", "n", "no", "null", "off", "on", "true", "y", "yes"];

/// Writes the definition.
pub(crate) fn write(imported: &Imported) -> String {
    let mut text = String::from(
        "# From an OpenAPI document. The safety tiers are proposals from the HTTP methods: review each.\n",
    );
    for need in &imported.credentials {
        let line = format!(
            "# Credential for {} ({} operations): auth_type {}, metadata {}",
            need.scheme,
            need.operations,
            need.auth_type.as_str(),
            need.metadata
        );
        text.push_str(&shown(&line));
        text.push('\n');
    }
    let definition = imported.definition.to_json();
    for (name, value) in ordered(definition.as_object(), &SERVICE_ORDER) {
        if name != "tools" {
            member(&mut text, 0, name, value, "");
        }
    }
    text.push_str("tools:\n");
    for (name, tool) in ordered(definition.get("tools").and_then(Value::as_object), &[]) {
        text.push_str(&format!("  {}:\n", key(name)));
        for (name, value) in ordered(tool.as_object(), &TOOL_ORDER) {
            let remark = if name == "safety_tier" { "  # proposed" } else { "" };
            member(&mut text, 2, name, value, remark);
        }
    }
    text
}

fn ordered<'m>(members: Option<&'m Map<String, Value>>, order: &[&str]) -> Vec<(&'m str, &'m Value)> {
    let mut members: Vec<(&str, &Value)> =
        members.into_iter().flatten().map(|(name, value)| (name.as_str(), value)).collect();
    let rank = |name: &str| order.iter().position(|known| *known == name).unwrap_or(order.len());
    members.sort_by_key(|(name, _)| (rank(name), *name));
    members
}

fn member(text: &mut String, level: usize, name: &str, value: &Value, remark: &str) {
    let indent = "  ".repeat(level);
    match value {
        Value::Object(members) if !members.is_empty() => {
            text.push_str(&format!("{indent}{}:{remark}\n", key(name)));
            for (name, value) in members {
                member(text, level + 1, name, value, "");
            }
        }
        Value::Array(elements) if elements.iter().any(|element| element.is_object() || element.is_array()) => {
            text.push_str(&format!("{indent}{}:{remark}\n", key(name)));
            for element in elements {
                // JSON is YAML: lists stay on one line.
                text.push_str(&format!("{indent}  - {}\n", shown(&element.to_string())));
            }
        }
        plain => text.push_str(&format!("{indent}{}: {}{remark}\n", key(name), scalar(plain))),
    }
}

fn key(name: &str) -> String {
    let is_plain = name.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_.-".contains(letter))
        && !WORDS.contains(&name.to_ascii_lowercase().as_str());
    if is_plain { name.to_owned() } else { quoted(name) }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let words = text.chars().all(|letter| letter.is_ascii_alphanumeric() || "_.- /".contains(letter));
            let starts = text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '/');
            let is_plain =
                words && starts && !text.ends_with(' ') && !WORDS.contains(&text.to_ascii_lowercase().as_str());
            if is_plain { text.clone() } else { quoted(text) }
        }
        other => shown(&other.to_string()),
    }
}

fn quoted(text: &str) -> String {
    shown(&Value::from(text).to_string())
}

/// JSON text with what is not shown, or not allowed in YAML, escaped inside its texts.
fn shown(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        let code = u32::from(letter);
        match letter {
            _ if !letter.is_control() && !is_deceptive(letter) && code & 0xfffe != 0xfffe => text.push(letter),
            _ if code <= 0xffff => text.push_str(&format!("\\u{code:04x}")),
            _ => text.push_str(&format!("\\U{code:08x}")),
        }
    }
    text
}
