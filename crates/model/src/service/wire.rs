//! Service definitions as JSON: read strictly, written in one normal form, which is also the stored form.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::parameters::{check_together, read_parameters, read_returns};
use super::reading::{Fields, description, flag, join, object, parsed, refuse, timeout};
use super::{DefinitionError, HttpMapping, LoggingRule, ServiceDefinition, ServiceVersion, ToolDefinition, ToolName};
use crate::connection::BaseUrl;
use crate::constraint::Cost;
use crate::credential::ServiceName;
use crate::scope::Scope;

/// How many tools a service may have.
const TOOL_LIMIT: usize = 2_000;
const SERVICE_MEMBERS: [&str; 5] = ["base_url", "description", "service", "tools", "version"];
const TOOL_MEMBERS: [&str; 9] = [
    "description",
    "estimated_cost_usd",
    "http",
    "idempotent",
    "logging",
    "parameters",
    "returns",
    "scope",
    "timeout_ms",
];

impl ServiceDefinition {
    /// Reads a definition.
    pub fn from_json(value: &Value) -> Result<Self, DefinitionError> {
        if !value.is_object() {
            return Err(refuse("definition", "must be an object with service, version and tools"));
        }
        let fields = Fields::of(value, "", &SERVICE_MEMBERS)?;
        Ok(Self {
            service: fields.need("service", parsed(ServiceName::parse))?,
            version: fields.need("version", parsed(ServiceVersion::parse))?,
            description: fields.read("description", description)?,
            base_url: fields.read("base_url", parsed(BaseUrl::parse))?,
            tools: fields.need("tools", read_tools)?,
        })
    }

    /// Writes the normal form: only what is set, and schemas in full. Reading it gives the same definition.
    pub fn to_json(&self) -> Value {
        let mut members = Map::new();
        members.insert("service".to_owned(), json!(self.service));
        members.insert("version".to_owned(), json!(self.version));
        insert(&mut members, "description", self.description.as_ref().map(|text| json!(text)));
        insert(&mut members, "base_url", self.base_url.as_ref().map(|url| json!(url.to_string())));
        let tools = self.tools.iter().map(|(name, tool)| (name.to_string(), tool.to_json()));
        members.insert("tools".to_owned(), Value::Object(tools.collect()));
        Value::Object(members)
    }
}

impl ToolDefinition {
    fn from_json(name: &ToolName, value: &Value, path: &str) -> Result<Self, DefinitionError> {
        let fields = Fields::of(value, path, &TOOL_MEMBERS)?;
        let scope = match fields.read("scope", parsed(Scope::parse))? {
            Some(scope) => scope,
            None => Scope::parse(name.as_str()).map_err(|error| refuse(&fields.at("scope"), error.to_string()))?,
        };
        let tool = Self {
            description: fields.read("description", description)?,
            scope,
            parameters: fields.read("parameters", read_parameters)?,
            returns: fields.read("returns", read_returns)?,
            idempotent: fields.read("idempotent", flag)?.unwrap_or(false),
            estimated_cost: fields.read("estimated_cost_usd", read_cost)?,
            http: fields.read("http", HttpMapping::from_json)?,
            logging: fields.read("logging", LoggingRule::from_json)?.unwrap_or_default(),
            timeout: fields.read("timeout_ms", timeout)?,
        };
        if let (Some(schema), Some(http)) = (&tool.parameters, &tool.http) {
            check_together(schema, http, path)?;
        }
        Ok(tool)
    }

    /// Writes the normal form: only what is set, and schemas in full.
    pub fn to_json(&self) -> Value {
        let mut members = Map::new();
        insert(&mut members, "description", self.description.as_ref().map(|text| json!(text)));
        members.insert("scope".to_owned(), json!(self.scope));
        insert(&mut members, "parameters", self.parameters.clone());
        insert(&mut members, "returns", self.returns.clone());
        members.insert("idempotent".to_owned(), json!(self.idempotent));
        insert(&mut members, "estimated_cost_usd", self.estimated_cost.map(|cost| json!(cost.dollars())));
        insert(&mut members, "http", self.http.as_ref().map(HttpMapping::to_json));
        insert(&mut members, "logging", self.logging.to_json());
        insert(&mut members, "timeout_ms", self.timeout.map(|timeout| json!(milliseconds(timeout))));
        Value::Object(members)
    }
}

fn read_tools(value: &Value, path: &str) -> Result<BTreeMap<ToolName, ToolDefinition>, DefinitionError> {
    let members = object(value, path)?;
    if members.len() > TOOL_LIMIT {
        return Err(refuse(path, format!("has {} tools, and {TOOL_LIMIT} is the limit", members.len())));
    }
    let mut tools = BTreeMap::new();
    for (name, value) in members {
        let path = join(path, name);
        let name = ToolName::parse(name).map_err(|error| refuse(&path, format!("is no name: it {error}")))?;
        let tool = ToolDefinition::from_json(&name, value, &path)?;
        tools.insert(name, tool);
    }
    Ok(tools)
}

fn read_cost(value: &Value, path: &str) -> Result<Cost, DefinitionError> {
    let reason = "must be an amount of US dollars, not negative, to at most six decimals";
    value.as_f64().and_then(Cost::from_dollars).ok_or_else(|| refuse(path, reason))
}

fn milliseconds(timeout: std::time::Duration) -> u64 {
    u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)
}

fn insert(members: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        members.insert(name.to_owned(), value);
    }
}
