//! Sources: what executes admitted calls. A source receives the one secret of the one call and nothing else, and
//! returns nothing of that secret.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use toolgate_model::redaction::Redactor;
use toolgate_model::secret::Material;

use crate::action::Action;
use crate::call::Admitted;
use crate::call::execute::GateSource;
use crate::refusal::Refusal;

/// The sources of a gate. Each executes its own actions; where two execute the same, the one that was added first does.
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

/// Executes calls.
#[async_trait]
pub trait Source: Send + Sync {
    fn executes(&self, action: Action) -> bool;

    /// Takes a place for what a call opens to be carried out, before it is admitted. Refused where nothing more can be
    /// opened: then nothing was admitted, and the same call may be made later.
    fn reserve(&self) -> Result<Reservation, Refusal> {
        Ok(Reservation::default())
    }

    /// Carries out one call, within its deadline, with access to the one credential that it needs, if it needs one.
    async fn execute(&self, call: &Admitted, access: Option<Access<'_>>) -> Execution;
}

/// A place for what a call opens; given back when it is dropped.
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
    /// The secret.
    pub material: Material,
    /// Finds every form of it in what the service returns.
    pub redactor: Redactor,
    /// Keeps what it is renewed by.
    pub renewal: &'a dyn Renewal,
}

/// What came of it: the answer, or why there is none. Every form of the secret is taken out already.
pub type Execution = Result<ServiceResponse, SourceFailure>;

/// What the service answered.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceResponse {
    /// Its status.
    pub http_status: u16,
    /// What it said.
    pub result: Value,
    /// Whether it said more than is taken.
    pub truncated: bool,
}

impl ServiceResponse {
    /// What needed no request.
    pub fn said(result: Value) -> Self {
        Self { http_status: 200, result, truncated: false }
    }
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceFailure {
    /// Who failed.
    pub kind: FailureKind,
    /// What happened and what to do, without any secret.
    pub reason: String,
    /// The status that the service answered with.
    pub http_status: Option<u16>,
    /// What the service said, where it said something.
    pub result: Option<Value>,
    /// Whether that was cut off.
    pub truncated: bool,
    /// Whether the service may have seen the request. False only where that is certain.
    pub sent: bool,
    /// Whether its time was over.
    pub timed_out: bool,
}

impl SourceFailure {
    /// A call of which the service certainly saw nothing.
    pub fn not_sent(kind: FailureKind, reason: impl Into<String>) -> Self {
        Self {
            kind,
            reason: reason.into(),
            http_status: None,
            result: None,
            truncated: false,
            sent: false,
            timed_out: false,
        }
    }
}

/// Who failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The guard of the way out: it leads where calls may not go.
    Blocked,
    /// The call cannot be turned into a request: nothing was sent.
    NotExecutable,
    /// The gate has too much to do: nothing was sent, and the same call may succeed later.
    Overloaded,
    /// The server behind the tool offers another definition than the accepted one: nothing was sent.
    Quarantined,
    /// The way to the service: names, addresses, connections, time.
    Proxy,
    /// The service answered with an error.
    Service,
}

/// Keeps renewed material: what a token endpoint gives is sealed back before it is used.
#[async_trait]
pub trait Renewal: Send + Sync {
    /// Material that is newer than `stale`: what somebody else has renewed meanwhile, or what `exchange` brings. Many
    /// callers at once make one exchange.
    async fn renew(&self, stale: &Material, exchange: &dyn Exchange) -> Result<Material, SourceFailure>;
}

/// Asks for new material.
#[async_trait]
pub trait Exchange: Send + Sync {
    /// New material in place of the current one.
    async fn exchange(&self, current: &Material) -> Result<Material, SourceFailure>;
}
