//! Looking at a mounted server without a call: who it is, what it can do, and all of its tools.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use serde_json::Map;
use toolgate_gate::ports::mount::{MessageGuard, MountCredential, MountLink, MountTarget, MountTransport, ServerOffer};
use toolgate_gate::ports::source::{Access, Exchange, FailureKind, Renewal, SourceFailure};
use toolgate_model::client_input::InputCapabilities;
use toolgate_model::connection::{AdapterName, AuthPlacement, BaseUrl, Connection};
use toolgate_model::credential::{AuthType, Credential};
use toolgate_model::id::InvocationId;
use toolgate_model::merkle::sha256;
use toolgate_model::redaction::Redactor;
use toolgate_model::secret::Material;
use toolgate_model::service::ToolName;

use super::greeting::Greeting;
use super::guarded::GuardedPeer;
use super::http::Endpoint;
use super::listing::{Peer, tools};
use super::servers::{HttpPeer, PeerUser, ServerKey};
use super::stdio::ProcessPeer;
use super::{McpMounts, card};
use crate::adapter::not_executable;
use crate::pool::PoolKey;
use crate::time::deadline_after;

/// How a server without a credential is reached.
static NO_CONNECTION: LazyLock<Option<Connection>> = LazyLock::new(|| Connection::from_metadata(&Map::new()).ok());
/// What inspections are called where a tool has a name.
static INSPECTION: LazyLock<Option<ToolName>> = LazyLock::new(|| ToolName::parse("inspection").ok());

#[async_trait]
impl MountLink for McpMounts {
    fn sweep(&self) {
        self.servers.sweep();
    }

    async fn inspect(
        &self,
        mount: &MountTarget,
        access: Option<Access<'_>>,
        guard: &dyn MessageGuard,
    ) -> Result<ServerOffer, SourceFailure> {
        let (tenant, service, sessions) = (&mount.tenant, &mount.service, &*self.sessions);
        let user = PeerUser { tenant, service, principal: None, guard, sessions };
        let mut redactor = Redactor::none();
        let (material, renewal): (Arc<Material>, &dyn Renewal) = match access {
            Some(access) => {
                redactor = access.redactor;
                (Arc::new(access.material), access.renewal)
            }
            None => (Arc::default(), &NoRenewal),
        };
        let inspected = match &mount.transport {
            MountTransport::Http { url, credential } | MountTransport::Agent { url, credential } => {
                let credential = credential.as_deref();
                self.inspect_server((mount, &user), url, credential, (&material, renewal), &mut redactor).await
            }
            MountTransport::Stdio { credential, .. } => {
                self.inspect_process(&user, credential.as_deref(), &material).await
            }
        };
        match inspected {
            Ok(mut offer) => {
                redact(&mut offer, &redactor);
                Ok(offer)
            }
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

impl McpMounts {
    async fn inspect_server(
        &self,
        (mount, user): (&MountTarget, &PeerUser<'_>),
        url: &BaseUrl,
        credential: Option<&MountCredential>,
        (material, renewal): (&Arc<Material>, &dyn Renewal),
        redactor: &mut Redactor,
    ) -> Result<ServerOffer, SourceFailure> {
        // INVARIANT: both can be read.
        let (Some(no_connection), Some(tool)) = (NO_CONNECTION.as_ref(), INSPECTION.as_ref()) else {
            return Err(not_executable("a server cannot be inspected"));
        };
        let connection = credential.map_or(no_connection, |credential| &credential.connection);
        let pool = credential.map_or_else(|| pool_of(mount, url), |credential| credential.credential.id.into());
        let hosts: Vec<_> = connection.allowed_hosts.iter().collect();
        let now = self.clock.now();
        let endpoint = Endpoint {
            client: &self.client,
            url: url.as_url(),
            invocation: InvocationId::new(now, [0; 10]),
            tool,
            adapter: credential.map_or(AdapterName::Rest, |credential| credential.adapter),
            pool,
            auth_type: credential.map_or(AuthType::Custom, |credential| credential.credential.auth_type),
            connection,
            placement: credential.map_or(&AuthPlacement::Nowhere, |credential| &credential.placement),
            hosts: &hosts,
            deadline: deadline_after(connection.timeout),
            now,
            material,
            renewal,
            traced: None,
            reporter: None,
            questions: None,
        };
        if let MountTransport::Agent { .. } = &mount.transport {
            return card::fetch(&endpoint, redactor).await;
        }
        let server = self.servers.of(ServerKey { tenant: &mount.tenant, url: url.as_url(), pool });
        let ids = || self.next_id();
        // What announces a change whenever it is inspected must not be inspected forever.
        let announced = &|| {};
        let mut peer = HttpPeer { endpoint: &endpoint, server: &server, user, redactor, ids: &ids, announced };
        let session = peer.session().await?;
        offer(&session.greeting, &mut GuardedPeer { peer: &mut peer, guard: user.guard }).await
    }

    async fn inspect_process(
        &self,
        user: &PeerUser<'_>,
        credential: Option<&Credential>,
        material: &Material,
    ) -> Result<ServerOffer, SourceFailure> {
        let deadline = deadline_after(toolgate_model::connection::DEFAULT_TIMEOUT);
        let ids = || self.next_id();
        let nothing = InputCapabilities::default();
        let process = self.processes.of(user, (credential, material), nothing, deadline, &ids).await?;
        let mut peer =
            ProcessPeer { process: &process, agent: None, deadline, traced: None, listener: None, ids: &ids };
        let offer = offer(&process.greeting, &mut GuardedPeer { peer: &mut peer, guard: user.guard }).await?;
        Ok(ServerOffer { command: self.processes.digest(user.service), ..offer })
    }
}

async fn offer(greeting: &Greeting, peer: &mut dyn Peer) -> Result<ServerOffer, SourceFailure> {
    let tools = match greeting.capabilities.contains_key("tools") {
        true => tools(peer).await?.0,
        false => Vec::new(),
    };
    Ok(ServerOffer {
        era: greeting.era,
        protocol_version: greeting.version.clone(),
        server: greeting.server.clone(),
        instructions: greeting.instructions.clone(),
        capabilities: greeting.capabilities.clone(),
        tools,
        command: None,
        card: None,
    })
}

/// A server that repeats the secret in what it says about itself must not put it into the catalog.
fn redact(offer: &mut ServerOffer, redactor: &Redactor) {
    let info = &mut offer.server;
    let texts = [Some(&mut info.name), Some(&mut info.version), info.title.as_mut(), offer.instructions.as_mut()];
    for text in texts.into_iter().flatten() {
        redactor.redact_text(text);
    }
    for value in offer.capabilities.values_mut() {
        redactor.redact_json(value);
    }
    if let Some(card) = &mut offer.card {
        redactor.redact_json(card);
    }
    for tool in &mut offer.tools {
        redactor.redact_text(&mut tool.name);
        redactor.redact_json(&mut tool.definition);
    }
}

/// With whom connections to a server without a credential are shared.
fn pool_of(mount: &MountTarget, url: &BaseUrl) -> PoolKey {
    PoolKey::Agent(*sha256(format!("mount\n{}\n{url}", mount.tenant).as_bytes()).as_bytes())
}

/// Where there is nothing to renew.
pub(super) struct NoRenewal;

#[async_trait]
impl Renewal for NoRenewal {
    async fn renew(&self, _: &Material, _: &dyn Exchange) -> Result<Material, SourceFailure> {
        Err(SourceFailure::not_sent(FailureKind::NotExecutable, "the mount has no credential to renew"))
    }
}
