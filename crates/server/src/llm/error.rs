//! Refusals and failures in the form that the clients of each vendor show. A client retries what may pass; a refusal would
//! not, and says so.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use toolgate_gate::call::{CallError, Denial};
use toolgate_gate::refusal::{Code, Kind, Refusal};
use toolgate_gate::request_context::RequestContext;
use toolgate_model::id::InvocationId;
use toolgate_model::llm::Vendor;

use crate::openintent::error::status;

const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// The maximum of `retry-after` in seconds: one vendor's client obeys any value.
const LONGEST_WAIT: u64 = 60;

/// The error that a client gets instead of a response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) code: String,
    pub(crate) message: String,
    /// The parameter that is wrong.
    parameter: Option<String>,
    retry_after: Option<u64>,
    /// Whether the same request may succeed.
    may_retry: bool,
    /// The provider's own error, which says more.
    body: Option<Box<Value>>,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        Self {
            status,
            code: code.to_owned(),
            message: message.into(),
            parameter: None,
            retry_after: None,
            may_retry: false,
            body: None,
        }
    }

    /// An unknown provider, model or path: all of them are unknown to callers that may not use them.
    pub(crate) fn not_there() -> Self {
        let reason = "there is no such model or path, or the key may not use it; see docs/models.md";
        Self::new(StatusCode::NOT_FOUND, "not_found", reason)
    }

    pub(crate) fn of_refusal(refusal: &Refusal, invocation: Option<InvocationId>) -> Self {
        let details = refusal.details().map(|(name, value)| (name.to_owned(), value.clone())).collect();
        let error =
            CallError { code: refusal.code().as_str().to_owned(), message: refusal.reason().to_owned(), details };
        Self::of_code(refusal.code(), refusal.kind(), &error, invocation)
    }

    pub(crate) fn of_denial(denial: &Denial) -> Self {
        Self::of_refusal(&denial.refusal, denial.invocation)
    }

    /// The failure of a call that was admitted.
    pub(crate) fn of_error(error: &CallError, result: Option<Value>, invocation: InvocationId) -> Self {
        let code = Code::ALL.iter().find(|code| code.as_str() == error.code).copied().unwrap_or(Code::Internal);
        let failure = Self::of_code(code, code.kind(), error, Some(invocation));
        let number = error.details.get("http_status").and_then(Value::as_u64);
        let stated = number.and_then(|status| StatusCode::from_u16(u16::try_from(status).ok()?).ok());
        match (code, stated) {
            (Code::ServiceError, Some(status)) if status.as_u16() >= 400 => {
                let body = result.filter(|body| body.get("error").is_some()).map(Box::new);
                Self { status, may_retry: true, body, ..failure }
            }
            (Code::ServiceError | Code::ProxyError, _) => Self { may_retry: true, ..failure },
            _ => failure,
        }
    }

    fn of_code(code: Code, kind: Kind, error: &CallError, invocation: Option<InvocationId>) -> Self {
        let text = |name: &str| error.details.get(name).and_then(Value::as_str).map(str::to_owned);
        let parameter = text("path").map(|path| path.trim_start_matches("parameters.").to_owned());
        let is_model = matches!(code, Code::ParametersInvalid | Code::GrantParameterDenied)
            && parameter.as_deref() == Some("model");
        if is_model || kind == Kind::NotFound {
            return Self::not_there();
        }
        let (status, name) = match code {
            // A client that retries a spent budget spends nothing, over and over.
            Code::BudgetExceeded => (StatusCode::FORBIDDEN, "budget_exceeded".to_owned()),
            Code::GuardianFailed | Code::GuardianTimedOut => {
                (StatusCode::SERVICE_UNAVAILABLE, "guardian_unavailable".to_owned())
            }
            code => (status(code), code.as_str().to_ascii_lowercase()),
        };
        let wait = error.details.get("retry_after_seconds").and_then(Value::as_u64);
        let message = match invocation {
            Some(id) => format!("{} (invocation {id})", error.message),
            None => error.message.clone(),
        };
        Self {
            parameter,
            retry_after: wait.filter(|_| status == StatusCode::TOO_MANY_REQUESTS).map(|wait| wait.min(LONGEST_WAIT)),
            ..Self::new(status, &name, message)
        }
    }

    /// The class of the error, in the words of each vendor.
    fn kind(&self, vendor: Vendor) -> &'static str {
        match (self.status.as_u16(), vendor) {
            (401, _) => "authentication_error",
            (403, _) if self.code == "budget_exceeded" && vendor == Vendor::Anthropic => "billing_error",
            (403, _) => "permission_error",
            (404, Vendor::Anthropic) => "not_found_error",
            (409, Vendor::Anthropic) => "conflict_error",
            (429, _) => "rate_limit_error",
            (504, Vendor::Anthropic) => "timeout_error",
            (503 | 529, Vendor::Anthropic) => "overloaded_error",
            (500.., Vendor::Anthropic) => "api_error",
            (500.., Vendor::OpenAi) => "server_error",
            _ => "invalid_request_error",
        }
    }

    /// The error itself, as it is in bodies and in streams.
    pub(crate) fn to_json(&self, vendor: Vendor) -> Value {
        if let Some(body) = &self.body {
            return body.as_ref().clone();
        }
        let kind = self.kind(vendor);
        match vendor {
            Vendor::OpenAi => json!({"error": {
                "message": self.message, "type": kind, "param": self.parameter, "code": self.code,
            }}),
            Vendor::Anthropic => json!({
                "type": "error",
                "error": {"type": kind, "message": self.message, "details": {"error_code": self.code}},
                "request_id": RequestContext::current().map(|current| current.id.to_string()),
            }),
        }
    }

    pub(crate) fn response(&self, vendor: Vendor) -> Response {
        let mut response = (self.status, Json(self.to_json(vendor))).into_response();
        let headers = response.headers_mut();
        if !self.may_retry {
            headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        if let Some(wait) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait));
        }
        response
    }
}

/// Whose client sent a request whose path does not say.
pub(crate) fn vendor_of(path: &str, headers: &HeaderMap) -> Vendor {
    match path.contains("/v1/messages") || headers.contains_key("anthropic-version") {
        true => Vendor::Anthropic,
        false => Vendor::OpenAi,
    }
}
