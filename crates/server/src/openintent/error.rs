//! Refusals as the RFC-0014 error object. Its Python SDK reads the top-level `message` and `errors`.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value};
use toolgate_api::error::{ErrorBody, ErrorDetails, RefusedStatus};
use toolgate_api::reply::ErrorCode;
use toolgate_gate::call::Denial;
use toolgate_gate::refusal::{Code, Kind, Refusal};
use toolgate_model::id::InvocationId;

use crate::challenge;

/// A refusal on its way out.
#[derive(Debug)]
pub struct Denied {
    refusal: Refusal,
    invocation: Option<InvocationId>,
    /// An admitted call is not refused: its record must not look like a refusal.
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

impl Denied {
    pub(crate) fn status(&self) -> StatusCode {
        status_of(&self.refusal)
    }

    pub(crate) fn body(&self) -> ErrorBody {
        let mut details: Map<String, Value> =
            self.refusal.details().map(|(name, value)| (name.to_owned(), value.clone())).collect();
        // The details that RFC 0064 requires.
        if details.get("scope").is_some_and(|scope| scope == "tool") {
            let of_tool = ["scope", "toolName", "requiredScopes"];
            let of_tool = of_tool.iter().filter_map(|name| Some(((*name).to_owned(), details.get(*name)?.clone())));
            let of_tool: Map<String, Value> = of_tool.collect();
            details.insert("details".to_owned(), Value::Object(of_tool));
        }
        let error = ErrorDetails {
            code: ErrorCode(self.refusal.code().as_str().to_owned()),
            message: self.refusal.reason().to_owned(),
            stage: self.refusal.stage().map(|stage| stage.as_str().to_owned()),
            details,
        };
        let status = if self.admitted { RefusedStatus::Unknown } else { RefusedStatus::Denied };
        let member = |name: &str| error.details.get(name).cloned();
        let current_version = member("current_version").and_then(|version| version.as_u64());
        let existing_lease = member("existing_lease").and_then(|lease| serde_json::from_value(lease).ok());
        ErrorBody { current_version, existing_lease, ..ErrorBody::new(status, error, self.invocation) }
    }
}

impl IntoResponse for Denied {
    fn into_response(self) -> Response {
        let mut response = (self.status(), Json(self.body())).into_response();
        let headers = response.headers_mut();
        let retry_after = self.refusal.details().find(|(name, _)| *name == "retry_after_seconds");
        if let Some(value) = retry_after.and_then(|(_, seconds)| HeaderValue::try_from(seconds.to_string()).ok()) {
            headers.insert(header::RETRY_AFTER, value);
        }
        challenge::add(headers, &self.refusal, challenge::Request::default());
        response
    }
}

pub(crate) fn status_of(refusal: &Refusal) -> StatusCode {
    match refusal.kind() == refusal.code().kind() {
        true => status(refusal.code()),
        // A total that is used up, which time does not change.
        false => StatusCode::FORBIDDEN,
    }
}

/// The SDK raises its `ValidationError` for 400 only, so whatever is wrong with a request itself is 400.
pub(crate) fn status(code: Code) -> StatusCode {
    match code {
        Code::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Code::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Code::VersionRequired => StatusCode::PRECONDITION_REQUIRED,
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
