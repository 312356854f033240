//! The description of a tool in the catalog (RFC 0078 §C): its source, its arguments, its requirements and its safety
//! tier. Closed, free of secrets, and constructed only in ways that keep the rule on exec.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use crate::credential::ServiceName;
use crate::principal_scope::RequiredScope;
use crate::service::{ToolDefinition, ToolName};
use crate::text::Line;

pub use self::compact::CompactDescriptor;
pub use self::tool_id::{ToolId, ToolIdError};
pub use self::vocabulary::{ApprovalNeed, Egress, Hint, ReplayPolicy, SafetyTier, SourceKind};

mod compact;
mod schema;
mod tool_id;
mod vocabulary;

#[cfg(test)]
mod tests;

/// A tool as the catalog describes it.
///
/// INVARIANT: a tool of tier exec comes from a host extension, and the scope of the id is that of the source.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct ToolDescriptor(DescriptorFields);

/// The members of a descriptor, in the order in which they are written. `None` is omitted.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DescriptorFields {
    pub tool_id: ToolId,
    pub source: SourceKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Line>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema (2020-12) of the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// The JSON Schema (2020-12) of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What the caller must hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<ToolAuth>,
    /// How it accesses the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress: Option<Egress>,
    /// Whether a call needs approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalNeed>,
    /// The effect of a repeated call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_policy: Option<ReplayPolicy>,
    pub safety_tier: SafetyTier,
    /// The approximate cost of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_hint: Option<Hint>,
    /// The approximate duration of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_hint: Option<Hint>,
}

/// What a caller must hold to use a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAuth {
    /// All of these scopes.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub scopes: BTreeSet<RequiredScope>,
    /// Whether a credential is needed. Which one is never shown.
    pub credential_ref: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DescriptorError {
    #[error("`{tool}` has tier exec, which requires source host-extension; it has source {from}")]
    Exec { tool: ToolId, from: SourceKind },
    #[error("`{tool}` is not a valid tool id for source {from}")]
    Id { tool: ToolId, from: SourceKind },
    #[error("a service definition must have source connector, host-extension or mcp, not {from}")]
    Service { from: SourceKind },
    #[error("the {member} of `{tool}` must be an object")]
    Schema { tool: ToolId, member: &'static str },
}

impl ToolDescriptor {
    pub fn new(fields: DescriptorFields) -> Result<Self, DescriptorError> {
        let (tool, from) = (&fields.tool_id, fields.source);
        if fields.safety_tier == SafetyTier::Exec && from != SourceKind::HostExtension {
            return Err(DescriptorError::Exec { tool: tool.clone(), from });
        }
        if !tool.fits(from) {
            return Err(DescriptorError::Id { tool: tool.clone(), from });
        }
        for (member, schema) in [("inputSchema", &fields.input_schema), ("outputSchema", &fields.output_schema)] {
            if schema.as_ref().is_some_and(|schema| !schema.is_object()) {
                return Err(DescriptorError::Schema { tool: tool.clone(), member });
            }
        }
        Ok(Self(fields))
    }

    /// The descriptor of a tool in a service definition. Undeclared properties are not assumed to be harmless: the tier
    /// defaults to write, and the egress to the gate, as for every call to a service.
    pub fn of_connector(
        service: &ServiceName,
        source: SourceKind,
        name: &ToolName,
        tool: &ToolDefinition,
    ) -> Result<Self, DescriptorError> {
        let tool_id = match source {
            SourceKind::Connector | SourceKind::HostExtension | SourceKind::Mcp => {
                ToolId::of_service(source, service, name)
            }
            _ => None,
        };
        Self::new(DescriptorFields {
            tool_id: tool_id.ok_or(DescriptorError::Service { from: source })?,
            source,
            title: tool.title.clone(),
            description: tool.description.clone(),
            input_schema: tool.parameters.clone(),
            output_schema: tool.returns.clone(),
            auth: Some(ToolAuth { scopes: tool.required_scopes.clone().unwrap_or_default(), credential_ref: true }),
            egress: Some(tool.egress.unwrap_or(Egress::HostMediated)),
            approval: tool.approval,
            replay_policy: tool.replay_policy.or(tool.idempotent.then_some(ReplayPolicy::Idempotent)),
            safety_tier: tool.tier(),
            cost_hint: tool.cost_hint,
            latency_hint: tool.latency_hint,
        })
    }

    pub fn fields(&self) -> &DescriptorFields {
        &self.0
    }

    /// What a model needs to call it, and no more (RFC 0112).
    pub fn compact(&self) -> CompactDescriptor {
        CompactDescriptor::of(&self.0)
    }

    /// The JSON Schema of descriptors: closed, with the rule on exec.
    pub fn schema() -> Value {
        schema::of_descriptor()
    }

    /// The JSON Schema of compact descriptors.
    pub fn compact_schema() -> Value {
        schema::of_compact_descriptor()
    }
}
