//! The gate of the demo: this program as `serve`, in a process and a home of its own.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use toolgate_cli::Failure;
use toolgate_gate::ports::entropy::random;
use toolgate_model::key::ApiKey;
use toolgate_model::secret::Secret;

/// How long the gate may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How often its home is tried to be removed.
const REMOVALS: usize = 1000;
/// What the gate prints, before its URL, when it listens.
const READY: &str = "toolgate listening on ";

/// A running gate. Dropped, it is killed.
pub(super) struct DemoGate {
    url: String,
    token: Secret,
    process: Child,
    // INVARIANT: dropped after the process, which writes into it.
    home: Home,
}

impl DemoGate {
    /// Starts it on a port that the system chooses.
    pub(super) async fn start() -> Result<Self, Failure> {
        let home = Home::make()?;
        let token = token()?;
        let program = std::env::current_exe().map_err(|error| Failure::io("this program cannot be found", error))?;
        let log = File::create(home.log()).map_err(|error| Failure::io("the demo's log cannot be made", error))?;
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        // Nothing of the user's own gate: neither its store nor its keys nor its settings.
        command.env_clear().env("HOME", &home.path).current_dir(&home.path);
        command.env("TOOLGATE_ADMIN_TOKEN", token.expose()).env("TOOLGATE_EGRESS_ALLOW", "127.0.0.1/32");
        // In a group of its own Ctrl-C does not reach it: this process decides when it ends.
        command.process_group(0).kill_on_drop(true);
        let mut process = command.spawn().map_err(|error| Failure::io("the demo's gate cannot be started", error))?;
        match tokio::time::timeout(START_TIMEOUT, listening(&mut process)).await {
            Ok(Some(url)) => Ok(Self { url, token, process, home }),
            Ok(None) | Err(_) => Err(Failure::Said(format!("the demo's gate did not start:\n{}", home.logged()))),
        }
    }

    /// Where it listens.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The administrator's token.
    pub(super) fn token(&self) -> &Secret {
        &self.token
    }

    /// Ends it and removes all that it kept.
    pub(super) async fn stop(mut self) -> Result<(), Failure> {
        // Killed rather than asked: there is nothing to keep.
        self.process.kill().await.map_err(|error| Failure::io("the demo's gate cannot be ended", error))?;
        drop(self.home);
        Ok(())
    }
}

/// The URL that it prints; `None` where it ends without.
async fn listening(process: &mut Child) -> Option<String> {
    let mut lines = BufReader::new(process.stdout.take()?).lines();
    while let Some(line) = lines.next_line().await.ok()? {
        if let Some(url) = line.strip_prefix(READY) {
            return Some(url.to_owned());
        }
    }
    None
}

fn token() -> Result<Secret, Failure> {
    let key = random::<96>().ok().and_then(|entropy| ApiKey::from_entropy(&entropy));
    let key = key.ok_or_else(|| Failure::Said("the system's random generator failed".to_owned()))?;
    Ok(Secret::new(key.expose().to_owned()))
}

/// A directory that only its owner may enter. Dropped, it is removed with all that it holds.
struct Home {
    path: PathBuf,
}

impl Home {
    fn make() -> Result<Self, Failure> {
        let entropy = random::<8>().map_err(|error| Failure::Said(error.to_string()))?;
        let name = format!("toolgate-demo-{:016x}", u64::from_be_bytes(entropy));
        let path = std::env::temp_dir().join(name);
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| Failure::io(format!("the demo's directory {} cannot be made", path.display()), error))?;
        Ok(Self { path })
    }

    fn log(&self) -> PathBuf {
        self.path.join("gate.log")
    }

    fn logged(&self) -> String {
        let log = std::fs::read_to_string(self.log()).ok().filter(|text| !text.trim().is_empty());
        log.unwrap_or_else(|| "it said nothing".to_owned())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // A gate that was killed a moment ago may still be writing. Where it does not end there is nobody left to tell.
        for _ in 0..REMOVALS {
            match std::fs::remove_dir_all(&self.path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => std::thread::yield_now(),
                _ => return,
            }
        }
    }
}
