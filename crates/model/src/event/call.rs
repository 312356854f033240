//! Tool calls. `agent.toolCalled` is [`ToolCalled`](crate::hook::ToolCalled).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{Event, EventPayload};
use crate::credential::ServiceName;
use crate::descriptor::ToolId;
use crate::hook::{NO_AGENT, ReturnError, ReturnStatus, ReturnedType, ToolReturned, agent_label};
use crate::id::{GrantId, InvocationId};
use crate::invocation::{CallCost, InvocationStatus};
use crate::merkle::sha256;
use crate::principal::PrincipalId;
use crate::spending::CostBasis;
use crate::text::SharedText;
use crate::time::Timestamp;

/// RFC 0049: a principal was refused something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuthorizationDecided {
    pub action: Cow<'static, str>,
    pub allowed: bool,
    pub principal: PrincipalId,
    /// A stable code.
    pub reason: String,
    pub resource: String,
}

/// A call was accepted that outlives its connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallDetached {
    /// SHA-256 of the canonical parameters.
    pub arguments_hash: String,
    pub invocation_id: InvocationId,
    /// The caller's name of it.
    pub tool: String,
}

/// Refused calls of one principal beyond those that are recorded individually.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDenialsCounted {
    /// The number of refusals by code.
    pub codes: BTreeMap<String, u64>,
    pub count: u64,
    pub first_at: Timestamp,
    pub last_at: Timestamp,
    pub principal_id: PrincipalId,
}

impl ToolDenialsCounted {
    pub fn new(
        principal_id: PrincipalId,
        codes: BTreeMap<String, u64>,
        first_at: Timestamp,
        last_at: Timestamp,
    ) -> Self {
        let count = codes.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        Self { codes, count, first_at, last_at, principal_id }
    }
}

/// RFC-0014.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDenied {
    /// SHA-256 of the canonical parameters.
    pub arguments_hash: SharedText,
    pub error_code: String,
    /// The grant that would have been used, if one was chosen.
    pub grant_id: Option<GrantId>,
    pub invocation_id: InvocationId,
    pub reason: String,
    /// The same in the terms of RFC 0064. Absent in the oldest ledgers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned: Option<ToolReturned>,
    /// `None` if the tool was not found.
    pub service: Option<ServiceName>,
    /// The stage of the pipeline.
    pub stage: Cow<'static, str>,
    /// The tool, or the name that the caller sent.
    pub tool: SharedText,
    /// As in [`ToolInvoked`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
}

/// RFC 0064: an allowlist names a tool that does not exist, so that it can never be called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolForbidden {
    pub agent_id: String,
    pub call_id: String,
    pub status: ReturnStatus,
    pub tool_name: String,
}

impl ToolForbidden {
    /// In the allowlist of this agent; `None` if it is not an agent's.
    pub fn at_load(agent: Option<&PrincipalId>, tool: &ToolId) -> Self {
        Self {
            agent_id: agent.map_or(NO_AGENT.into(), agent_label).to_string(),
            // The same reference always has the same id.
            call_id: format!("forbidden:{}", sha256(tool.as_str().as_bytes()).to_hex()),
            status: ReturnStatus::Forbidden,
            tool_name: tool.as_str().to_owned(),
        }
    }
}

/// RFC-0014: an admitted call, including one with an unknown outcome (`unknown`) and one that its caller reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolInvoked {
    /// SHA-256 of the canonical parameters.
    pub arguments_hash: SharedText,
    pub cost: CallCost,
    /// Present if the tool states what its calls cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_basis: Option<CostBasis>,
    pub duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    pub grant_id: Option<GrantId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    pub invocation_id: InvocationId,
    /// The parameters, as far as the tool's logging rule allows.
    #[serde(serialize_with = "write_shared", deserialize_with = "read_shared")]
    pub parameters_summary: Arc<Map<String, Value>>,
    /// Whether the caller reported it, instead of calling through the gate.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reported: bool,
    /// SHA-256 of method, URL and canonical parameters of the request that was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_fingerprint: Option<SharedText>,
    /// The same in the terms of RFC 0064, if the gate executed the call. Absent in the oldest ledgers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned: Option<ToolReturned>,
    pub service: Option<ServiceName>,
    pub status: InvocationStatus,
    pub tool: SharedText,
    /// The distributed trace of the call, if its caller or the gate traces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
}

impl Event {
    /// The return of a call in the terms of RFC 0064: as recorded, or derived from the record of a call that is older
    /// or reported by its caller. `None` for every other event.
    pub fn returned(&self) -> Option<Cow<'_, ToolReturned>> {
        let (recorded, service, tool) = match &self.payload {
            EventPayload::ToolDenied(denied) => (&denied.returned, &denied.service, &denied.tool),
            EventPayload::ToolInvoked(invoked) => (&invoked.returned, &invoked.service, &invoked.tool),
            _ => return None,
        };
        if let Some(recorded) = recorded {
            return Some(Cow::Borrowed(recorded));
        }
        let (call_id, status, code, duration_ms) = match &self.payload {
            EventPayload::ToolInvoked(invoked) => {
                let ok = invoked.status == InvocationStatus::Success;
                let status = if ok { ReturnStatus::Ok } else { ReturnStatus::Error };
                (invoked.invocation_id, status, invoked.error_code.as_deref(), invoked.duration_ms)
            }
            EventPayload::ToolDenied(denied) => {
                (denied.invocation_id, ReturnStatus::Error, Some(denied.error_code.as_str()), None)
            }
            _ => return None,
        };
        let error = || ReturnError {
            code: code.unwrap_or("OUTCOME_UNKNOWN").to_owned(),
            message: "the call did not succeed".to_owned(),
        };
        Some(Cow::Owned(ToolReturned {
            agent_id: self.agent.as_ref().map_or(NO_AGENT.into(), agent_label),
            call_id,
            causation_id: None,
            duration_ms,
            error: (status == ReturnStatus::Error).then(error),
            status,
            tool_name: service.as_ref().map_or_else(|| tool.clone(), |service| service.with_tool(tool).into()),
            r#type: ReturnedType,
        }))
    }
}

fn write_shared<S: Serializer>(members: &Arc<Map<String, Value>>, serializer: S) -> Result<S::Ok, S::Error> {
    members.as_ref().serialize(serializer)
}

fn read_shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Map<String, Value>>, D::Error> {
    Map::deserialize(deserializer).map(Arc::new)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}
