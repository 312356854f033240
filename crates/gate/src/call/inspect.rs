//! Guardians on the result. Every form of the secret was taken out before it came here.

use serde_json::{Map, Value};

use super::Admitted;
use super::settle::CallError;
use crate::gate::Gate;
use crate::ports::guardian::ResultVerdict;
use crate::ports::source::{Execution, FailureKind, SourceFailure};
use crate::refusal::{Code, Refusal};

/// The outcome of a call as the caller may see it.
pub(super) struct Inspected {
    pub(super) fingerprint: Option<String>,
    pub(super) http_status: Option<u16>,
    pub(super) result: Option<Value>,
    pub(super) truncated: bool,
    pub(super) error: Option<CallError>,
    /// Whether the service certainly saw nothing.
    pub(super) never_sent: bool,
}

impl Gate {
    /// Lets the guardian see the result before the caller does.
    pub(super) async fn inspect(&self, admitted: &Admitted, execution: Execution) -> Inspected {
        let fingerprint = execution.fingerprint;
        let (mut inspected, result) = match execution.outcome {
            Ok(answer) => {
                let inspected = Inspected {
                    fingerprint,
                    http_status: Some(answer.http_status),
                    result: None,
                    truncated: answer.truncated,
                    error: None,
                    never_sent: false,
                };
                (inspected, Some(answer.result))
            }
            Err(failure) => {
                let inspected = Inspected {
                    fingerprint,
                    http_status: failure.http_status,
                    result: None,
                    truncated: failure.truncated,
                    never_sent: !failure.sent,
                    error: Some(CallError::from(refusal_of(&failure))),
                };
                (inspected, failure.result)
            }
        };
        let Some(result) = result else { return inspected };
        let nothing = Map::new();
        let view = admitted.candidate().view(admitted.call(), admitted.parameters().as_object().unwrap_or(&nothing));
        match self.guardian.review_result(&view, &result).await {
            ResultVerdict::Allow => inspected.result = Some(result),
            ResultVerdict::Modify { result } => inspected.result = Some(result),
            ResultVerdict::Deny(refusal) => inspected.error = Some(CallError::from(refusal)),
        }
        inspected
    }
}

fn refusal_of(failure: &SourceFailure) -> Refusal {
    let code = match failure.kind {
        FailureKind::NotExecutable => Code::ToolNotExecutable,
        FailureKind::Blocked | FailureKind::Proxy => Code::ProxyError,
        FailureKind::Service => Code::ServiceError,
    };
    let refusal = Refusal::new(code, failure.reason.clone());
    let refusal = if failure.kind == FailureKind::Blocked { refusal.with("blocked", "ssrf") } else { refusal };
    let refusal = match failure.http_status {
        Some(status) => refusal.with("http_status", status),
        None => refusal,
    };
    if failure.timed_out { refusal.with("timed_out", true) } else { refusal }
}
