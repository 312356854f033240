//! Explains a refused or failed call: its details, and what to do.

use serde_json::{Map, Value};

use super::Failure;
use crate::client::{ClientError, Refused};
use crate::output::{align, clean, plain};

/// The refusal with its details, and with advice: a suggestion, and what is known about its code.
pub(super) fn explained(error: ClientError, meant: Option<String>) -> Failure {
    let sentence = error.to_string();
    match error {
        ClientError::Refused { body, .. } => Failure::explained(explain(&sentence, &body, meant), &body),
        other => Failure::Client(other),
    }
}

/// Shown as part of the advice.
const EXPLAINED: &str = "grant_id";

fn explain(sentence: &str, body: &Refused, meant: Option<String>) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut add = |name: &str, value: String| rows.push(vec![format!("  {name}:"), value]);
    let details = body.details();
    for (name, value) in details.iter().filter(|(name, _)| *name != EXPLAINED) {
        let label = if name == "invocation_id" { "earlier call".to_owned() } else { name.replace('_', " ") };
        add(&clean(&label), plain(value));
    }
    if let Refused::Call(call) = body
        && !call.result.is_null()
    {
        add("service returned", plain(&call.result));
    }
    if let Some(id) = body.invocation() {
        add("recorded as", id.to_string());
    }
    let advice = advice(body.code(), details);
    if let Some(advice) = meant.into_iter().chain(advice).reduce(|meant, advice| format!("{meant} Or: {advice}")) {
        add("what to do", advice);
    }
    format!("{sentence}\n{}", align(rows)).trim_end().to_owned()
}

pub(super) fn advice(code: &str, details: &Map<String, Value>) -> Option<String> {
    let grant = details.get("grant_id").and_then(Value::as_str).map_or_else(|| "GRANT".to_owned(), clean);
    let known = ADVICE.iter().find(|(codes, _)| codes.contains(&code)).map(|(_, advice)| *advice);
    let advice = known.or_else(|| code.starts_with("GRANT_").then_some(WITHIN_GRANT))?;
    Some(advice.replace("{grant}", &grant))
}

/// What to do about every other refusal by a grant: it is by one of its constraints.
const WITHIN_GRANT: &str = "stay within the grant; `toolgate grant show {grant}` shows its limits";

/// Codes of refusals, and what to do about them. `{grant}` is the id of the grant.
const ADVICE: &[(&[&str], &str)] = &[
    (
        &["AGENT_NOT_FOUND", "GRANT_NOT_FOUND", "TOOL_NOT_FOUND"],
        "list the tools of an agent with `toolgate tool list --agent AGENT`; without --agent you call as yourself",
    ),
    (&["APPROVAL_REQUIRED"], "have an approver approve it, then call again"),
    (&["GRANT_CONTEXT_MISMATCH"], "pass the --intent, --plan or --task that the grant is limited to"),
    (&["GRANT_EXPIRED", "GRANT_REVOKED"], "ask the issuer of the grant for a new one"),
    (&["GRANT_RATE_LIMITED"], "wait, or ask for a grant with a higher limit"),
    (&["GRANT_SCOPE_INSUFFICIENT"], "call a tool within the available scopes, or ask for a wider grant"),
    (&["GRANT_SUSPENDED"], "ask an administrator to run `toolgate grant resume {grant}`"),
    (&["IDEMPOTENCY_CONFLICT"], "use another --idempotency-key for a different call"),
    (&["IDEMPOTENCY_IN_PROGRESS"], "wait until the first call has ended, then call again with the same key"),
    (&["OUTCOME_UNKNOWN"], "check at the service whether the call was executed before you call again"),
    (
        &["PARAMETERS_INVALID"],
        "correct the parameter; `toolgate tool show` shows the parameters; pass numbers as NAME:=NUMBER",
    ),
    (
        &["PROXY_ERROR"],
        "check the base URL of the service; private addresses require TOOLGATE_EGRESS_ALLOW on the gate",
    ),
    (&["TOOL_AMBIGUOUS"], "use SERVICE.TOOL"),
];

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_gate::refusal::Code;
    use toolgate_model::id::InvocationId;

    use super::*;

    #[test]
    fn there_is_advice_only_for_codes_of_the_gate() {
        for code in ADVICE.iter().flat_map(|(codes, _)| *codes) {
            assert!(Code::ALL.iter().any(|known| known.as_str() == *code), "{code}");
        }
    }

    #[test]
    fn a_refusal_by_any_constraint_of_a_grant_says_where_its_limits_are_shown() {
        let details = json!({"grant_id": "grant_1"});
        let Value::Object(details) = details else { panic!("an object") };
        for code in ["GRANT_COST_EXCEEDED", "GRANT_HOST_DENIED", "GRANT_NETWORK_DENIED", "GRANT_PARAMETER_DENIED"] {
            assert!(Code::ALL.iter().any(|known| known.as_str() == code), "{code}");
            assert!(advice(code, &details).unwrap().contains("`toolgate grant show grant_1`"), "{code}");
        }
        assert!(advice("GRANT_EXPIRED", &details).unwrap().contains("issuer"));
        assert_eq!(advice("FORBIDDEN", &details), None);
    }

    #[test]
    fn a_refusal_tells_where_and_what_to_do() {
        let details = json!({"grant_id": "grant_1", "path": "parameters.amount", "rule": "at most 5000"});
        let mut body = Refused::sample("GRANT_PARAMETER_DENIED", "`amount` is too large", details);
        if let Refused::Request(body) = &mut body {
            body.invocation_id = InvocationId::parse("inv_01KGYB3881EC1R60R30C1G60R3").ok();
        }
        let text = explain("`amount` is too large [GRANT_PARAMETER_DENIED]", &body, None);
        assert_eq!(
            text,
            "`amount` is too large [GRANT_PARAMETER_DENIED]\n  \
             path:         parameters.amount\n  \
             rule:         at most 5000\n  \
             recorded as:  inv_01KGYB3881EC1R60R30C1G60R3\n  \
             what to do:   stay within the grant; `toolgate grant show grant_1` shows its limits"
        );
    }
}
