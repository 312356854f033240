//! Adapters: how a call of one kind of service becomes an exchange. To add one: a file beside these, a name in the
//! model's `AdapterName`, and a line in `Connectors`.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde_json::Value;
use tokio::time::Instant;
use toolgate_gate::ports::source::{FailureKind, Renewal, SourceFailure};
use toolgate_gate::ports::telemetry::TracedCall;
use toolgate_model::connection::{AuthPlacement, Connection};
use toolgate_model::constraint::HostSet;
use toolgate_model::credential::AuthType;
use toolgate_model::id::InvocationId;
use toolgate_model::secret::{Material, Secret};
use toolgate_model::service::{RenderedRequest, ToolName};
use toolgate_model::time::Timestamp;
use url::Url;

use crate::body::InboundResponse;
use crate::client::{GuardedClient, OpenResponse, OutboundRequest};
use crate::error::SendError;
use crate::pool::PoolKey;
use toolgate_model::redaction::Redactor;

pub(crate) use self::oauth2::OAuth2;
pub(crate) use self::rest::Rest;
pub(crate) use self::webhook::Webhook;

mod oauth2;
mod rest;
mod webhook;

#[cfg(test)]
mod tests;

/// What one call needs to be sent: its own secret and no other.
pub(crate) struct OutboundCall<'a> {
    pub(crate) invocation: InvocationId,
    /// With whom its connections are shared.
    pub(crate) pool: PoolKey,
    pub(crate) auth_type: AuthType,
    pub(crate) connection: &'a Connection,
    pub(crate) placement: &'a AuthPlacement,
    pub(crate) tool: &'a ToolName,
    pub(crate) parameters: &'a Value,
    pub(crate) request: &'a RenderedRequest,
    pub(crate) hosts: &'a [&'a HostSet],
    pub(crate) deadline: Instant,
    pub(crate) now: Timestamp,
    pub(crate) material: &'a Material,
    pub(crate) renewal: &'a dyn Renewal,
    pub(crate) traced: Option<&'a TracedCall>,
    /// Headers besides those of the request, ready to be sent.
    pub(crate) more_headers: &'a [(HeaderName, HeaderValue)],
    /// Takes a response that is a stream of events, of which then nothing is read here.
    pub(crate) events: Option<&'a EventSlot>,
    /// The limit of the response body.
    pub(crate) body_limit: usize,
}

/// Where the stream of events goes that a service responds with.
pub(crate) type EventSlot = Mutex<Option<OpenResponse>>;

/// Sends calls of one kind.
#[async_trait]
pub(crate) trait Adapter: Send + Sync {
    /// Sends the call. Secrets that are obtained on the way are added to the redactor before anything is returned.
    async fn carry_out(
        &self,
        client: &GuardedClient,
        outbound: OutboundCall<'_>,
        redactor: &mut Redactor,
    ) -> Result<InboundResponse, SourceFailure>;
}

impl OutboundCall<'_> {
    /// Sends the rendered request with these further headers, to this URL where it differs.
    pub(crate) async fn send(
        &self,
        client: &GuardedClient,
        url: &Url,
        further: Vec<(HeaderName, HeaderValue)>,
    ) -> Result<InboundResponse, SourceFailure> {
        let mut headers = self.headers()?;
        let body = match &self.request.body {
            Some(body) => {
                let kind = HeaderValue::from_str(&body.content_type).map_err(|_| unusable("the content type"))?;
                headers.insert(header::CONTENT_TYPE, kind);
                Bytes::copy_from_slice(&body.bytes)
            }
            None => Bytes::new(),
        };
        // Last, replacing existing values, so that nothing else can take the place of the credential.
        for (name, value) in further {
            headers.insert(name, value);
        }
        let method = Method::from_bytes(self.request.method.as_str().as_bytes()).map_err(|_| unusable("the method"))?;
        self.exchange(client, method, url, headers, body).await
    }

    /// The headers of the rendered request.
    pub(crate) fn headers(&self) -> Result<HeaderMap, SourceFailure> {
        let mut headers = HeaderMap::with_capacity(self.request.headers.len() + self.more_headers.len() + 8);
        for (name, value) in &self.request.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable("a header's name"))?;
            headers.insert(name, HeaderValue::from_str(value).map_err(|_| unusable("a header's value"))?);
        }
        headers.extend(self.more_headers.iter().cloned());
        add_trace(&mut headers, self.traced);
        Ok(headers)
    }

    /// One exchange with the service, within the remaining time of the call.
    pub(crate) async fn exchange(
        &self,
        client: &GuardedClient,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<InboundResponse, SourceFailure> {
        let outbound = OutboundRequest {
            pool: self.pool,
            method,
            url,
            headers,
            body,
            deadline: self.deadline,
            hosts: self.hosts,
            ca_certificate: self.connection.ca_certificate.as_deref(),
            body_limit: self.body_limit,
        };
        let response = client.open(outbound).await.map_err(|error| failure(&error))?;
        if let Some(slot) = self.events.filter(|_| response.is_event_stream()) {
            let head = InboundResponse {
                status: response.status(),
                headers: response.headers().clone(),
                body: Vec::new(),
                truncated: false,
            };
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(response);
            return Ok(head);
        }
        response.read(self.body_limit).await.map_err(|error| failure(&error))
    }
}

/// Adds the trace of the call, unless the request has its own `traceparent`.
pub(crate) fn add_trace(headers: &mut HeaderMap, traced: Option<&TracedCall>) {
    const PARENT: HeaderName = HeaderName::from_static("traceparent");
    const STATE: HeaderName = HeaderName::from_static("tracestate");
    let Some(traced) = traced.filter(|_| !headers.contains_key(PARENT)) else { return };
    // INVARIANT: hexadecimal digits and hyphens.
    let Ok(parent) = HeaderValue::from_str(&traced.context.to_string()) else { return };
    headers.insert(PARENT, parent);
    match traced.state.as_deref().map(HeaderValue::from_str) {
        Some(Ok(state)) => headers.insert(STATE, state),
        // State of another trace does not belong to this one.
        _ => headers.remove(STATE),
    };
}

/// The failure of an exchange without a response.
pub(crate) fn failure(error: &SendError) -> SourceFailure {
    SourceFailure {
        kind: match error {
            error if error.is_blocked() => FailureKind::Blocked,
            error if error.is_overload() => FailureKind::Overloaded,
            _ => FailureKind::Proxy,
        },
        reason: error.to_string(),
        http_status: None,
        result: None,
        truncated: false,
        sent: error.reached_service(),
        timed_out: matches!(error, SendError::TimedOut { .. } | SendError::LookupTimedOut { .. }),
        input: None,
    }
}

/// The failure of a call that cannot become a request.
pub(crate) fn not_executable(reason: impl Into<String>) -> SourceFailure {
    SourceFailure::not_sent(FailureKind::NotExecutable, reason)
}

fn unusable(what: &str) -> SourceFailure {
    not_executable(format!("{what} is not valid in a request; correct the tool's HTTP mapping"))
}

/// The first of these fields that the material has.
pub(crate) fn first_field<'a>(material: &'a Material, names: &[&str]) -> Result<&'a Secret, SourceFailure> {
    names.iter().find_map(|name| material.get(name)).ok_or_else(|| {
        not_executable(format!("the credential has no `{}`; rotate it with one", names.first().unwrap_or(&"secret")))
    })
}

/// A header whose value is never printed, not even by `Debug`.
pub(crate) fn secret_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), SourceFailure> {
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
        not_executable("the credential's header name is not valid; correct `metadata.auth.header_name`")
    })?;
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        not_executable("the credential cannot be sent in a header: it has line breaks or control characters")
    })?;
    value.set_sensitive(true);
    Ok((name, value))
}
