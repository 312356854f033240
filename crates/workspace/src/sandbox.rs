//! The sandbox of commands: probes which one this system offers, and starts commands in it.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::error::WorkspaceError;
use crate::launcher::Launch;
use crate::limits::{Limits, SandboxRequirement};

#[cfg(target_os = "linux")]
mod bounds;
mod bubblewrap;
#[cfg(target_os = "linux")]
mod capability;
mod confine;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod hide;
#[cfg(target_os = "linux")]
mod landlock;
mod probe;

pub use confine::{CONFINE_WORD, ConfineError, Confinement, Level, confine_and_exec};
use probe::{Probed, probe, probe_tied};

/// What is enforced on commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxReport {
    /// `landlock`, `bubblewrap` or `none`.
    pub kind: &'static str,
    /// Whether commands can write only below the root and in their own temporary directory.
    pub writes_confined: bool,
    /// Whether commands cannot use the network.
    pub network_off: bool,
    /// Whether Toolgate's own files do not exist for commands, so that not even their modes can be changed.
    pub own_files_hidden: bool,
    /// The same in words, including what is not enforced.
    pub note: String,
}

#[derive(Debug)]
pub struct Sandbox {
    shell: PathBuf,
    method: Option<Method>,
    /// Without a sandbox: the program that keeps a command in its process group and executes the shell.
    tied: Option<PathBuf>,
    confinement: Confinement,
    report: SandboxReport,
    /// The reason why no sandbox is available although one is required.
    refused: Option<String>,
    /// Created for commands, removed with the workspace.
    temporary: TempDir,
}

#[derive(Debug, Clone)]
enum Method {
    /// The confiner restricts itself and executes the shell.
    Landlock { confiner: PathBuf },
    /// bubblewrap starts the confiner in new namespaces, which executes the shell.
    Bubblewrap { program: PathBuf, confiner: PathBuf },
}

impl Sandbox {
    /// Probes what the system offers, the best method first.
    pub fn choose(root: &Path, limits: &Limits) -> Result<Self, WorkspaceError> {
        Self::for_programs(vec![root.to_path_buf()], limits)
    }

    /// The same for programs that write below several directories.
    pub fn for_programs(mut writable: Vec<PathBuf>, limits: &Limits) -> Result<Self, WorkspaceError> {
        let failed = |error: io::Error| WorkspaceError::System {
            doing: "creating a temporary directory for commands",
            kind: error.kind(),
        };
        let temporary = tempfile::Builder::new().prefix("toolgate-workspace-").tempdir().map_err(failed)?;
        let place = temporary.path().canonicalize().map_err(failed)?;
        let shell = find_program("bash").unwrap_or_else(|| PathBuf::from("/bin/sh"));
        let mut attempts = Vec::new();
        let mut chosen = None;
        if limits.sandbox != SandboxRequirement::Off {
            for method in offered(limits) {
                match probe(&method, &shell, &place) {
                    Ok(probed) if probed.hides => {
                        chosen = Some((method, probed));
                        break;
                    }
                    // Used unless a later method also hides files.
                    Ok(probed) => chosen = chosen.or(Some((method, probed))),
                    Err(why) => attempts.push(format!("{}: {why}", method.kind())),
                }
            }
        }
        let report = report(chosen.as_ref(), limits, &attempts, &shell);
        let method = chosen.map(|(method, _)| method);
        let refused = (limits.sandbox == SandboxRequirement::Required && method.is_none()).then(|| attempts.join("; "));
        let tied = confiner(limits).filter(|confiner| method.is_none() && probe_tied(confiner, &shell));
        let level = match &method {
            Some(Method::Landlock { .. }) => Level::Full,
            Some(Method::Bubblewrap { .. }) => Level::Inside,
            None => Level::Tied,
        };
        let confinement = Confinement {
            level,
            bounds: limits.bounds,
            writable: {
                writable.push(place);
                writable
            },
            hidden: limits.hidden.clone(),
            network: limits.network,
        };
        Ok(Self { shell, method, tied, confinement, report, refused, temporary })
    }

    pub fn report(&self) -> &SandboxReport {
        &self.report
    }

    /// The temporary directory of commands.
    pub fn temporary(&self) -> &Path {
        self.confinement.writable.last().map_or(self.temporary.path(), PathBuf::as_path)
    }

    /// `bash`, or `sh` on systems without bash.
    pub fn shell_name(&self) -> &str {
        name(&self.shell)
    }

    /// Builds the command that runs `line` in the sandbox as the leader of its own process group.
    pub fn command(&self, line: &str, directory: &Path) -> Result<tokio::process::Command, WorkspaceError> {
        if let Some(why) = &self.refused {
            return Err(WorkspaceError::NoSandbox { why: why.clone() });
        }
        let shell_line = [self.shell.as_os_str(), OsStr::new("-c"), OsStr::new(line)];
        let command = match (&self.method, &self.tied) {
            (Some(method), _) => method.command(&self.confinement, Some(directory), &shell_line),
            (None, Some(confiner)) => confined(confiner, &self.confinement, &shell_line),
            (None, None) => {
                let mut command = Command::new(&self.shell);
                command.args(["-c", line]).process_group(0);
                command
            }
        };
        Ok(command.into())
    }
}

impl Sandbox {
    /// How a program is started in the sandbox.
    pub fn launch(&self, words: &[&OsStr], directory: Option<&Path>) -> Result<Launch, WorkspaceError> {
        if let Some(why) = &self.refused {
            return Err(WorkspaceError::NoSandbox { why: why.clone() });
        }
        let (command, leads_group) = match (&self.method, &self.tied) {
            (Some(method), _) => {
                let leads_group = matches!(method, Method::Landlock { .. });
                (method.command(&self.confinement, directory, words), leads_group)
            }
            (None, Some(confiner)) => (confined(confiner, &self.confinement, words), true),
            (None, None) => {
                let words = words.iter().map(|word| (*word).to_owned()).collect();
                return Ok(Launch { words, leads_group: false });
            }
        };
        let words = std::iter::once(command.get_program()).chain(command.get_args()).map(OsStr::to_owned).collect();
        Ok(Launch { words, leads_group })
    }
}

impl Method {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Landlock { .. } => "landlock",
            Self::Bubblewrap { .. } => "bubblewrap",
        }
    }

    fn command(&self, confinement: &Confinement, directory: Option<&Path>, words: &[&OsStr]) -> Command {
        match self {
            Self::Landlock { confiner } => self::confined(confiner, confinement, words),
            Self::Bubblewrap { program, confiner } => {
                let mut command = Command::new(program);
                command.args(bubblewrap::arguments(confinement, directory)).arg(confiner).arg(CONFINE_WORD);
                command.args(confinement.to_arguments()).args(words).process_group(0);
                command
            }
        }
    }
}

/// The confiner with its confinement and the command to execute. It creates its session and group itself, which a group
/// leader could not.
fn confined(confiner: &Path, confinement: &Confinement, words: &[&OsStr]) -> Command {
    let mut command = Command::new(confiner);
    command.arg(CONFINE_WORD).args(confinement.to_arguments()).args(words);
    command
}

fn confiner(limits: &Limits) -> Option<PathBuf> {
    limits.confiner.clone().or_else(|| std::env::current_exe().ok()).filter(|_| cfg!(target_os = "linux"))
}

fn offered(limits: &Limits) -> impl Iterator<Item = Method> {
    let landlock = confiner(limits).map(|confiner| Method::Landlock { confiner });
    let bubblewrap =
        find_program("bwrap").zip(confiner(limits)).map(|(program, confiner)| Method::Bubblewrap { program, confiner });
    landlock.into_iter().chain(bubblewrap)
}

fn report(method: Option<&(Method, Probed)>, limits: &Limits, attempts: &[String], shell: &Path) -> SandboxReport {
    let network = if limits.network { "the network is allowed" } else { "the network is off" };
    let modes = match method {
        Some((Method::Landlock { .. }, Probed { hides: true })) => {
            "Toolgate's files are hidden from them; modes and times of other files outside are not protected"
        }
        _ => {
            "this system allows no mount namespace, so they can change modes and times of files outside, \
             including Toolgate's, although they cannot read those"
        }
    };
    let mut note = match method.map(|(method, _)| method) {
        Some(Method::Landlock { .. }) => format!(
            "commands run under Landlock: they write only below the root and in a temporary directory, {network}, and they \
             cannot reach processes outside; {modes}"
        ),
        Some(Method::Bubblewrap { .. }) => format!(
            "commands run under bubblewrap: they write only below the root and in a temporary directory, {network}, \
             and cannot see processes outside"
        ),
        None if limits.sandbox == SandboxRequirement::Off => {
            "commands run WITHOUT a sandbox, as configured: they can write everywhere this user can, and use the network"
                .to_owned()
        }
        None if limits.sandbox == SandboxRequirement::Required => {
            format!("commands are refused: a sandbox is required and none is available ({})", attempts.join("; "))
        }
        None => format!(
            "commands run WITHOUT a sandbox: they can write everywhere this user can, and use the network ({})",
            attempts.join("; ")
        ),
    };
    if name(shell) != "bash" {
        note.push_str("; bash is not installed, so sh runs them");
    }
    SandboxReport {
        kind: method.map_or("none", |(method, _)| method.kind()),
        writes_confined: method.is_some(),
        own_files_hidden: method.is_some_and(|(_, probed)| probed.hides),
        network_off: method.is_some() && !limits.network,
        note,
    }
}

fn name(program: &Path) -> &str {
    program.file_name().and_then(OsStr::to_str).unwrap_or("sh")
}

/// The first file with this name in the directories of `PATH`.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).filter(|place| place.is_absolute()).map(|place| place.join(name)).find(|p| p.is_file())
}

#[cfg(test)]
mod tests;
