//! Services and their tools, as the registry knows them (RFC-0014 §8): what can be called, with which parameters, and
//! how a call becomes an HTTP request.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use thiserror::Error;

use crate::connection::BaseUrl;
use crate::constraint::Cost;
use crate::credential::ServiceName;
use crate::scope::Scope;
use crate::text::identifiers;

pub(crate) use self::http_mapping::header::{
    check_credential_name, check_value as check_header_value, is_same as is_same_header,
};
pub use self::http_mapping::{
    BodyFormat, HttpMapping, HttpMethod, PathTemplate, Place, Placement, RenderError, RenderedBody, RenderedRequest,
    SuccessCodes,
};
pub use self::logging::{FieldRule, LoggingRule};

mod http_mapping;
mod logging;
mod parameters;
pub(crate) mod reading;
mod wire;

#[cfg(test)]
mod tests;

identifiers! {
    /// The name of a tool inside its service (`charges.create`).
    ToolName;
    /// The version of a service's definition (`2024-01`).
    ServiceVersion;
}

/// One version of a service: its tools and where they are.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceDefinition {
    /// The service.
    pub service: ServiceName,
    /// Which version of it.
    pub version: ServiceVersion,
    /// What it is, for people and agents.
    pub description: Option<String>,
    /// Where it is, unless the credential says otherwise.
    pub base_url: Option<BaseUrl>,
    /// What can be called.
    pub tools: BTreeMap<ToolName, ToolDefinition>,
}

/// Something that can be called.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// What it does, for people and agents.
    pub description: Option<String>,
    /// The scope that a grant must hold.
    pub scope: Scope,
    /// What the parameters must look like: JSON Schema 2020-12, an object at the top. Without one anything passes.
    pub parameters: Option<Value>,
    /// What the answer looks like: JSON Schema 2020-12. Told, not checked.
    pub returns: Option<Value>,
    /// Whether calling twice does no more than calling once.
    pub idempotent: bool,
    /// What one call costs, by estimate.
    pub estimated_cost: Option<Cost>,
    /// How a call becomes a request.
    pub http: Option<HttpMapping>,
    /// What the log keeps of the parameters.
    pub logging: LoggingRule,
    /// How long one call may take; without it, as long as the credential says.
    pub timeout: Option<Duration>,
}

/// A definition that cannot be understood or stored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{path}` {reason}")]
pub struct DefinitionError {
    /// Where, from the top of the definition down.
    pub path: String,
    /// What is wrong and what to write instead.
    pub reason: String,
}
