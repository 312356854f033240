//! What the catalog says of a tool (RFC 0078 §C): where it comes from, what it takes, what it needs and how dangerous it
//! is. Closed, free of secrets, and made only in ways that keep the rule on exec.

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
/// INVARIANT: a tool of tier exec comes from a host extension, and the id's scope is that of the source.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct ToolDescriptor(DescriptorFields);

/// The members of a descriptor, in the order in which they are written. What is `None` is left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DescriptorFields {
    /// Its id.
    pub tool_id: ToolId,
    /// Where it comes from.
    pub source: SourceKind,
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Line>,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What the arguments must look like: JSON Schema 2020-12.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// What the result looks like: JSON Schema 2020-12.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What the caller must hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<ToolAuth>,
    /// How it reaches the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress: Option<Egress>,
    /// Whether a person must approve a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalNeed>,
    /// What happens when a call is made again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_policy: Option<ReplayPolicy>,
    /// How dangerous it is.
    pub safety_tier: SafetyTier,
    /// What a call costs, roughly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_hint: Option<Hint>,
    /// How long a call takes, roughly.
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
    /// Whether a credential is needed. Which one is never said.
    pub credential_ref: bool,
}

/// A descriptor that must not exist.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DescriptorError {
    /// Commands of the caller's choice, vouched for by the protocol.
    #[error("`{tool}` is of tier exec, which only a tool of source host-extension may be; it has source {from}")]
    Exec {
        /// The tool.
        tool: ToolId,
        /// Where it comes from.
        from: SourceKind,
    },
    /// An id that belongs to another source.
    #[error("`{tool}` cannot be the id of a tool of source {from}")]
    Id {
        /// The id.
        tool: ToolId,
        /// Where it comes from.
        from: SourceKind,
    },
    /// A service that is none of the kinds that definitions describe.
    #[error("a service definition describes tools of source connector, host-extension or mcp, not {from}")]
    Service {
        /// What was asked for.
        from: SourceKind,
    },
    /// Arguments and results have schemas, which are objects.
    #[error("the {member} of `{tool}` must be an object")]
    Schema {
        /// The tool.
        tool: ToolId,
        /// Which of the two schemas.
        member: &'static str,
    },
}

impl ToolDescriptor {
    /// A descriptor with these members.
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

    /// The descriptor of a tool that a service definition has. What the definition does not declare is not guessed to be
    /// harmless: the tier is write then, and the egress goes through the gate, as every call to a service does.
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

    /// Its members.
    pub fn fields(&self) -> &DescriptorFields {
        &self.0
    }

    /// What a model needs to call it, and no more (RFC 0112).
    pub fn compact(&self) -> CompactDescriptor {
        CompactDescriptor::of(&self.0)
    }

    /// What every descriptor looks like: a JSON Schema, closed, with the rule on exec.
    pub fn schema() -> Value {
        schema::of_descriptor()
    }

    /// What every compact descriptor looks like.
    pub fn compact_schema() -> Value {
        schema::of_compact_descriptor()
    }
}
