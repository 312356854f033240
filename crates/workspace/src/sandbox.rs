//! The sandbox of commands: which one this system offers, found out by trying, and how a command is started in it.

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
    /// Whether commands can write only below the root and in a temporary directory of their own.
    pub writes_confined: bool,
    /// Whether commands cannot use the network.
    pub network_off: bool,
    /// Whether Toolgate's own files do not exist for commands, so that not even their modes can be changed.
    pub own_files_hidden: bool,
    /// The same for people, with what is not enforced.
    pub note: String,
}

/// The chosen sandbox.
#[derive(Debug)]
pub struct Sandbox {
    shell: PathBuf,
    method: Option<Method>,
    /// Without a sandbox, the program that keeps a command in its process group and becomes the shell.
    tied: Option<PathBuf>,
    confinement: Confinement,
    report: SandboxReport,
    /// Why there is none although one is required.
    refused: Option<String>,
    /// Made for commands, removed with the workspace.
    temporary: TempDir,
}

/// A way to confine a command.
#[derive(Debug, Clone)]
enum Method {
    /// This program confines itself and becomes the shell.
    Landlock { confiner: PathBuf },
    /// This program, bubblewrap, starts the other one in namespaces of its own, which becomes the shell.
    Bubblewrap { program: PathBuf, confiner: PathBuf },
}

impl Sandbox {
    /// Tries what the system offers, the best first.
    pub fn choose(root: &Path, limits: &Limits) -> Result<Self, WorkspaceError> {
        Self::for_programs(vec![root.to_path_buf()], limits)
    }

    /// The same for programs that write below several directories.
    pub fn for_programs(mut writable: Vec<PathBuf>, limits: &Limits) -> Result<Self, WorkspaceError> {
        let failed = |error: io::Error| WorkspaceError::System {
            doing: "making a temporary directory for commands",
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
                    // Taken unless another one also hides what it must.
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

    /// The directory that commands have for temporary files.
    pub fn temporary(&self) -> &Path {
        self.confinement.writable.last().map_or(self.temporary.path(), PathBuf::as_path)
    }

    /// `bash`, or `sh` where there is no bash.
    pub fn shell_name(&self) -> &str {
        name(&self.shell)
    }

    /// The command that runs `line` in the sandbox, as the leader of a process group of its own.
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

/// The program, told to give something up before it becomes what the words say. It founds its session and group by itself,
/// which a leader of a group could not.
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
            "Toolgate's files do not exist for them; modes and times of other files elsewhere are not protected"
        }
        _ => {
            "this system gives no mount namespace, so that they can change modes and times of files elsewhere, \
             Toolgate's too, although they cannot read those"
        }
    };
    let mut note = match method.map(|(method, _)| method) {
        Some(Method::Landlock { .. }) => format!(
            "commands run under Landlock: they write only below the root and in a temporary directory, {network}, and \
             they reach no process outside; {modes}"
        ),
        Some(Method::Bubblewrap { .. }) => format!(
            "commands run under bubblewrap: they write only below the root and in a temporary directory, {network}, \
             and they see no process outside"
        ),
        None if limits.sandbox == SandboxRequirement::Off => {
            "commands run WITHOUT a sandbox, as configured: they can write wherever this user can, and use the network"
                .to_owned()
        }
        None if limits.sandbox == SandboxRequirement::Required => {
            format!("commands are refused: a sandbox is required and there is none ({})", attempts.join("; "))
        }
        None => format!(
            "commands run WITHOUT a sandbox: they can write wherever this user can, and use the network ({})",
            attempts.join("; ")
        ),
    };
    if name(shell) != "bash" {
        note.push_str("; there is no bash here, sh runs them");
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

/// The first such file in the directories of `PATH`.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).filter(|place| place.is_absolute()).map(|place| place.join(name)).find(|p| p.is_file())
}

#[cfg(test)]
mod tests;
