//! The file of mounts: MCP servers that the gate runs as processes of this machine. TOML, in which nothing is ignored.
//! Only the operator writes it: whoever chooses a command runs it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use toolgate_cli::durations;
use toolgate_model::credential::ServiceName;
use toolgate_model::principal::TenantId;
use toolgate_workspace::{Bounds, SandboxRequirement};

use super::ConfigurationError;

/// How many processes a mount has where nothing else is said.
const MAX_PROCESSES: usize = 16;
/// How long a process may be idle where nothing else is said.
const IDLE: u64 = 600;

/// A server that is a process.
#[derive(Debug, Clone, PartialEq)]
pub struct MountEntry {
    /// The service that it is registered as.
    pub name: String,
    /// The tenants that may have such a service.
    pub tenants: BTreeSet<TenantId>,
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
    command: Vec<String>,
    #[serde(default)]
    tenants: Vec<String>,
    #[serde(default)]
    directory: Option<PathBuf>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    credential: Option<String>,
    #[serde(default)]
    stateful: bool,
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

/// Reads the file.
pub(super) fn read(path: &Path) -> Result<Vec<MountEntry>, ConfigurationError> {
    let place = path.display();
    let at = |problem: String| ConfigurationError::one(format!("{place}: {problem}"));
    let text = std::fs::read_to_string(path).map_err(|error| at(format!("cannot be read: {error}")))?;
    parse(&text).map_err(|problems| {
        ConfigurationError(problems.into_iter().map(|problem| format!("{place}: {problem}")).collect())
    })
}

fn parse(text: &str) -> Result<Vec<MountEntry>, Vec<String>> {
    // What TOML says of a wrong value would show it, and it may be a secret that stands in the wrong place.
    let file: File = toml::from_str(text).map_err(|error| {
        let line =
            error.span().map_or(1, |span| text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1);
        vec![format!("line {line}: {}", error.message().lines().next().unwrap_or_default())]
    })?;
    let mut problems = Vec::new();
    let mut mounts: Vec<MountEntry> = Vec::new();
    for mount in file.mounts {
        let name = mount.name.clone();
        match entry(mount) {
            Ok(entry) if mounts.iter().any(|other| other.name == entry.name) => {
                problems.push(format!("mount `{name}` is there twice"));
            }
            Ok(entry) => mounts.push(entry),
            Err(problem) => problems.push(format!("mount `{name}`: {problem}")),
        }
    }
    if problems.is_empty() { Ok(mounts) } else { Err(problems) }
}

fn entry(mount: Mount) -> Result<MountEntry, String> {
    ServiceName::parse(&mount.name).map_err(|error| format!("`name` {error}"))?;
    let program = mount.command.first().filter(|program| !program.is_empty());
    program.ok_or("`command` must be a list: the program, then its arguments")?;
    if mount.command.iter().any(|word| word.contains('\0')) {
        return Err("`command` must not contain null bytes".to_owned());
    }
    let tenants = mount.tenants.iter().map(|tenant| TenantId::parse(tenant)).collect::<Result<BTreeSet<_>, _>>();
    let mut tenants = tenants.map_err(|error| format!("`tenants` {error}"))?;
    if tenants.is_empty() {
        tenants.insert(TenantId::default_tenant());
    }
    if let Some(name) = mount.env.keys().find(|name| !is_variable(name)) {
        return Err(format!("`env.{name}` is no name of a variable"));
    }
    let credential = mount.credential.map(|placement| {
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
    Ok(MountEntry {
        name: mount.name,
        tenants,
        command: mount.command,
        directory: mount.directory,
        environment: mount.env.into_iter().collect(),
        credential,
        stateful: mount.stateful,
        max_processes: within("max_processes", mount.max_processes.unwrap_or(MAX_PROCESSES), 1..=1_000)?,
        idle: Duration::from_secs(within("idle_seconds", mount.idle_seconds.unwrap_or(IDLE), 1..=86_400)?),
        sandbox,
        writable: mount.writable,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_read_with_safe_defaults() {
        let text = "[[mounts]]\nname = \"files\"\ncommand = [\"server\", \"/srv\"]\n";
        let [mount] = parse(text).unwrap().try_into().unwrap();
        assert_eq!(mount.command, ["server", "/srv"]);
        assert_eq!(mount.tenants, BTreeSet::from([TenantId::default_tenant()]));
        assert_eq!((mount.stateful, mount.max_processes, mount.idle), (false, 16, Duration::from_secs(600)));
        assert_eq!((mount.sandbox, mount.network, mount.credential), (SandboxRequirement::WherePossible, true, None));
    }

    #[test]
    fn every_key_is_taken() {
        let text = "[[mounts]]\nname = \"files\"\ncommand = [\"server\"]\ntenants = [\"a\"]\ndirectory = \"/srv\"\n\
            env = {LEVEL = \"1\"}\ncredential = \"env:TOKEN\"\nstateful = true\nmax_processes = 3\n\
            idle_seconds = \"1m\"\nsandbox = \"required\"\nwritable = [\"/srv/a\"]\nnetwork = false\nmax_memory_mib = 512\n";
        let [mount] = parse(text).unwrap().try_into().unwrap();
        assert_eq!((mount.credential.as_deref(), mount.idle), (Some("TOKEN"), Duration::from_secs(60)));
        assert_eq!((mount.sandbox, mount.network), (SandboxRequirement::Required, false));
        assert_eq!((mount.bounds.memory, mount.writable), (512 << 20, vec![PathBuf::from("/srv/a")]));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_mount() {
        let with = |further: &str| format!("[[mounts]]\nname = \"files\"\ncommand = [\"server\"]\n{further}\n");
        for (text, expected) in [
            (with("shell = true"), "unknown field `shell`"),
            ("[[mounts]]\nname = \"files\"\ncommand = \"server\"\n".to_owned(), "invalid type"),
            ("[[mounts]]\nname = \"files\"\ncommand = []\n".to_owned(), "`command` must be a list"),
            (with("credential = \"TOKEN\""), "`credential` must be env:NAME"),
            (with("env = {\"A-B\" = \"1\"}"), "`env.A-B` is no name"),
            (with("env = {A = \"1\"}\ncredential = \"env:A\""), "`env` has the variable"),
            (with("max_processes = 0"), "`max_processes` must be from 1 to 1000"),
            (with("sandbox = \"none\""), "`sandbox` must be auto"),
            (with("writable = [\"a\"]"), "must be an absolute path"),
            (format!("{}{}", with(""), with("")), "is there twice"),
        ] {
            let problems = parse(&text).unwrap_err().join("; ");
            assert!(problems.contains(expected), "{problems}");
        }
    }
}
