//! Services and their tools, as the registry knows them (RFC-0014 §8): what can be called, with which parameters, and
//! how a call becomes an HTTP request.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::approval::ApprovalRule;
use crate::connection::BaseUrl;
use crate::constraint::Cost;
use crate::credential::ServiceName;
use crate::descriptor::{ApprovalNeed, Egress, Hint, ReplayPolicy, SafetyTier, SourceKind};
use crate::principal_scope::RequiredScope;
use crate::rate_limit::RateLimit;
use crate::scope::Scope;
use crate::text::{Label, Line, identifiers};

pub(crate) use self::http_mapping::header::{
    check_credential_name, check_fetch_name as check_fetch_header, check_value as check_header_value,
    is_same as is_same_header,
};
pub use self::http_mapping::{
    BodyFormat, Divider, HttpMapping, HttpMethod, PathTemplate, Place, Placement, RenderError, RenderedBody,
    RenderedRequest, SuccessCodes,
};
pub use self::logging::{FieldRule, LoggingRule};
pub use self::mcp_mapping::{HiddenCharacters, McpMapping, McpMethod, definition_hash};

mod declarations;
mod http_mapping;
mod logging;
mod mcp_mapping;
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
    /// What backs its tools: a connector, a host extension or a mounted MCP server.
    pub source: SourceKind,
    /// Where it is, unless the credential says otherwise. A mounted MCP server without one is a process of this machine.
    pub base_url: Option<BaseUrl>,
    /// What can be called.
    pub tools: BTreeMap<ToolName, ToolDefinition>,
}

/// Something that can be called. What it does not declare stays `None`, so that it can be asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// What people call it.
    pub title: Option<Line>,
    /// What it does, for people and agents.
    pub description: Option<String>,
    /// The scope that a grant must hold.
    pub scope: Scope,
    /// How dangerous it is, as declared; [`ToolDefinition::tier`] is what counts.
    pub safety_tier: Option<SafetyTier>,
    /// The scopes that the principal itself must hold, all of them.
    pub required_scopes: Option<BTreeSet<RequiredScope>>,
    /// Whether a person must approve a call.
    pub approval: Option<ApprovalNeed>,
    /// Who must, and what their answer covers.
    pub approval_rule: Option<ApprovalRule>,
    /// How it reaches the network.
    pub egress: Option<Egress>,
    /// What happens when a call is made again.
    pub replay_policy: Option<ReplayPolicy>,
    /// What a call costs, roughly.
    pub cost_hint: Option<Hint>,
    /// How long a call takes, roughly.
    pub latency_hint: Option<Hint>,
    /// How often one principal may call it.
    pub rate_limit: Option<RateLimit>,
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
    /// How a call becomes a request to a mounted MCP server.
    ///
    /// INVARIANT: set for the tools of services whose source is [`SourceKind::Mcp`], and for no others.
    pub mcp: Option<McpMapping>,
    /// What the log keeps of the parameters.
    pub logging: LoggingRule,
    /// What policies and guardians know it by, besides its name.
    pub labels: BTreeSet<Label>,
    /// How long one call may take; without it, as long as the credential says.
    pub timeout: Option<Duration>,
    /// Whether a call that must wait for an approver is detached: it does not wait on its connection.
    pub detach: bool,
}

impl ToolDefinition {
    /// What the log keeps of these parameters.
    pub fn summary(&self, parameters: &Map<String, Value>) -> Map<String, Value> {
        self.logging.summary_of(parameters, self.parameters.as_ref().unwrap_or(&Value::Null))
    }

    /// A tool of which nothing is known but the scope that it needs.
    pub fn of_scope(scope: Scope) -> Self {
        Self {
            title: None,
            description: None,
            scope,
            safety_tier: None,
            required_scopes: None,
            approval: None,
            approval_rule: None,
            egress: None,
            replay_policy: None,
            cost_hint: None,
            latency_hint: None,
            rate_limit: None,
            parameters: None,
            returns: None,
            idempotent: false,
            estimated_cost: None,
            http: None,
            mcp: None,
            logging: LoggingRule::default(),
            labels: BTreeSet::new(),
            timeout: None,
            detach: false,
        }
    }

    /// How dangerous it is: what is not declared is taken to write, never guessed lower.
    pub fn tier(&self) -> SafetyTier {
        self.safety_tier.unwrap_or(SafetyTier::Write)
    }
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
