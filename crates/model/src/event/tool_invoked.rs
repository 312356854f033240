//! The event of a call that was admitted.

use serde_json::{Map, Value};

use crate::canonical::ObjectWriter;
use crate::constraint::Cost;
use crate::credential::ServiceName;
use crate::hook::ToolReturned;
use crate::id::{GrantId, InvocationId};
use crate::invocation::{InvocationStatus, cost_shape};

/// A call that was admitted, as its event tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolInvoked {
    /// The record of the call.
    pub invocation: InvocationId,
    /// The grant that it used.
    pub grant: Option<GrantId>,
    /// The service.
    pub service: Option<ServiceName>,
    /// The tool.
    pub tool: String,
    /// The parameters, as far as the tool's logging rule allows.
    pub parameters_summary: Map<String, Value>,
    /// SHA-256 of the canonical parameters.
    pub arguments_hash: String,
    /// How it ended.
    pub status: InvocationStatus,
    /// Why it did not succeed.
    pub error_code: Option<String>,
    /// The status that the service answered with.
    pub http_status: Option<u16>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// The estimate of what it cost.
    pub cost: Option<Cost>,
    /// SHA-256 of method, URL and canonical parameters of what was sent.
    pub request_fingerprint: Option<String>,
    /// Whether the caller reported it, instead of having it made by the gate.
    pub reported: bool,
    /// The same in the words of RFC 0064, where the gate made the call.
    pub returned: Option<ToolReturned>,
}

impl ToolInvoked {
    pub(super) fn write(&self, data: &mut ObjectWriter<'_>) {
        data.text("arguments_hash", &self.arguments_hash);
        data.value("cost", &cost_shape(self.cost));
        data.value("duration_ms", &Value::from(self.duration_ms));
        if let Some(code) = &self.error_code {
            data.text("error_code", code);
        }
        match self.grant {
            Some(grant) => data.shown("grant_id", grant),
            None => data.value("grant_id", &Value::Null),
        }
        if let Some(status) = self.http_status {
            data.value("http_status", &Value::from(status));
        }
        data.shown("invocation_id", self.invocation);
        data.members("parameters_summary", &self.parameters_summary);
        if self.reported {
            data.value("reported", &Value::Bool(true));
        }
        if let Some(fingerprint) = &self.request_fingerprint {
            data.text("request_fingerprint", fingerprint);
        }
        if let Some(returned) = &self.returned {
            data.object("returned", |data| returned.write(data));
        }
        match &self.service {
            Some(service) => data.text("service", service.as_str()),
            None => data.value("service", &Value::Null),
        }
        data.text("status", self.status.as_str());
        data.text("tool", &self.tool);
    }
}
