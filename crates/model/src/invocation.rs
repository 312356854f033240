//! Invocations: the records of calls, whether executed, refused or interrupted.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::constraint::Cost;
use crate::context::GrantContext;
use crate::credential::ServiceName;
use crate::hook::CallTrace;
use crate::id::{GrantId, InvocationId};
use crate::principal::{PrincipalId, TenantId};
use crate::service::ServiceVersion;
use crate::spending::CostBasis;
use crate::text::{SharedText, identifiers};
use crate::time::Timestamp;

identifiers! {
    /// The caller's key of a call, so that sending it again does not execute it again.
    IdempotencyKey;
}

/// The state of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvocationStatus {
    /// Refused before anything was sent.
    Denied,
    /// Admitted, and the service or the connection failed.
    Error,
    /// Admitted and not settled yet.
    Running,
    Success,
    /// Admitted, and interrupted before it was settled: the service may have executed it or not.
    Unknown,
}

impl InvocationStatus {
    pub(crate) const ALL: [Self; 5] = [Self::Denied, Self::Error, Self::Running, Self::Success, Self::Unknown];

    /// The form that is stored, shown and filtered by.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Error => "error",
            Self::Running => "running",
            Self::Success => "success",
            Self::Unknown => "unknown",
        }
    }

    /// Parses [`InvocationStatus::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// Why a call did not succeed, as recorded. Never a secret, never the response of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvocationError {
    /// The stable code.
    pub code: String,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    pub id: InvocationId,
    pub tenant: TenantId,
    /// The grant that it used, if one was chosen.
    pub grant: Option<GrantId>,
    /// The agent that it was made for.
    pub agent: PrincipalId,
    /// The principal that made it.
    pub actor: PrincipalId,
    /// `None` if the tool was not found.
    pub service: Option<ServiceName>,
    /// Its name in the service, or the name that the caller sent if it was not found.
    pub tool: SharedText,
    /// The version of the service's definition, if the tool is registered.
    pub version: Option<ServiceVersion>,
    pub status: InvocationStatus,
    pub error: Option<InvocationError>,
    /// The parameters, as far as the tool's logging rule allows.
    pub parameters: Arc<Map<String, Value>>,
    /// SHA-256 of the canonical parameters.
    pub arguments_hash: SharedText,
    /// SHA-256 of method, URL and canonical parameters of the request, if there is one.
    pub fingerprint: Option<SharedText>,
    /// The status of the service's response.
    pub http_status: Option<u16>,
    /// What it costs: while it runs, the most that it can cost.
    pub cost: Option<Cost>,
    /// What the cost is based on, if its tool states one.
    pub cost_basis: Option<CostBasis>,
    /// The duration since its arrival at the gate.
    pub duration_ms: Option<u64>,
    pub idempotency_key: Option<IdempotencyKey>,
    pub context: GrantContext,
    /// What links its events.
    pub trace: CallTrace,
    /// Whether the caller reported it, instead of calling through the gate.
    pub reported: bool,
    /// When it arrived.
    pub created_at: Timestamp,
}

/// The cost of a call in the form of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CallCost {
    pub api_units: u64,
    /// An estimate; `None` if the tool declares none.
    pub estimated_cost_usd: Option<f64>,
}

impl From<Option<Cost>> for CallCost {
    fn from(cost: Option<Cost>) -> Self {
        Self { api_units: 1, estimated_cost_usd: cost.map(Cost::dollars) }
    }
}
