//! Guardians on the result. Every form of the secret has been redacted before this stage.

use std::borrow::Cow;

use serde_json::Value;
use toolgate_model::client_input::{self, INPUT_REQUESTS, InputOrigin, InputRequired};
use toolgate_model::constraint::Cost;
use toolgate_model::guard::{Content, Hook, HookDecision, Verdict};
use toolgate_model::invocation::InvocationStatus;
use toolgate_model::service::Answered;
use toolgate_model::spending::CostBasis;

use super::Pipeline;
use super::eligible::Candidate;
use super::execute::Executed;
use super::settle::{CallError, CallResult};
use super::stream::Streamed;
use super::{Admitted, Call, guard};
use crate::ports::guardian::{Hooked, Ruling};
use crate::ports::ledger::{Freshness, RecordDecision, StoredResult};
use crate::ports::source::{Execution, FailureKind, InputAsked, SourceFailure};
use crate::refusal::{Code, Refusal};

#[cfg(test)]
mod tests;

/// The call whose result is inspected.
#[derive(Clone, Copy)]
struct Seen<'a> {
    call: &'a Call,
    candidate: &'a Candidate,
    parameters: &'a Value,
}

/// The outcome of a call as the caller may see it.
pub(super) struct Inspected {
    pub(super) http_status: Option<u16>,
    pub(super) result: Option<Value>,
    pub(super) truncated: bool,
    pub(super) error: Option<CallError>,
    /// What the service asks the client of the call for.
    pub(super) input: Option<Box<InputRequired>>,
    /// Whether the service certainly received nothing.
    pub(super) never_sent: bool,
    /// The guardians' decision about the result.
    pub(super) decision: Option<Box<HookDecision>>,
    /// What the call costs, if its service states it.
    pub(super) charged: Option<(Cost, CostBasis)>,
}

impl Pipeline {
    /// Lets the guardian inspect the result before the caller gets it.
    pub(super) async fn inspect(&self, admitted: &Admitted, executed: Executed) -> Inspected {
        let Executed { execution, streamed } = executed;
        match streamed {
            Some(streamed) => inspected_stream(admitted, execution, streamed),
            None => self.inspect_execution(admitted, execution).await,
        }
    }

    async fn inspect_execution(&self, admitted: &Admitted, execution: Execution) -> Inspected {
        let (mut inspected, result, asked) = match execution {
            Ok(answer) => {
                let inspected = Inspected {
                    http_status: Some(answer.http_status),
                    result: None,
                    truncated: answer.truncated,
                    error: None,
                    input: None,
                    never_sent: false,
                    decision: None,
                    charged: charged(admitted, Answered::Result(Some(&answer.result))),
                };
                (inspected, Some(answer.result), None)
            }
            Err(failure) => {
                let inspected = Inspected {
                    http_status: failure.http_status,
                    result: None,
                    truncated: failure.truncated,
                    never_sent: !failure.sent,
                    error: Some(CallError::from(refusal_of(&failure))),
                    input: None,
                    decision: None,
                    charged: charged(admitted, answered(&failure)),
                };
                (inspected, failure.result, failure.input)
            }
        };
        let Some(result) = result else { return inspected };
        if !admitted.action().has_result() {
            inspected.result = Some(result);
            return inspected;
        }
        let mut result = result;
        if inspected.error.is_none()
            && let Err(refusal) = self.take_tasks(admitted, &mut result).await
        {
            inspected.error = Some(CallError::from(refusal));
            return inspected;
        }
        // With policies, the newest count: a result is not inspected again.
        let freshness = if admitted.is_judged_by_policies() { Freshness::Newest } else { Freshness::Recent };
        let seen = Seen { call: admitted.call(), candidate: admitted.candidate(), parameters: admitted.parameters() };
        let (message, of_message) = self.inspect_message(seen.call, seen.candidate, &result, freshness).await;
        if let Err(refusal) = message {
            inspected.error = Some(CallError::from(refusal));
            inspected.decision = of_message;
            return inspected;
        }
        let (passed, decision) = self.inspect_result(&seen, result, inspected.error.is_some(), freshness).await;
        inspected.decision = decision.or(of_message);
        let passed = match passed {
            Ok(result) => self.inspect_step(seen.call, seen.candidate, seen.parameters, result, freshness).await,
            Err(refusal) => Err(refusal),
        };
        let passed = passed.and_then(|result| match asked {
            Some(asked) => {
                input_required(admitted, *asked, &result).map(|input| inspected.input = Some(Box::new(input)))
            }
            None => {
                inspected.result = Some(result);
                Ok(())
            }
        });
        if let Err(refusal) = passed {
            inspected.error = Some(CallError::from(refusal));
        }
        inspected
    }

    /// The whole of a streamed result, before any of it is passed on.
    pub(super) async fn inspect_streamed(&self, admitted: &Admitted, result: Value) -> Result<Value, Refusal> {
        let seen = Seen { call: admitted.call(), candidate: admitted.candidate(), parameters: admitted.parameters() };
        let (passed, decision) = self.inspect_result(&seen, result, false, Freshness::Newest).await;
        self.record_decision(seen.call, decision).await?;
        passed
    }

    /// The stored result of an earlier call, as the guardians allow it now.
    pub(super) async fn replay(
        &self,
        call: &Call,
        candidate: &Candidate,
        parameters: &Value,
        stored: &StoredResult,
    ) -> Result<CallResult, Refusal> {
        let mut answer = CallResult::replayed(candidate, stored)?;
        let Some(result) = answer.outcome.result.take() else { return Ok(answer) };
        let seen = Seen { call, candidate, parameters };
        let is_error = answer.outcome.error.is_some();
        let (passed, decision) = self.inspect_result(&seen, result, is_error, Freshness::Newest).await;
        if let Some(decision) = decision {
            let (audit, agent) = (self.audit(&call.caller), call.agent.clone());
            let decision = Box::new(HookDecision { invocation: Some(stored.invocation), ..*decision });
            self.calls.record_decision(RecordDecision { audit, agent, run: call.run.clone(), decision }).await?;
        }
        let passed = match passed {
            Ok(result) => self.inspect_step(call, candidate, parameters, result, Freshness::Newest).await,
            Err(refusal) => Err(refusal),
        };
        match passed {
            Ok(result) => answer.outcome.result = Some(result),
            Err(refusal) => {
                answer.outcome.status = InvocationStatus::Error;
                answer.outcome.error = Some(CallError::from(refusal));
            }
        }
        Ok(answer)
    }

    /// The result as modified by guardians, or why it is withheld.
    async fn inspect_result(
        &self,
        seen: &Seen<'_>,
        result: Value,
        is_error: bool,
        freshness: Freshness,
    ) -> (Result<Value, Refusal>, Option<Box<HookDecision>>) {
        let Seen { call, candidate, parameters } = *seen;
        let subject = call.subject(candidate, Hook::ToolCallResult);
        match self.guardian.unconcerned(call.caller.tenant(), &subject, freshness).await {
            Ok(Some(_)) => return (Ok(result), None),
            Ok(None) => {}
            // No guardian could be consulted: a result that none has inspected is withheld.
            Err(refusal) => return (Err(refusal), None),
        }
        let content = Content::Result { value: Cow::Borrowed(&result), is_error };
        let event = call.event(candidate, Hook::ToolCallResult, content, self.clock.now());
        // Every form of the secret was redacted before this stage.
        let hooked = call.hooked(candidate, &event, freshness, Some(&[]));
        let judged = self.guardian.judge(&Hooked { arguments: parameters.as_object(), ..hooked }).await;
        let Ruling { verdict, decision, .. } = match judged {
            Ok(ruling) => ruling,
            Err(refusal) => return (Err(refusal), None),
        };
        let passed = match verdict {
            Verdict::Pass { asks, .. } if !asks.is_empty() => {
                let reason = "a rule requires a person's approval of the result, and it is too late to request one";
                Err(Refusal::new(Code::GuardianDenied, reason))
            }
            Verdict::Pass { content: None, .. } => Ok(result),
            Verdict::Pass { content: Some(content), .. } => match *content {
                Content::Result { value, .. } => Ok(value.into_owned()),
                _ => Err(Refusal::new(Code::Internal, "a guardian replaced the result of a call by other content")),
            },
            Verdict::Deny(denial) => Err(guard::refusal_of(denial)),
        };
        (passed, decision)
    }
}

/// A streamed result: guardians have decided about each part before it was passed on.
fn inspected_stream(admitted: &Admitted, execution: Execution, streamed: Streamed) -> Inspected {
    let Streamed { result, cut, .. } = streamed;
    let charged = charged(admitted, Answered::Result(Some(&result)));
    let (http_status, error) = match execution {
        Ok(response) => (Some(response.http_status), None),
        Err(failure) => (failure.http_status, Some(cut.unwrap_or_else(|| refusal_of(&failure)))),
    };
    Inspected {
        http_status,
        result: error.is_none().then_some(result),
        truncated: false,
        error: error.map(CallError::from),
        input: None,
        never_sent: false,
        decision: None,
        charged,
    }
}

/// A failure as far as it matters for the cost: a service that refuses a request does nothing for it.
fn answered(failure: &SourceFailure) -> Answered<'_> {
    let result = failure.result.as_ref();
    match failure.http_status {
        Some(status) if status >= 400 => Answered::Refused(result),
        _ => Answered::Result(result),
    }
}

/// What the call costs according to its service, which guardians cannot change.
fn charged(admitted: &Admitted, answered: Answered<'_>) -> Option<(Cost, CostBasis)> {
    let reserved = admitted.invocation().cost?;
    admitted.definition().charged_cost(admitted.parameters(), reserved, answered)
}

/// What the client is asked for, as guardians have left it.
fn input_required(admitted: &Admitted, asked: InputAsked, result: &Value) -> Result<InputRequired, Refusal> {
    let unfit =
        || Refusal::new(Code::GuardianDenied, "a guardian changed what the server asks for into something else");
    let requests = result.get(INPUT_REQUESTS).and_then(Value::as_object).ok_or_else(unfit)?;
    let needs = client_input::needs(requests).map_err(|_| unfit())?;
    let tool = &admitted.candidate().tool;
    // INVARIANT: a mounted server is called with a credential.
    let credential = admitted.credential().ok_or_else(unfit)?.credential.id;
    Ok(InputRequired {
        requests: requests.clone(),
        needs,
        origin: InputOrigin {
            service: tool.service.clone(),
            endpoint: tool.base_url.as_ref().map(ToString::to_string),
            credential,
            asked: requests.keys().cloned().collect(),
            state: asked.state,
        },
    })
}

fn refusal_of(failure: &SourceFailure) -> Refusal {
    let code = match failure.kind {
        FailureKind::NotExecutable => Code::ToolNotExecutable,
        FailureKind::Blocked | FailureKind::Proxy => Code::ProxyError,
        FailureKind::Overloaded => Code::Overloaded,
        FailureKind::Quarantined => Code::ToolQuarantined,
        FailureKind::InputRequired => Code::InputRequired,
        FailureKind::Service => Code::ServiceError,
        FailureKind::StoreFull => Code::StoreFull,
        FailureKind::Stopped => Code::Stopped,
        // INVARIANT: the refusal that cut the stream is known.
        FailureKind::Cut => Code::Internal,
        FailureKind::Abandoned => Code::CallAbandoned,
    };
    let refusal = Refusal::new(code, failure.reason.clone());
    let refusal = if failure.kind == FailureKind::Blocked { refusal.with("blocked", "ssrf") } else { refusal };
    let refusal = match &failure.input {
        Some(asked) => refusal.with("required_capabilities", asked.needs.to_json()),
        None => refusal,
    };
    let refusal = match failure.http_status {
        Some(status) => refusal.with("http_status", status),
        None => refusal,
    };
    if failure.timed_out { refusal.with("timed_out", true) } else { refusal }
}
