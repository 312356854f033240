//! Deciding an approval.

use serde::Deserialize;
use serde_json::Value;
use toolgate_api::approvals::{Approval, DecideApproval};
use toolgate_gate::authority::approvals::DecisionRequest;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::approval::{Channel, Decision, RequestedCoverage, RequestedReach, StandingRequest};

use super::shown::shown;
use crate::body::invalid_member;
use crate::mount::TypedRequest;
use crate::openintent::error::Denied;

/// The extent of a standing approval.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Extent {
    prefix: Option<String>,
    reach: Option<RequestedReach>,
    expires_in_seconds: Option<u32>,
    max_uses: Option<u32>,
}

pub(super) async fn decide(request: TypedRequest<DecideApproval>) -> Result<Approval, Denied> {
    let TypedRequest { app, caller, path, body, .. } = request;
    let standing = match (&body.scope, body.decision) {
        (Some(scope), Decision::Approve) => standing_request(scope)?,
        // A denial is for this call only.
        _ => None,
    };
    let decision = DecisionRequest {
        decision: body.decision,
        standing,
        reason: body.reason,
        answer: body.answer,
        idempotency_key: body.idempotency_key,
        channel: body.channel.unwrap_or(Channel::Http),
    };
    let approval = app.gate.approvals.decide(&caller, path, decision).await?;
    Ok(shown(&app, &approval).await?)
}

/// Reads `once`, `always`, `{"always": {...}}` or `{"always_prefix": {"prefix": ...}}`.
fn standing_request(scope: &Value) -> Result<Option<StandingRequest>, Refusal> {
    let (name, extent) = match scope {
        Value::Null => return Ok(None),
        Value::String(word) => (word.as_str(), Extent::default()),
        Value::Object(members) if members.len() == 1 => match members.iter().next() {
            Some((name, extent @ Value::Object(_))) => (
                name.as_str(),
                Extent::deserialize(extent).map_err(|error| invalid_member("scope", &error.to_string()))?,
            ),
            _ => return Err(wrong("its one member must be an object")),
        },
        _ => return Err(wrong("it is neither a string nor an object with one member")),
    };
    let coverage = match (name, extent.prefix) {
        ("once", None) if scope.is_string() => return Ok(None),
        ("always", None) => RequestedCoverage::Tool,
        ("always_prefix", Some(prefix)) => RequestedCoverage::Prefix(prefix),
        ("always_prefix", None) => return Err(wrong("always_prefix needs a `prefix`")),
        _ => return Err(wrong("it is not a known scope")),
    };
    Ok(Some(StandingRequest {
        coverage,
        reach: extent.reach,
        expires_in_seconds: extent.expires_in_seconds.map(u64::from),
        max_uses: extent.max_uses.map(u64::from),
    }))
}

fn wrong(why: &str) -> Refusal {
    let shape = "`scope` must be \"once\", \"always\", {\"always\": {\"reach\": \"session\"}} or \
                 {\"always_prefix\": {\"prefix\": \"cargo test\"}}";
    Refusal::new(Code::InvalidField, format!("{shape}: {why}")).with("path", "scope")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_scopes_of_the_protocol_are_read_and_nothing_else() {
        assert_eq!(standing_request(&json!("once")), Ok(None));
        assert_eq!(standing_request(&Value::Null), Ok(None));
        let tool = standing_request(&json!("always")).unwrap().unwrap();
        assert_eq!((tool.coverage, tool.reach), (RequestedCoverage::Tool, None));
        let prefix =
            standing_request(&json!({"always_prefix": {"prefix": "cargo ", "reach": "workspace", "max_uses": 3}}));
        let prefix = prefix.unwrap().unwrap();
        assert_eq!(prefix.coverage, RequestedCoverage::Prefix("cargo ".to_owned()));
        assert_eq!((prefix.reach, prefix.max_uses), (Some(RequestedReach::Workspace), Some(3)));
        for bad in [
            json!("forever"),
            json!(true),
            json!([]),
            json!({}),
            json!({"once": {}}),
            json!({"always": {"prefix": "cargo"}}),
            json!({"always": "session"}),
            json!({"always_prefix": {}}),
            json!({"always_prefix": {"prefix": "a", "wider": true}}),
            json!({"always": {}, "always_prefix": {"prefix": "a"}}),
            json!({"always": {"reach": "world"}}),
            json!({"always": {"max_uses": -1}}),
        ] {
            let code = standing_request(&bad).unwrap_err().code();
            assert!([Code::InvalidField, Code::UnknownField].contains(&code), "{bad}");
        }
    }
}
