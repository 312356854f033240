//! Services and their tools in the registry (RFC-0014 §8): what can be called, with which parameters, and how a call
//! becomes an HTTP request.

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
use crate::spending::StatedCost;
use crate::step::Step;
use crate::store::StoreOperation;
use crate::text::{Label, Line, identifiers};

pub use self::cost::Answered;
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

mod cost;
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

#[derive(Debug, Clone, PartialEq)]
pub struct ServiceDefinition {
    pub service: ServiceName,
    pub version: ServiceVersion,
    /// For people and agents.
    pub description: Option<String>,
    /// A connector or a host extension.
    pub source: SourceKind,
    /// The base URL, unless the credential has one.
    pub base_url: Option<BaseUrl>,
    pub tools: BTreeMap<ToolName, ToolDefinition>,
}

/// A tool. Undeclared properties stay `None`, so that they can be distinguished.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    pub title: Option<Line>,
    /// For people and agents.
    pub description: Option<String>,
    /// The scope that a grant must have.
    pub scope: Scope,
    /// The declared tier; [`ToolDefinition::tier`] is the effective one.
    pub safety_tier: Option<SafetyTier>,
    /// The scopes that the principal itself must hold, all of them.
    pub required_scopes: Option<BTreeSet<RequiredScope>>,
    /// Whether a call needs approval.
    pub approval: Option<ApprovalNeed>,
    pub approval_rule: Option<ApprovalRule>,
    /// How it accesses the network.
    pub egress: Option<Egress>,
    /// The effect of a repeated call.
    pub replay_policy: Option<ReplayPolicy>,
    /// The approximate cost of a call.
    pub cost_hint: Option<Hint>,
    /// The approximate duration of a call.
    pub latency_hint: Option<Hint>,
    /// How often one principal may call it.
    pub rate_limit: Option<RateLimit>,
    /// The JSON Schema (2020-12) of the parameters, an object at the top level. Without one every value is valid.
    pub parameters: Option<Value>,
    /// The JSON Schema (2020-12) of the result. Informative, not enforced.
    pub returns: Option<Value>,
    /// Whether a repeated call has no further effect.
    pub idempotent: bool,
    /// The estimated cost of one call.
    pub estimated_cost: Option<Cost>,
    /// Where the result states what the call has cost.
    pub stated_cost: Option<StatedCost>,
    /// The HTTP request of a call.
    pub http: Option<HttpMapping>,
    /// How a call becomes a request to a mounted MCP server.
    ///
    /// INVARIANT: set for the tools of services whose source is [`SourceKind::Mcp`], and for no others.
    pub mcp: Option<McpMapping>,
    /// What it does in the store that its service is.
    pub store: Option<StoreOperation>,
    /// What its calls are besides calls of a tool, for guardians.
    pub step: Option<Step>,
    /// What the log keeps of the parameters.
    pub logging: LoggingRule,
    /// Used by policies and guardians.
    pub labels: BTreeSet<Label>,
    /// The timeout of a call; by default that of the credential.
    pub timeout: Option<Duration>,
    /// Whether a call that must wait for an approver is detached: it does not wait on its connection.
    pub detach: bool,
}

impl ToolDefinition {
    /// What the log keeps of these parameters.
    pub fn summary(&self, parameters: &Map<String, Value>) -> Map<String, Value> {
        self.logging.summary_of(parameters, self.parameters.as_ref().unwrap_or(&Value::Null))
    }

    /// Whether its results come from a search outside the gate: anybody may have written what was found.
    pub fn taints(&self) -> bool {
        self.store.is_none() && self.step.as_ref().is_some_and(Step::retrieves)
    }

    /// A tool of which only the required scope is known.
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
            stated_cost: None,
            http: None,
            mcp: None,
            store: None,
            step: None,
            logging: LoggingRule::default(),
            labels: BTreeSet::new(),
            timeout: None,
            detach: false,
        }
    }

    /// The effective tier: write if undeclared, never guessed lower.
    pub fn tier(&self) -> SafetyTier {
        self.safety_tier.unwrap_or(SafetyTier::Write)
    }
}

/// An invalid definition.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{path}` {reason}")]
pub struct DefinitionError {
    /// The path from the top of the definition.
    pub path: String,
    /// What is wrong and what to write instead.
    pub reason: String,
}
