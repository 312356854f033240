//! The file of mounts: MCP servers over HTTP, and those that the gate runs as processes of this machine. TOML, in which nothing
//! is ignored. Only the operator writes it, because a command runs with the gate's account.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use toolgate_cli::durations;
use toolgate_cli::environment::Environment;
use toolgate_model::connection::BaseUrl;
use toolgate_model::credential::ServiceName;
use toolgate_model::principal::TenantId;
use toolgate_model::service::HiddenCharacters;
use toolgate_workspace::{Bounds, SandboxRequirement};

pub use self::access::{EntryAccess, SECRET_VARIABLE};
use super::ConfigurationError;

mod access;
#[cfg(test)]
mod tests;

/// How many processes a mount has where nothing else is said.
const MAX_PROCESSES: usize = 16;
/// How long a process may be idle where nothing else is said.
const IDLE: u64 = 600;

/// What the file says.
#[derive(Default)]
pub struct MountSettings {
    pub entries: Vec<MountEntry>,
    /// The file itself, and those that it names for secrets.
    pub files: Vec<PathBuf>,
}

/// A mounted server.
pub struct MountEntry {
    /// The service that it is registered as.
    pub name: ServiceName,
    /// The tenants that have it.
    pub tenants: BTreeSet<TenantId>,
    pub server: EntryServer,
    /// Whether hints of the server may lower the tier of a tool.
    pub trusted: bool,
    pub hidden_characters: HiddenCharacters,
    /// What it is mounted with at the start; `None` where that is left to an administrator.
    pub access: Option<EntryAccess>,
}

/// Where a server is.
pub enum EntryServer {
    Http(BaseUrl),
    Process(Box<ProcessEntry>),
}

/// A server that is a process.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessEntry {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Where it runs.
    pub directory: Option<PathBuf>,
    /// Its variables.
    pub environment: Vec<(String, String)>,
    /// The variable that the secret of the credential is put into.
    pub credential: Option<String>,
    /// Whether each principal has a process of its own.
    pub stateful: bool,
    /// How many processes there may be.
    pub max_processes: usize,
    /// How long a process may be idle.
    pub idle: Duration,
    /// How much of a sandbox it must have.
    pub sandbox: SandboxRequirement,
    /// Where it writes.
    pub writable: Vec<PathBuf>,
    /// Whether it uses the network.
    pub network: bool,
    /// How much it may take.
    pub bounds: Bounds,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    mounts: Vec<Mount>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mount {
    name: String,
    #[serde(default)]
    tenants: Vec<String>,
    #[serde(default)]
    mount: Option<bool>,
    #[serde(default)]
    trusted: bool,
    #[serde(default)]
    hidden_characters: Option<String>,
    #[serde(default)]
    credential_id: Option<String>,
    #[serde(default)]
    secret: Option<String>,
    #[serde(default)]
    auth_type: Option<String>,
    // Over HTTP.
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    header: Option<String>,
    #[serde(default)]
    prefix: Option<String>,
    #[serde(default)]
    query: Option<String>,
    // As a process.
    #[serde(default)]
    command: Option<Vec<String>>,
    #[serde(default)]
    directory: Option<PathBuf>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    credential: Option<String>,
    #[serde(default)]
    stateful: Option<bool>,
    #[serde(default)]
    max_processes: Option<usize>,
    #[serde(default, deserialize_with = "durations::seconds")]
    idle_seconds: Option<u64>,
    #[serde(default)]
    sandbox: Option<String>,
    #[serde(default)]
    writable: Vec<PathBuf>,
    #[serde(default)]
    network: Option<bool>,
    #[serde(default)]
    max_memory_mib: Option<u64>,
}

/// Reads the file. Secrets are taken from where it says.
pub(super) fn read(path: &Path, environment: &mut Environment) -> Result<MountSettings, ConfigurationError> {
    let place = path.display();
    let at = |problem: String| ConfigurationError::one(format!("{place}: {problem}"));
    let text = std::fs::read_to_string(path).map_err(|error| at(format!("cannot be read: {error}")))?;
    let base = path.parent().unwrap_or(Path::new("."));
    let read = parse(&text, base, environment).map(|mut settings| {
        settings.files.push(path.to_path_buf());
        settings
    });
    read.map_err(|problems| {
        ConfigurationError(problems.into_iter().map(|problem| format!("{place}: {problem}")).collect())
    })
}

fn parse(text: &str, base: &Path, environment: &mut Environment) -> Result<MountSettings, Vec<String>> {
    // What TOML says of a wrong value would show it, and it may be a secret that stands in the wrong place.
    let file: File = toml::from_str(text).map_err(|error| {
        let line =
            error.span().map_or(1, |span| text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1);
        vec![format!("line {line}: {}", error.message().lines().next().unwrap_or_default())]
    })?;
    let mut problems = Vec::new();
    let mut settings = MountSettings::default();
    let mut secrets = access::Secrets::new(base, environment);
    for mount in &file.mounts {
        let name = &mount.name;
        match entry(mount, &mut secrets) {
            Ok(entry) if settings.entries.iter().any(|other| other.name == entry.name) => {
                problems.push(format!("mount `{name}` is there twice"));
            }
            Ok(entry) => settings.entries.push(entry),
            Err(problem) => problems.push(format!("mount `{name}`: {problem}")),
        }
    }
    settings.files = secrets.files();
    if problems.is_empty() { Ok(settings) } else { Err(problems) }
}

fn entry(mount: &Mount, secrets: &mut access::Secrets<'_>) -> Result<MountEntry, String> {
    let name = ServiceName::parse(&mount.name).map_err(|error| format!("`name` {error}"))?;
    let tenants = mount.tenants.iter().map(|tenant| TenantId::parse(tenant)).collect::<Result<BTreeSet<_>, _>>();
    let mut tenants = tenants.map_err(|error| format!("`tenants` {error}"))?;
    if tenants.is_empty() {
        tenants.insert(TenantId::default_tenant());
    }
    let server = match (&mount.url, &mount.command) {
        (Some(url), None) => EntryServer::Http(over_http(mount, url)?),
        (None, Some(command)) => EntryServer::Process(Box::new(process(mount, command)?)),
        _ => return Err("give `url`, or `command` for a process, and not both".to_owned()),
    };
    let rule = mount.hidden_characters.as_deref();
    let rule = rule.map(|rule| HiddenCharacters::WORDS.iter().find(|(word, _)| *word == rule).map(|&(_, rule)| rule));
    let hidden_characters = match rule {
        None => HiddenCharacters::Show,
        Some(Some(rule)) => rule,
        Some(None) => return Err("`hidden_characters` must be show, strip or keep".to_owned()),
    };
    let access = access::of(mount, secrets)?;
    Ok(MountEntry { name, tenants, server, trusted: mount.trusted, hidden_characters, access })
}

fn over_http(mount: &Mount, url: &str) -> Result<BaseUrl, String> {
    let of_processes = [
        ("directory", mount.directory.is_some()),
        ("env", !mount.env.is_empty()),
        ("credential", mount.credential.is_some()),
        ("stateful", mount.stateful.is_some()),
        ("max_processes", mount.max_processes.is_some()),
        ("idle_seconds", mount.idle_seconds.is_some()),
        ("sandbox", mount.sandbox.is_some()),
        ("writable", !mount.writable.is_empty()),
        ("network", mount.network.is_some()),
        ("max_memory_mib", mount.max_memory_mib.is_some()),
    ];
    if let Some((key, _)) = of_processes.iter().find(|(_, is_given)| *is_given) {
        return Err(format!("`{key}` is for a process, and this mount has a `url`"));
    }
    BaseUrl::parse(url).map_err(|error| format!("`url` {error}"))
}

fn process(mount: &Mount, command: &[String]) -> Result<ProcessEntry, String> {
    let program = command.first().filter(|program| !program.is_empty());
    program.ok_or("`command` must be a list: the program, then its arguments")?;
    if command.iter().any(|word| word.contains('\0')) {
        return Err("`command` must not contain null bytes".to_owned());
    }
    for (key, is_given) in
        [("header", mount.header.is_some()), ("prefix", mount.prefix.is_some()), ("query", mount.query.is_some())]
    {
        if is_given {
            return Err(format!("`{key}` is for a server over HTTP; a process gets its secret by `credential`"));
        }
    }
    if let Some(name) = mount.env.keys().find(|name| !is_variable(name)) {
        return Err(format!("`env.{name}` is no name of a variable"));
    }
    let credential = mount.credential.as_ref().map(|placement| {
        let variable = placement.strip_prefix("env:").filter(|name| is_variable(name)).map(str::to_owned);
        variable.ok_or("`credential` must be env:NAME, the variable that the secret is put into")
    });
    let credential = credential.transpose()?;
    if credential.as_ref().is_some_and(|name| mount.env.contains_key(name)) {
        return Err("`env` has the variable that `credential` names".to_owned());
    }
    let sandbox = match mount.sandbox.as_deref() {
        None | Some("auto") => SandboxRequirement::WherePossible,
        Some("required") => SandboxRequirement::Required,
        Some("off") => SandboxRequirement::Off,
        Some(_) => return Err("`sandbox` must be auto, required or off".to_owned()),
    };
    if let Some(path) = mount.writable.iter().chain(&mount.directory).find(|path| !path.is_absolute()) {
        return Err(format!("`{}` must be an absolute path", path.display()));
    }
    let usual = Bounds::default();
    let bounds =
        Bounds { memory: mount.max_memory_mib.map_or(usual.memory, |mib| mib.saturating_mul(1024 * 1024)), ..usual };
    Ok(ProcessEntry {
        command: command.to_vec(),
        directory: mount.directory.clone(),
        environment: mount.env.clone().into_iter().collect(),
        credential,
        stateful: mount.stateful.unwrap_or(false),
        max_processes: within("max_processes", mount.max_processes.unwrap_or(MAX_PROCESSES), 1..=1_000)?,
        idle: Duration::from_secs(within("idle_seconds", mount.idle_seconds.unwrap_or(IDLE), 1..=86_400)?),
        sandbox,
        writable: mount.writable.clone(),
        network: mount.network.unwrap_or(true),
        bounds,
    })
}

fn within<T: PartialOrd + Display>(name: &str, number: T, range: RangeInclusive<T>) -> Result<T, String> {
    let expected = || format!("`{name}` must be from {} to {}", range.start(), range.end());
    if range.contains(&number) { Ok(number) } else { Err(expected()) }
}

fn is_variable(name: &str) -> bool {
    let is_start = |letter: u8| letter.is_ascii_alphabetic() || letter == b'_';
    name.bytes().next().is_some_and(is_start) && name.bytes().all(|letter| is_start(letter) || letter.is_ascii_digit())
}
