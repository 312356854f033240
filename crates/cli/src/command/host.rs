//! `toolgate host`: the tool approval protocol on standard input and output, for an application that embeds an agent. It is a
//! client of a running gate, or of a gate in this process.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use toolgate_model::approval::{Mode, SessionName};

pub use self::embedded::{EmbeddedGate, EmbeddedGateOptions, EmbeddedPrincipal};
use self::engine::{Engine, EngineError};
use self::gate_engine::GateEngine;
use self::session::{Session, Terms};
use super::local::LocalCommands;
use super::stop::stop_signals;
use super::values::{typed, typed_option};
use super::{Connection, Failure};
use crate::client::Client;
use crate::entropy::random;
use crate::{logins, output};

mod embedded;
mod engine;
mod event_writer;
mod gate_engine;
mod input;
mod naming;
mod open_calls;
mod protocol;
mod reading;
mod session;
#[cfg(test)]
mod tests;

/// The timeout for blocked threads at the end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Run the tool approval protocol for an application that embeds an agent
///
/// Reads commands and writes events as lines of JSON: the application submits tool calls of its agent and decides their
/// approvals. With --url or --profile, or TOOLGATE_URL or TOOLGATE_PROFILE, the tools are those of a running gate, and the
/// key is TOOLGATE_TOKEN or that of the login. Otherwise this process runs its own gate on the embedded ledger, with the
/// workspace tools Read, Glob, Grep, Write, Edit, Bash and AskUserQuestion, limited to the root. At the end of the input,
/// pending calls are denied.
#[derive(Args)]
#[command(after_help = "Example:\n  toolgate host --root /home/me/project --hitl-suspend")]
pub(crate) struct Host {
    /// URL of a running gate; without one, this process runs its own
    #[arg(long, env = "TOOLGATE_URL", group = "running")]
    url: Option<String>,
    /// Saved login to use, with its gate
    #[arg(long, env = "TOOLGATE_PROFILE", group = "running", value_name = "NAME", value_parser = logins::parse_name)]
    profile: Option<String>,
    /// Agent of the calls, if the key belongs to another principal
    #[arg(long, value_name = "ID", requires = "running")]
    agent: Option<String>,
    /// Working directory of the session, to which the workspace tools are limited
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    /// Directory of the embedded ledger (TOOLGATE_DATA)
    #[arg(long, value_name = "DIR", conflicts_with = "running")]
    data: Option<String>,
    /// Configuration file of the gate in this process (TOOLGATE_CONFIG)
    #[arg(long, value_name = "FILE", conflicts_with = "running")]
    config: Option<PathBuf>,
    /// Name of the session, to continue an earlier one
    #[arg(long, value_name = "NAME", value_parser = session_name)]
    session: Option<SessionName>,
    /// Initial mode: default, auto_edit or force
    #[arg(long, value_parser = mode)]
    mode: Option<Mode>,
    /// Let the application raise the mode with set_mode
    #[arg(long)]
    allow_mode_changes: bool,
    /// Also report pending calls as suspended, to be resumed by token
    #[arg(long)]
    hitl_suspend: bool,
}

impl Host {
    /// The exit status says whether the application read all events.
    pub(crate) fn run(self, local: &impl LocalCommands) -> Result<ExitCode, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(|error| Failure::io("could not start the async runtime", error))?;
        let outcome = runtime.block_on(self.hold(local));
        // A thread that waits for the application to read must not delay the end.
        runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
        Ok(ExitCode::from(u8::from(!outcome?)))
    }

    async fn hold(mut self, local: &impl LocalCommands) -> Result<bool, Failure> {
        let stop = stop_signals()?;
        let root = canonical(&self.root)?;
        let nonce = nonce()?;
        let name = match self.session.take() {
            Some(name) => name,
            None => session_name(&format!("host-{nonce}")).map_err(Failure::Said)?,
        };
        let (gate, client, agent) = match (&self.url, &self.profile) {
            (url @ Some(_), profile) | (url, profile @ Some(_)) => {
                let connection = Connection { url: url.clone(), profile: profile.clone(), json: false };
                (None, connection.client()?, self.agent.clone())
            }
            (None, None) => {
                let gate = local.start_gate(self.gate_options(&root)).await?;
                let client = Client::new(&gate.url, &gate.key)?;
                let agent = gate.agent.clone();
                (Some(gate), client, Some(agent))
            }
        };
        let held = tokio::select! {
            held = self.converse(client, agent, name, nonce, root, stop) => held,
            failure = reported_twice() => return Err(failure),
        };
        if let Some(gate) = gate {
            gate.stop().await;
        }
        held
    }

    fn gate_options(&self, root: &str) -> EmbeddedGateOptions {
        EmbeddedGateOptions {
            root: Some(PathBuf::from(root)),
            data: self.data.clone(),
            config: self.config.clone(),
            mode: self.mode,
            allow_mode_changes: self.allow_mode_changes,
            principal: EmbeddedPrincipal::Host,
        }
    }

    async fn converse(
        &self,
        client: Client,
        agent: Option<String>,
        name: SessionName,
        nonce: String,
        workspace: String,
        stop: impl Future<Output = ()>,
    ) -> Result<bool, Failure> {
        let engine = GateEngine {
            client,
            agent: typed_option("agent_id", agent)?,
            session: name.clone(),
            workspace: typed("workspace", workspace)?,
        };
        let mode = match self.mode {
            Some(mode) => engine.set_mode(mode).await,
            None => engine.mode().await,
        };
        let terms = Terms {
            name,
            nonce,
            mode: mode.map_err(refused)?,
            mode_changes: self.allow_mode_changes,
            suspend: self.hitl_suspend,
        };
        let commands = input::commands().map_err(|error| Failure::io("could not read standard input", error))?;
        let engine = Arc::new(engine);
        // Before the first call can be made.
        let attending = engine.attend().await;
        let session = Session::new(Arc::clone(&engine), terms, tokio::io::stdout());
        tokio::select! {
            complete = session.run(commands, stop) => Ok(complete),
            never = attending => match never {},
        }
    }
}

/// Completes at the second signal, which ends the process without waiting for the application or for calls.
async fn reported_twice() -> Failure {
    for _ in 0..2 {
        match stop_signals() {
            Ok(stop) => stop.await,
            Err(failure) => return failure,
        }
    }
    Failure::Said("ended by a second signal; the outcome of calls in flight is unknown".to_owned())
}

fn canonical(root: &Path) -> Result<String, Failure> {
    let what = || format!("could not open the root {}; pass a directory with --root", root.display());
    let path = root.canonicalize().map_err(|error| Failure::io(what(), error))?;
    match path.into_os_string().into_string() {
        Ok(path) => Ok(path),
        Err(path) => {
            Err(Failure::Said(format!("the root {} is not valid UTF-8", output::clean(&path.to_string_lossy()))))
        }
    }
}

/// A prefix of names and keys that no other process has.
fn nonce() -> Result<String, Failure> {
    Ok(format!("{:032x}", u128::from_be_bytes(random()?)))
}

fn session_name(text: &str) -> Result<SessionName, String> {
    SessionName::parse(text).map_err(|error| format!("the name {error}"))
}

pub(super) fn mode(text: &str) -> Result<Mode, String> {
    Mode::parse(text).map_err(|error| error.to_string())
}

fn refused(error: EngineError) -> Failure {
    match error {
        EngineError::Already(message)
        | EngineError::Expired(message)
        | EngineError::Refused(message)
        | EngineError::Unavailable(message) => Failure::Said(message),
    }
}
