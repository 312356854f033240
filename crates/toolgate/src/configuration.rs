//! The configuration: flags before variables before the file before defaults, each value with its origin, then one
//! typed value for the rest of the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use thiserror::Error;
use toolgate_cli::environment::Environment;
use toolgate_gate::ports::ledger::DetachedLimits;
use toolgate_gate::{ApprovalSettings, DetachedSettings, MachineTools, Settings};
use toolgate_model::approval::{Attendance, Mode};
use toolgate_model::principal::TenantId;
use toolgate_model::rate_limit::RateLimit;
use toolgate_model::secret::Secret;
use toolgate_server::mcp;
use toolgate_server::openwop::{self, ToolList};
use toolgate_workspace::{Bounds, SandboxRequirement};
use tracing_subscriber::filter::Targets;

use crate::telemetry::CallLog;

pub use self::example::example;
pub use self::guardians::{GuardianAuthentication, GuardianEntry, GuardianSettings};
pub use self::identity::IssuerEntry;
use self::keys::Key;
use self::mounts::MountSettings;
pub use self::mounts::{EntryAccess, EntryServer, MountEntry, ProcessEntry};
pub use self::network::NetworkSettings;
use self::resolve::{Resolved, resolve};
pub use self::telemetry::TelemetrySettings;
pub use self::webhook::WebhookSettings;

pub mod example;
mod file;
mod guardians;
mod identity;
pub mod keys;
mod mounts;
mod network;
mod resolve;
mod telemetry;
pub mod value;
mod webhook;

/// The name of the configuration file in the configuration home.
pub const FILE_NAME: &str = "toolgate.toml";

/// The flags of `serve`: values by the path of their key, and the file.
#[derive(Debug, Default)]
pub struct Flags {
    /// By the path of their key.
    pub values: BTreeMap<&'static str, String>,
    pub file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Default,
    Flag(&'static str),
    /// A line of the file.
    File(usize),
    Variable(&'static str),
}

/// A value as `toolgate config check` shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    pub path: &'static str,
    /// The value, with secrets masked.
    pub value: serde_json::Value,
    pub origin: Origin,
}

/// A valid configuration, and its origins.
pub struct Loaded {
    pub configuration: Configuration,
    pub described: Vec<Described>,
    /// The file that was read.
    pub file: Option<PathBuf>,
    /// Probable mistakes.
    pub warnings: Vec<String>,
}

/// All that an operator decides.
pub struct Configuration {
    /// How clients reach the gate.
    pub network: NetworkSettings,
    /// The largest body that is read.
    pub max_body_bytes: usize,
    pub rate_limit: Option<RateLimit>,
    pub store: Store,
    /// Where the master key is.
    pub key_source: KeySource,
    /// Whether a new master key may be generated although credentials are sealed under a lost one.
    pub accept_lost_master_key: bool,
    /// The file of the key that signs the audit log.
    pub audit_key_file: PathBuf,
    /// The directory of the newest signed heads.
    pub heads_directory: PathBuf,
    /// Whether a ledger may be served that went back behind those heads.
    pub accept_ledger_rollback: bool,
    pub integrate_every: Duration,
    pub settings: Settings,
    /// Files and directories besides keys and data that agents must not see: this configuration, saved tokens, tokens
    /// for guardians.
    pub own_files: Vec<PathBuf>,
    /// The tools of this machine, where they are switched on.
    pub workspace: Option<WorkspaceSettings>,
    /// Networks that calls may reach although they are private.
    pub egress_allow: Vec<IpNet>,
    /// The maximum number of calls to services in flight.
    pub max_outbound: usize,
    /// The maximum number of concurrent DNS lookups.
    pub max_lookups: usize,
    /// External guardians, and the settings of runtimes that send hook requests.
    pub guardians: GuardianSettings,
    /// The issuers whose access tokens are accepted.
    pub issuers: Vec<IssuerEntry>,
    /// The mounted MCP servers that the operator has declared.
    pub mounts: Vec<MountEntry>,
    /// How often mounted servers are inspected.
    pub check_mounts_every: Duration,
    /// The timeout for all guardians together for one event.
    pub guardian_budget: Duration,
    /// Set if a webhook is configured.
    pub webhook: Option<WebhookSettings>,
    /// How OpenWOP is spoken.
    pub openwop: openwop::Settings,
    /// How the Model Context Protocol is spoken.
    pub mcp: mcp::Settings,
    pub log_format: LogFormat,
    pub log_level: Targets,
    /// Where traces and metrics are exported to.
    pub telemetry: Option<TelemetrySettings>,
    /// Which calls are logged.
    pub call_log: CallLog,
    /// The administrator's token for the first start.
    pub admin_token: Option<Secret>,
}

/// The tools of this machine.
#[derive(Debug, Clone)]
pub struct WorkspaceSettings {
    /// The directory that they are limited to.
    pub root: PathBuf,
    /// The tenants that have them.
    pub tenants: BTreeSet<TenantId>,
    /// Whether commands may use the network.
    pub network: bool,
    pub sandbox: SandboxRequirement,
    /// The resource limits of a command.
    pub bounds: Bounds,
}

pub enum Store {
    /// In a file of this directory.
    Embedded { data: PathBuf },
    /// In a PostgreSQL database.
    Postgres {
        /// It may contain a password.
        url: Secret,
        /// The maximum number of connections.
        connections: usize,
        /// The timeout of one transaction.
        timeout: Duration,
    },
}

/// Where the master key is.
pub enum KeySource {
    File(PathBuf),
    Environment {
        /// The key that wraps.
        current: Secret,
        /// Keys that may still unwrap.
        previous: Option<Secret>,
    },
    Command {
        /// The program and its arguments.
        words: Vec<String>,
        /// The timeout of one run.
        timeout: Duration,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Human on a terminal, JSON elsewhere.
    Auto,
    Human,
    Json,
}

/// All that is wrong with the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the configuration is not valid:\n  {}", .0.join("\n  "))]
pub struct ConfigurationError(Vec<String>);

impl ConfigurationError {
    fn one(problem: impl Into<String>) -> Self {
        Self(vec![problem.into()])
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => write!(formatter, "default"),
            Self::Flag(flag) => write!(formatter, "flag {flag}"),
            Self::File(line) => write!(formatter, "file, line {line}"),
            Self::Variable(name) => write!(formatter, "variable {name}"),
        }
    }
}

impl Loaded {
    /// Loads the configuration.
    pub fn load(flags: &Flags, mut environment: Environment) -> Result<Self, ConfigurationError> {
        let resolved = resolve(flags, &environment)?;
        let mut warnings = keys::unknown_variables(&environment);
        warnings.extend(resolved.warnings().map(str::to_owned));
        let described = resolved.described();
        let file = resolved.file().cloned();
        let configuration = Configuration::build(resolved, &mut environment)?;
        Ok(Self { configuration, described, file, warnings })
    }
}

impl Configuration {
    fn build(mut resolved: Resolved, environment: &mut Environment) -> Result<Self, ConfigurationError> {
        let network = network::read(&mut resolved)?;
        let telemetry = telemetry::read(&mut resolved, environment)?;
        let day = Duration::from_secs(24 * 60 * 60);
        let days = u32::try_from(resolved.integer(&keys::GRANT_LIFETIME)?).unwrap_or(u32::MAX);
        let settings = Settings {
            default_grant_lifetime: day.saturating_mul(days),
            retire_after: resolved.seconds(&keys::RETIRE_AFTER)?,
            approvals: approvals(&mut resolved)?,
            detached: detached(&mut resolved)?,
            // Set when the workspace is opened.
            machine: MachineTools::default(),
            refusals_per_second: u32::try_from(resolved.integer(&keys::REFUSALS_PER_SECOND)?).unwrap_or(u32::MAX),
            sessions_of_principal: u32::try_from(resolved.integer(&keys::SESSIONS_PER_PRINCIPAL)?).unwrap_or(u32::MAX),
            stored_results: resolved.integer(&keys::STORED_RESULTS)?.saturating_mul(1024 * 1024),
            streams_of_principal: resolved.count(&keys::MAX_STREAMS_PER_PRINCIPAL)?,
            traces: telemetry.as_ref().map(|telemetry| telemetry.traces),
        };
        let tool_list = match resolved.text(&keys::OPENWOP_TOOL_LIST)?.as_str() {
            "object" => ToolList::Object,
            _ => ToolList::Array,
        };
        let log_format = match resolved.text(&keys::LOG_FORMAT)?.as_str() {
            "human" => LogFormat::Human,
            "json" => LogFormat::Json,
            _ => LogFormat::Auto,
        };
        let call_log = match resolved.text(&keys::LOG_CALLS)?.as_str() {
            "off" => CallLog::Off,
            "all" => CallLog::All,
            _ => CallLog::Refused,
        };
        let log_level = resolved.text(&keys::LOG_LEVEL)?.parse().map_err(|_| missing(&keys::LOG_LEVEL))?;
        let guardians = match resolved.optional_path(&keys::GUARDIANS_FILE) {
            Some(file) => guardians::read(&file)?,
            None => GuardianSettings::default(),
        };
        let public_url = resolved.optional_text(&keys::PUBLIC_URL);
        let mounts_file = resolved.optional_path(&keys::MOUNTS_FILE);
        let mounts = match &mounts_file {
            Some(file) => mounts::read(file, environment)?,
            None => MountSettings::default(),
        };
        let identity_file = resolved.optional_path(&keys::IDENTITY_FILE);
        let issuers = identity_file.as_deref().map(|file| identity::read(file, public_url.as_deref())).transpose()?;
        let own_files = [resolved.file().cloned(), environment.configuration_home(), identity_file];
        let own_files = own_files.into_iter().flatten().chain(mounts.files);
        Ok(Self {
            own_files: own_files.chain(guardians.files.iter().cloned()).collect(),
            network,
            max_body_bytes: resolved.count(&keys::MAX_BODY_BYTES)?,
            rate_limit: rate_limit(&mut resolved)?,
            store: store(&mut resolved)?,
            key_source: key_source(&mut resolved, environment)?,
            accept_lost_master_key: false,
            audit_key_file: resolved.path(&keys::AUDIT_KEY_FILE)?,
            heads_directory: resolved.path(&keys::HEADS_DIRECTORY)?,
            accept_ledger_rollback: false,
            integrate_every: Duration::from_millis(resolved.integer(&keys::INTEGRATE)?),
            settings,
            workspace: workspace(&mut resolved)?,
            egress_allow: networks(&mut resolved, &keys::EGRESS_ALLOW)?,
            max_outbound: resolved.count(&keys::MAX_OUTBOUND)?,
            max_lookups: resolved.count(&keys::MAX_LOOKUPS)?,
            guardians,
            issuers: issuers.unwrap_or_default(),
            mounts: mounts.entries,
            check_mounts_every: resolved.seconds(&keys::MOUNTS_CHECK)?,
            guardian_budget: Duration::from_millis(resolved.integer(&keys::GUARDIANS_BUDGET)?),
            webhook: webhook::read(&mut resolved, environment, public_url.clone())?,
            openwop: openwop::Settings { tool_list, conformance: resolved.switch(&keys::SEAMS) },
            mcp: mcp_settings(&mut resolved, public_url)?,
            log_format,
            log_level,
            telemetry,
            call_log,
            admin_token: take_secret(environment, "TOOLGATE_ADMIN_TOKEN")?,
        })
    }
}

fn approvals(resolved: &mut Resolved) -> Result<ApprovalSettings, ConfigurationError> {
    let mut mode = |key: &Key| Mode::parse(&resolved.text(key)?).map_err(|_| missing(key));
    let (mode, highest_mode) = (mode(&keys::APPROVALS_MODE)?, mode(&keys::APPROVALS_HIGHEST_MODE)?);
    let attendance = Attendance::parse(&resolved.text(&keys::APPROVALS_ATTENDANCE)?);
    Ok(ApprovalSettings {
        wait: resolved.seconds(&keys::APPROVALS_WAIT)?,
        attendance: attendance.ok_or_else(|| missing(&keys::APPROVALS_ATTENDANCE))?,
        mode,
        mode_changes: resolved.switch(&keys::APPROVALS_MODE_CHANGES),
        highest_mode,
        most_of_agent: u32::try_from(resolved.integer(&keys::APPROVALS_OPEN_PER_AGENT)?)
            .map_err(|_| missing(&keys::APPROVALS_OPEN_PER_AGENT))?,
    })
}

fn mcp_settings(resolved: &mut Resolved, public_url: Option<String>) -> Result<mcp::Settings, ConfigurationError> {
    Ok(mcp::Settings {
        allowed_origins: resolved.words(&keys::MCP_ALLOWED_ORIGINS).unwrap_or_default(),
        public_url,
        hold: resolved.seconds(&keys::MCP_HOLD)?,
        sessions: resolved.count(&keys::MCP_SESSIONS)?,
        sessions_of_principal: resolved.count(&keys::MCP_SESSIONS_PER_PRINCIPAL)?,
        session_idle: resolved.seconds(&keys::MCP_SESSION_IDLE)?,
    })
}

fn detached(resolved: &mut Resolved) -> Result<DetachedSettings, ConfigurationError> {
    let calls = resolved.integer(&keys::DETACHED_PER_AGENT)?;
    Ok(DetachedSettings {
        when_asked: resolved.switch(&keys::APPROVALS_DETACH),
        stored: DetachedLimits {
            calls: u32::try_from(calls).map_err(|_| missing(&keys::DETACHED_PER_AGENT))?,
            bytes: resolved.integer(&keys::DETACHED_BYTES_PER_AGENT)?,
        },
        keep: resolved.seconds(&keys::KEEP_RESULTS)?,
        ..DetachedSettings::default()
    })
}

fn workspace(resolved: &mut Resolved) -> Result<Option<WorkspaceSettings>, ConfigurationError> {
    let Some(root) = resolved.optional_path(&keys::WORKSPACE_ROOT) else { return Ok(None) };
    let sandbox = match resolved.text(&keys::WORKSPACE_SANDBOX)?.as_str() {
        "off" => SandboxRequirement::Off,
        "where_possible" => SandboxRequirement::WherePossible,
        _ => SandboxRequirement::Required,
    };
    let tenants = resolved.words(&keys::WORKSPACE_TENANTS).unwrap_or_default();
    let tenants = tenants.iter().map(|tenant| TenantId::parse(tenant).map_err(|_| missing(&keys::WORKSPACE_TENANTS)));
    let mebibytes = |count: u64| count.saturating_mul(1024 * 1024);
    let bounds = Bounds {
        memory: mebibytes(resolved.integer(&keys::WORKSPACE_MEMORY)?),
        processes: resolved.integer(&keys::WORKSPACE_PROCESSES)?,
        file_size: mebibytes(resolved.integer(&keys::WORKSPACE_FILE_SIZE)?),
    };
    Ok(Some(WorkspaceSettings {
        root,
        tenants: tenants.collect::<Result<_, _>>()?,
        network: resolved.switch(&keys::WORKSPACE_NETWORK),
        sandbox,
        bounds,
    }))
}

fn rate_limit(resolved: &mut Resolved) -> Result<Option<RateLimit>, ConfigurationError> {
    let [requests, per_seconds, burst] =
        [&keys::RATE_LIMIT_REQUESTS, &keys::RATE_LIMIT_PER_SECONDS, &keys::RATE_LIMIT_BURST]
            .map(|key| resolved.optional_integer(key));
    match (requests, per_seconds, burst) {
        (Some(requests), Some(per_seconds), burst) => RateLimit::new(requests, per_seconds, burst)
            .map(Some)
            .map_err(|error| ConfigurationError::one(format!("server.rate_limit: {error}"))),
        (None, None, None) => Ok(None),
        // A part of a limit would limit nothing, and leave its owner believing that it does.
        _ => {
            Err(ConfigurationError::one("server.rate_limit needs both requests and per_seconds; set both, or neither"))
        }
    }
}

fn networks(resolved: &mut Resolved, key: &Key) -> Result<Vec<IpNet>, ConfigurationError> {
    let words = resolved.words(key).unwrap_or_default();
    words.iter().map(|word| word.parse().map_err(|_| missing(key))).collect()
}

fn store(resolved: &mut Resolved) -> Result<Store, ConfigurationError> {
    match resolved.secret(&keys::DATABASE_URL) {
        Some(url) => Ok(Store::Postgres {
            url,
            connections: resolved.count(&keys::CONNECTIONS)?,
            timeout: resolved.seconds(&keys::LEDGER_TIMEOUT)?,
        }),
        None => Ok(Store::Embedded { data: resolved.path(&keys::DATA)? }),
    }
}

fn key_source(resolved: &mut Resolved, environment: &mut Environment) -> Result<KeySource, ConfigurationError> {
    let provider = resolved.text(&keys::PROVIDER)?;
    let command = resolved.words(&keys::KEY_COMMAND);
    // A key that is given and not used would leave its owner believing that it is.
    if provider != "environment" && environment.has("TOOLGATE_MASTER_KEY") {
        let problem = format!(
            "TOOLGATE_MASTER_KEY is set, but keys.provider is {provider}; set TOOLGATE_KEY_PROVIDER=environment, or unset it"
        );
        return Err(ConfigurationError::one(problem));
    }
    if provider != "command" && command.is_some() {
        let problem = format!(
            "keys.command is set, but keys.provider is {provider}; set keys.provider to command, or remove keys.command"
        );
        return Err(ConfigurationError::one(problem));
    }
    match provider.as_str() {
        "environment" => {
            let current = take_secret(environment, "TOOLGATE_MASTER_KEY")?.ok_or_else(|| {
                let problem =
                    "keys.provider is environment: set TOOLGATE_MASTER_KEY to the base64 text of 32 random bytes";
                ConfigurationError::one(problem)
            })?;
            Ok(KeySource::Environment { current, previous: take_secret(environment, "TOOLGATE_MASTER_KEY_PREVIOUS")? })
        }
        "command" => {
            let words = command.ok_or_else(|| {
                ConfigurationError::one("keys.provider is command: set keys.command to the program and its arguments")
            })?;
            Ok(KeySource::Command { words, timeout: resolved.seconds(&keys::KEY_COMMAND_TIMEOUT)? })
        }
        _ => Ok(KeySource::File(resolved.path(&keys::KEY_FILE)?)),
    }
}

fn take_secret(environment: &mut Environment, name: &str) -> Result<Option<Secret>, ConfigurationError> {
    environment.take_secret(name).map_err(|_| ConfigurationError::one(format!("{name} is not UTF-8 text")))
}

/// Only paths have no default of last resort: those that lie in a home that there may not be.
fn missing(key: &Key) -> ConfigurationError {
    let flag = key.flag.map(|flag| format!("pass {flag}, ")).unwrap_or_default();
    ConfigurationError::one(format!(
        "`{}` has no value, because neither HOME nor the XDG variables are set; {flag}set {} or write the key into the file",
        key.path, key.variable
    ))
}

#[cfg(test)]
mod tests;
