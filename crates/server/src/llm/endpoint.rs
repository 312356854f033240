//! A request to a model: one call of the pipeline, or several, one after the other, where providers fail.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::Value;
use toolgate_gate::call::CallResult;
use toolgate_gate::request_context::in_current_request;
use toolgate_model::llm::Api;

use super::attempt::{Attempt, Begun};
use super::error::Failure;
use super::fail_over::{Target, may_pass_elsewhere, targets};
use super::request::ModelRequest;
use super::streaming;
use crate::router::App;

const MODEL: HeaderName = HeaderName::from_static("x-toolgate-model");
const PROVIDER: HeaderName = HeaderName::from_static("x-toolgate-provider");
const INVOCATION: HeaderName = HeaderName::from_static("x-toolgate-invocation");

pub(super) async fn call(
    api: Api,
    State(app): State<Arc<App>>,
    Path(provider): Path<String>,
    request: Request,
) -> Response {
    let responding = in_current_request(respond(api, app, provider, request));
    responding.await.unwrap_or_else(|failure| failure.response(api.vendor()))
}

async fn respond(api: Api, app: Arc<App>, provider: String, request: Request) -> Result<Response, Failure> {
    let request = ModelRequest::read(api, app, &provider, request).await?;
    let mut first: Option<Failure> = None;
    for target in targets(&request) {
        let attempt = Attempt::start(&request, &target);
        let failure = match attempt.begun().await {
            Begun::Streams(answer) => return Ok(headed(streaming::response(api, *answer), &target)),
            Begun::Ended(Ok(result)) => match of_result(*result) {
                Ok(answer) => return Ok(headed(answer, &target)),
                Err(failure) => failure,
            },
            Begun::Ended(Err(denial)) => Failure::of_denial(&denial),
        };
        let passes_elsewhere = may_pass_elsewhere(&failure);
        // What the first provider said is what the client knows about.
        let failure = match first.take() {
            Some(first) if !passes_elsewhere => first,
            _ => failure,
        };
        if !passes_elsewhere {
            return Err(failure);
        }
        first = Some(failure);
    }
    Err(first.unwrap_or_else(Failure::not_there))
}

/// The answer of a provider as a whole.
fn of_result(result: CallResult) -> Result<Response, Failure> {
    let (invocation, outcome) = (result.invocation, result.outcome);
    if let Some(error) = &outcome.error {
        return Err(Failure::of_error(error, outcome.result, invocation));
    }
    let answer = outcome.result.unwrap_or(Value::Null);
    if outcome.truncated || answer.get("raw").is_some() || answer.get("base64").is_some() {
        let reason = "the provider's answer is not JSON, or too long";
        return Err(Failure::new(StatusCode::BAD_GATEWAY, "service_error", reason));
    }
    let mut response = axum::response::IntoResponse::into_response(axum::Json(answer));
    if let Ok(value) = HeaderValue::try_from(invocation.to_string()) {
        response.headers_mut().insert(INVOCATION, value);
    }
    Ok(response)
}

/// Says which provider and model answered.
fn headed(mut response: Response, target: &Target) -> Response {
    let headers: &mut HeaderMap = response.headers_mut();
    for (name, value) in [(PROVIDER, target.provider.as_str()), (MODEL, target.model.as_str())] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
    response
}
