//! The composition root: the program from its parts, in the order in which it starts and ends.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use toolgate_approval::ApprovalBroker;
use toolgate_approval::coverage::is_protected_place;
use toolgate_cli::private_file::{create_directory, require_own, require_own_with_directory};
use toolgate_egress::address::AddressPolicy;
use toolgate_egress::client::GuardedClient;
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
use toolgate_server::listener::TrustedProxies;
use toolgate_server::mcp::Mcp;
use toolgate_server::operations::metrics::Metrics;
use toolgate_server::shutdown::{Phase, Shutdown};
use toolgate_server::{App, Limiter, Serving, WorkerRuntimes, router, serve};
use toolgate_vault::VaultSealer;
use toolgate_workspace::{Limits, Workspace};

pub use self::start_error::StartError;

use self::announcement::announce;
use self::endpoints::Endpoints;
use self::history::Known;
use crate::configuration::{Configuration, KeySource, Store};
use crate::conformance_source::ConformanceSource;
use crate::descriptors;
use crate::links::FileLinks;
use crate::maintenance::{Maintenance, MountChecks, Work};
use crate::telemetry::{CallTelemetry, Exporter};
use crate::watched_clock::WatchedClock;
use crate::webhooks::Webhooks;
use crate::workspace_source::{WorkspaceSource, workspace_tools};

/// The ledger's file in the data directory.
const LEDGER_FILE: &str = "ledger.sqlite3";

mod announcement;
mod endpoints;
mod guardians;
mod history;
mod identity;
mod keys;
mod mounts;
mod start_error;
mod telemetry;

#[cfg(test)]
mod tests;

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
    mounts::note_commands(configuration, &gate, &*changed_mounts).await?;
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
