//! Mounted MCP servers: how the gate looks at what a server offers, and how it learns that this has changed. Calls of
//! mounted tools are executed by a [`Source`](super::source::Source) like all others.

use async_trait::async_trait;
use serde_json::{Map, Value};
use toolgate_model::connection::{AdapterName, AuthPlacement, BaseUrl, Connection};
use toolgate_model::credential::{Credential, ServiceName};
use toolgate_model::guard::Direction;
use toolgate_model::principal::{PrincipalId, TenantId};

pub use toolgate_model::mount::McpEra;

use super::source::{Access, FailureKind, SourceFailure};
use crate::call::{placement_of, usual_adapter};
use crate::refusal::{Code, Refusal};

/// The connection to mounted MCP servers, besides calls.
#[async_trait]
pub trait MountLink: Send + Sync {
    /// Asks a server who it is and what it offers. With access where the mount has a credential.
    async fn inspect(
        &self,
        mount: &MountTarget,
        access: Option<Access<'_>>,
        guard: &dyn MessageGuard,
    ) -> Result<ServerOffer, SourceFailure>;

    /// Ends what nobody uses any more. Called every few seconds.
    fn sweep(&self) {}
}

/// No connection to mounted servers: for a gate that has none.
pub struct NoMounts;

#[async_trait]
impl MountLink for NoMounts {
    async fn inspect(
        &self,
        _: &MountTarget,
        _: Option<Access<'_>>,
        _: &dyn MessageGuard,
    ) -> Result<ServerOffer, SourceFailure> {
        Err(SourceFailure::not_sent(FailureKind::NotExecutable, "this gate has no connections to MCP servers"))
    }
}

/// Receives what the connections to mounted servers notice.
pub trait MountWatch: Send + Sync {
    /// The server lists other definitions than those that its tools are pinned by. Told once for each change that is
    /// seen, in the course of a call: must not block.
    fn changed(&self, tenant: &TenantId, service: &ServiceName);
}

/// Guardians on the messages of the protocol itself: handshakes and lists. The request and the result of a call pass the
/// stages of the pipeline instead.
#[async_trait]
pub trait MessageGuard: Send + Sync {
    /// Refuses, with the reason, a message that must not be sent or must not be used. Costs nothing to speak of where nobody
    /// has a say in such messages.
    async fn check(&self, direction: Direction, message: &Value) -> Result<(), String>;
}

/// Lets every message pass.
pub struct NoMessageGuard;

#[async_trait]
impl MessageGuard for NoMessageGuard {
    async fn check(&self, _: Direction, _: &Value) -> Result<(), String> {
        Ok(())
    }
}

/// Records that servers keep state for principals.
#[async_trait]
pub trait MountSessions: Send + Sync {
    /// A server keeps state for this principal from now on, until the value is dropped. Durable when this returns: nothing
    /// is sent before. Refused where the principal has as many sessions as it may have.
    async fn begin(
        &self,
        tenant: &TenantId,
        service: &ServiceName,
        principal: &PrincipalId,
    ) -> Result<MountSession, Refusal>;
}

/// State that a server keeps for a principal. Dropped when it is gone.
pub struct MountSession {
    end: Option<Box<dyn FnOnce(bool) + Send + Sync>>,
}

impl MountSession {
    /// Tells how it ended: `true` if nothing went wrong.
    pub fn new(end: impl FnOnce(bool) + Send + Sync + 'static) -> Self {
        Self { end: Some(Box::new(end)) }
    }

    /// The state is gone against our will: the server ended, or has forgotten it.
    pub fn fail(mut self) {
        if let Some(end) = self.end.take() {
            end(false);
        }
    }
}

impl Drop for MountSession {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end(true);
        }
    }
}

/// A mounted server.
#[derive(Debug, Clone, PartialEq)]
pub struct MountTarget {
    pub tenant: TenantId,
    /// The service that it is registered as.
    pub service: ServiceName,
    pub transport: MountTransport,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum MountTransport {
    Http {
        /// The endpoint.
        url: BaseUrl,
        /// What requests are sent with; `None` for a server that needs nothing.
        credential: Option<Box<MountCredential>>,
    },
    /// A peer agent, whose card is below this URL.
    Agent {
        url: BaseUrl,
        /// What the card is fetched with; `None` for a peer that needs nothing.
        credential: Option<Box<MountCredential>>,
    },
    /// A process that the operator has configured.
    Stdio {
        /// Its name in the configuration.
        name: String,
        /// The credential that the process is started with, where the configuration says where to put it.
        credential: Option<Box<Credential>>,
    },
}

/// The credential of a mount over HTTP, without its material, and how a request is sent with it.
#[derive(Debug, Clone, PartialEq)]
pub struct MountCredential {
    pub credential: Credential,
    pub connection: Connection,
    pub adapter: AdapterName,
    pub placement: AuthPlacement,
}

impl MountCredential {
    /// As the credential's metadata and auth type say.
    pub fn of(credential: Credential) -> Result<Self, Refusal> {
        let unusable = |reason: String| Refusal::new(Code::ToolNotExecutable, reason);
        let connection = Connection::from_metadata(&credential.metadata)
            .map_err(|error| unusable(format!("the credential's metadata is wrong: {error}")))?;
        let adapter = connection.adapter.or_else(|| usual_adapter(credential.auth_type)).ok_or_else(|| {
            let kind = credential.auth_type.as_str();
            unusable(format!("no adapter serves credentials of type {kind}; name one in `metadata.adapter`"))
        })?;
        let placement = placement_of(adapter, credential.auth_type, &connection);
        Ok(Self { credential, connection, adapter, placement })
    }
}

/// What a server says about itself. Untrusted content, all of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerOffer {
    pub era: McpEra,
    /// The revision of the protocol that is spoken with it.
    pub protocol_version: String,
    pub server: ServerInfo,
    /// Instructions of the server for models.
    pub instructions: Option<String>,
    /// What it can do, as it said.
    pub capabilities: Map<String, Value>,
    /// All pages of its list, in its order.
    pub tools: Vec<OfferedTool>,
    /// The digest of what starts it, if it is a process.
    pub command: Option<String>,
    /// The card of a peer agent, which is all that one offers.
    pub card: Option<Value>,
}

/// Who a server says that it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerInfo {
    pub name: String,
    pub version: String,
    pub title: Option<String>,
}

/// A tool in the list of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// Its name there.
    pub name: String,
    /// The whole definition as it was listed. See [`toolgate_model::service::definition_hash`].
    pub definition: Value,
}
