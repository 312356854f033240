//! The sandbox of commands: which one this system offers, found out by trying, and how a command is started in it.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use tempfile::TempDir;

use crate::error::WorkspaceError;
use crate::limits::{Limits, SandboxWish};

mod bubblewrap;
#[cfg(target_os = "linux")]
mod capability;
mod confine;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod landlock;

pub use confine::{CONFINE_WORD, ConfineError, Confinement, confine_and_exec};

/// How long a sandbox may take to show that it works.
const PROBE: Duration = Duration::from_secs(10);

/// What is enforced on commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxReport {
    /// `landlock`, `bubblewrap` or `none`.
    pub kind: &'static str,
    /// Whether commands can write only below the root and in a temporary directory of their own.
    pub writes_confined: bool,
    /// Whether commands cannot use the network.
    pub network_off: bool,
    /// The same for people, with what is not enforced.
    pub note: String,
}

/// The chosen sandbox.
#[derive(Debug)]
pub struct Sandbox {
    shell: PathBuf,
    method: Option<Method>,
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
    /// This program, bubblewrap, starts the shell in namespaces of its own.
    Bubblewrap { program: PathBuf },
}

impl Sandbox {
    /// Tries what the system offers, the best first.
    pub fn choose(root: &Path, limits: &Limits) -> Result<Self, WorkspaceError> {
        let failed = |error: io::Error| WorkspaceError::System {
            doing: "making a temporary directory for commands",
            kind: error.kind(),
        };
        let temporary = tempfile::Builder::new().prefix("toolgate-workspace-").tempdir().map_err(failed)?;
        let place = temporary.path().canonicalize().map_err(failed)?;
        let shell = find_program("bash").unwrap_or_else(|| PathBuf::from("/bin/sh"));
        let mut attempts = Vec::new();
        let method = match limits.sandbox {
            SandboxWish::Off => None,
            SandboxWish::Required | SandboxWish::WherePossible => {
                offered(limits).find(|method| match probe(method, &shell, &place) {
                    Ok(()) => true,
                    Err(why) => {
                        attempts.push(format!("{}: {why}", method.kind()));
                        false
                    }
                })
            }
        };
        let report = report(method.as_ref(), limits, &attempts, &shell);
        let refused = (limits.sandbox == SandboxWish::Required && method.is_none()).then(|| attempts.join("; "));
        let confinement = Confinement {
            writable: vec![root.to_path_buf(), place],
            hidden: limits.hidden.clone(),
            network: limits.network,
        };
        Ok(Self { shell, method, confinement, report, refused, temporary })
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
        let command = match &self.method {
            Some(method) => method.command(&self.confinement, Some(directory), &shell_line),
            None => {
                let mut command = Command::new(&self.shell);
                command.args(["-c", line]).process_group(0);
                command
            }
        };
        Ok(command.into())
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
            Self::Landlock { confiner } => {
                // It founds its session and group by itself, which a leader of a group could not.
                let mut command = Command::new(confiner);
                command.arg(CONFINE_WORD).args(confinement.to_arguments()).args(words);
                command
            }
            Self::Bubblewrap { program } => {
                let mut command = Command::new(program);
                command.args(bubblewrap::arguments(confinement, directory)).args(words).process_group(0);
                command
            }
        }
    }
}

fn offered(limits: &Limits) -> impl Iterator<Item = Method> {
    let confiner = limits.confiner.clone().or_else(|| std::env::current_exe().ok());
    let landlock = confiner.filter(|_| cfg!(target_os = "linux")).map(|confiner| Method::Landlock { confiner });
    let bubblewrap = find_program("bwrap").map(|program| Method::Bubblewrap { program });
    landlock.into_iter().chain(bubblewrap)
}

/// Runs a shell that writes where it may and where it may not, and tells why the outcome is not what it must be.
fn probe(method: &Method, shell: &Path, temporary: &Path) -> Result<(), String> {
    const DONE: &str = "confined";
    const LINE: &str = "echo in > \"$1/inside/file\" && if (echo out > \"$1/outside/file\") 2> /dev/null; then \
                        echo open; else printf confined; fi";
    let place = TempDir::new_in(temporary).map_err(|error| error.kind().to_string())?;
    let (inside, outside) = (place.path().join("inside"), place.path().join("outside"));
    fs::create_dir(&inside).and_then(|()| fs::create_dir(&outside)).map_err(|error| error.kind().to_string())?;
    let confinement = Confinement { writable: vec![inside], hidden: Vec::new(), network: false };
    let words = [shell.as_os_str(), OsStr::new("-c"), OsStr::new(LINE), shell.as_os_str(), place.path().as_os_str()];
    let said = said_by(method.command(&confinement, None, &words))?;
    if outside.join("file").exists() {
        Err("it let a write through".to_owned())
    } else if said.stdout == DONE {
        Ok(())
    } else {
        Err(said.stderr.lines().next().unwrap_or("it did not run the shell").chars().take(200).collect())
    }
}

struct Said {
    stdout: String,
    stderr: String,
}

/// What a short program says, within the time of a probe.
fn said_by(mut command: Command) -> Result<Said, String> {
    let told = |error: io::Error| format!("it cannot be started ({})", error.kind());
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(told)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let said = Said { stdout: beginning(stdout), stderr: beginning(stderr) };
        // Nobody listens once the time is over.
        let _listening = sender.send(said);
    });
    let said = receiver.recv_timeout(PROBE);
    // It has ended, or must now.
    let _gone = child.kill();
    let _reaped = child.wait();
    said.map_err(|_| "it did not end in time".to_owned())
}

fn beginning(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // What came before an error is still what it said.
        let _whole_or_part = pipe.take(4096).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn report(method: Option<&Method>, limits: &Limits, attempts: &[String], shell: &Path) -> SandboxReport {
    let network = if limits.network { "the network is allowed" } else { "the network is off" };
    let mut note = match method {
        Some(Method::Landlock { .. }) => format!(
            "commands run under Landlock: they write only below the root and in a temporary directory, {network}, and \
             they reach no process outside; modes and times of files elsewhere are not protected"
        ),
        Some(Method::Bubblewrap { .. }) => format!(
            "commands run under bubblewrap: they write only below the root and in a temporary directory, {network}, \
             and they see no process outside"
        ),
        None if limits.sandbox == SandboxWish::Off => {
            "commands run WITHOUT a sandbox, as configured: they can write wherever this user can, and use the network"
                .to_owned()
        }
        None if limits.sandbox == SandboxWish::Required => {
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
        kind: method.map_or("none", Method::kind),
        writes_confined: method.is_some(),
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
