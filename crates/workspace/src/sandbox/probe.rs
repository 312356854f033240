//! Probes: tests at runtime what a sandbox enforces on this system.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use tempfile::TempDir;

use super::{Confinement, Level, Method, confined};
use crate::limits::Bounds;

/// The timeout of a probe.
const PROBE: Duration = Duration::from_secs(10);

/// What a sandbox enforces in addition to confining writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probed {
    /// Hidden paths do not exist inside the sandbox.
    pub hides: bool,
}

/// Returns whether the confiner keeps the program that it executes in its process group.
pub fn probe_tied(confiner: &Path, shell: &Path) -> bool {
    let confinement = Confinement {
        level: Level::Tied,
        bounds: Bounds::default(),
        writable: Vec::new(),
        hidden: Vec::new(),
        network: true,
    };
    let words = [shell.as_os_str(), OsStr::new("-c"), OsStr::new("printf tied")];
    output_of(confined(confiner, &confinement, &words)).is_ok_and(|said| said.stdout == "tied")
}

/// Runs a shell that writes to an allowed and to a forbidden path and looks for a hidden one. Returns the reason if the
/// sandbox does not work.
pub fn probe(method: &Method, shell: &Path, temporary: &Path) -> Result<Probed, String> {
    const HIDES: &str = "confined hidden";
    const READABLE: &str = "confined there";
    const LINE: &str = "echo in > \"$1/inside/file\" && if (echo out > \"$1/outside/file\") 2> /dev/null; then \
                        echo open; else printf confined; fi; if [ -e \"$1/hidden/file\" ]; then printf ' there'; else \
                        printf ' hidden'; fi";
    let place = TempDir::new_in(temporary).map_err(|error| error.kind().to_string())?;
    let [inside, outside, hidden] = ["inside", "outside", "hidden"].map(|name| place.path().join(name));
    let made = [&inside, &outside, &hidden].into_iter().try_for_each(fs::create_dir);
    made.and_then(|()| fs::write(hidden.join("file"), "")).map_err(|error| error.kind().to_string())?;
    let level = if matches!(method, Method::Landlock { .. }) { Level::Full } else { Level::Inside };
    let bounds = Bounds::default();
    let confinement = Confinement { level, bounds, writable: vec![inside], hidden: vec![hidden], network: false };
    let words = [shell.as_os_str(), OsStr::new("-c"), OsStr::new(LINE), shell.as_os_str(), place.path().as_os_str()];
    let said = output_of(method.command(&confinement, None, &words))?;
    if outside.join("file").exists() {
        Err("it allowed a write outside the sandbox".to_owned())
    } else if said.stdout == HIDES || said.stdout == READABLE {
        Ok(Probed { hides: said.stdout == HIDES })
    } else {
        Err(said.stderr.lines().next().unwrap_or("it did not run the shell").chars().take(200).collect())
    }
}

pub struct ProgramOutput {
    pub stdout: String,
    pub stderr: String,
}

/// Runs a short program and returns its output, within the timeout of a probe.
pub fn output_of(mut command: Command) -> Result<ProgramOutput, String> {
    let confine_error = |error: io::Error| format!("could not start it: {}", error.kind());
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(confine_error)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let said = ProgramOutput { stdout: beginning(stdout), stderr: beginning(stderr) };
        // The receiver is gone after the timeout.
        let _listening = sender.send(said);
    });
    let said = receiver.recv_timeout(PROBE);
    // It has exited or is overdue.
    let _gone = child.kill();
    let _reaped = child.wait();
    said.map_err(|_| "it did not exit in time".to_owned())
}

fn beginning(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // Output before an error still counts.
        let _whole_or_part = pipe.take(4096).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
