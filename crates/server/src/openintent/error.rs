//! Refusals as the RFC-0014 error object. The top-level `message` and `errors` are what its Python SDK looks at.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};
use toolgate_gate::call::Denial;
use toolgate_gate::refusal::{Code, Kind, Refusal};
use toolgate_model::id::InvocationId;

/// A refusal on its way out.
#[derive(Debug)]
pub struct Denied {
    refusal: Refusal,
    invocation: Option<InvocationId>,
    /// A call that was admitted is not refused: nobody may take its record for one.
    admitted: bool,
}

impl From<Refusal> for Denied {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, invocation: None, admitted: false }
    }
}

impl From<Denial> for Denied {
    fn from(denial: Denial) -> Self {
        Self { refusal: denial.refusal, invocation: denial.invocation, admitted: denial.admitted }
    }
}

impl IntoResponse for Denied {
    fn into_response(self) -> Response {
        let Self { refusal, invocation, admitted } = self;
        let mut error = Map::new();
        error.insert("code".to_owned(), json!(refusal.code().as_str()));
        error.insert("message".to_owned(), json!(refusal.reason()));
        if let Some(stage) = refusal.stage() {
            error.insert("stage".to_owned(), json!(stage.as_str()));
        }
        for (name, value) in refusal.details() {
            error.insert(name.to_owned(), value.clone());
        }
        // What RFC 0064 calls details, where it calls for them.
        if error.get("scope").is_some_and(|scope| scope == "tool") {
            let of_tool = ["scope", "toolName", "requiredScopes"];
            let details = of_tool.iter().filter_map(|name| Some(((*name).to_owned(), error.get(*name)?.clone())));
            let details: Map<String, Value> = details.collect();
            error.insert("details".to_owned(), Value::Object(details));
        }
        let mut body = json!({
            "status": if admitted { "unknown" } else { "denied" },
            "message": refusal.reason(),
            "errors": [refusal.reason()],
            "error": Value::Object(error),
        });
        if let (Some(id), Value::Object(members)) = (invocation, &mut body) {
            members.insert("invocation_id".to_owned(), json!(id));
        }
        let mut response = (status(refusal.code()), Json(body)).into_response();
        let headers = response.headers_mut();
        let retry_after = refusal.details().find(|(name, _)| *name == "retry_after_seconds");
        if let Some(value) = retry_after.and_then(|(_, seconds)| HeaderValue::try_from(seconds.to_string()).ok()) {
            headers.insert(header::RETRY_AFTER, value);
        }
        if refusal.code().kind() == Kind::Unauthenticated {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// The SDK raises its `ValidationError` for 400 only, so whatever is wrong with a request itself is 400.
pub(crate) fn status(code: Code) -> StatusCode {
    match code {
        Code::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Code::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        other => match other.kind() {
            Kind::BadGateway => StatusCode::BAD_GATEWAY,
            Kind::Conflict => StatusCode::CONFLICT,
            Kind::Forbidden => StatusCode::FORBIDDEN,
            Kind::Gone => StatusCode::GONE,
            Kind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Kind::Invalid => StatusCode::BAD_REQUEST,
            Kind::NotFound => StatusCode::NOT_FOUND,
            Kind::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Kind::Unauthenticated => StatusCode::UNAUTHORIZED,
            Kind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        },
    }
}
