//! Settlement: one atomic, durable step with the outcome, its cost and its event. Only then the response is sent.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_model::client_input::InputRequired;
use toolgate_model::constraint::Cost;
use toolgate_model::credential::ServiceName;
use toolgate_model::descriptor::SourceKind;
use toolgate_model::hook::ToolReturned;
use toolgate_model::id::{GrantId, InvocationId};
use toolgate_model::invocation::{CallCost, InvocationError, InvocationStatus};
use toolgate_model::service::ToolName;
use toolgate_model::store::StoreOperation;
use toolgate_model::time::Timestamp;

use super::detached::StoredOutcome;
use super::eligible::Candidate;
use super::inspect::Inspected;
use super::{Admitted, Pipeline, StageTimes, Wait};
use crate::ports::ledger::{Settle, StoredResult};
use crate::refusal::{Code, Refusal};

#[cfg(test)]
mod tests;

/// The result of an executed call; stored in this form if the call is detached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    pub invocation: InvocationId,
    pub grant: Option<GrantId>,
    pub service: ServiceName,
    pub tool: ToolName,
    /// What backs the tool.
    #[serde(default = "unrecorded_source")]
    pub source: SourceKind,
    pub outcome: CallOutcome,
    /// Whether this is the result of an earlier call with the same idempotency key.
    pub replayed: bool,
}

/// Of calls that were stored before it was.
fn unrecorded_source() -> SourceKind {
    SourceKind::Connector
}

/// The outcome of a call, stored for repeated requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallOutcome {
    /// Success or error.
    pub status: InvocationStatus,
    /// The service's response, redacted.
    pub result: Option<Value>,
    /// Whether the response exceeded the limit and was cut.
    pub truncated: bool,
    pub error: Option<CallError>,
    /// What the client is asked for, if the error is that it is; it can send that with the same call again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Box<InputRequired>>,
    /// In the form of the protocol.
    pub cost: CallCost,
    pub duration_ms: u64,
    pub timestamp: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallError {
    pub code: String,
    pub message: String,
    /// Details for programs.
    pub details: Map<String, Value>,
}

impl From<Refusal> for CallError {
    fn from(refusal: Refusal) -> Self {
        Self {
            code: refusal.code().as_str().to_owned(),
            message: refusal.reason().to_owned(),
            details: refusal.details().map(|(name, value)| (name.to_owned(), value.clone())).collect(),
        }
    }
}

impl CallResult {
    /// The result of an earlier call, for a repeated request.
    pub(super) fn replayed(candidate: &Candidate, stored: &StoredResult) -> Result<Self, Refusal> {
        let unreadable = |_| Refusal::new(Code::Internal, "the stored result of this call cannot be read");
        Ok(Self {
            invocation: stored.invocation,
            grant: stored.grant,
            service: candidate.tool.service.clone(),
            tool: candidate.tool.name.clone(),
            source: candidate.tool.source,
            outcome: serde_json::from_str(&stored.result).map_err(unreadable)?,
            replayed: true,
        })
    }
}

impl Pipeline {
    /// Records the outcome of the call; without that no result is returned.
    pub(super) async fn settle(
        &self,
        admitted: Admitted,
        inspected: Inspected,
        times: &mut StageTimes,
    ) -> Result<CallResult, Refusal> {
        let audit = self.audit(&admitted.call().caller);
        let duration_ms = admitted.call().milliseconds_until(audit.time);
        let grant = admitted.grant();
        let (service, tool) = (admitted.candidate().tool.service.clone(), admitted.tool().clone());
        let source = admitted.candidate().tool.source;
        let detached = admitted.call().detached;
        // Input is used once: the key of such a call says that it was, and its result is returned to nobody else.
        let is_continuation = admitted.call().input.as_ref().is_some_and(|input| input.origin.is_some());
        // Texts of stores are nowhere but in their stores: a repeated read reads again.
        let returns_texts = admitted.definition().store.is_some_and(StoreOperation::returns_texts);
        let accounts = admitted.accounts();
        let mut invocation = admitted.into_invocation();
        let reserved = invocation.cost;
        if let Some((cost, basis)) = inspected.charged {
            (invocation.cost, invocation.cost_basis) = (Some(cost), Some(basis));
        }
        if inspected.never_sent {
            // Nothing was made, so nothing was spent.
            (invocation.cost, invocation.cost_basis) = (reserved.and(Cost::from_micros(0)), None);
        }
        let status = if inspected.error.is_some() { InvocationStatus::Error } else { InvocationStatus::Success };
        let outcome = CallOutcome {
            status,
            result: inspected.result,
            truncated: inspected.truncated,
            error: inspected.error,
            input: inspected.input,
            cost: invocation.cost.into(),
            duration_ms,
            timestamp: audit.time,
        };
        invocation.status = status;
        invocation.error = outcome
            .error
            .as_ref()
            .map(|error| InvocationError { code: error.code.clone(), reason: error.message.clone() });
        invocation.http_status = inspected.http_status;
        invocation.duration_ms = Some(duration_ms);
        let id = invocation.id;
        let is_kept = invocation.idempotency_key.is_some() && !is_continuation && outcome.input.is_none();
        let is_kept = is_kept && !returns_texts;
        let stored_result = match is_kept && !inspected.never_sent {
            true => Some(serde_json::to_string(&outcome).map_err(|_| unwritable())?),
            false => None,
        };
        // If the result is not stored, its key is: the call is not made a second time.
        let stored_result = stored_result
            .filter(|text| self.stored_results.keep(&invocation.tenant, &invocation.agent, text.len(), audit.time));
        let returned = match &outcome.error {
            None => ToolReturned::ok(&invocation, duration_ms),
            Some(error) => {
                let (took, sentence) = match inspected.never_sent {
                    true => (None, "nothing was sent"),
                    false => (Some(duration_ms), "the call was made and did not succeed"),
                };
                ToolReturned::error(&invocation, &error.code, sentence.to_owned(), took)
            }
        };
        let caller_result = CallResult { invocation: id, grant, service, tool, source, outcome, replayed: false };
        let detached = match detached {
            true => Some(self.finish(&audit.tenant, id, &StoredOutcome::answered(&caller_result)).await),
            false => None,
        };
        let settle = Settle {
            audit,
            invocation,
            reserved,
            accounts,
            stored_result,
            never_sent: inspected.never_sent,
            returned,
            decision: inspected.decision,
            detached,
        };
        times.wait(Wait::SettlementCommit, &*self.clock, self.calls.settle(Arc::new(settle))).await?;
        Ok(caller_result)
    }
}

fn unwritable() -> Refusal {
    Refusal::new(Code::Internal, "the result cannot be serialized")
}
