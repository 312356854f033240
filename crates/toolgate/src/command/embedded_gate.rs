//! The gate of `toolgate host` without a URL: in this process, on the embedded ledger, on a loopback port that the system
//! chooses, with the workspace tools.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::sync::oneshot;
use toolgate_api::agents::{AgentRequest, CreateAgent, CreateKey, KeyRequest, ListKeys, RevokeKey};
use toolgate_cli::client::{Client, ClientError};
use toolgate_cli::environment::Environment;
use toolgate_cli::{EmbeddedGate, EmbeddedGateOptions, Failure, typed};
use toolgate_gate::maintenance::bootstrap::Bootstrap;
use toolgate_gate::ports::ledger::Freshness;
use toolgate_model::key::ApiKey;
use toolgate_model::permission::Permission;
use toolgate_model::principal::{PrincipalKind, TenantId};
use toolgate_model::secret::Secret;
use toolgate_server::WorkerRuntimes;
use toolgate_workspace::{Bounds, SandboxRequirement};

use crate::composition::{self, StartError, Started};
use crate::configuration::{Configuration, Flags, Loaded, Store, WorkspaceSettings, keys};
use crate::logging;

/// The agent of the calls.
const AGENT: &str = "host-agent";
/// The user who calls tools for the agent, and decides its approvals.
const USER: &str = "toolgate-host";

pub(super) async fn start(options: EmbeddedGateOptions) -> Result<EmbeddedGate, Failure> {
    let configuration = configuration(options)?;
    let (started, bootstrap) = composition::start(&configuration).await?;
    if matches!(bootstrap, Bootstrap::Generated(_)) {
        tracing::info!("the ledger is new; create a token for the administrator with `toolgate recover`");
    }
    let url = format!("http://{}", started.address());
    let administrator = started.gate().maintenance.recover_administrator().await.map_err(StartError::from)?;
    let gate = Arc::clone(started.gate());
    let (running, stopped) = oneshot::channel();
    let serving = tokio::spawn(serve(started, stopped));
    let key = make_principals(&url, &administrator).await;
    // Only for these requests.
    let source = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let caller = gate.authenticator.identify(Some(administrator.expose()), source, Freshness::Newest).await;
    let caller = caller.map_err(StartError::from)?;
    gate.administration.revoke_key(&caller, caller.key()).await.map_err(StartError::from)?;
    Ok(EmbeddedGate { url, key: key?, agent: AGENT.to_owned(), running, serving })
}

async fn serve(started: Started, stopped: oneshot::Receiver<()>) {
    // Completes when the sender is dropped.
    let stop = async {
        let _ = stopped.await;
    };
    started.serve(&WorkerRuntimes::here(), stop).await;
}

/// The configuration of `serve`, adapted to a host.
fn configuration(options: EmbeddedGateOptions) -> Result<Configuration, Failure> {
    let data = options.data.map(|data| (keys::DATA.path, data));
    let flags = Flags { values: data.into_iter().collect(), file: options.config };
    let Loaded { mut configuration, warnings, .. } = Loaded::load(&flags, Environment::of_process())?;
    logging::start(configuration.log_format, configuration.log_level.clone());
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    if matches!(configuration.store, Store::Postgres { .. }) {
        let sentence = "toolgate host can run its own gate only on the embedded ledger; start `toolgate serve` and pass \
                        --url";
        return Err(Failure::Usage(sentence.to_owned()));
    }
    configuration.network.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    configuration.network.tls = None;
    configuration.network.unix_socket = None;
    configuration.network.proxy_protocol = false;
    // The only client is this process.
    configuration.rate_limit = None;
    let root = options.root;
    let tenants = BTreeSet::from([TenantId::default_tenant()]);
    configuration.workspace = Some(match configuration.workspace.take() {
        Some(own) => WorkspaceSettings { root, tenants, ..own },
        None => WorkspaceSettings {
            root,
            tenants,
            network: false,
            sandbox: SandboxRequirement::WherePossible,
            bounds: Bounds::default(),
        },
    });
    let approvals = &mut configuration.settings.approvals;
    approvals.mode_changes = options.allow_mode_changes;
    if let Some(mode) = options.mode {
        approvals.mode = mode;
    }
    Ok(configuration)
}

/// Creates the agent and the user if they do not exist, and returns a new key of the user. Keys of earlier processes are
/// revoked: these have ended, because this process has the ledger.
async fn make_principals(url: &str, administrator: &ApiKey) -> Result<Secret, Failure> {
    let client = Client::new(url, &Secret::new(administrator.expose().to_owned()))?;
    let agent = AgentRequest {
        name: Some(typed("name", "Agent of toolgate host")?),
        scopes: typed("scopes", ["workspace:read", "workspace:write", "workspace:exec"])?,
        ..AgentRequest::new(typed("id", AGENT)?)
    };
    make(&client, agent).await?;
    let permissions = [Permission::InvokeTools, Permission::ActAs, Permission::DecideApprovals];
    let user = AgentRequest {
        kind: Some(PrincipalKind::User),
        name: Some(typed("name", "toolgate host")?),
        permissions: Some(permissions.into_iter().collect()),
        ..AgentRequest::new(typed("id", USER)?)
    };
    make(&client, user).await?;
    let keys = client.to::<ListKeys>().named(USER).send().await?;
    for key in keys.keys.iter().filter(|key| key.revoked_at.is_none()) {
        client.to::<RevokeKey>().at(&key.id).send().await?;
    }
    let body = KeyRequest { label: Some(typed("label", "toolgate host")?), ..KeyRequest::default() };
    let new = client.to::<CreateKey>().named(USER).body(&body).send().await?;
    Ok(Secret::new(new.key.map(|key| key.expose().to_owned()).unwrap_or_default()))
}

/// Creates a principal, unless it exists.
async fn make(client: &Client, principal: AgentRequest) -> Result<(), Failure> {
    match client.to::<CreateAgent>().body(&principal).send().await {
        Err(ClientError::Refused { body, .. }) if body.code() == "ALREADY_EXISTS" => Ok(()),
        other => Ok(other.map(drop)?),
    }
}
