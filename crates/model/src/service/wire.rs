//! Service definitions as JSON: parsed strictly, written in one normal form, which is also the stored form.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::declarations::{
    check_mappings, host_extensions_only, read_approval_rule, read_egress, read_labels, read_rate_limit,
    read_required_scopes, read_source,
};
use super::parameters::{check_compiles, check_together, read_parameters, read_returns};
use super::reading::{Fields, description, flag, join, object, parsed, refuse, timeout, word};
use super::{
    DefinitionError, HttpMapping, LoggingRule, McpMapping, ServiceDefinition, ServiceVersion, ToolDefinition, ToolName,
};
use crate::connection::BaseUrl;
use crate::constraint::Cost;
use crate::credential::ServiceName;
use crate::descriptor::{ApprovalNeed, Hint, ReplayPolicy, SafetyTier, SourceKind};
use crate::scope::Scope;
use crate::spending::StatedCost;
use crate::step::Step;
use crate::store::StoreOperation;
use crate::text::Line;

/// The maximum number of tools of a service.
const TOOL_LIMIT: usize = 2_000;
const SERVICE_MEMBERS: [&str; 6] = ["base_url", "description", "service", "source", "tools", "version"];
const TOOL_MEMBERS: [&str; 25] = [
    "approval",
    "approval_rule",
    "cost",
    "cost_hint",
    "description",
    "detach",
    "egress",
    "estimated_cost_usd",
    "http",
    "idempotent",
    "labels",
    "latency_hint",
    "logging",
    "mcp",
    "parameters",
    "rate_limit",
    "replay_policy",
    "required_scopes",
    "returns",
    "safety_tier",
    "scope",
    "step",
    "store",
    "timeout_ms",
    "title",
];

impl ServiceDefinition {
    /// Whether the gate maintains the definition: that of a mounted server, of a peer agent or of a store.
    pub fn is_maintained(&self) -> bool {
        let is_of_gate = |tool: &ToolDefinition| tool.store.is_some() || matches!(tool.step, Some(Step::A2a(_)));
        self.source == SourceKind::Mcp || self.tools.values().any(is_of_gate)
    }

    /// Parses a definition, and rejects one with a schema that does not compile.
    pub fn from_json(value: &Value) -> Result<Self, DefinitionError> {
        let definition = Self::from_stored_json(value)?;
        for (name, tool) in &definition.tools {
            let path = join("tools", name.as_str());
            for (member, schema) in [("parameters", &tool.parameters), ("returns", &tool.returns)] {
                schema.as_ref().map_or(Ok(()), |schema| check_compiles(schema, &join(&path, member)))?;
            }
        }
        Ok(definition)
    }

    /// Parses a definition that was accepted before. Its schemas are not compiled here but when their tools are first
    /// called: a schema that does not compile refuses every call.
    pub fn from_stored_json(value: &Value) -> Result<Self, DefinitionError> {
        if !value.is_object() {
            return Err(refuse("definition", "must be an object with service, version and tools"));
        }
        let fields = Fields::of(value, "", &SERVICE_MEMBERS)?;
        let definition = Self {
            service: fields.need("service", parsed(ServiceName::parse))?,
            version: fields.need("version", parsed(ServiceVersion::parse))?,
            description: fields.read("description", description)?,
            source: fields.read("source", read_source)?.unwrap_or(SourceKind::Connector),
            base_url: fields.read("base_url", parsed(BaseUrl::parse))?,
            tools: fields.need("tools", read_tools)?,
        };
        host_extensions_only(&definition, &fields.at("tools"))?;
        check_mappings(&definition, &fields.at("tools"))?;
        Ok(definition)
    }

    /// Writes the normal form: only what is set, and schemas in full. Parsing it gives the same definition.
    pub fn to_json(&self) -> Value {
        let mut members = Map::new();
        members.insert("service".to_owned(), json!(self.service));
        members.insert("version".to_owned(), json!(self.version));
        insert(&mut members, "description", self.description.as_ref().map(|text| json!(text)));
        let source = Some(self.source).filter(|&source| source != SourceKind::Connector);
        insert(&mut members, "source", source.map(|source| json!(source)));
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
        let hint = |value: &Value, path: &str| word(value, path, Hint::WORDS);
        let tool = Self {
            title: fields.read("title", parsed(Line::parse))?,
            description: fields.read("description", description)?,
            scope,
            safety_tier: fields.read("safety_tier", |value, path| word(value, path, SafetyTier::WORDS))?,
            required_scopes: fields.read("required_scopes", read_required_scopes)?,
            approval: fields.read("approval", |value, path| word(value, path, ApprovalNeed::WORDS))?,
            approval_rule: fields.read("approval_rule", read_approval_rule)?,
            egress: fields.read("egress", read_egress)?,
            replay_policy: fields.read("replay_policy", |value, path| word(value, path, ReplayPolicy::WORDS))?,
            cost_hint: fields.read("cost_hint", hint)?,
            latency_hint: fields.read("latency_hint", hint)?,
            rate_limit: fields.read("rate_limit", read_rate_limit)?,
            parameters: fields.read("parameters", read_parameters)?,
            returns: fields.read("returns", read_returns)?,
            idempotent: fields.read("idempotent", flag)?.unwrap_or(false),
            estimated_cost: fields.read("estimated_cost_usd", read_cost)?,
            stated_cost: None,
            http: fields.read("http", HttpMapping::from_json)?,
            mcp: fields.read("mcp", McpMapping::from_json)?,
            store: fields.read("store", |value, path| word(value, path, StoreOperation::WORDS))?,
            step: fields.read("step", Step::from_json)?,
            logging: fields.read("logging", LoggingRule::from_json)?.unwrap_or_default(),
            labels: fields.read("labels", read_labels)?.unwrap_or_default(),
            timeout: fields.read("timeout_ms", timeout)?,
            detach: fields.read("detach", flag)?.unwrap_or(false),
        };
        if let (Some(schema), Some(http)) = (&tool.parameters, &tool.http) {
            check_together(schema, http, path)?;
        }
        let stated_cost = fields.read("cost", |value, path| read_stated_cost(value, path, tool.estimated_cost))?;
        let tool = Self { stated_cost, ..tool };
        Ok(tool)
    }

    /// Writes the normal form: only what is set, and schemas in full.
    pub fn to_json(&self) -> Value {
        let mut members = Map::new();
        insert(&mut members, "title", self.title.as_ref().map(|title| json!(title)));
        insert(&mut members, "description", self.description.as_ref().map(|text| json!(text)));
        members.insert("scope".to_owned(), json!(self.scope));
        insert(&mut members, "safety_tier", self.safety_tier.map(|tier| json!(tier)));
        insert(&mut members, "required_scopes", self.required_scopes.as_ref().map(|scopes| json!(scopes)));
        insert(&mut members, "approval", self.approval.map(|approval| json!(approval)));
        insert(&mut members, "approval_rule", self.approval_rule.as_ref().map(|rule| json!(rule)));
        insert(&mut members, "egress", self.egress.map(|egress| json!(egress)));
        insert(&mut members, "replay_policy", self.replay_policy.map(|policy| json!(policy)));
        insert(&mut members, "cost_hint", self.cost_hint.map(|hint| json!(hint)));
        insert(&mut members, "latency_hint", self.latency_hint.map(|hint| json!(hint)));
        insert(&mut members, "rate_limit", self.rate_limit.map(|limit| json!(limit)));
        insert(&mut members, "parameters", self.parameters.clone());
        insert(&mut members, "returns", self.returns.clone());
        members.insert("idempotent".to_owned(), json!(self.idempotent));
        insert(&mut members, "estimated_cost_usd", self.estimated_cost.map(|cost| json!(cost.dollars())));
        let stated = |stated: &StatedCost| json!({"from": stated.from, "at_most_usd": stated.at_most.dollars()});
        insert(&mut members, "cost", self.stated_cost.as_ref().map(stated));
        insert(&mut members, "http", self.http.as_ref().map(HttpMapping::to_json));
        insert(&mut members, "mcp", self.mcp.as_ref().map(McpMapping::to_json));
        insert(&mut members, "store", self.store.map(|operation| json!(operation.as_str())));
        insert(&mut members, "step", self.step.as_ref().map(Step::to_json));
        insert(&mut members, "logging", self.logging.to_json());
        insert(&mut members, "labels", (!self.labels.is_empty()).then(|| json!(self.labels)));
        insert(&mut members, "detach", self.detach.then_some(Value::Bool(true)));
        insert(&mut members, "timeout_ms", self.timeout.map(|timeout| json!(milliseconds(timeout))));
        Value::Object(members)
    }
}

fn read_tools(value: &Value, path: &str) -> Result<BTreeMap<ToolName, ToolDefinition>, DefinitionError> {
    let members = object(value, path)?;
    if members.len() > TOOL_LIMIT {
        return Err(refuse(path, format!("has {} tools, the limit is {TOOL_LIMIT}", members.len())));
    }
    let mut tools = BTreeMap::new();
    for (name, value) in members {
        let path = join(path, name);
        let name =
            ToolName::parse(name).map_err(|error| refuse(&path, format!("is not a valid tool name: it {error}")))?;
        let tool = ToolDefinition::from_json(&name, value, &path)?;
        tools.insert(name, tool);
    }
    Ok(tools)
}

fn read_cost(value: &Value, path: &str) -> Result<Cost, DefinitionError> {
    let reason = "must be a non-negative amount of US dollars with at most six decimal places";
    value.as_f64().and_then(Cost::from_dollars).ok_or_else(|| refuse(path, reason))
}

/// Where the result states the cost, and the most that is believed: ten times the estimate if it does not say.
fn read_stated_cost(value: &Value, path: &str, estimate: Option<Cost>) -> Result<StatedCost, DefinitionError> {
    const LONGEST: usize = 256;
    let fields = Fields::of(value, path, &["at_most_usd", "from"])?;
    let from = fields.need("from", |value, path| {
        let pointer = value.as_str().filter(|text| text.starts_with('/') && text.len() <= LONGEST);
        let reason = "must be a JSON pointer into the result, such as /usage/cost_usd";
        pointer.map(str::to_owned).ok_or_else(|| refuse(path, reason))
    })?;
    let at_most = fields.read("at_most_usd", read_cost)?.or_else(|| estimate.and_then(StatedCost::usual_limit));
    let reason = "is needed without `estimated_cost_usd`: it is the most that a call can cost";
    let at_most = at_most.ok_or_else(|| refuse(&fields.at("at_most_usd"), reason))?;
    if estimate.is_some_and(|estimate| estimate > at_most) {
        return Err(refuse(&fields.at("at_most_usd"), "must not be less than `estimated_cost_usd`"));
    }
    Ok(StatedCost { from, at_most })
}

fn milliseconds(timeout: std::time::Duration) -> u64 {
    u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)
}

fn insert(members: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        members.insert(name.to_owned(), value);
    }
}
