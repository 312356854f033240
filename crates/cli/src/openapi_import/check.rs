//! Checks single tools and names by the rules of the registry, so that an invalid tool does not affect others.

use serde_json::{Value, json};
use toolgate_model::service::{DefinitionError, ServiceDefinition, ToolDefinition, ToolName};

pub(super) fn tool(name: &ToolName, tool: &Value) -> Result<ToolDefinition, DefinitionError> {
    let definition = json!({"service": "import", "version": "1", "tools": {name.as_str(): tool}});
    let mut read = ServiceDefinition::from_json(&definition)?;
    let missing = || DefinitionError { path: "tools".to_owned(), reason: "is empty".to_owned() };
    read.tools.remove(name).ok_or_else(missing)
}

/// Whether tools can set a header of this name.
pub(super) fn is_header(name: &str) -> bool {
    let http = json!({"method": "GET", "path": "/", "parameters": {"value": {"in": "header", "name": name}}});
    let definition = json!({"service": "import", "version": "1", "tools": {"tool": {"http": http}}});
    ServiceDefinition::from_json(&definition).is_ok()
}
