//! The gate's source for tools behind HTTP services. It picks the adapter, sends, and takes every form of the secret out
//! of the answer before anybody else sees it.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header;
use serde_json::{Value, json};
use toolgate_gate::call::{Admitted, Target};
use toolgate_gate::ports::clock::Clock;
use toolgate_gate::ports::source::{Access, Execution, FailureKind, ServiceAnswer, Source, SourceFailure};
use toolgate_model::connection::AdapterName;

use crate::adapter::{Adapter, Errand, OAuth2, Rest, Webhook, not_executable};
use crate::body::InboundAnswer;
use crate::client::GuardedClient;
use crate::fetch;
use crate::pool::PoolKey;
use crate::time::deadline_after;
use toolgate_model::redaction::Redactor;

/// From this many bytes on an answer is read beside the calls, not among them.
const LARGE: usize = 8 * 1024;

/// Calls services over HTTP.
pub struct Connectors {
    client: GuardedClient,
    clock: Arc<dyn Clock>,
}

impl Connectors {
    /// Over this client.
    pub fn new(client: GuardedClient, clock: Arc<dyn Clock>) -> Self {
        Self { client, clock }
    }
}

#[async_trait]
impl Source for Connectors {
    async fn execute(&self, call: &Admitted, access: Option<Access<'_>>) -> Execution {
        match (call.target(), access) {
            (Some(Target::Connector { credential, connection, adapter: name, placement, request }), Some(access)) => {
                let mut redactor = Redactor::new(&access.material);
                let hosts = call.allowed_hosts();
                let errand = Errand {
                    invocation: call.invocation().id,
                    credential: credential.id,
                    auth_type: credential.auth_type,
                    connection,
                    placement,
                    tool: call.tool(),
                    parameters: call.parameters(),
                    request,
                    hosts: &hosts,
                    deadline: deadline_after(call.deadline()),
                    now: self.clock.now(),
                    material: access.material,
                    renewal: access.renewal,
                };
                let answered = adapter(name).carry_out(&self.client, errand, &mut redactor).await;
                match answered {
                    Ok(answer) => judge(call, answer, redactor).await,
                    Err(mut failure) => {
                        redactor.redact_text(&mut failure.reason);
                        if let Some(result) = &mut failure.result {
                            redactor.redact_json(result);
                        }
                        Err(failure)
                    }
                }
            }
            (Some(Target::Fetch(request)), _) => {
                let invocation = call.invocation();
                let pool = PoolKey::of_agent(&invocation.tenant, &invocation.agent);
                fetch::fetch(&self.client, pool, request, deadline_after(call.deadline())).await
            }
            (Some(Target::Conformance { fails: false }), _) => Ok(ServiceAnswer::said(json!({}))),
            (Some(Target::Conformance { fails: true }), _) => {
                let failure = SourceFailure { sent: true, ..not_executable("the tool was asked to fail") };
                Err(SourceFailure { kind: FailureKind::Service, ..failure })
            }
            // INVARIANT: the gate gives these to others.
            (Some(Target::Workspace | Target::Question { .. } | Target::External), _) => {
                Err(not_executable("it is no tool of a service"))
            }
            (None | Some(Target::Connector { .. }), _) => Err(not_executable("the credential's metadata is wrong")),
        }
    }
}

fn adapter(name: AdapterName) -> &'static dyn Adapter {
    match name {
        AdapterName::OAuth2 => &OAuth2,
        AdapterName::Rest => &Rest,
        AdapterName::Webhook => &Webhook,
    }
}

async fn judge(call: &Admitted, answer: InboundAnswer, redactor: Redactor) -> Result<ServiceAnswer, SourceFailure> {
    let (status, truncated) = (answer.status, answer.truncated);
    let result = if answer.body.len() <= LARGE {
        result(answer, &redactor)
    } else {
        // A large answer, above all one made to be hard to read, must not keep other calls waiting.
        let read = tokio::task::spawn_blocking(move || result(answer, &redactor)).await;
        read.map_err(|_| unreadable(status))?
    };
    if call.is_success(status) {
        return Ok(ServiceAnswer { http_status: status, result, truncated });
    }
    Err(SourceFailure {
        kind: FailureKind::Service,
        reason: format!("the service answered with status {status}"),
        http_status: Some(status),
        result: Some(result).filter(|result| !result.is_null()),
        truncated,
        sent: true,
        timed_out: false,
    })
}

fn unreadable(status: u16) -> SourceFailure {
    SourceFailure {
        kind: FailureKind::Proxy,
        reason: "the service's answer could not be read".to_owned(),
        http_status: Some(status),
        result: None,
        truncated: false,
        sent: true,
        timed_out: false,
    }
}

/// What the service said, without the secret: JSON as it is, anything else wrapped.
pub(crate) fn result(answer: InboundAnswer, redactor: &Redactor) -> Value {
    let mut body = answer.body;
    if body.is_empty() {
        return Value::Null;
    }
    let content_type = answer.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    // A service that speaks of text means text, even where it could be read as JSON.
    let is_json = !answer.truncated && !content_type.is_some_and(|kind| kind.starts_with("text/plain"));
    let parsed = if is_json { serde_json::from_slice(&body).ok() } else { None };
    let mut result = parsed.unwrap_or_else(|| {
        if answer.truncated {
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
