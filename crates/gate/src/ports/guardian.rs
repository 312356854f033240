//! The guardian: gives a verdict on a request before it runs and on a result before it is used.

use async_trait::async_trait;
use serde_json::{Map, Value};
use toolgate_model::credential::ServiceName;
use toolgate_model::grant::Authority;
use toolgate_model::id::InvocationId;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::service::{ToolDefinition, ToolName};

use crate::refusal::Refusal;

/// A call as a guardian sees it: everything but secrets and keys.
pub struct CallView<'a> {
    /// Its id.
    pub invocation: InvocationId,
    /// The tenant.
    pub tenant: &'a TenantId,
    /// For whom it is made.
    pub agent: &'a PrincipalId,
    /// Who makes it.
    pub actor: &'a PrincipalId,
    /// The service.
    pub service: &'a ServiceName,
    /// The tool.
    pub tool: &'a ToolName,
    /// What is known of the tool.
    pub definition: &'a ToolDefinition,
    /// What the grant that it would use can do; `None` for a tool that needs no grant.
    pub authority: Option<&'a Authority>,
    /// The parameters.
    pub parameters: &'a Map<String, Value>,
}

/// What a guardian says about a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Let it pass.
    Allow,
    /// A person must say yes, for this reason.
    Ask {
        /// The reason.
        reason: String,
    },
    /// It must not run.
    Deny(Refusal),
    /// It may run with these parameters instead; they are checked like any others.
    Modify {
        /// The parameters.
        parameters: Map<String, Value>,
    },
}

/// What a guardian says about a result.
#[derive(Debug, Clone, PartialEq)]
pub enum ResultVerdict {
    /// Let it pass.
    Allow,
    /// The caller must not see it.
    Deny(Refusal),
    /// The caller sees this instead.
    Modify {
        /// The result.
        result: Value,
    },
}

/// Gives verdicts.
#[async_trait]
pub trait Guardian: Send + Sync {
    /// On a request.
    async fn review_request(&self, call: &CallView<'_>) -> Verdict;
    /// On a result.
    async fn review_result(&self, call: &CallView<'_>, result: &Value) -> ResultVerdict;
}

/// The guardian of a gate that has none.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAll;

#[async_trait]
impl Guardian for AllowAll {
    async fn review_request(&self, _call: &CallView<'_>) -> Verdict {
        Verdict::Allow
    }

    async fn review_result(&self, _call: &CallView<'_>, _result: &Value) -> ResultVerdict {
        ResultVerdict::Allow
    }
}
