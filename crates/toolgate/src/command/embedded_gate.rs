//! The gate of `toolgate host` and `toolgate mcp` without a URL: in this process, on the embedded ledger, on a loopback port
//! that the system chooses, with the workspace tools where the command names their directory.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use toolgate_api::agents::{
    AgentRequest, CreateAgent, CreateKey, KeyRecord, KeyRequest, ListKeys, RevokeKey, ShowAgent,
};
use toolgate_cli::client::{Client, ClientError};
use toolgate_cli::environment::Environment;
use toolgate_cli::{EmbeddedGate, EmbeddedGateOptions, EmbeddedPrincipal, Failure, typed};
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

/// The agent of the calls of `toolgate host`.
const AGENT: &str = "host-agent";
/// The user who calls tools for that agent, and decides its approvals.
const USER: &str = "toolgate-host";
/// The label of the keys of `toolgate mcp`.
const AGENT_KEY: &str = "toolgate mcp";

pub(super) async fn start(options: EmbeddedGateOptions) -> Result<EmbeddedGate, Failure> {
    let configuration = configuration(&options)?;
    let (started, bootstrap) = composition::start(&configuration).await?;
    if matches!(bootstrap, Bootstrap::Generated(_)) {
        tracing::info!("the ledger is new; create a token for the administrator with `toolgate recover`");
    }
    let url = format!("http://{}", started.address());
    let administrator = started.gate().maintenance.recover_administrator().await.map_err(StartError::from)?;
    let gate = Arc::clone(started.gate());
    let (running, stopped) = oneshot::channel();
    let serving = tokio::spawn(serve(started, stopped));
    let made = make_principals(&url, &administrator, &options).await;
    // Only for these requests.
    let source = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let caller = gate.authenticator.identify(Some(administrator.expose()), source, Freshness::Newest).await;
    let caller = caller.map_err(StartError::from)?;
    gate.administration.revoke_key(&caller, caller.key()).await.map_err(StartError::from)?;
    let (agent, key) = made?;
    Ok(EmbeddedGate { url, key, agent, running, serving })
}

async fn serve(started: Started, stopped: oneshot::Receiver<()>) {
    // Completes when the sender is dropped.
    let stop = async {
        let _ = stopped.await;
    };
    started.serve(&WorkerRuntimes::here(), stop).await;
}

/// The configuration of `serve`, adapted to one client.
fn configuration(options: &EmbeddedGateOptions) -> Result<Configuration, Failure> {
    let data = options.data.clone().map(|data| (keys::DATA.path, data));
    let flags = Flags { values: data.into_iter().collect(), file: options.config.clone() };
    let Loaded { mut configuration, warnings, .. } = Loaded::load(&flags, Environment::of_process())?;
    logging::start(configuration.log_format, configuration.log_level.clone());
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    if matches!(configuration.store, Store::Postgres { .. }) {
        let sentence = "a gate in this process can only use the embedded ledger; start `toolgate serve` and pass --url";
        return Err(Failure::Usage(sentence.to_owned()));
    }
    configuration.network.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    configuration.network.tls = None;
    configuration.network.unix_socket = None;
    configuration.network.proxy_protocol = false;
    // No load balancer sends requests elsewhere meanwhile, and clients kill a server that does not end with its input.
    configuration.network.lame_duck = Duration::ZERO;
    // The only client is this process.
    configuration.rate_limit = None;
    if let Some(root) = options.root.clone() {
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
    }
    let approvals = &mut configuration.settings.approvals;
    approvals.mode_changes = options.allow_mode_changes;
    if let Some(mode) = options.mode {
        approvals.mode = mode;
    }
    Ok(configuration)
}

/// Creates the principals of the command if they do not exist, and returns the agent and a new key. Keys of earlier processes
/// are revoked: these have ended, because this process has the ledger.
async fn make_principals(
    url: &str,
    administrator: &ApiKey,
    options: &EmbeddedGateOptions,
) -> Result<(String, Secret), Failure> {
    let client = Client::new(url, &Secret::new(administrator.expose().to_owned()))?;
    let scopes: &[&str] =
        if options.root.is_some() { &["workspace:read", "workspace:write", "workspace:exec"] } else { &[] };
    let agent = |id: &str, name: &str| {
        let request = AgentRequest::new(typed("id", id)?);
        Ok::<_, Failure>(AgentRequest { name: Some(typed("name", name)?), scopes: typed("scopes", scopes)?, ..request })
    };
    match &options.principal {
        EmbeddedPrincipal::Agent(id) => {
            make(&client, agent(id, "Agent of toolgate mcp")?).await?;
            let kind = client.to::<ShowAgent>().named(id).send().await?.kind;
            if kind != PrincipalKind::Agent {
                let sentence =
                    format!("{id} is a {}, and a client must be an agent; pass another --agent", kind.as_str());
                return Err(Failure::Usage(sentence));
            }
            Ok((id.clone(), renew_key(&client, id, AGENT_KEY).await?))
        }
        EmbeddedPrincipal::Host => {
            make(&client, agent(AGENT, "Agent of toolgate host")?).await?;
            let permissions = [Permission::InvokeTools, Permission::ActAs, Permission::DecideApprovals];
            let user = AgentRequest {
                kind: Some(PrincipalKind::User),
                name: Some(typed("name", "toolgate host")?),
                permissions: Some(permissions.into_iter().collect()),
                ..AgentRequest::new(typed("id", USER)?)
            };
            make(&client, user).await?;
            Ok((AGENT.to_owned(), renew_key(&client, USER, "toolgate host").await?))
        }
    }
}

/// Revokes the keys of a principal that have this label, and creates another one.
async fn renew_key(client: &Client, principal: &str, label: &str) -> Result<Secret, Failure> {
    let keys = client.to::<ListKeys>().named(principal).send().await?;
    let is_earlier =
        |key: &&KeyRecord| key.revoked_at.is_none() && key.label.as_ref().is_some_and(|own| own.as_str() == label);
    for key in keys.keys.iter().filter(is_earlier) {
        client.to::<RevokeKey>().at(&key.id).send().await?;
    }
    let body = KeyRequest { label: Some(typed("label", label)?), ..KeyRequest::default() };
    let new = client.to::<CreateKey>().named(principal).body(&body).send().await?;
    Ok(Secret::new(new.key.map(|key| key.expose().to_owned()).unwrap_or_default()))
}

/// Creates a principal, unless it exists.
async fn make(client: &Client, principal: AgentRequest) -> Result<(), Failure> {
    match client.to::<CreateAgent>().body(&principal).send().await {
        Err(ClientError::Refused { body, .. }) if body.code() == "ALREADY_EXISTS" => Ok(()),
        other => Ok(other.map(drop)?),
    }
}
