//! The programs that the benchmark runs beside the gate, and processes that never outlive it.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::process::program;

/// Runs a program to its end and returns its output; anything but success is an error with its messages.
pub fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name} could not be started: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{name} failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// A process that is killed when it is dropped, and by the system when this program dies in any way.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program with nothing in its environment but the path and `environment`; its standard error goes to the
    /// file `log`.
    pub fn start(
        program: &Path,
        arguments: &[&OsStr],
        environment: &[(&str, &OsStr)],
        log: PathBuf,
    ) -> Result<Self, String> {
        let failed = |error: io::Error| format!("{} could not be started: {error}", program.display());
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(program).args(arguments);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(environment.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log).map_err(failed)?);
        Ok(Self { child: command.spawn().map_err(failed)?, log })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its standard output; once.
    pub fn take_output(&mut self) -> Option<std::process::ChildStdout> {
        self.child.stdout.take()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Its standard error so far.
    pub fn complaints(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Sends SIGINT and waits until it has ended. A gate that gets SIGTERM serves on for a while first.
    pub fn interrupt(mut self) -> Result<(), String> {
        output(&mut program("sh", &["-c", "kill -s INT \"$1\"", "kill", &self.id().to_string()]))?;
        let status = self.child.wait().map_err(|error| format!("process {} was lost: {error}", self.id()))?;
        if status.success() { Ok(()) } else { Err(format!("it ended with {status}:\n{}", self.complaints())) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if the process has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A free loopback address.
pub fn free_address() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    listener.map_err(|error| format!("no free port: {error}"))
}

/// Waits until a server listens there; returns whether that happened within ten seconds.
pub fn listens(address: SocketAddr, mut gone: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) && !gone() {
        if TcpStream::connect(address).is_ok() {
            return true;
        }
        pause(Duration::from_millis(20));
    }
    false
}

/// Sleeps: the measured processes have no event to wait for.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures in the machine's own time")]
pub fn pause(span: Duration) {
    std::thread::sleep(span);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_program_says_why() {
        let error = output(&mut program("sh", &["-c", "echo no room >&2; exit 3"])).unwrap_err();
        assert_eq!(error, "sh failed (exit status: 3): no room");
    }
}
