//! Guardians on the result. Every form of the secret was taken out before it came here.

use std::borrow::Cow;

use serde_json::Value;
use toolgate_model::guard::{Content, Hook, HookDecision, Verdict};

use super::admit::Target;
use super::settle::CallError;
use super::{Admitted, guard};
use crate::gate::Gate;
use crate::ports::guardian::{Hooked, Ruling};
use crate::ports::ledger::Freshness;
use crate::ports::source::{Execution, FailureKind, SourceFailure};
use crate::refusal::{Code, Refusal};

/// The outcome of a call as the caller may see it.
pub(super) struct Inspected {
    pub(super) http_status: Option<u16>,
    pub(super) result: Option<Value>,
    pub(super) truncated: bool,
    pub(super) error: Option<CallError>,
    /// Whether the service certainly saw nothing.
    pub(super) never_sent: bool,
    /// What guardians said about the result.
    pub(super) decision: Option<Box<HookDecision>>,
}

impl Gate {
    /// Lets the guardian see the result before the caller does.
    pub(super) async fn inspect(&self, admitted: &Admitted, execution: Execution) -> Inspected {
        let (mut inspected, result) = match execution {
            Ok(answer) => {
                let inspected = Inspected {
                    http_status: Some(answer.http_status),
                    result: None,
                    truncated: answer.truncated,
                    error: None,
                    never_sent: false,
                    decision: None,
                };
                (inspected, Some(answer.result))
            }
            Err(failure) => {
                let inspected = Inspected {
                    http_status: failure.http_status,
                    result: None,
                    truncated: failure.truncated,
                    never_sent: !failure.sent,
                    error: Some(CallError::from(refusal_of(&failure))),
                    decision: None,
                };
                (inspected, failure.result)
            }
        };
        let Some(result) = result else { return inspected };
        if matches!(admitted.target(), Some(Target::External | Target::Conformance { .. })) {
            // Nothing came back from anywhere: there is nothing to look at.
            inspected.result = Some(result);
            return inspected;
        }
        match self.rule_on_result(admitted, &result, inspected.error.is_some()).await {
            Ok(Ruling { verdict, decision, .. }) => {
                inspected.decision = decision;
                match verdict {
                    Verdict::Pass { asks, .. } if !asks.is_empty() => {
                        let reason =
                            "a rule asks for a person's approval of the result, and nobody can be asked any more";
                        inspected.error = Some(CallError::from(Refusal::new(Code::GuardianDenied, reason)));
                    }
                    Verdict::Pass { content: None, .. } => inspected.result = Some(result),
                    Verdict::Pass { content: Some(content), .. } => match *content {
                        Content::Result { value, .. } => inspected.result = Some(value.into_owned()),
                        _ => {
                            let reason = "a guardian made something else of the result of a call";
                            inspected.error = Some(CallError::from(Refusal::new(Code::Internal, reason)));
                        }
                    },
                    Verdict::Deny(denial) => inspected.error = Some(CallError::from(guard::refusal_of(denial))),
                }
            }
            // Nobody could be asked: what nobody has seen is not passed on.
            Err(refusal) => inspected.error = Some(CallError::from(refusal)),
        }
        inspected
    }

    async fn rule_on_result(&self, admitted: &Admitted, result: &Value, is_error: bool) -> Result<Ruling, Refusal> {
        let (call, candidate) = (admitted.call(), admitted.candidate());
        let content = Content::Result { value: Cow::Borrowed(result), is_error };
        let event = call.event(candidate, Hook::ToolCallResult, content);
        // Every form of the secret was taken out of the result before it came here.
        // Whoever has policies has the newest: nobody looks at a result again.
        let freshness = if admitted.is_judged_by_policies() { Freshness::Newest } else { Freshness::Recent };
        let hooked = call.hooked(candidate, &event, freshness, Some(&[]));
        self.guardian.judge(&Hooked { arguments: admitted.parameters().as_object(), ..hooked }).await
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
