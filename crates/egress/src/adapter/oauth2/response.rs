//! Responses of a token endpoint (RFC 6749 §5). Of an error only a code that the RFC defines is repeated, never the
//! endpoint's own text: it may quote the request.

use std::time::Duration;

use serde_json::{Map, Value};
use thiserror::Error;
use toolgate_model::secret::Secret;
use zeroize::Zeroizing;

use crate::body::InboundResponse;
use toolgate_model::redaction::Redactor;

/// The maximum accepted lifetime, in seconds: a year.
const MAX_LIFETIME: f64 = 366.0 * 86_400.0;

/// The codes of RFC 6749 §5.2, with the advice for each.
const REFUSALS: [(&str, &str); 6] = [
    (INVALID_CLIENT, "check the credential's `client_id` and `client_secret`, and rotate it"),
    (INVALID_REQUEST, "check the credential's `metadata.token_url` and `metadata.token_grant_type`"),
    ("invalid_grant", "authorise the credential again and rotate it"),
    ("invalid_scope", "correct the credential's `metadata.token_scope`"),
    ("unauthorized_client", "allow this client its grant type at the service, or correct `metadata.token_grant_type`"),
    ("unsupported_grant_type", "correct the credential's `metadata.token_grant_type`"),
];
const INVALID_CLIENT: &str = "invalid_client";
const INVALID_REQUEST: &str = "invalid_request";

pub(super) struct Tokens {
    pub(super) access: Secret,
    pub(super) refresh: Option<Secret>,
    /// The lifetime of the access token, if the endpoint sends one.
    pub(super) lifetime: Option<Duration>,
}

/// Why an exchange brought nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum TokenError {
    #[error("the token endpoint returned {code}; {advice}")]
    Refused { code: &'static str, advice: &'static str },
    #[error("the token endpoint returned status {status}; try again later")]
    Unavailable { status: u16 },
    #[error("the token endpoint returned status {status}; check the credential's `metadata.token_url`")]
    Failed { status: u16 },
    #[error("the token endpoint's response has no access token; check the credential's `metadata.token_url`")]
    NoToken,
    #[error("the token endpoint's access token is not valid in a request; it must be visible ASCII")]
    BadToken,
    #[error("the token endpoint returned a token type other than bearer, which Toolgate does not support")]
    NotBearer,
    #[error("the token endpoint's response is too long; check the credential's `metadata.token_url`")]
    TooLong,
}

impl TokenError {
    /// Whether the endpoint did not recognise the client, or missed it in the form.
    pub(super) fn is_about_the_client(&self) -> bool {
        matches!(self, Self::Refused { code: INVALID_CLIENT | INVALID_REQUEST, .. })
    }
}

/// Reads the response. Every token in it is added to the redactor, even if the response is rejected.
pub(super) fn read(response: InboundResponse, redactor: &mut Redactor) -> Result<Tokens, TokenError> {
    let body = Zeroizing::new(response.body);
    let mut members: Map<String, Value> = serde_json::from_slice(&body).unwrap_or_default();
    let mut token = |name| {
        let token = taken_text(&mut members, name)?;
        redactor.add(&token);
        Some(token)
    };
    let (access, refresh, _) = (token("access_token"), token("refresh_token"), token("id_token"));
    let named = members.get("error").and_then(Value::as_str);
    if let Some((code, advice)) = REFUSALS.into_iter().find(|(code, _)| named == Some(*code)) {
        return Err(TokenError::Refused { code, advice });
    }
    match response.status {
        200..300 => {}
        status @ (408 | 429 | 500..) => return Err(TokenError::Unavailable { status }),
        status => return Err(TokenError::Failed { status }),
    }
    if response.truncated {
        return Err(TokenError::TooLong);
    }
    let access = access.ok_or(TokenError::NoToken)?;
    if !access.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(TokenError::BadToken);
    }
    let is_bearer = |kind: &Value| kind.as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("bearer"));
    if members.get("token_type").is_some_and(|kind| !kind.is_null() && !is_bearer(kind)) {
        return Err(TokenError::NotBearer);
    }
    Ok(Tokens { access, refresh, lifetime: members.get("expires_in").and_then(lifetime) })
}

/// The text of this member, unless it is empty.
fn taken_text(members: &mut Map<String, Value>, name: &str) -> Option<Secret> {
    match members.remove(name) {
        Some(Value::String(text)) if !text.is_empty() => Some(Secret::new(text)),
        _ => None,
    }
}

/// A number of seconds, which some endpoints write as a string. An unreadable value is ignored: the service will refuse
/// the token when it has expired.
fn lifetime(value: &Value) -> Option<Duration> {
    let seconds: f64 = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    // Also false for NaN.
    let is_lifetime = seconds >= 0.0;
    is_lifetime.then(|| Duration::from_secs_f64(seconds.min(MAX_LIFETIME)))
}
