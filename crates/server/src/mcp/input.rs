//! Calls that a mounted server interrupts to ask the client for input. The client gets the server's requests with a state of
//! the gate, in which that of the server is sealed; it goes on with the same call and that state, once. What the client sends
//! is input of the agent's side like its arguments: it approves nothing.

use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate_gate::call::{CallRequest, CallResult, Denial, call_digest};
use toolgate_gate::ports::entropy::random;
use toolgate_gate::refusal::{Code, Stage};
use toolgate_model::client_input::{
    ClientInput, INPUT_REQUESTS, INPUT_RESPONSES, InputOrigin, InputRequired, STATE, check_responses,
};
use toolgate_model::continuation::ContinuationNumber;
use toolgate_model::invocation::IdempotencyKey;

use super::call::Context;
use super::interruption::bound;
use super::message::Params;
use super::reply::RpcError;
use super::result;

/// How long a client may take to go on with a call.
const LIFETIME: Duration = Duration::from_secs(15 * 60);

/// A request that a mounted server may interrupt, and what the state that the client is given is bound to.
pub(super) struct Asking {
    method: &'static str,
    /// The digest of the tool and the arguments.
    digest: String,
}

impl Asking {
    /// `None` where the client cannot be asked: in a session, servers have no way to interrupt a call.
    pub(super) fn of(context: &Context, tool: &str, arguments: &Map<String, Value>) -> Option<Self> {
        context.era.is_modern().then(|| Self { method: context.form.method(), digest: call_digest(tool, arguments) })
    }
}

/// What a client has sent for an interrupted call, unchecked.
pub(super) struct Sent {
    pub(super) responses: Map<String, Value>,
    pub(super) state: Option<String>,
}

impl Sent {
    pub(super) fn take(params: &mut Params) -> Result<Self, RpcError> {
        let responses = params.take_object(INPUT_RESPONSES)?;
        let wrong = |reason| RpcError::invalid_params(format!("`params.{INPUT_RESPONSES}` {reason}"));
        check_responses(&responses).map_err(wrong)?;
        Ok(Self { responses, state: params.take_optional_text(STATE)? })
    }
}

/// What the client of a call can be asked for, and what it has sent.
pub(super) struct Given {
    input: Option<Box<ClientInput>>,
    /// That of the state, which is used up by the call.
    number: Option<ContinuationNumber>,
}

impl Given {
    pub(super) fn of(context: &Context, sent: Sent) -> Result<Self, RpcError> {
        let Some(asking) = &context.asking else { return Ok(Self { input: None, number: None }) };
        let (number, origin) = match &sent.state {
            Some(state) => {
                let (number, origin) = opened(context, asking, state).ok_or_else(RpcError::unknown_state)?;
                (Some(number), Some(origin))
            }
            None => (None, None),
        };
        let mut responses = sent.responses;
        if let Some(origin) = &origin {
            // What nobody has asked for is not sent.
            responses.retain(|key, _| origin.asked.contains(key));
        }
        let capabilities = context.capabilities.input;
        Ok(Self { input: Some(Box::new(ClientInput { capabilities, responses, origin })), number })
    }

    pub(super) fn is_continuation(&self) -> bool {
        self.number.is_some()
    }

    /// The same call with this. Its admission claims the number of the state, so that no other call can use it.
    pub(super) fn with(self, request: CallRequest) -> CallRequest {
        let key = self.number.and_then(|number| IdempotencyKey::parse(&format!("input-{}", number.to_hex())).ok());
        CallRequest { input: self.input, idempotency_key: key, ..request }
    }
}

fn opened(context: &Context, asking: &Asking, state: &str) -> Option<(ContinuationNumber, InputOrigin)> {
    let gate = &context.app.gate;
    let (number, content) =
        gate.continuations.open(bound(context, asking.method, &asking.digest), gate.clock.now(), state)?;
    Some((number, serde_json::from_slice(&content).ok()?))
}

impl Context {
    /// The result of a call that has ended, or what the client is asked for.
    pub(super) fn delivered(&self, outcome: Result<CallResult, Denial>) -> Result<Map<String, Value>, RpcError> {
        self.interrupted(&outcome).unwrap_or_else(|| self.form.written(self.era, outcome))
    }

    /// The response to a call that a server has interrupted, or that brings invalid input; `None` for every
    /// other one.
    pub(super) fn interrupted(
        &self,
        outcome: &Result<CallResult, Denial>,
    ) -> Option<Result<Map<String, Value>, RpcError>> {
        let asking = self.asking.as_ref()?;
        match outcome {
            Err(denial) => {
                let refusal = &denial.refusal;
                let is_used = refusal.stage() == Some(Stage::Admit) && is_about_the_key(refusal.code());
                (is_used || refusal.code() == Code::InputStateInvalid).then(|| Err(RpcError::unknown_state()))
            }
            Ok(result) => {
                let error = result.outcome.error.as_ref()?;
                if error.code != Code::InputRequired.as_str() {
                    return None;
                }
                let missing = || {
                    let needed = error.details.get("required_capabilities").cloned();
                    RpcError::missing_capability(needed.unwrap_or_else(|| json!({})))
                };
                let required = result.outcome.input.as_deref();
                let required = required.filter(|required| self.capabilities.input.covers(required.needs));
                Some(required.ok_or_else(missing).and_then(|required| self.asked(asking, required, result)))
            }
        }
    }

    fn asked(
        &self,
        asking: &Asking,
        required: &InputRequired,
        result: &CallResult,
    ) -> Result<Map<String, Value>, RpcError> {
        let state = self.sealed(asking, &required.origin);
        let state = state.ok_or_else(|| RpcError::internal("the state of the call cannot be sealed"))?;
        let mut members = Map::from_iter([
            ("resultType".to_owned(), json!("input_required")),
            (INPUT_REQUESTS.to_owned(), json!(required.requests)),
            (STATE.to_owned(), json!(state)),
        ]);
        result::set_meta(&mut members, result::INVOCATION, json!(result.invocation));
        Ok(members)
    }

    fn sealed(&self, asking: &Asking, origin: &InputOrigin) -> Option<String> {
        let gate = &self.app.gate;
        let number = ContinuationNumber(random().ok()?);
        let until = gate.clock.now().plus(LIFETIME);
        let content = serde_json::to_vec(origin).ok()?;
        gate.continuations.seal(bound(self, asking.method, &asking.digest), number, until, &content)
    }
}

/// Refusals of a call whose key was claimed by an earlier one: that has used the state up.
fn is_about_the_key(code: Code) -> bool {
    matches!(code, Code::IdempotencyConflict | Code::IdempotencyInProgress | Code::ResultNotKept | Code::OutcomeUnknown)
}
