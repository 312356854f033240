//! Refusals in OpenWOP's flat envelope: `{error, message, details?}` and nothing else. Everything else is in `details`,
//! in the protocol's spelling.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use serde_json::{Map, Value, json};
use toolgate_api::openwop::{FlatDetails, FlatError};
use toolgate_api::reply::ErrorCode;
use toolgate_gate::refusal::{Code, Kind, Refusal};

use crate::challenge;
use crate::openintent::error::status;

/// A refusal on its way out.
#[derive(Debug)]
pub struct Flat(Refusal);

impl From<Refusal> for Flat {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl IntoResponse for Flat {
    fn into_response(self) -> Response {
        let refusal = self.0;
        let code = refusal.code();
        let others = refusal.details().filter(|(name, _)| *name != "retry_after_seconds");
        let mut others: Map<String, Value> = others.map(|(name, value)| (camel_case(name), value.clone())).collect();
        let retry_after = refusal.details().find(|(name, _)| *name == "retry_after_seconds");
        let retry_after = retry_after.and_then(|(_, seconds)| seconds.as_u64());
        if code.kind() == Kind::TooMany {
            // The inbound limits of a host have a name from a closed set; those of a tool say `tool` themselves.
            others.entry("scope").or_insert_with(|| json!("global"));
        }
        let body = FlatError {
            error: word(code).to_owned(),
            message: refusal.reason().to_owned(),
            details: FlatDetails {
                code: Some(ErrorCode(code.as_str().to_owned())),
                retry_after_ms: retry_after.map(|seconds| seconds.saturating_mul(1000)),
                others,
            },
        };
        let mut response = (status(code), Json(body)).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        challenge::add(headers, &refusal, challenge::Request::default());
        response
    }
}

/// Whether responses of a path use this envelope.
pub fn speaks_for(path: &str) -> bool {
    path == "/v1" || path.starts_with("/v1/") || path.starts_with("/.well-known/")
}

/// The protocol's word for a refusal.
fn word(code: Code) -> &'static str {
    match code {
        Code::KeyExpired => "key_expired",
        Code::KeyRevoked => "key_revoked",
        Code::MethodNotAllowed => "method_not_allowed",
        other => match other.kind() {
            Kind::BadGateway => "bad_gateway",
            Kind::Conflict => "conflict",
            Kind::Forbidden => "forbidden",
            Kind::Gone => "gone",
            Kind::Internal => "internal_error",
            Kind::Invalid => "validation_error",
            Kind::NotFound => "not_found",
            Kind::TooMany => "rate_limited",
            Kind::Unauthenticated => "unauthenticated",
            Kind::Unavailable => "unavailable",
        },
    }
}

fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let mut spelled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        spelled.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        spelled.push_str(letters.as_str());
    }
    spelled
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use http::StatusCode;
    use http_body_util::BodyExt;

    async fn response_of(refusal: Refusal) -> (StatusCode, http::HeaderMap, Value) {
        let (head, body) = Flat::from(refusal).into_response().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (head.status, head.headers, serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn the_envelope_is_flat_and_closed_for_every_code() {
        for &code in Code::ALL {
            let (status, headers, body) = response_of(Refusal::new(code, "no").with("required_permission", "a")).await;
            let names: BTreeSet<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(names, ["details", "error", "message"].into(), "{body}");
            assert!(status.is_client_error() || status.is_server_error(), "{code:?}");
            assert_eq!(body["details"]["requiredPermission"], "a");
            let challenges = status == StatusCode::UNAUTHORIZED || code == Code::TokenScopeInsufficient;
            assert_eq!(headers.contains_key(header::WWW_AUTHENTICATE), challenges, "{code:?}");
        }
    }

    #[tokio::test]
    async fn words_and_statuses_are_those_of_the_protocol() {
        for (code, status, word) in [
            (Code::Unauthenticated, 401, "unauthenticated"),
            (Code::KeyExpired, 401, "key_expired"),
            (Code::KeyRevoked, 401, "key_revoked"),
            (Code::PermissionDenied, 403, "forbidden"),
            (Code::ToolNotFound, 404, "not_found"),
            (Code::UnknownField, 400, "validation_error"),
            (Code::MethodNotAllowed, 405, "method_not_allowed"),
            (Code::TooManyAttempts, 429, "rate_limited"),
            (Code::VersionConflict, 409, "conflict"),
            (Code::LedgerUnavailable, 503, "unavailable"),
            (Code::Internal, 500, "internal_error"),
        ] {
            let (response_of, _, body) = response_of(Refusal::new(code, "no")).await;
            assert_eq!((response_of.as_u16(), &body["error"]), (status, &json!(word)));
        }
    }

    #[tokio::test]
    async fn when_to_come_back_is_said_twice_and_alike() {
        let refusal = Refusal::new(Code::TooManyAttempts, "no").with("retry_after_seconds", 7);
        let (_, headers, body) = response_of(refusal).await;
        assert_eq!(headers[header::RETRY_AFTER], "7");
        assert_eq!((&body["details"]["retryAfterMs"], &body["details"]["scope"]), (&json!(7000), &json!("global")));
        let of_a_tool = Refusal::new(Code::TooManyAttempts, "no").with("scope", "tool");
        assert_eq!(response_of(of_a_tool).await.2["details"]["scope"], "tool");
    }

    #[test]
    fn the_envelope_is_for_the_paths_of_the_protocol_only() {
        for (path, flat) in [("/v1", true), ("/v1/x", true), ("/.well-known/openwop", true), ("/api/v1/x", false)] {
            assert_eq!(speaks_for(path), flat);
        }
        assert!(!speaks_for("/v1x") && !speaks_for("/"));
    }
}
