//! Sources execute admitted calls. A source receives the one secret of the one call and nothing else, and returns
//! nothing of that secret.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use toolgate_model::client_input::{InputCapabilities, ServerState};
use toolgate_model::redaction::Redactor;
use toolgate_model::secret::Material;
use toolgate_model::service::RenderedRequest;

use crate::action::Action;
use crate::call::Admitted;
use crate::call::execute::GateSource;
use crate::ports::client_link::ClientLink;
use crate::ports::event_stream::EventStream;
use crate::ports::mount::MessageGuard;
use crate::refusal::Refusal;

/// The sources of a gate. Each executes its own actions; if two execute the same action, the one that was added first
/// is used.
#[derive(Clone)]
pub struct Sources(Vec<Arc<dyn Source>>);

impl Default for Sources {
    /// Only what needs nothing but the gate: questions and client-executed tools.
    fn default() -> Self {
        Self(vec![Arc::new(GateSource)])
    }
}

impl Sources {
    #[must_use]
    pub fn with(mut self, source: impl Source + 'static) -> Self {
        self.0.push(Arc::new(source));
        self
    }

    /// One that others use as well.
    #[must_use]
    pub fn sharing(mut self, source: Arc<dyn Source>) -> Self {
        self.0.push(source);
        self
    }

    pub(crate) fn of(&self, action: Action) -> Option<&Arc<dyn Source>> {
        self.0.iter().find(|source| source.executes(action))
    }
}

#[async_trait]
pub trait Source: Send + Sync {
    fn executes(&self, action: Action) -> bool;

    /// Reserves the resources of a call before it is admitted. Refused if none are left: then nothing was admitted, and
    /// the same call can be made later.
    fn reserve(&self) -> Result<Reservation, Refusal> {
        Ok(Reservation::default())
    }

    /// Executes one call, within its deadline, with access to the one credential that it needs, if it needs one.
    async fn execute(&self, call: &Admitted, access: Option<Access<'_>>) -> Execution;

    /// Sends one more request that belongs to a call which was executed, such as the one that stops what it has begun. Takes
    /// a few seconds at most.
    async fn follow_up(&self, _: &Admitted, _: Access<'_>, _: &RenderedRequest) -> Execution {
        Err(SourceFailure::not_sent(FailureKind::NotExecutable, "this source sends one request for a call"))
    }
}

/// The reserved resources of a call; released on drop.
#[derive(Debug, Default)]
pub struct Reservation {
    _permit: Option<OwnedSemaphorePermit>,
}

impl From<OwnedSemaphorePermit> for Reservation {
    fn from(permit: OwnedSemaphorePermit) -> Self {
        Self { _permit: Some(permit) }
    }
}

/// The one secret of the one call.
pub struct Access<'a> {
    pub material: Material,
    /// Finds every form of it in what the service returns.
    pub redactor: Redactor,
    /// Stores renewed material.
    pub renewal: &'a dyn Renewal,
    /// Guards the messages of protocols that have more than the request and the result of the call.
    pub messages: &'a dyn MessageGuard,
    /// The client of the call, if the service may ask it while it carries the call out.
    pub client: Option<&'a dyn ClientLink>,
    /// Takes the events of the result, if the caller wants them as they come.
    pub stream: Option<&'a dyn EventStream>,
}

/// The response, or why there is none. Every form of the secret has been redacted.
pub type Execution = Result<ServiceResponse, SourceFailure>;

#[derive(Debug, Clone, PartialEq)]
pub struct ServiceResponse {
    pub http_status: u16,
    pub result: Value,
    /// Whether the response exceeded the limit and was cut.
    pub truncated: bool,
}

impl ServiceResponse {
    /// A result without a request.
    pub fn said(result: Value) -> Self {
        Self { http_status: 200, result, truncated: false }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct SourceFailure {
    pub kind: FailureKind,
    /// What happened and what to do, without any secret.
    pub reason: String,
    /// The status of the service's response.
    pub http_status: Option<u16>,
    /// The body of the service's response, if any.
    pub result: Option<Value>,
    /// Whether the response exceeded the limit and was cut.
    pub truncated: bool,
    /// Whether the service may have received the request. False only if that is certain.
    pub sent: bool,
    pub timed_out: bool,
    /// What the service asks the client of the call for.
    pub input: Option<Box<InputAsked>>,
}

/// What a server asks the client of a call for. The requests are the result of the failure, where they can be passed on.
#[derive(Debug, Clone, PartialEq)]
pub struct InputAsked {
    /// What the client must be able to do.
    pub needs: InputCapabilities,
    pub state: Option<ServerState>,
}

impl SourceFailure {
    /// A call of which the service certainly received nothing.
    pub fn not_sent(kind: FailureKind, reason: impl Into<String>) -> Self {
        Self {
            kind,
            reason: reason.into(),
            http_status: None,
            result: None,
            truncated: false,
            sent: false,
            timed_out: false,
            input: None,
        }
    }
}

/// The component that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The egress guard: the destination is not allowed.
    Blocked,
    /// The call cannot be turned into a request: nothing was sent.
    NotExecutable,
    /// The service asks the client of the call for input.
    InputRequired,
    /// The gate is overloaded: nothing was sent, and the same call may succeed later.
    Overloaded,
    /// The server behind the tool offers another definition than the accepted one: nothing was sent.
    Quarantined,
    /// The connection to the service: names, addresses, connections, timeouts.
    Proxy,
    /// The service returned an error.
    Service,
    /// The store has as many texts as it may have: nothing was written.
    StoreFull,
    /// The calls of the agent were stopped while it was executed.
    Stopped,
    /// The gate takes no more events of a streamed result, and knows why.
    Cut,
    /// The caller disconnected or cancelled the call while it was executed.
    Abandoned,
}

/// Stores renewed material: what a token endpoint returns is sealed before it is used.
#[async_trait]
pub trait Renewal: Send + Sync {
    /// Material that is newer than `stale`: renewed elsewhere in the meantime, or by `exchange`. Concurrent
    /// callers share one exchange.
    async fn renew(&self, stale: &Material, exchange: &dyn Exchange) -> Result<Material, SourceFailure>;
}

#[async_trait]
pub trait Exchange: Send + Sync {
    /// Requests material that replaces the current one.
    async fn exchange(&self, current: &Material) -> Result<Material, SourceFailure>;
}
