//! The composition root: the program from its parts, in the order in which it starts and ends.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;
use tokio::signal::unix::{Signal, SignalKind, signal};
use toolgate_approval::ApprovalBroker;
use toolgate_approval::coverage::is_protected_place;
use toolgate_cli::output;
use toolgate_cli::private_file::{PrivateFileError, create_directory, require_own, require_own_with_directory};
use toolgate_egress::address::AddressPolicy;
use toolgate_egress::client::GuardedClient;
use toolgate_egress::collector::CollectorError;
use toolgate_egress::connectors::Connectors;
use toolgate_egress::mcp::McpMounts;
use toolgate_egress::notice::Notifier;
use toolgate_egress::resolver::SystemResolver;
use toolgate_gate::maintenance::bootstrap::Bootstrap;
use toolgate_gate::maintenance::mount_sessions::RecordedSessions;
use toolgate_gate::maintenance::mounts::ChangedMounts;
use toolgate_gate::ports::approver::Approver;
use toolgate_gate::ports::clock::{Clock, SystemClock};
use toolgate_gate::ports::entropy::random;
use toolgate_gate::ports::ledger::Ledger;
use toolgate_gate::ports::mount::MountWatch;
use toolgate_gate::ports::source::Sources;
use toolgate_gate::refusal::Code;
use toolgate_gate::{Gate, MachineTools, Ports, Refusal};
use toolgate_guardian::policy::CedarBook;
use toolgate_ledger::{PostgresEngine, SqlLedger, SqliteEngine};
use toolgate_model::approval::Workspace as WorkspacePath;
use toolgate_model::id::ProcessId;
use toolgate_model::key::ApiKey;
use toolgate_server::limiter::{BodyMemory, InFlightLimit};
use toolgate_server::listener::{TlsError, TrustedProxies};
use toolgate_server::mcp::Mcp;
use toolgate_server::operations::metrics::Metrics;
use toolgate_server::shutdown::{Phase, Shutdown};
use toolgate_server::{App, Limiter, Serving, WorkerRuntimes, router, serve};
use toolgate_vault::{KeyError, VaultSealer};
use toolgate_workspace::{Limits, Workspace, WorkspaceError};

use self::endpoints::Endpoints;
use self::history::Known;
use crate::audit_key::AuditKeyError;
use crate::configuration::{Configuration, KeySource, Store};
use crate::conformance_source::ConformanceSource;
use crate::descriptors;
use crate::heads_file::HeadsFileError;
use crate::links::FileLinks;
use crate::maintenance::{Maintenance, MountChecks, Work};
use crate::telemetry::{CallTelemetry, Exporter};
use crate::watched_clock::WatchedClock;
use crate::webhooks::Webhooks;
use crate::workspace_source::{WorkspaceSource, workspace_tools};

/// The ledger's file in the data directory.
const LEDGER_FILE: &str = "ledger.sqlite3";

mod endpoints;
mod guardians;
mod history;
mod identity;
mod keys;
mod mounts;
mod telemetry;

#[cfg(test)]
mod tests;

/// Why the gate did not start.
#[derive(Debug, Error)]
pub enum StartError {
    #[error(transparent)]
    AuditKey(#[from] AuditKeyError),
    /// The audit key is lost.
    #[error(
        "the audit key file {path} is missing, and the log of this ledger is signed by {public_key}; restore the file \
        from a copy"
    )]
    AuditKeyLost {
        /// Where it should be.
        path: String,
        public_key: String,
    },
    /// The audit key is lost, and the ledger does not say which key it was.
    #[error(
        "the audit key file {path} is missing, and {heads} has heads that it signed; restore it from a copy, or also \
        remove {heads} to start a new log"
    )]
    AuditKeyMissing {
        /// Where it should be.
        path: String,
        /// The file with the heads.
        heads: String,
    },
    #[error(transparent)]
    Heads(#[from] HeadsFileError),
    #[error(
        "there is no ledger at {path}, but {heads} has signed heads of one; restore its newest copy, or start once \
        with --accept-ledger-rollback if it is lost"
    )]
    LedgerMissing {
        /// Where it should be.
        path: String,
        /// The file with the heads.
        heads: String,
    },
    /// The ledger is an older or another one.
    #[error(
        "the ledger is older than the signed heads in {heads}: {details}; restore the newest copy of the ledger, or, \
        if there is none, start once with --accept-ledger-rollback and revoke again what was revoked since"
    )]
    LedgerRolledBack {
        /// The file with the heads.
        heads: String,
        /// The tenants, with the expected and the found heads.
        details: String,
    },
    /// The master key is lost.
    #[error(
        "the master key file {path} is missing, and credentials are sealed under {keys}; restore the file from a \
        copy, or, if no copy is left, start once with --accept-lost-master-key and enter the credentials again"
    )]
    MasterKeyLost {
        /// Where it should be.
        path: String,
        /// Which keys seal something.
        keys: String,
    },
    #[error("could not create the data directory {path}: {reason}; pass another one with --data")]
    Data { path: String, reason: std::io::Error },
    /// A collector that cannot be exported to.
    #[error("telemetry: {0}")]
    Collector(#[from] CollectorError),
    #[error("guardian `{name}`: {reason}")]
    Guardian { name: String, reason: String },
    /// Other users can change files that the gate relies on.
    #[error(transparent)]
    Exposed(#[from] PrivateFileError),
    #[error("{0}")]
    Keys(#[from] KeyError),
    #[error("cannot listen on {address}: {reason}; choose another with --listen")]
    Listen { address: SocketAddr, reason: std::io::Error },
    #[error("cannot listen on {path}: {reason}; choose another path with server.unix_socket")]
    Socket { path: String, reason: std::io::Error },
    #[error("server.tls: {0}")]
    Tls(#[from] TlsError),
    #[error("{0}")]
    Gate(#[from] Refusal),
    #[error(transparent)]
    Postgres(#[from] toolgate_ledger::postgres::OpenError),
    #[error(transparent)]
    Sqlite(#[from] toolgate_ledger::sqlite::OpenError),
    /// A mounted server that cannot be started.
    #[error("mount `{name}`: {reason}")]
    Mount {
        /// Which.
        name: String,
        /// Why not.
        reason: WorkspaceError,
    },
    /// A mount that cannot be declared as the configuration has it.
    #[error("mounts.file: mount `{name}`: {reason}")]
    Declared {
        /// Which.
        name: String,
        /// Why not.
        reason: Refusal,
    },
    #[error("workspace.root: {0}")]
    Workspace(#[from] WorkspaceError),
    /// The system refuses something basic.
    #[error("system error: {0}")]
    System(#[from] std::io::Error),
}

/// Runs the gate until it is stopped.
pub async fn run(configuration: Configuration, workers: &WorkerRuntimes) -> Result<(), StartError> {
    let mut stop = StopSignals::listen()?;
    let (started, bootstrap) = start(&configuration).await?;
    announce(&configuration, started.address(), bootstrap);
    let shutdown = Arc::clone(&started.app.shutdown);
    let stopped = async {
        let signal = stop.first().await;
        if signal == StopSignal::Terminate && !configuration.network.lame_duck.is_zero() {
            tracing::info!(
                seconds = configuration.network.lame_duck.as_secs(),
                "still serving so that load balancers can move their traffic"
            );
            shutdown.enter(Phase::LameDuck);
            // A second signal ends the wait.
            let _ = tokio::time::timeout(configuration.network.lame_duck, stop.first()).await;
        }
        tracing::info!("waiting for the requests in flight");
    };
    started.serve(workers, stopped).await;
    tracing::info!("toolgate has stopped");
    Ok(())
}

/// Starts the gate: it listens, but serves no request yet.
pub async fn start(configuration: &Configuration) -> Result<(Started, Bootstrap), StartError> {
    let opened = open_gate(configuration).await?;
    let Opened { gate, broker, webhooks, metrics, exporter, changed_mounts, mount_sessions, known } = opened;
    gate.maintenance.check_key_provider().await?;
    let rollback = known.compare(configuration, &gate).await?;

    gate.maintenance.begin_ids().await?;

    // Before the first start creates a token: if the port is taken, nobody would ever see it.
    let endpoints = endpoints::open(&configuration.network).await?;
    let bootstrap = gate.maintenance.bootstrap(configuration.admin_token.as_ref()).await?;
    let heads = Arc::new(known.keeper(&gate).await?);
    if let Some(rollback) = rollback {
        rollback.accept(&gate, &heads).await?;
    }
    let cut_off = despite_damage(gate.maintenance.close_calls().await)?;
    if cut_off > 0 {
        tracing::warn!(
            cut_off,
            "calls were in flight when the gate last stopped; their outcome is recorded as \
            unknown"
        );
    }
    // Before any session can be opened: open ones were left by an earlier run.
    let left_open = despite_damage(gate.maintenance.close_sessions().await)?;
    if left_open > 0 {
        tracing::warn!(left_open, "tool sessions were open when the gate last stopped; they are closed as failed");
    }
    // Before any call can wait: other gates must see that this one is alive, and waits of an earlier run have ended.
    broker.heartbeat().await?;
    let orphaned = despite_damage(broker.reap().await)?;
    if orphaned > 0 {
        tracing::warn!(
            orphaned,
            "calls were waiting for an approver when the gate last stopped; they were not \
            executed"
        );
    }
    let declared = Arc::new(mounts::declared(configuration, &gate).await?);
    // Before any approval can be requested, so that the first one is delivered too.
    if let Some(webhooks) = &webhooks {
        webhooks.begin().await?;
    }
    let limits = configuration.network.limits;
    let limits = toolgate_server::Limits { connections: descriptors::connections(limits.connections), ..limits };
    let requests_of_key = descriptors::requests_of_key(configuration.network.requests_of_key, limits.connections);
    let clock = Arc::clone(&gate.clock);
    let app = Arc::new(App {
        gate: Arc::new(gate),
        metrics,
        limiter: configuration.rate_limit.map(|limit| Arc::new(Limiter::new(limit, Arc::new(SystemClock)))),
        in_flight: Arc::new(InFlightLimit::new(requests_of_key)),
        body_memory: Arc::new(BodyMemory::new(
            configuration.network.body_memory,
            configuration.network.body_memory_of_key,
        )),
        max_body: configuration.max_body_bytes,
        openwop: configuration.openwop,
        mcp: Mcp::new(configuration.mcp.clone(), clock),
        protected_resource: identity::published(configuration),
        hooks: configuration.guardians.hooks.clone(),
        tasks: Arc::default(),
        shutdown: Arc::new(Shutdown::default()),
    });
    let exporter = exporter.map(Arc::new);
    let tls = endpoints.tls.clone();
    let every = configuration.check_mounts_every;
    let mounts = MountChecks { changed: changed_mounts, every, declared, sessions: mount_sessions };
    let work = Work { webhooks, tls, integrate_every: configuration.integrate_every, heads, exporter, mounts };
    let maintenance = Maintenance::start(&app, &broker, work);
    let proxies = configuration.network.proxies.clone();
    Ok((Started { app, limits, proxies, endpoints, maintenance }, bootstrap))
}

/// An unreadable row belongs to one tenant, and must not keep the gate from serving the others.
fn despite_damage(swept: Result<u64, Refusal>) -> Result<u64, Refusal> {
    swept.or_else(|refusal| match refusal.code() {
        Code::Internal => {
            tracing::error!(%refusal, "the ledger is damaged");
            Ok(0)
        }
        _ => Err(refusal),
    })
}

/// A gate that listens.
pub struct Started {
    app: Arc<App>,
    limits: toolgate_server::Limits,
    proxies: TrustedProxies,
    endpoints: Endpoints,
    maintenance: Maintenance,
}

impl Started {
    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.endpoints.address
    }

    pub fn gate(&self) -> &Arc<Gate> {
        &self.app.gate
    }

    /// Serves on these workers until `stop` is ready, and then for as long as something is in flight.
    pub async fn serve(self, workers: &WorkerRuntimes, stop: impl Future<Output = ()>) {
        let Self { app, limits, proxies, endpoints, mut maintenance } = self;
        maintenance.continue_detached(workers.offload());
        let Endpoints { all, socket, .. } = endpoints;
        let stopped = async {
            stop.await;
            // Also ends event streams, which would continue as long as a client follows them.
            app.shutdown.enter(Phase::Draining);
            // Also ends calls that wait for an approver: a gate that shuts down gets no decisions.
            app.gate.pipeline.close_approvals().await;
        };
        let serving = Serving {
            router: router(Arc::clone(&app)),
            limits,
            proxies,
            shutdown: Arc::clone(&app.shutdown),
            connections: app.metrics.connections(),
        };
        tokio::join!(serve(all, serving, workers), stopped);
        drop(socket);
        // Calls whose callers have disconnected must still be settled.
        app.gate.pipeline.finish_calls().await;
        maintenance.finish().await;
    }
}

/// Creates a key for the administrator, for an operator who has the ledger and lost the token.
pub async fn recover(configuration: &Configuration) -> Result<ApiKey, StartError> {
    let Opened { gate, known, .. } = open_gate(configuration).await?;
    known.compare(configuration, &gate).await?;
    gate.maintenance.begin_ids().await?;
    Ok(gate.maintenance.recover_administrator().await?)
}

/// A gate that is not yet served.
struct Opened {
    gate: Gate,
    broker: Arc<ApprovalBroker>,
    /// Set if a webhook is configured.
    webhooks: Option<Arc<Webhooks>>,
    metrics: Arc<Metrics>,
    /// Set if a collector is configured.
    exporter: Option<Exporter>,
    /// Mounted servers that have changed what they offer.
    changed_mounts: Arc<ChangedMounts>,
    /// The state that mounted servers keep for principals.
    mount_sessions: Arc<RecordedSessions>,
    /// The heads from earlier starts.
    known: Known,
}

async fn open_gate(configuration: &Configuration) -> Result<Opened, StartError> {
    require_own_files(configuration)?;
    history::require_ledger(configuration)?;
    let ledger = open_ledger(&configuration.store).await?;
    let provider = keys::open_provider(configuration, &*ledger).await?;
    let audit_key = keys::open_audit_key(configuration, &*ledger).await?;
    let known = Known::of(configuration, &*ledger, audit_key.public_key()).await?;
    let sealer = VaultSealer::new(provider);
    let clock = Arc::new(WatchedClock::default());
    let workspace = open_workspace(configuration)?;
    let process = ProcessId::new(clock.now(), random().map_err(Refusal::from)?);
    let links = FileLinks::new(workspace.as_ref().map(|workspace| workspace.root().to_path_buf()));
    let broker = Arc::new(ApprovalBroker::new(ledger.clone(), ledger.clone(), clock.clone(), process, Arc::new(links)));
    let mut settings = configuration.settings.clone();
    if let (Some(workspace), Some(wanted)) = (&workspace, &configuration.workspace) {
        settings.machine = MachineTools {
            tenants: wanted.tenants.clone(),
            tools: workspace_tools(),
            root: WorkspacePath::parse(&workspace.root().to_string_lossy()).ok(),
        };
    }
    let webhooks = configuration.webhook.as_ref().map(|settings| {
        Arc::new(Webhooks {
            webhooks: ledger.clone(),
            links: ledger.clone(),
            approvals: ledger.clone(),
            log: ledger.clone(),
            clock: clock.clone(),
            approver: Arc::clone(&broker) as Arc<dyn Approver>,
            process,
            notifier: Notifier::new(guarded_client(configuration), settings.url.clone(), Arc::clone(&settings.key)),
            details: settings.details,
            public_url: settings.public_url.clone(),
        })
    });
    let (calls, waiting) = descriptors::outbound(configuration.max_outbound, configuration.network.limits.connections);
    let client = guarded_client(configuration).keeping(waiting);
    let metrics = Arc::new(Metrics::default());
    let (spans, exporter) = telemetry::open(configuration, &metrics, process, clock.now())?.unzip();
    let guardians = guardians::open(configuration, ledger.clone(), clock.clone(), Arc::clone(&metrics))?;
    let connectors = Connectors::new(client, clock.clone(), calls);
    let changed_mounts = Arc::<ChangedMounts>::default();
    let watch: Arc<dyn MountWatch> = changed_mounts.clone();
    let most = settings.sessions_of_principal;
    let mount_sessions = Arc::new(RecordedSessions::new(ledger.clone(), clock.clone(), most));
    let processes = mounts::open(configuration)?;
    let mounts = Arc::new(McpMounts::beside(&connectors, processes, watch, mount_sessions.clone()));
    let mut sources = Sources::default().with(connectors).sharing(mounts.clone());
    if let Some(workspace) = workspace {
        sources = sources.with(WorkspaceSource(workspace));
    }
    if configuration.openwop.conformance {
        sources = sources.with(ConformanceSource);
    }
    let ports = Ports {
        ledger,
        sealer: Arc::new(sealer),
        mounts,
        sources,
        clock,
        guardian: Arc::new(guardians),
        policy_book: Arc::new(CedarBook),
        approver: Arc::clone(&broker) as Arc<dyn Approver>,
        telemetry: Arc::new(CallTelemetry::new(Arc::clone(&metrics), configuration.call_log, spans)),
        tokens: identity::open(configuration),
        process,
    };
    let gate = Gate::new(ports, Arc::new(audit_key), settings);
    Ok(Opened { gate, broker, webhooks, metrics, exporter, changed_mounts, mount_sessions, known })
}

/// An HTTP client that reaches what the operator allows.
fn guarded_client(configuration: &Configuration) -> GuardedClient {
    let resolver = SystemResolver::new(configuration.max_lookups);
    GuardedClient::new(AddressPolicy::new(configuration.egress_allow.clone()), Arc::new(resolver))
}

/// Refuses keys and a ledger that other accounts can change or replace, before any of them is read.
fn require_own_files(configuration: &Configuration) -> Result<(), StartError> {
    if let KeySource::File(path) = &configuration.key_source {
        require_own_with_directory(path)?;
    }
    require_own_with_directory(&configuration.audit_key_file)?;
    require_own(&configuration.heads_directory)?;
    if let Some(data) = configuration.data() {
        require_own(data)?;
        for companion in ["", "-wal", "-shm", ".lock"] {
            require_own(&data.join(format!("{LEDGER_FILE}{companion}")))?;
        }
    }
    Ok(())
}

/// Opens the directory of the workspace tools. They must not see the files of Toolgate.
fn open_workspace(configuration: &Configuration) -> Result<Option<Workspace>, StartError> {
    let Some(settings) = &configuration.workspace else { return Ok(None) };
    let limits = Limits {
        bounds: settings.bounds,
        network: settings.network,
        sandbox: settings.sandbox,
        hidden: own_places(configuration),
        is_protected: |path| is_protected_place(&path.to_string_lossy()),
        ..Limits::default()
    };
    let workspace = Workspace::open(&settings.root, limits)?;
    let report = workspace.sandbox();
    if report.writes_confined {
        tracing::info!(root = %settings.root.display(), sandbox = report.kind, note = %report.note, "the workspace \
            tools are enabled");
    } else {
        tracing::warn!(root = %settings.root.display(), note = %report.note, "the workspace tools are enabled without \
            a sandbox");
    }
    Ok(Some(workspace))
}

/// What Toolgate keeps: its ledger, its keys and its configuration.
fn own_places(configuration: &Configuration) -> Vec<PathBuf> {
    let key_file = match &configuration.key_source {
        KeySource::File(path) => path.parent().map(Path::to_path_buf),
        KeySource::Environment { .. } | KeySource::Command { .. } => None,
    };
    let audit_key = configuration.audit_key_file.parent().map(Path::to_path_buf);
    let heads = Some(configuration.heads_directory.clone());
    let own = [configuration.data().map(Path::to_path_buf), key_file, audit_key, heads];
    own.into_iter().flatten().chain(configuration.own_files.iter().cloned()).collect()
}

async fn open_ledger(store: &Store) -> Result<Arc<dyn Ledger>, StartError> {
    match store {
        Store::Embedded { data } => {
            create_directory(data).map_err(|reason| StartError::Data { path: data.display().to_string(), reason })?;
            Ok(Arc::new(SqlLedger::new(SqliteEngine::open(&data.join(LEDGER_FILE))?)))
        }
        Store::Postgres { url, connections, timeout } => {
            Ok(Arc::new(SqlLedger::new(PostgresEngine::open(url.expose(), *connections, *timeout).await?)))
        }
    }
}

impl Configuration {
    /// The data directory, if the ledger is embedded.
    fn data(&self) -> Option<&Path> {
        match &self.store {
            Store::Embedded { data } => Some(data),
            Store::Postgres { .. } => None,
        }
    }
}

/// Logs the start-up messages, and then prints, on standard output, the one line that programs wait for.
fn announce(configuration: &Configuration, address: SocketAddr, bootstrap: Bootstrap) {
    let scheme = if configuration.network.tls.is_some() { "https" } else { "http" };
    if scheme == "http" && !address.ip().is_loopback() {
        tracing::warn!(
            %address,
            "listening beyond loopback without TLS: put a proxy that terminates TLS in front, or keys travel in clear \
            text"
        );
    }
    let url = format!("{scheme}://{}", reachable(address));
    match bootstrap {
        Bootstrap::Existing => tracing::info!(
            "the administrator's token was shown at the first start; another administrator makes a new one with \
             `toolgate key create admin`, and `toolgate recover` does when there is none"
        ),
        Bootstrap::Given => output::say(&format!(
            "This is the first start. The administrator's token is the one in TOOLGATE_ADMIN_TOKEN.\n\n{}",
            next_steps(configuration, &url, "$TOOLGATE_ADMIN_TOKEN")
        )),
        Bootstrap::Generated(token) => output::say(&format!(
            "This is the first start. The administrator's token, shown this once only:\n\n    {}\n\n{}",
            token.expose(),
            next_steps(configuration, &url, token.expose())
        )),
    }
    if let Err(error) = output::print(&format!("toolgate listening on {scheme}://{address}")) {
        tracing::warn!(%address, %error, "listening, but could not write the start-up line to standard output");
    }
}

fn next_steps(configuration: &Configuration, url: &str, token: &str) -> String {
    let ledger = match &configuration.store {
        Store::Embedded { data } => data.join(LEDGER_FILE).display().to_string(),
        Store::Postgres { .. } => "PostgreSQL".to_owned(),
    };
    let master_key = match &configuration.key_source {
        KeySource::File(path) => absolute(path),
        KeySource::Environment { .. } => "from the environment".to_owned(),
        KeySource::Command { .. } => "behind the key command".to_owned(),
    };
    format!(
        "Try it:\n\n    curl -H \"Authorization: Bearer {token}\" {url}/api/v1/whoami\n\n\
         `toolgate login --url {url}` stores the token for the command line; `toolgate --help` lists the commands.\n\
         Ledger:     {ledger}\nMaster key: {master_key}\nAudit key:  {}\n\
         Keep copies of the keys, apart from the ledger: without them its credentials cannot be unsealed and its log \
         cannot be continued.\n",
        absolute(&configuration.audit_key_file)
    )
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path)).display().to_string()
}

/// An address that a program on this machine can connect to.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopSignal {
    Terminate,
    Interrupt,
}

struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn first(&mut self) -> StopSignal {
        let signal = tokio::select! {
            _ = self.terminate.recv() => StopSignal::Terminate,
            _ = self.interrupt.recv() => StopSignal::Interrupt,
        };
        tracing::info!(?signal, "received a stop signal");
        signal
    }
}
