//! The client against servers on loopback, honest and hostile, in both eras.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::json;
use toolgate_gate::ports::clock::SystemClock;
use toolgate_gate::ports::mount::{
    McpEra, MountCredential, MountLink, MountSession, MountTarget, MountTransport, NoMessageGuard, ServerInfo,
    ServerOffer,
};
use toolgate_gate::ports::source::{Exchange, Renewal};
use toolgate_model::connection::{BaseUrl, Connection};
use toolgate_model::credential::{AuthType, Credential};
use toolgate_model::guard::Direction;
use toolgate_model::id::{CredentialId, InvocationId, VaultId};
use toolgate_model::principal::PrincipalId;
use toolgate_model::secret::{Material, Secret};
use toolgate_model::service::{ToolName, definition_hash};
use toolgate_model::time::Timestamp;
use toolgate_testkit::mcp_server::{Conduct, McpServer, tools};

use super::*;
use crate::address::AddressPolicy;
use crate::pool::PoolKey;
use crate::resolver::{LookupError, Resolve};
use crate::time::now;

mod http;
mod processes;

pub(super) const SECRET: &str = "the-secret-of-the-mount";

/// Remembers what it is told.
#[derive(Default)]
pub(super) struct Told(Mutex<Vec<String>>);

impl MountWatch for Told {
    fn changed(&self, tenant: &TenantId, service: &ServiceName) {
        self.0.lock().unwrap().push(format!("{tenant}/{service}"));
    }
}

/// Remembers which sessions were begun, and how they ended.
#[derive(Default)]
pub(super) struct Sessions(Arc<Mutex<Vec<String>>>);

impl Sessions {
    pub(super) fn recorded(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[async_trait]
impl MountSessions for Sessions {
    async fn begin(
        &self,
        _: &TenantId,
        service: &ServiceName,
        principal: &PrincipalId,
    ) -> Result<MountSession, Refusal> {
        let name = format!("{service} for {principal}");
        self.0.lock().unwrap().push(format!("begun: {name}"));
        let recorded = Arc::clone(&self.0);
        Ok(MountSession::new(move |completed| {
            let how = if completed { "completed" } else { "failed" };
            recorded.lock().unwrap().push(format!("{how}: {name}"));
        }))
    }
}

/// Denies what has a text, in one direction.
#[derive(Default)]
pub(super) struct Strict {
    pub(super) denied: Option<(Direction, &'static str)>,
    pub(super) seen: Mutex<Vec<String>>,
}

#[async_trait]
impl MessageGuard for Strict {
    async fn check(&self, direction: Direction, message: &Value) -> Result<(), String> {
        let text = message.to_string();
        let is_denied = self.denied.is_some_and(|(at, part)| at == direction && text.contains(part));
        self.seen.lock().unwrap().push(text);
        if is_denied { Err("not this one".to_owned()) } else { Ok(()) }
    }
}

struct Loopback;

#[async_trait]
impl Resolve for Loopback {
    async fn resolve(&self, _: &str, _: PoolKey) -> Result<Vec<IpAddr>, LookupError> {
        Ok(vec![Ipv4Addr::LOCALHOST.into()])
    }
}

/// With what is recorded of the state that servers keep.
pub(super) fn mounts_recording(processes: Vec<StdioMount>) -> (McpMounts, Arc<Sessions>) {
    let sessions = Arc::<Sessions>::default();
    let (mut mounts, _) = mounts(processes);
    mounts.sessions = sessions.clone();
    (mounts, sessions)
}

pub(super) fn mounts(processes: Vec<StdioMount>) -> (McpMounts, Arc<Told>) {
    let policy = AddressPolicy::new(vec!["127.0.0.1/32".parse().unwrap()]);
    let client = GuardedClient::new(policy, Arc::new(Loopback));
    let connectors = Connectors::new(client, Arc::new(SystemClock), 100);
    let told = Arc::new(Told::default());
    (McpMounts::beside(&connectors, processes, told.clone(), Arc::<Sessions>::default()), told)
}

pub(super) fn material() -> Material {
    let mut material = Material::new();
    material.insert("token".to_owned(), Secret::new(SECRET.to_owned()));
    material
}

pub(super) fn credential() -> Credential {
    let time = Timestamp::from_millis(1_770_544_800_250).unwrap();
    serde_json::from_value::<AuthType>(json!("bearer_token")).unwrap();
    Credential {
        id: CredentialId::new(time, [1; 10]),
        tenant: TenantId::default_tenant(),
        vault: VaultId::new(time, [2; 10]),
        service: ServiceName::parse("mounted").unwrap(),
        label: toolgate_model::text::Line::parse("Mounted").unwrap(),
        auth_type: AuthType::BearerToken,
        scopes_available: toolgate_model::scope::ScopeSet::default(),
        metadata: Map::new(),
        version: 1,
        material_fields: vec!["token".to_owned()],
        created_at: time,
        rotated_at: time,
        expires_at: None,
        revoked_at: None,
    }
}

pub(super) struct Fixed;

#[async_trait]
impl Renewal for Fixed {
    async fn renew(&self, _: &Material, _: &dyn Exchange) -> Result<Material, SourceFailure> {
        Err(not_executable("nothing is renewed here"))
    }
}

pub(super) fn agent(name: &str) -> PrincipalId {
    PrincipalId::parse(name).unwrap()
}

pub(super) fn text_of(raw: &Raw) -> String {
    let message: Value = serde_json::from_slice(&raw.message).unwrap();
    message["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}
