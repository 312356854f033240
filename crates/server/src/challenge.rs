//! The header `WWW-Authenticate` of refusals (RFC 6750, RFC 9728): how a client gets a credential, and what was wrong with
//! the one that it sent.

use http::{HeaderMap, HeaderValue, header};
use serde_json::Value;
use toolgate_gate::refusal::{Code, Kind, Refusal};

/// What is known about the request besides its refusal.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Request<'a> {
    /// Whether it has a credential.
    pub(crate) presented: bool,
    /// The address of the protected-resource metadata.
    pub(crate) metadata: Option<&'a str>,
}

/// Adds the header to the response with this refusal, if it is about the credential.
pub(crate) fn add(headers: &mut HeaderMap, refusal: &Refusal, Request { presented, metadata }: Request<'_>) {
    let code = refusal.code();
    let mut parameters = Vec::new();
    match code {
        Code::TokenScopeInsufficient => {
            parameters.push("error=\"insufficient_scope\"".to_owned());
            // INVARIANT: configured scopes have no quotation marks.
            parameters.push(format!("scope=\"{}\"", scopes(refusal)));
        }
        Code::TokenInvalid | Code::TokenExpired => {
            parameters.push("error=\"invalid_token\"".to_owned());
        }
        _ if code.kind() != Kind::Unauthenticated => return,
        _ if presented => parameters.push("error=\"invalid_token\"".to_owned()),
        // Without a credential there is nothing wrong with it.
        _ => {}
    }
    parameters.extend(metadata.map(|address| format!("resource_metadata=\"{address}\"")));
    let challenge = match parameters.is_empty() {
        true => "Bearer".to_owned(),
        false => format!("Bearer {}", parameters.join(", ")),
    };
    // INVARIANT: both parts come from the configuration, which allows nothing that a header does not.
    if let Ok(value) = HeaderValue::try_from(challenge) {
        headers.insert(header::WWW_AUTHENTICATE, value);
    }
}

fn scopes(refusal: &Refusal) -> String {
    let required = refusal.details().find(|(name, _)| *name == "required_token_scopes");
    let required = required.and_then(|(_, scopes)| scopes.as_array());
    required.into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge(refusal: &Refusal, metadata: Option<&str>) -> Option<String> {
        let mut headers = HeaderMap::new();
        add(&mut headers, refusal, Request { presented: false, metadata });
        headers.get(header::WWW_AUTHENTICATE).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_client_learns_where_to_get_a_token_and_what_is_wrong_with_its_own() {
        let metadata = Some("https://gate.example.com/.well-known/oauth-protected-resource/mcp");
        let of = |code| Refusal::new(code, "no");
        assert_eq!(challenge(&of(Code::Unauthenticated), None).unwrap(), "Bearer");
        assert_eq!(
            challenge(&of(Code::Unauthenticated), metadata).unwrap(),
            "Bearer resource_metadata=\"https://gate.example.com/.well-known/oauth-protected-resource/mcp\""
        );
        let expired = challenge(&of(Code::TokenExpired), metadata).unwrap();
        assert!(expired.starts_with("Bearer error=\"invalid_token\", resource_metadata="), "{expired}");
        let narrow = of(Code::TokenScopeInsufficient).with("required_token_scopes", ["a", "b"]);
        assert_eq!(challenge(&narrow, None).unwrap(), "Bearer error=\"insufficient_scope\", scope=\"a b\"");
        assert_eq!(challenge(&of(Code::PermissionDenied), metadata), None);
        assert_eq!(challenge(&of(Code::IssuerUnavailable), metadata), None);
    }
}
