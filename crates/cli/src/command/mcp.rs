//! `toolgate mcp`: the Model Context Protocol on standard input and output, for clients that start a process. It is a bridge to
//! a running gate, or to a gate in this process.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use toolgate_model::approval::Mode;

use self::bridge::Bridge;
use self::message::{Message, Unreadable};
use self::output::Output;
use super::host::{EmbeddedGateOptions, EmbeddedPrincipal, mode};
use super::line_reader::{self, Line, TooLong};
use super::local::LocalCommands;
use super::stop::stop_signals;
use super::{Connection, Failure};
use crate::client::Client;
use crate::environment::Environment;
use crate::logins;
use crate::output::say;

mod bridge;
mod headers;
mod message;
mod output;
mod session;
#[cfg(test)]
mod tests;

/// The longest line, which is more than a gate accepts as a body.
const MAX_LINE: usize = 16 * 1024 * 1024;
/// Lines that are read ahead.
const INPUT_QUEUE: usize = 16;
/// The timeout for blocked threads at the end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Serve MCP on standard input and output, for clients that start a process
///
/// With --url or --profile, or TOOLGATE_URL or TOOLGATE_PROFILE, messages are passed on to a running gate, with the key in
/// TOOLGATE_TOKEN or that of the login: the client sees the tools of that principal. Otherwise this process runs its own
/// gate on the embedded ledger, and the client is the agent --agent. Logs go to standard error. `toolgate connect` adds this
/// command to the settings of a client.
#[derive(Args)]
#[command(
    after_help = "Example:\n  toolgate mcp --stdio --profile claude-code\n  toolgate mcp --stdio --data ~/toolgate --agent claude-code"
)]
pub(crate) struct Mcp {
    /// Use standard input and output
    #[arg(long, required = true)]
    stdio: bool,
    /// URL of a running gate [env: TOOLGATE_URL]; without one, this process runs its own
    #[arg(long, group = "running")]
    url: Option<String>,
    /// Saved login to use, with its gate [env: TOOLGATE_PROFILE]
    #[arg(long, group = "running", value_name = "NAME", value_parser = logins::parse_name)]
    profile: Option<String>,
    /// Agent of the client on the embedded ledger, created if it does not exist [default: mcp-agent]
    #[arg(long, value_name = "ID", conflicts_with = "running")]
    agent: Option<String>,
    /// Directory of the workspace tools of the gate in this process [default: none]
    #[arg(long, value_name = "DIR", conflicts_with = "running")]
    root: Option<PathBuf>,
    /// Mode of the gate in this process: default, auto_edit or force [default: as configured]
    #[arg(long, value_parser = mode, conflicts_with = "running")]
    mode: Option<Mode>,
    /// Directory of the embedded ledger (TOOLGATE_DATA)
    #[arg(long, value_name = "DIR", conflicts_with = "running")]
    data: Option<String>,
    /// Configuration file of the gate in this process (TOOLGATE_CONFIG)
    #[arg(long, value_name = "FILE", conflicts_with = "running")]
    config: Option<PathBuf>,
}

/// The agent of a client on the embedded ledger, where none is named.
const AGENT: &str = "mcp-agent";

impl Mcp {
    pub(crate) fn run(self, local: &impl LocalCommands) -> Result<ExitCode, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(|error| Failure::io("could not start the async runtime", error))?;
        let outcome = runtime.block_on(self.serve(local));
        // A thread that waits for the client to read must not delay the end.
        runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
        outcome.map(|()| ExitCode::SUCCESS)
    }

    async fn serve(&self, local: &impl LocalCommands) -> Result<(), Failure> {
        let stop = stop_signals()?;
        let (gate, client) = if self.is_bridge() {
            let connection = Connection { url: self.url.clone(), profile: self.profile.clone(), json: false };
            (None, connection.client()?)
        } else {
            let gate = local.start_gate(self.gate_options()?).await?;
            say(&format!("toolgate: the client is agent {} of the gate in this process, at {}", gate.agent, gate.url));
            let client = Client::new(&gate.url, &gate.key)?;
            (Some(gate), client)
        };
        let input = line_reader::standard_input("mcp-input", INPUT_QUEUE, MAX_LINE, read);
        let input = input.map_err(|error| Failure::io("could not read standard input", error))?;
        let (output, writing) = Output::new(tokio::io::stdout());
        Bridge::new(client, output).run(input, stop).await;
        // What was sent is written, unless the client does not read it.
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, writing).await;
        if let Some(gate) = gate {
            gate.stop().await;
        }
        Ok(())
    }

    fn is_bridge(&self) -> bool {
        let environment = Environment::of_process();
        let is_embedded = self.data.is_some()
            || self.config.is_some()
            || self.agent.is_some()
            || self.root.is_some()
            || self.mode.is_some();
        self.url.is_some()
            || self.profile.is_some()
            || (!is_embedded && ["TOOLGATE_URL", "TOOLGATE_PROFILE"].iter().any(|name| environment.has(name)))
    }

    fn gate_options(&self) -> Result<EmbeddedGateOptions, Failure> {
        let root = self.root.as_ref().map(|root| {
            let what = || format!("could not open the root {}; pass a directory with --root", root.display());
            root.canonicalize().map_err(|error| Failure::io(what(), error))
        });
        Ok(EmbeddedGateOptions {
            root: root.transpose()?,
            data: self.data.clone(),
            config: self.config.clone(),
            mode: self.mode,
            allow_mode_changes: false,
            principal: EmbeddedPrincipal::Agent(self.agent.clone().unwrap_or_else(|| AGENT.to_owned())),
        })
    }
}

fn read(line: Line) -> bridge::Input {
    match line {
        Ok(bytes) => Message::read(bytes),
        Err(TooLong) => {
            Err(Unreadable { id: serde_json::Value::Null, code: -32600, reason: "the line is longer than 16 MiB" })
        }
    }
}
