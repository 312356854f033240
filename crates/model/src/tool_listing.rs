//! How a tool is listed to clients of the Model Context Protocol, as JSON. Its annotations are ours: they follow from the
//! safety tier of the tool, and never from what its server claims.

use serde_json::{Map, Value, json};

use crate::descriptor::{Egress, SafetyTier};
use crate::service::ToolDefinition;
use crate::tool_alias::ToolAlias;

/// Lists a tool. The schema of its results is only told where these are checked against it: clients refuse results that do
/// not fit.
pub fn listing(alias: &ToolAlias, definition: &ToolDefinition, results_are_checked: bool) -> String {
    let mut listed = Map::new();
    listed.insert("name".to_owned(), json!(alias));
    if let Some(title) = &definition.title {
        listed.insert("title".to_owned(), json!(title));
    }
    // Some clients refuse a tool without a description.
    let without = || format!("{alias} (no description was given)");
    listed.insert("description".to_owned(), json!(definition.description.clone().unwrap_or_else(without)));
    listed.insert("inputSchema".to_owned(), Value::Object(input_schema(definition)));
    let returns = definition.returns.as_ref().filter(|returns| results_are_checked && returns.is_object());
    if let Some(returns) = returns {
        listed.insert("outputSchema".to_owned(), returns.clone());
    }
    listed.insert("annotations".to_owned(), annotations(definition));
    Value::Object(listed).to_string()
}

fn input_schema(definition: &ToolDefinition) -> Map<String, Value> {
    let mut schema = definition.parameters.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
    schema.entry("type").or_insert_with(|| json!("object"));
    schema
}

/// What is not known to be harmless is taken to be destructive.
fn annotations(definition: &ToolDefinition) -> Value {
    let tier = definition.tier();
    let is_read_only = matches!(tier, SafetyTier::Pure | SafetyTier::Read);
    let is_closed = tier == SafetyTier::Pure || definition.egress == Some(Egress::HostOwned);
    json!({
        "readOnlyHint": is_read_only,
        "destructiveHint": !is_read_only,
        "idempotentHint": is_read_only || definition.idempotent,
        "openWorldHint": !is_closed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::ServiceName;
    use crate::service::{ServiceDefinition, ToolName};

    fn listed(tool: Value, results_are_checked: bool) -> Value {
        let definition = json!({"service": "mail", "version": "1", "tools": {"list": tool}});
        let definition = ServiceDefinition::from_json(&definition).unwrap();
        let name = ToolName::parse("list").unwrap();
        let alias = ToolAlias::of(&ServiceName::parse("mail").unwrap(), &name);
        serde_json::from_str(&listing(&alias, &definition.tools[&name], results_are_checked)).unwrap()
    }

    #[test]
    fn a_tool_of_which_nothing_is_known_is_listed_as_dangerous_and_takes_anything() {
        let expected = json!({
            "name": "mail_list", "description": "mail_list (no description was given)",
            "inputSchema": {"type": "object"},
            "annotations": {
                "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true
            }
        });
        assert_eq!(listed(json!({"scope": "read"}), true), expected);
    }

    #[test]
    fn annotations_follow_from_the_tier() {
        let hints = |tier: &str| {
            let listed = listed(json!({"scope": "read", "safety_tier": tier}), false);
            let hint = |name: &str| listed["annotations"][name].as_bool().unwrap();
            [hint("readOnlyHint"), hint("destructiveHint"), hint("openWorldHint")]
        };
        assert_eq!(hints("pure"), [true, false, false]);
        assert_eq!(hints("read"), [true, false, true]);
        assert_eq!(hints("write"), [false, true, true]);
    }

    #[test]
    fn the_schema_of_results_is_told_only_where_they_are_checked() {
        let tool = json!({
            "scope": "read", "title": "List mail", "description": "Lists mail.", "returns": {"count": "integer"},
            "parameters": {"limit": {"type": "integer", "required": true}}
        });
        let checked = listed(tool.clone(), true);
        assert_eq!((&checked["title"], &checked["description"]), (&json!("List mail"), &json!("Lists mail.")));
        assert_eq!(checked["inputSchema"]["required"], json!(["limit"]));
        assert_eq!(checked["outputSchema"]["type"], "object");
        assert_eq!(listed(tool, false).get("outputSchema"), None);
    }
}
