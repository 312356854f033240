//! An operation of the protocol as a call of the pipeline.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use http::HeaderMap;
use serde_json::{Map, Value, json};
use toolgate_gate::Caller;
use toolgate_gate::call::{CallRequest, DetachedView, Invoked, Presence, Repeated};
use toolgate_gate::ports::ledger::DetachedCall;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::a2a::{A2aError, Binding, ErrorKind, Offered, Operation, Version};
use toolgate_model::credential::ServiceName;
use toolgate_model::id::InvocationId;

use super::spoken::Spoken;
use super::{card, outcome, stream, version};
use crate::router::App;
use crate::shutdown::Phase;

/// How long a call that waits for an approver is held: official clients give up after five seconds without a byte.
const HOLD: Duration = Duration::from_secs(4);

/// What a client asks for.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) operation: Operation,
    pub(super) params: Map<String, Value>,
    pub(super) spoken: Spoken,
}

/// A request on its way.
pub(super) struct Context {
    pub(super) app: Arc<App>,
    pub(super) caller: Caller,
    pub(super) peer: ServiceName,
    pub(super) spoken: Spoken,
    pub(super) operation: Operation,
    pub(super) headers: HeaderMap,
    pub(super) presence: Presence,
    pub(super) address: IpAddr,
}

impl Context {
    /// Makes the call, and answers in the form of the client.
    pub(super) async fn respond(self, params: Map<String, Value>) -> Response {
        if self.operation.is_push() {
            return self.spoken.error(&self.missing().await);
        }
        let tool = self.operation.tool(self.spoken.version, self.spoken.binding);
        let presence = Some(self.presence.clone());
        let request = CallRequest { presence, ..CallRequest::new(self.peer.with_tool(&tool), params, self.address) };
        if self.operation.streams() {
            return stream::respond(self, request).await;
        }
        match self.call(request).await {
            Ok(body) => self.spoken.result(body),
            Err(error) => self.spoken.error(&error),
        }
    }

    async fn call(&self, request: CallRequest) -> Result<Value, A2aError> {
        let pipeline = &self.app.gate.pipeline;
        let (id, view) = match pipeline.invoke_or_pick_up(self.caller.clone(), request).await {
            Ok(Repeated::New(Invoked::Completed(result))) => {
                return self.delivered(result.invocation, outcome::returned(result.invocation, result.outcome)).await;
            }
            Ok(Repeated::New(Invoked::Detached(id)) | Repeated::Known(id)) => (id, self.held(id).await),
            Err(denial) => return Err(self.explained(&denial.refusal, outcome::denied(&denial)).await),
        };
        match view {
            Ok(DetachedView::Open(call)) => Err(waiting(&call)),
            Ok(DetachedView::Ended(ended)) => {
                self.pick_up(id).await;
                match *ended {
                    Ok(result) => {
                        let returned = outcome::returned(result.invocation, result.outcome);
                        self.delivered(result.invocation, returned).await
                    }
                    Err(denial) => Err(outcome::denied(&denial)),
                }
            }
            Err(refusal) => {
                self.pick_up(id).await;
                Err(outcome::refused(&refusal))
            }
        }
    }

    /// What came of a call that goes on without its connection, once it has ended or its client cannot wait longer.
    async fn held(&self, id: InvocationId) -> Result<DetachedView, Refusal> {
        let reader = &self.app.gate.detached;
        tokio::select! {
            view = reader.detached_call_within(&self.caller, id, HOLD) => view,
            _ = self.app.shutdown.after(Phase::LameDuck) => reader.detached_call(&self.caller, id).await,
            () = self.presence.clone().gone() => reader.detached_call(&self.caller, id).await,
        }
    }

    async fn pick_up(&self, id: InvocationId) {
        if let Err(refusal) = self.app.gate.pipeline.picked_up(&self.caller, id).await {
            tracing::warn!(%id, %refusal, "the result of a call was fetched and could not be forgotten");
        }
    }

    /// What the client gets of a result: a card that leads to the gate, anything else as it is.
    async fn delivered(&self, _: InvocationId, returned: Result<Value, A2aError>) -> Result<Value, A2aError> {
        let body = returned?;
        if self.operation != Operation::Card {
            return Ok(body);
        }
        let extended = card::extended(&self.app, &self.caller, &self.headers, &self.peer, &body).await;
        extended.map_err(|refusal| outcome::refused(&refusal))
    }

    /// Why a call was refused. Of an agent that the caller may use it is said what is missing.
    pub(super) async fn explained(&self, refusal: &Refusal, error: A2aError) -> A2aError {
        match refusal.code() {
            Code::ToolNotFound | Code::ServiceNotFound | Code::GrantNotFound | Code::GrantScopeInsufficient => {
                self.missing().await
            }
            _ => error,
        }
    }

    /// Why an agent has no such tool for this caller. One that the caller may not use at all does not exist.
    async fn missing(&self) -> A2aError {
        let error = |kind: ErrorKind, reason: &str| A2aError::new(kind, reason, Map::new());
        let card = match self.app.gate.mounts.accepted_card(&self.caller, &self.peer).await {
            Ok(Some(card)) => card,
            Ok(None) => return error(ErrorKind::TaskNotFound, "there is no such agent"),
            Err(refusal) => return outcome::refused(&refusal),
        };
        if self.operation.is_push() {
            return error(ErrorKind::PushNotificationNotSupported, "push notifications do not pass this gate");
        }
        let offered = Offered::of_card(&card);
        let is_spoken = match (self.spoken.version, self.spoken.binding) {
            (Version::V1_0, _) => offered.modern.is_some(),
            (Version::V0_3, Binding::JsonRpc) => offered.legacy.is_some(),
            (Version::V0_3, Binding::HttpJson) => offered.legacy_http.is_some(),
        };
        if !is_spoken {
            return version::unsupported("the agent does not speak this version over this binding; see its card");
        }
        let is_declared = match self.operation {
            Operation::Stream | Operation::Subscribe => card.pointer("/capabilities/streaming") == Some(&json!(true)),
            Operation::Card => false,
            _ => true,
        };
        if !is_declared {
            return error(ErrorKind::UnsupportedOperation, "the agent does not offer this operation; see its card");
        }
        let reason = format!("you hold no grant with the scope {} for this agent", self.operation.scope());
        error(ErrorKind::Denied, &reason)
    }
}

/// A call that waits for a person: nothing was sent, and the same message again gets what comes of it.
fn waiting(call: &DetachedCall) -> A2aError {
    let mut metadata = Map::from_iter([
        ("code".to_owned(), json!(Code::ApprovalRequired.as_str())),
        ("reason".to_owned(), json!("approval_required")),
        ("invocation_id".to_owned(), json!(call.id)),
    ]);
    let approval = call.asked.last().map(|asked| asked.approval);
    metadata.extend(approval.map(|id| ("approval_id".to_owned(), json!(id))));
    let which = approval.map(|id| format!(" ({id})")).unwrap_or_default();
    let reason = format!(
        "this call waits for a person's approval{which}; nothing was sent. Send the same message again later: it is not \
         asked for twice"
    );
    A2aError::new(ErrorKind::Denied, reason, metadata)
}
