//! The gate's source for tools behind HTTP services. It selects the adapter, sends the request, and redacts every form
//! of the secret from the response before it is passed on.

use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use toolgate_gate::call::{Admitted, CallCredential};
use toolgate_gate::ports::clock::Clock;
use toolgate_gate::ports::source::{
    Access, Execution, FailureKind, Reservation, ServiceResponse, Source, SourceFailure,
};
use toolgate_gate::{Action, Code, Refusal};
use toolgate_model::connection::AdapterName;
use toolgate_model::service::RenderedRequest;
use toolgate_model::step::Step;
use toolgate_model::strict_json;

use crate::adapter::{Adapter, EventSlot, OAuth2, OutboundCall, Rest, Webhook, not_executable};
use crate::body::{DEFAULT_BODY_LIMIT, InboundResponse};
use crate::client::GuardedClient;
use crate::fetch;
use crate::offload::{Late, Offload};
use crate::pool::PoolKey;
use crate::time::deadline_after;
use toolgate_model::redaction::Redactor;

mod stream;

/// From this size, in bytes, a response is processed on another thread.
pub(crate) const LARGE: usize = 8 * 1024;

/// Calls services over HTTP.
pub struct Connectors {
    pub(crate) client: Arc<GuardedClient>,
    pub(crate) clock: Arc<dyn Clock>,
    /// One for each connection that calls may have open.
    pub(crate) places: Arc<Semaphore>,
    pub(crate) most: usize,
    pub(crate) offload: Arc<Offload>,
}

impl Connectors {
    /// Over this client, with so many calls in flight at most.
    pub fn new(client: GuardedClient, clock: Arc<dyn Clock>, most: usize) -> Self {
        Self {
            client: Arc::new(client),
            clock,
            places: Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))),
            most,
            offload: Arc::new(Offload::new()),
        }
    }
}

#[async_trait]
impl Source for Connectors {
    fn executes(&self, action: Action) -> bool {
        matches!(action, Action::Http | Action::Fetch)
    }

    fn reserve(&self) -> Result<Reservation, Refusal> {
        reserve(&self.places, self.most)
    }

    async fn execute(&self, call: &Admitted, access: Option<Access<'_>>) -> Execution {
        let deadline = deadline_after(call.deadline());
        match (call.action(), call.request(), call.credential().zip(access)) {
            (Action::Http, Some(request), Some((used, access))) => {
                self.send(call, request, used, access, deadline).await
            }
            (Action::Fetch, Some(request), _) => {
                let invocation = call.invocation();
                let pool = PoolKey::of_agent(&invocation.tenant, &invocation.agent);
                fetch::fetch(&self.client, pool, request, call.traced(), deadline).await
            }
            // INVARIANT: the gate passes a request, and the secret of its credential where the action needs one.
            _ => Err(not_executable("the credential's metadata is wrong")),
        }
    }
}

impl Connectors {
    /// Sends a request with its credential, through the adapter of the credential.
    async fn send(
        &self,
        call: &Admitted,
        request: &RenderedRequest,
        used: CallCredential<'_>,
        access: Access<'_>,
        deadline: Instant,
    ) -> Execution {
        let CallCredential { credential, connection, adapter: name, placement } = used;
        let mut redactor = access.redactor;
        let hosts = call.allowed_hosts();
        let slot = EventSlot::default();
        let outbound = OutboundCall {
            invocation: call.invocation().id,
            pool: credential.id.into(),
            auth_type: credential.auth_type,
            connection,
            placement,
            tool: call.tool(),
            parameters: call.parameters(),
            request,
            hosts: &hosts,
            deadline,
            now: self.clock.now(),
            material: &access.material,
            renewal: access.renewal,
            traced: call.traced(),
            more_headers: &[],
            events: access.stream.is_some().then_some(&slot),
            body_limit: result_limit(call),
        };
        match adapter(name).carry_out(&self.client, outbound, &mut redactor).await {
            Ok(response) => match (access.stream, slot.into_inner().unwrap_or_else(PoisonError::into_inner)) {
                (Some(stream), Some(events)) => stream::forward(events, &redactor, stream).await,
                _ => judge(call, response, redactor, deadline, &self.offload).await,
            },
            Err(mut failure) => {
                redactor.redact_text(&mut failure.reason);
                if let Some(result) = &mut failure.result {
                    redactor.redact_json(result);
                }
                Err(failure)
            }
        }
    }
}

/// How long the result of a call may be, in bytes.
fn result_limit(call: &Admitted) -> usize {
    call.definition().step.as_ref().and_then(Step::result_limit).unwrap_or(DEFAULT_BODY_LIMIT)
}

/// A place for the connection of a call.
pub(crate) fn reserve(places: &Arc<Semaphore>, most: usize) -> Result<Reservation, Refusal> {
    Arc::clone(places).try_acquire_owned().map(Reservation::from).map_err(|_| {
        let reason = format!(
            "{most} calls to services are in flight, the maximum; try again, or raise egress.max_connections and the \
             limit of open files"
        );
        Refusal::new(Code::Overloaded, reason).with("limit", most).with("retry_after_seconds", 1)
    })
}

pub(crate) fn adapter(name: AdapterName) -> &'static dyn Adapter {
    match name {
        AdapterName::OAuth2 => &OAuth2,
        AdapterName::Rest => &Rest,
        AdapterName::Webhook => &Webhook,
    }
}

async fn judge(
    call: &Admitted,
    response: InboundResponse,
    redactor: Redactor,
    deadline: Instant,
    offload: &Offload,
) -> Result<ServiceResponse, SourceFailure> {
    let (status, truncated) = (response.status, response.truncated);
    let result = if response.body.len() <= LARGE {
        result(response, &redactor)
    } else {
        // A large response, in particular one made to be expensive, must not delay other calls.
        let invocation = call.invocation();
        let agent = (&invocation.tenant, &invocation.agent);
        offload.run(agent, deadline, move || result(response, &redactor)).await.map_err(|late| match late {
            Late::Deadline => SourceFailure { timed_out: true, ..unreadable(status, Late::Deadline) },
            Late::Broken => unreadable(status, Late::Broken),
        })?
    };
    if call.is_success(status) {
        return Ok(ServiceResponse { http_status: status, result, truncated });
    }
    Err(SourceFailure {
        http_status: Some(status),
        result: Some(result).filter(|result| !result.is_null()),
        truncated,
        sent: true,
        ..SourceFailure::not_sent(FailureKind::Service, format!("the service returned status {status}"))
    })
}

fn unreadable(status: u16, why: Late) -> SourceFailure {
    let reason = match why {
        Late::Deadline => "the call timed out while the service's response was redacted; request less",
        Late::Broken => "the service's response could not be read",
    };
    SourceFailure { http_status: Some(status), sent: true, ..SourceFailure::not_sent(FailureKind::Proxy, reason) }
}

/// The redacted response: JSON as it is, anything else wrapped. JSON that cannot be represented exactly, because a
/// number would lose digits or a key appears twice, is wrapped as text, which loses nothing.
pub(crate) fn result(response: InboundResponse, redactor: &Redactor) -> Value {
    let mut body = response.body;
    if body.is_empty() {
        return Value::Null;
    }
    let content_type = response.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    // A response declared as text is text, even if it could be parsed as JSON.
    let is_json = !response.truncated && !content_type.is_some_and(|kind| kind.starts_with("text/plain"));
    let parsed = if is_json { strict_json::parse(&body).ok() } else { None };
    let mut result = parsed.unwrap_or_else(|| {
        if response.truncated {
            redactor.redact_cut_off(&mut body);
            drop_half_character(&mut body);
        } else {
            redactor.redact_bytes(&mut body);
        }
        match String::from_utf8(body) {
            Ok(text) => json!({"raw": text, "content_type": content_type}),
            Err(binary) => json!({"base64": STANDARD.encode(binary.as_bytes()), "content_type": content_type}),
        }
    });
    // After parsing, so that no spelling of JSON hides anything.
    redactor.redact_json(&mut result);
    result
}

/// Text that was cut off inside of its last character is still text.
fn drop_half_character(body: &mut Vec<u8>) {
    if let Err(error) = std::str::from_utf8(body)
        && error.error_len().is_none()
    {
        body.truncate(error.valid_up_to());
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};
    use toolgate_model::secret::{Material, Secret};

    use super::*;

    fn result_of(body: &str) -> Value {
        let mut material = Material::new();
        material.insert("token".to_owned(), Secret::new("hunter2-hunter2".to_owned()));
        let redactor = Redactor::new(&material);
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        result(InboundResponse { status: 200, headers, body: body.as_bytes().to_vec(), truncated: false }, &redactor)
    }

    #[test]
    fn numbers_of_a_result_keep_all_their_digits() {
        let numbers = result_of(r#"{"id": 9007199254740993, "most": 18446744073709551615, "price": 0.1}"#);
        assert_eq!(numbers, json!({"id": 9_007_199_254_740_993_u64, "most": u64::MAX, "price": 0.1}));
    }

    #[test]
    fn a_body_that_would_lose_something_as_json_is_passed_on_as_text_without_the_secret() {
        for body in [
            r#"{"id": 18446744073709551616, "k": "KEY"}"#,
            r#"{"balance": 5000.00000000000000000000001, "k": "KEY"}"#,
            r#"{"tiny": 1e-400, "k": "KEY"}"#,
            r#"{"twice": 1, "twice": 2, "k": "KEY"}"#,
        ] {
            for spelling in ["hunter2-hunter2", r"\u0068unter2-hunter2"] {
                let expected = json!({"raw": body.replace("KEY", "[REDACTED]"), "content_type": "application/json"});
                assert_eq!(result_of(&body.replace("KEY", spelling)), expected);
            }
        }
    }
}
