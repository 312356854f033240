//! Results in which a server asks for input. What it asks for is untrusted content like every result, and is passed on only
//! to a client that can be asked for it; the server's state is passed on to nobody.

use serde_json::{Map, Value, json};
use toolgate_gate::ports::source::{FailureKind, InputAsked, SourceFailure};
use toolgate_model::client_input::{self, INPUT_REQUESTS, InputCapabilities, STATE, ServerState};
use toolgate_model::redaction::Redactor;
use toolgate_model::service::HiddenCharacters;

use super::message::{self, RpcError};
use super::result::{Raw, malformed, reveal};

/// The type of such a result.
const TYPE: &str = "input_required";
/// The error of a server that would ask for what the client has not declared.
const MISSING_CAPABILITY: i64 = -32021;

/// Whether a result asks for input.
pub(crate) fn is_asked_for(result: &Map<String, Value>) -> bool {
    result.get("resultType").and_then(Value::as_str) == Some(TYPE)
}

/// What a server says that it would have to ask for, and the client has not declared.
pub(crate) fn lacking(error: &RpcError, declared: Option<InputCapabilities>) -> Option<InputCapabilities> {
    let needs = error.error.get("data").and_then(|data| data.get("requiredCapabilities"));
    let needs = InputCapabilities::of(needs.filter(|_| error.code == MISSING_CAPABILITY));
    declared.filter(|declared| !declared.covers(needs)).map(|_| needs)
}

/// A call that would need a client that can be asked for this.
pub(crate) fn unavailable(status: u16, needs: InputCapabilities) -> SourceFailure {
    let reason = "the server asks for input that the client of this call cannot be asked for; call it from an MCP client \
                  that declares the capability";
    SourceFailure {
        kind: FailureKind::InputRequired,
        input: Some(Box::new(InputAsked { needs, state: None })),
        ..malformed(status, reason)
    }
}

/// What came of a call whose server asks for input.
pub(crate) fn asked(
    status: u16,
    result: Map<String, Value>,
    redactor: &Redactor,
    rule: HiddenCharacters,
    declared: Option<InputCapabilities>,
) -> SourceFailure {
    let Some(declared) = declared else {
        return malformed(status, "the server asks for input where the protocol does not let it");
    };
    match requests(result, redactor, rule) {
        Err(reason) => malformed(status, reason),
        Ok((_, asked)) if !declared.covers(asked.needs) => unavailable(status, asked.needs),
        Ok((requests, asked)) => SourceFailure {
            kind: FailureKind::InputRequired,
            result: Some(json!({"resultType": TYPE, INPUT_REQUESTS: requests})),
            input: Some(Box::new(asked)),
            ..malformed(status, "the server asks for input before it goes on with this call")
        },
    }
}

/// What a message of a server asks for, if it is fit for a client that has declared this.
pub(crate) fn checked(
    raw: &Raw,
    redactor: &Redactor,
    rule: HiddenCharacters,
    declared: InputCapabilities,
) -> Option<(Map<String, Value>, InputAsked)> {
    // Most results ask for nothing, and are not read twice.
    if !raw.message.windows(TYPE.len()).any(|window| window == TYPE.as_bytes()) {
        return None;
    }
    let result = message::response(&raw.message, raw.id).ok()?.ok().filter(is_asked_for)?;
    requests(result, redactor, rule).ok().filter(|(_, asked)| declared.covers(asked.needs))
}

/// The requests without secrets and hidden characters, and what they need.
fn requests(
    mut result: Map<String, Value>,
    redactor: &Redactor,
    rule: HiddenCharacters,
) -> Result<(Map<String, Value>, InputAsked), &'static str> {
    let state = match result.remove(STATE) {
        None | Some(Value::Null) => None,
        Some(Value::String(state)) => Some(ServerState::new(state)?),
        Some(_) => return Err("the server asks for input with a state that is no string"),
    };
    let mut requests = match result.remove(INPUT_REQUESTS) {
        None | Some(Value::Null) => json!({}),
        Some(requests @ Value::Object(_)) => requests,
        Some(_) => return Err("the server asks for input, and its requests are no object"),
    };
    redactor.redact_json(&mut requests);
    reveal(&mut requests, rule)?;
    let Value::Object(requests) = requests else { return Err("the server's requests cannot be shown") };
    if requests.is_empty() && state.is_none() {
        return Err("the server asks for input, and does not say which");
    }
    let needs = client_input::needs(&requests)?;
    Ok((requests, InputAsked { needs, state }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::result::conclude;
    use toolgate_model::secret::{Material, Secret};

    fn redactor() -> Redactor {
        let mut material = Material::new();
        material.insert("token".to_owned(), Secret::new("sk_live_of_the_mount".to_owned()));
        Redactor::new(&material)
    }

    fn failure(message: Value, declared: Option<Value>) -> SourceFailure {
        let message = [json!({"jsonrpc": "2.0", "id": 7}), message];
        let mut members = Map::new();
        message.into_iter().for_each(|part| members.extend(part.as_object().cloned().unwrap()));
        let raw = Raw { message: json!(members).to_string().into_bytes(), id: 7, http_status: 200 };
        let declared = declared.map(|declared| InputCapabilities::of(Some(&declared)));
        conclude(&raw, &redactor(), HiddenCharacters::Show, declared).unwrap_err()
    }

    fn asking(request: Value) -> Value {
        json!({"result": {"resultType": "input_required", "inputRequests": {"who": request}, "requestState": "s"}})
    }

    fn form(message: &str) -> Value {
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        json!({"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}})
    }

    #[test]
    fn what_a_server_asks_for_is_passed_on_without_secrets_and_hidden_characters_and_its_state_apart() {
        let failure = failure(asking(form("Is sk_live_of_the_mount\u{200b} yours?")), Some(json!({"elicitation": {}})));
        assert_eq!(failure.kind, FailureKind::InputRequired);
        let result = failure.result.unwrap();
        assert_eq!(result["inputRequests"]["who"]["params"]["message"], "Is [REDACTED]<U+200B> yours?");
        assert_eq!(result.get("requestState"), None);
        let asked = failure.input.unwrap();
        assert_eq!(asked.state.unwrap().expose(), "s");
        assert_eq!(asked.needs.to_json(), json!({"elicitation": {"form": {}}}));
    }

    #[test]
    fn what_the_client_cannot_be_asked_for_is_not_shown() {
        for declared in [json!({}), json!({"sampling": {}, "roots": {}}), json!({"elicitation": {"url": {}}})] {
            let failure = failure(asking(form("Who?")), Some(declared));
            assert_eq!((failure.kind, &failure.result), (FailureKind::InputRequired, &None));
            let asked = failure.input.unwrap();
            assert_eq!((asked.needs.form, asked.state), (true, None));
        }
        let message =
            json!({"error": {"code": -32021, "message": "no", "data": {"requiredCapabilities": {"sampling": {}}}}});
        let lacking = failure(message.clone(), Some(json!({})));
        assert_eq!((lacking.kind, lacking.input.unwrap().needs.sampling), (FailureKind::InputRequired, true));
        let lies = failure(message, Some(json!({"sampling": {}})));
        assert_eq!((lies.kind, lies.input), (FailureKind::Service, None));
    }

    #[test]
    fn a_server_that_asks_for_the_unfit_or_where_it_must_not_has_failed() {
        let all = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}});
        let script = json!({"mode": "url", "message": "Open.", "url": "javascript:alert(1)"});
        for request in
            [json!({"method": "elicitation/create", "params": script}), json!({"method": "tools/call"}), json!(1)]
        {
            let failure = failure(asking(request), Some(all.clone()));
            assert_eq!((failure.kind, failure.result, failure.input), (FailureKind::Proxy, None, None));
        }
        let nothing = json!({"result": {"resultType": "input_required"}});
        let wrong = json!({"result": {"resultType": "input_required", "inputRequests": [], "requestState": "s"}});
        let stateful = json!({"result": {"resultType": "input_required", "requestState": 7}});
        for message in [nothing, wrong, stateful] {
            assert_eq!(failure(message, Some(all.clone())).kind, FailureKind::Proxy);
        }
        assert_eq!(failure(asking(form("Who?")), None).kind, FailureKind::Proxy);
        let later = json!({"result": {"resultType": "input_required", "requestState": "s"}});
        let later = failure(later, Some(json!({})));
        assert_eq!(
            (later.kind, later.result.unwrap()["inputRequests"].clone()),
            (FailureKind::InputRequired, json!({}))
        );
    }
}
