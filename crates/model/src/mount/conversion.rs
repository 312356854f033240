//! A definition that a person has accepted, as a tool of the registry. The text that agents see is made here, from the
//! pinned definition and from nothing else.

use serde_json::Value;

use super::PinnedDefinition;
use super::schema::{of_input, of_output};
use super::tier::{Decided, decide};
use crate::scope::Scope;
use crate::service::reading::{description, refuse};
use crate::service::{DefinitionError, HiddenCharacters, McpMapping, ToolDefinition, ToolName};
use crate::text::Line;
use crate::visible::is_honest;

/// The tool of the registry for a definition that was accepted. Refused where the registry could not hold or enforce it.
pub fn convert(
    name: &ToolName,
    upstream: &str,
    pinned: &PinnedDefinition,
    trusted: bool,
    hidden_characters: HiddenCharacters,
) -> Result<ToolDefinition, DefinitionError> {
    let definition = &pinned.definition;
    let annotations = definition.get("annotations");
    let text = |value: Option<&Value>| {
        let text = value.and_then(Value::as_str).map(|text| presented(text, hidden_characters));
        text.filter(|text| !text.trim().is_empty())
    };
    let title = text(definition.get("title")).or_else(|| text(annotations.and_then(|hints| hints.get("title"))));
    let title = title.map(|title| Line::parse(title.trim()).map_err(|error| refuse("title", error.to_string())));
    let stated = text(definition.get("description")).map(|text| description(&Value::String(text), "description"));
    let schema = |member, read: fn(&Value, &str) -> Result<Value, DefinitionError>| {
        let value = definition.get(member).filter(|value| !value.is_null());
        value.map(|schema| read(&with_presented_texts(schema, hidden_characters), member)).transpose()
    };
    let Decided { tier, idempotent, labels } = decide(annotations, trusted);
    let scope = Scope::parse(name.as_str()).map_err(|error| refuse("name", error.to_string()))?;
    let mut mapping = McpMapping::of_tool(upstream);
    mapping.definition_hash = Some(pinned.hash.clone());
    mapping.hidden_characters = hidden_characters;
    Ok(ToolDefinition {
        title: title.transpose()?,
        description: stated.transpose()?,
        safety_tier: Some(tier),
        parameters: Some(match schema("inputSchema", of_input)? {
            Some(schema) => schema,
            None => serde_json::json!({"type": "object"}),
        }),
        returns: schema("outputSchema", of_output)?,
        idempotent,
        mcp: Some(mapping),
        labels,
        ..ToolDefinition::of_scope(scope)
    })
}

/// A text of a server as agents see it. A description cannot hold hidden characters, so the rule that keeps them in results
/// shows them here.
pub(super) fn presented(text: &str, rule: HiddenCharacters) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    for letter in text.chars() {
        let is_picture = letter == '\u{fe0f}' && !before.is_ascii() && !before.is_alphanumeric();
        before = letter;
        match letter {
            '\r' => {}
            letter if is_honest(letter) || is_picture => out.push(letter),
            blank if blank.is_whitespace() && !blank.is_control() => out.push(' '),
            hidden if rule != HiddenCharacters::Strip => out.push_str(&format!("<U+{:04X}>", u32::from(hidden))),
            _ => {}
        }
    }
    out
}

/// A schema in which the texts that only describe are presented like the description. Values that are compared stay.
fn with_presented_texts(schema: &Value, rule: HiddenCharacters) -> Value {
    match schema {
        Value::Array(items) => items.iter().map(|item| with_presented_texts(item, rule)).collect(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                let presented = match (name.as_str(), value) {
                    ("title" | "description" | "$comment", Value::String(text)) => Value::String(presented(text, rule)),
                    ("const" | "default" | "enum" | "examples", value) => value.clone(),
                    (_, value) => with_presented_texts(value, rule),
                };
                (name.clone(), presented)
            };
            Value::Object(members.iter().map(member).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::descriptor::SafetyTier;
    use crate::service::definition_hash;

    fn converted(definition: Value, trusted: bool) -> Result<ToolDefinition, DefinitionError> {
        let pinned = PinnedDefinition { hash: definition_hash(&definition), definition };
        convert(&ToolName::parse("sum").unwrap(), "sum", &pinned, trusted, HiddenCharacters::Show)
    }

    #[test]
    fn a_definition_becomes_a_tool_that_says_the_same() {
        let tool = converted(
            json!({
                "name": "sum", "title": "Sum", "description": "Adds.\r\nTwo numbers.",
                "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}}},
                "outputSchema": {"properties": {"sum": {"type": "number"}}},
                "annotations": {"readOnlyHint": true, "openWorldHint": false},
            }),
            true,
        )
        .unwrap();
        assert_eq!(tool.title.as_ref().map(Line::as_str), Some("Sum"));
        assert_eq!(tool.description.as_deref(), Some("Adds.\nTwo numbers."));
        assert_eq!((tool.tier(), tool.scope.as_str()), (SafetyTier::Read, "sum"));
        assert_eq!(tool.mcp.as_ref().and_then(|mapping| mapping.name.as_deref()), Some("sum"));
        assert!(tool.mcp.as_ref().is_some_and(|mapping| mapping.definition_hash.is_some()));
        assert!(tool.returns.is_some());
    }

    #[test]
    fn without_a_schema_any_arguments_are_taken() {
        let tool = converted(json!({"name": "sum"}), false).unwrap();
        assert_eq!((tool.tier(), tool.parameters), (SafetyTier::Write, Some(json!({"type": "object"}))));
    }

    #[test]
    fn hidden_characters_never_reach_an_agent_unseen() {
        let definition = json!({
            "name": "sum", "description": "a\u{200b}b\u{a0}c ⚠\u{fe0f}",
            "inputSchema": {"properties": {"x": {"description": "d\u{202e}e", "enum": ["f\u{200b}"]}}},
        });
        let tool = converted(definition, false).unwrap();
        assert_eq!(tool.description.as_deref(), Some("a<U+200B>b c ⚠\u{fe0f}"));
        let schema = tool.parameters.unwrap();
        assert_eq!(schema["properties"]["x"]["description"], "d<U+202E>e");
        assert_eq!(schema["properties"]["x"]["enum"][0], "f\u{200b}");
        assert_eq!(presented("a\u{200b}b", HiddenCharacters::Strip), "ab");
        assert_eq!(presented("a\u{200b}b", HiddenCharacters::Keep), "a<U+200B>b");
    }

    #[test]
    fn what_the_registry_cannot_hold_is_refused() {
        for definition in [
            json!({"name": "sum", "title": "x".repeat(300)}),
            json!({"name": "sum", "title": "a\nb"}),
            json!({"name": "sum", "description": "x".repeat(10_000)}),
            json!({"name": "sum", "inputSchema": {"type": "string"}}),
        ] {
            assert!(converted(definition.clone(), true).is_err(), "{definition}");
        }
    }
}
