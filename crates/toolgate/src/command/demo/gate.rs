//! The gate of the demo: `toolgate serve` in a separate process with a temporary home directory.

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

const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Attempts to remove the home directory.
const REMOVALS: usize = 1000;
/// Precedes the URL when the gate listens.
const READY: &str = "toolgate listening on ";

/// Dropping it kills the gate.
pub(super) struct DemoGate {
    url: String,
    token: Secret,
    process: Child,
    // INVARIANT: dropped after the process, which writes to it.
    home: Home,
}

impl DemoGate {
    pub(super) async fn start() -> Result<Self, Failure> {
        let home = Home::make()?;
        let token = token()?;
        let program = std::env::current_exe().map_err(|error| Failure::io("could not find this program", error))?;
        let log =
            File::create(home.log()).map_err(|error| Failure::io("could not create the log of the demo", error))?;
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        // No ledger, keys or settings of the user.
        command.env_clear().env("HOME", &home.path).current_dir(&home.path);
        command.env("TOOLGATE_ADMIN_TOKEN", token.expose()).env("TOOLGATE_EGRESS_ALLOW", "127.0.0.1/32");
        // In its own process group it does not receive Ctrl-C: this process ends it.
        command.process_group(0).kill_on_drop(true);
        let mut process =
            command.spawn().map_err(|error| Failure::io("could not start the gate of the demo", error))?;
        match tokio::time::timeout(START_TIMEOUT, listening(&mut process)).await {
            Ok(Some(url)) => Ok(Self { url, token, process, home }),
            Ok(None) | Err(_) => Err(Failure::Said(format!("the gate of the demo did not start:\n{}", home.logged()))),
        }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn token(&self) -> &Secret {
        &self.token
    }

    /// Also removes its home directory.
    pub(super) async fn stop(mut self) -> Result<(), Failure> {
        // Killed: nothing needs to be kept.
        self.process.kill().await.map_err(|error| Failure::io("could not stop the gate of the demo", error))?;
        drop(self.home);
        Ok(())
    }
}

/// The printed URL; `None` if the gate ends without one.
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

/// A directory with mode 0700. Dropping it removes it.
struct Home {
    path: PathBuf,
}

impl Home {
    fn make() -> Result<Self, Failure> {
        let entropy = random::<8>().map_err(|error| Failure::Said(error.to_string()))?;
        let name = format!("toolgate-demo-{:016x}", u64::from_be_bytes(entropy));
        let path = std::env::temp_dir().join(name);
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| Failure::io(format!("could not create the directory {}", path.display()), error))?;
        Ok(Self { path })
    }

    fn log(&self) -> PathBuf {
        self.path.join("gate.log")
    }

    fn logged(&self) -> String {
        let log = std::fs::read_to_string(self.log()).ok().filter(|text| !text.trim().is_empty());
        log.unwrap_or_else(|| "it logged nothing".to_owned())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // A gate that was just killed may still be writing. A failure cannot be reported.
        for _ in 0..REMOVALS {
            match std::fs::remove_dir_all(&self.path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => std::thread::yield_now(),
                _ => return,
            }
        }
    }
}
