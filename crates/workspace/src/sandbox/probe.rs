//! Finding out by trying what a sandbox does on this system.

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

/// How long a sandbox may take to show that it works.
const PROBE: Duration = Duration::from_secs(10);

/// What a sandbox was found to do besides confining writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probed {
    /// What is hidden does not exist in it.
    pub hides: bool,
}

/// Whether a program keeps what it becomes in its process group.
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

/// Runs a shell that writes where it may and where it may not, and looks for what it must not see; tells why the outcome is
/// not what it must be.
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
        Err("it let a write through".to_owned())
    } else if said.stdout == HIDES || said.stdout == READABLE {
        Ok(Probed { hides: said.stdout == HIDES })
    } else {
        Err(said.stderr.lines().next().unwrap_or("it did not run the shell").chars().take(200).collect())
    }
}

/// What a program printed.
pub struct ProgramOutput {
    pub stdout: String,
    pub stderr: String,
}

/// What a short program says, within the time of a probe.
pub fn output_of(mut command: Command) -> Result<ProgramOutput, String> {
    let confine_error = |error: io::Error| format!("it cannot be started ({})", error.kind());
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(confine_error)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let said = ProgramOutput { stdout: beginning(stdout), stderr: beginning(stderr) };
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
