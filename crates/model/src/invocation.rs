//! Invocations: what stays of a call, whether it was carried out, refused or cut off.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::constraint::Cost;
use crate::context::GrantContext;
use crate::credential::ServiceName;
use crate::hook::CallTrace;
use crate::id::{GrantId, InvocationId};
use crate::principal::{PrincipalId, TenantId};
use crate::service::ServiceVersion;
use crate::text::identifiers;
use crate::time::Timestamp;

identifiers! {
    /// What a caller names a call by, so that sending it again does not carry it out again.
    IdempotencyKey;
}

/// Where a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvocationStatus {
    /// Refused before anything was sent.
    Denied,
    /// Admitted, and the service or the way to it failed.
    Error,
    /// Admitted and not settled yet.
    Running,
    /// Carried out.
    Success,
    /// Admitted, and cut off before it was settled: the service may have carried it out or not.
    Unknown,
}

impl InvocationStatus {
    pub(crate) const ALL: [Self; 5] = [Self::Denied, Self::Error, Self::Running, Self::Success, Self::Unknown];

    /// As it is stored, shown and filtered by.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Error => "error",
            Self::Running => "running",
            Self::Success => "success",
            Self::Unknown => "unknown",
        }
    }

    /// Reads [`InvocationStatus::as_str`] back.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// Why a call did not succeed, as it is kept. Never a secret, never what the service answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvocationError {
    /// The stable code.
    pub code: String,
    /// The sentence.
    pub reason: String,
}

/// An invocation as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    /// Its id.
    pub id: InvocationId,
    /// Whose it is.
    pub tenant: TenantId,
    /// The grant that it used, where it came so far as to have one.
    pub grant: Option<GrantId>,
    /// For whom it was made.
    pub agent: PrincipalId,
    /// Who made it.
    pub actor: PrincipalId,
    /// The service, where the tool was found; otherwise nothing is known of it.
    pub service: Option<ServiceName>,
    /// The tool: its name in the service, or what the caller wrote where it was not found.
    pub tool: String,
    /// The version of the service's definition, where the tool is registered.
    pub version: Option<ServiceVersion>,
    /// Where it stands.
    pub status: InvocationStatus,
    /// Why it did not succeed.
    pub error: Option<InvocationError>,
    /// The parameters, as far as the tool's logging rule allows.
    pub parameters: Map<String, Value>,
    /// SHA-256 of the canonical parameters.
    pub arguments_hash: String,
    /// SHA-256 of method, URL and canonical parameters of what is sent, where that is a request.
    pub fingerprint: Option<String>,
    /// The status that the service answered with.
    pub http_status: Option<u16>,
    /// The estimate of what it cost.
    pub cost: Option<Cost>,
    /// How long it took, from its arrival at the gate.
    pub duration_ms: Option<u64>,
    /// The caller's name for it.
    pub idempotency_key: Option<IdempotencyKey>,
    /// The intent, plan and task it belongs to.
    pub context: GrantContext,
    /// What ties its events together.
    pub trace: CallTrace,
    /// Whether the caller reported it, instead of having it made by the gate.
    pub reported: bool,
    /// When it arrived.
    pub created_at: Timestamp,
}

/// What a call cost, as the protocol shows it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CallCost {
    pub api_units: u64,
    /// An estimate; `None` where the tool declares none.
    pub estimated_cost_usd: Option<f64>,
}

impl From<Option<Cost>> for CallCost {
    fn from(cost: Option<Cost>) -> Self {
        Self { api_units: 1, estimated_cost_usd: cost.map(Cost::dollars) }
    }
}

/// The same as a value.
pub fn cost_shape(cost: Option<Cost>) -> Value {
    json!(CallCost::from(cost))
}
