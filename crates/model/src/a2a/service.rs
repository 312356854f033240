//! The registered service of an agent whose card was accepted: one tool for each operation, for each form of messages that
//! the agent takes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::card::declares;
use super::{Binding, Interface, Offered, Operation, Version};
use crate::connection::BaseUrl;
use crate::credential::ServiceName;
use crate::descriptor::{SafetyTier, SourceKind};
use crate::scope::Scope;
use crate::service::reading::refuse;
use crate::service::{
    DefinitionError, HttpMapping, HttpMethod, PathTemplate, ServiceDefinition, ServiceVersion, ToolDefinition, ToolName,
};
use crate::step::{A2aStep, Step};
use crate::text::Label;

/// How long a query may take. An agent may work on a message as long as its step allows.
const QUERY: Duration = Duration::from_secs(60);
/// What the names of tools for the forms of 0.3 begin with.
const LEGACY: &str = "v03.";
const LEGACY_HTTP: &str = "v03.http.";
/// The header that says which version a request speaks.
const VERSION_HEADER: &str = "A2A-Version";

impl Operation {
    /// The name of the tool for this form of messages.
    pub fn tool(self, version: Version, binding: Binding) -> String {
        let prefix = match (version, binding) {
            (Version::V1_0, _) => "",
            (Version::V0_3, Binding::JsonRpc) => LEGACY,
            (Version::V0_3, Binding::HttpJson) => LEGACY_HTTP,
        };
        format!("{prefix}{}", self.as_str())
    }
}

/// What can be used of an agent with this card.
pub fn service_definition(
    service: ServiceName,
    version: ServiceVersion,
    card: &Value,
) -> Result<ServiceDefinition, DefinitionError> {
    let offered = Offered::of_card(card);
    let mut tools = BTreeMap::new();
    for interface in offered.iter() {
        for operation in Operation::ALL.into_iter().filter(|&operation| declares(card, operation)) {
            if interface.version == Version::V0_3 && operation == Operation::List {
                continue;
            }
            let name = operation.tool(interface.version, interface.binding);
            let name = ToolName::parse(&name).map_err(|error| refuse("name", error.to_string()))?;
            tools.insert(name, tool(operation, interface)?);
        }
    }
    let base_url = offered.iter().next().map(|interface| {
        let mut origin = interface.url.clone();
        origin.set_path("");
        BaseUrl::parse(origin.as_str()).map_err(|reason| refuse("base_url", reason))
    });
    Ok(ServiceDefinition {
        service,
        version,
        description: Some("A2A agent".to_owned()),
        source: SourceKind::Connector,
        base_url: base_url.transpose()?,
        tools,
    })
}

fn tool(operation: Operation, interface: &Interface) -> Result<ToolDefinition, DefinitionError> {
    let scope = Scope::parse(operation.scope()).map_err(|error| refuse("scope", error.to_string()))?;
    let step =
        A2aStep { operation, binding: interface.binding, version: interface.version, tenant: interface.tenant.clone() };
    let timeout = Some(QUERY).filter(|_| !operation.sends() && !operation.streams());
    let label = Label::parse("a2a").ok();
    Ok(ToolDefinition {
        description: Some(told(operation).to_owned()),
        safety_tier: Some(operation.tier()),
        parameters: Some(schema(operation, interface)),
        idempotent: operation.tier() == SafetyTier::Read,
        http: Some(mapping(operation, interface)?),
        step: Some(Step::A2a(step)),
        labels: label.into_iter().collect(),
        timeout,
        ..ToolDefinition::of_scope(scope)
    })
}

fn told(operation: Operation) -> &'static str {
    match operation {
        Operation::Card => "Returns the card that the agent shows to callers that it knows.",
        Operation::Cancel => "Cancels a task of the agent.",
        Operation::Get => "Returns a task of the agent.",
        Operation::List => "Lists the tasks that the caller has with the agent.",
        Operation::Send => "Sends a message to the agent and returns its answer, or the task that it works on.",
        Operation::Stream => "Sends a message to the agent and streams what becomes of it.",
        Operation::Subscribe => "Streams what becomes of a task of the agent.",
        Operation::PushDelete | Operation::PushGet | Operation::PushList | Operation::PushSet => {
            "Configures how the agent notifies about a task."
        }
    }
}

/// Only what the gate needs of the parameters: members that it does not know go through.
fn schema(operation: Operation, interface: &Interface) -> Value {
    let text = json!({"type": "string"});
    let (properties, required) = match operation {
        operation if operation.sends() => {
            let message = match (interface.version, interface.binding) {
                (Version::V0_3, Binding::HttpJson) => "request",
                _ => "message",
            };
            let object = json!({"type": "object"});
            let properties = json!({message: object, "configuration": {"type": ["object", "null"]}});
            (properties, json!([message]))
        }
        operation if operation.names_task() => (json!({"id": text}), json!(["id"])),
        _ => (json!({}), json!([])),
    };
    json!({"type": "object", "properties": properties, "required": required})
}

/// The request to the agent, below the origin of its interface.
fn mapping(operation: Operation, interface: &Interface) -> Result<HttpMapping, DefinitionError> {
    let base = interface.url.path();
    let (method, path) = match interface.binding {
        Binding::JsonRpc => (HttpMethod::Post, base.to_owned()),
        Binding::HttpJson => {
            let version = if interface.version == Version::V0_3 { "/v1" } else { "" };
            let tenant = interface.tenant.as_ref().map(|tenant| format!("/{tenant}")).unwrap_or_default();
            let (method, resource) = resource(operation, interface.version);
            (method, format!("{}{version}{tenant}{resource}", interface.path()))
        }
    };
    let path = PathTemplate::parse(&path).map_err(|reason| refuse("path", reason))?;
    let mut mapping = HttpMapping::new(method, path);
    mapping.headers.insert(VERSION_HEADER.to_owned(), interface.version.as_str().to_owned());
    Ok(mapping)
}

/// The resource of an operation in the HTTP binding.
fn resource(operation: Operation, version: Version) -> (HttpMethod, &'static str) {
    match operation {
        Operation::Card if version == Version::V0_3 => (HttpMethod::Get, "/card"),
        Operation::Card => (HttpMethod::Get, "/extendedAgentCard"),
        Operation::Cancel => (HttpMethod::Post, "/tasks/{id}:cancel"),
        Operation::Get => (HttpMethod::Get, "/tasks/{id}"),
        Operation::List => (HttpMethod::Get, "/tasks"),
        Operation::Send => (HttpMethod::Post, "/message:send"),
        Operation::Stream => (HttpMethod::Post, "/message:stream"),
        Operation::Subscribe => (HttpMethod::Get, "/tasks/{id}:subscribe"),
        Operation::PushDelete | Operation::PushGet | Operation::PushList | Operation::PushSet => {
            (HttpMethod::Post, "/tasks/{id}/pushNotificationConfigs")
        }
    }
}
