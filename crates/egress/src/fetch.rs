//! The guarded fetch: one request without a credential, over the same client as every other call, so that it can reach
//! nothing that they cannot.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use toolgate_gate::ports::source::{ServiceResponse, SourceFailure};
use toolgate_gate::ports::telemetry::TracedCall;
use toolgate_model::service::RenderedRequest;

use crate::adapter::{add_trace, failure, not_executable};
use crate::body::DEFAULT_BODY_LIMIT;
use crate::client::{GuardedClient, OutboundRequest};
use crate::connectors::result;
use crate::pool::PoolKey;
use toolgate_model::redaction::Redactor;

/// Sends the request and returns the response, whatever its status.
pub(crate) async fn fetch(
    client: &GuardedClient,
    pool: PoolKey,
    request: &RenderedRequest,
    traced: Option<&TracedCall>,
    deadline: Instant,
) -> Result<ServiceResponse, SourceFailure> {
    let unusable = |_| not_executable("the request cannot be written");
    let mut headers = HeaderMap::with_capacity(request.headers.len() + 1);
    for (name, value) in &request.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable(()))?;
        headers.insert(name, HeaderValue::from_str(value).map_err(|_| unusable(()))?);
    }
    add_trace(&mut headers, traced);
    let body = match &request.body {
        Some(body) => {
            let kind = HeaderValue::from_str(&body.content_type).map_err(|_| unusable(()))?;
            headers.insert(header::CONTENT_TYPE, kind);
            Bytes::copy_from_slice(&body.bytes)
        }
        None => Bytes::new(),
    };
    let method = Method::from_bytes(request.method.as_str().as_bytes()).map_err(|_| unusable(()))?;
    let outbound = OutboundRequest {
        pool,
        method,
        url: &request.url,
        headers,
        body,
        deadline,
        hosts: &[],
        ca_certificate: None,
        body_limit: DEFAULT_BODY_LIMIT,
    };
    let response = client.send(outbound).await.map_err(|error| failure(&error))?;
    let (status, truncated) = (response.status, response.truncated);
    let headers = shown(&response.headers);
    // It contains no secret that the gate knows.
    let body = result(response, &Redactor::none());
    let result = json!({"status": status, "headers": headers, "body": body});
    Ok(ServiceResponse { http_status: status, result, truncated })
}

/// The headers of a response, without those that set cookies.
fn shown(headers: &HeaderMap) -> Map<String, Value> {
    let mut shown = Map::new();
    for (name, value) in headers {
        if let (true, Ok(value)) = (name != header::SET_COOKIE, value.to_str()) {
            shown.insert(name.as_str().to_owned(), Value::from(value));
        }
    }
    shown
}
