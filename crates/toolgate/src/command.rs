//! The command line: what can be asked for, how it is answered, and how it ends.

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use serde_json::{Map, Value, json};
use thiserror::Error;
use toolgate_model::audit_export::VerifyError;
use toolgate_model::secret::Secret;

use crate::client::{self, Client, ClientError, DownloadError};
use crate::composition::StartError;
use crate::configuration::{ConfigurationError, Environment};
use crate::output::{self, Report, clean_lines};
use crate::private_file::PrivateFileError;
use crate::saved_tokens;

mod agent;
mod approvals;
mod audit;
mod completions;
mod config;
mod connect;
mod credential;
mod demo;
mod diff;
mod grant;
mod hook;
mod host;
mod invocation;
mod key;
mod login;
mod material;
mod paging;
mod policy;
mod recover;
mod serve;
mod service;
mod stop;
mod tenant;
#[cfg(test)]
mod tests;
mod tool;
mod trace;
mod values;
mod vault;

/// Stands between AI agents and the tools they use: keeps the credentials, checks the grants, writes the log.
///
/// Without a command it serves. Every other command speaks to a running gate: to the one at --url or TOOLGATE_URL, with
/// the key in TOOLGATE_TOKEN or the one that `toolgate login` saved. Exit status: 0 done, 1 refused or failed, 2 bad usage.
#[derive(Parser)]
#[command(name = "toolgate", version, after_help = EXAMPLE)]
pub struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
}

const EXAMPLE: &str = "To see what it does, in a minute and leaving nothing behind:
  toolgate demo

Example, from nothing to a grant:
  toolgate serve &
  toolgate login
  toolgate vault create main
  toolgate credential add VAULT stripe 'Stripe live key' --auth-type api_key --scope charges.read
  toolgate agent create billing-agent
  toolgate grant create billing-agent CREDENTIAL --scope charges.read --constraint max_invocations_per_hour=100";

#[derive(Subcommand)]
enum Command {
    Serve(serve::Serve),
    Tenant(tenant::Tenant),
    Agent(agent::Agent),
    Key(key::Key),
    Vault(vault::Vault),
    Credential(credential::Credential),
    Grant(grant::Grant),
    Service(service::Service),
    Tool(tool::Tool),
    Invocation(invocation::Invocation),
    Approvals(approvals::Approvals),
    Policy(policy::Policy),
    Trace(trace::Trace),
    Audit(audit::Audit),
    Config(config::Config),
    Login(login::Login),
    Hook(hook::Hook),
    Host(host::Host),
    Connect(connect::Connect),
    Demo(demo::Demo),
    Recover(recover::Recover),
    Completions(completions::Completions),
}

/// The gate to speak to, and for whom to write the answer.
#[derive(Args)]
pub(crate) struct Connection {
    /// The URL of the gate
    #[arg(long, global = true, env = "TOOLGATE_URL", default_value = "http://127.0.0.1:7300")]
    url: String,
    /// Print JSON, for programs
    #[arg(long, global = true)]
    json: bool,
}

/// Why a command did not do what it should.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The gate, or the way to it.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The configuration.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// The gate says no, and the command can tell more about it.
    #[error("{text}")]
    Explained {
        /// For people.
        text: String,
        /// The gate's error object, for programs.
        body: Box<Value>,
    },
    /// A file that should be there, or should not.
    #[error("{what}: {reason}")]
    Io {
        /// Which.
        what: String,
        /// What the system said.
        reason: std::io::Error,
    },
    /// An export that is not what was logged.
    #[error("not verified: {0}")]
    NotVerified(Box<VerifyError>),
    /// A file that others can read.
    #[error(transparent)]
    PrivateFile(#[from] PrivateFileError),
    /// A sentence says it all.
    #[error("{0}")]
    Said(String),
    /// The gate did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The command was not given as it must be.
    #[error("{0}")]
    Usage(String),
}

impl Failure {
    /// The system refused something about a file or a stream.
    pub(crate) fn io(what: impl Into<String>, reason: std::io::Error) -> Self {
        Self::Io { what: what.into(), reason }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Client(ClientError::Refused { body, .. }) | Self::Explained { body, .. } => body.as_ref().clone(),
            Self::NotVerified(error) => json!({
                "status": "failed",
                "verified": false,
                "kind": error.kind(),
                "sequence": error.sequence(),
                "line": error.line(),
                "message": self.to_string(),
            }),
            other => json!({"status": "failed", "message": other.to_string()}),
        }
    }

    fn exit_code(&self) -> ExitCode {
        ExitCode::from(if matches!(self, Self::Usage(_)) { 2 } else { 1 })
    }
}

impl From<DownloadError> for Failure {
    fn from(error: DownloadError) -> Self {
        match error {
            DownloadError::Client(error) => Self::Client(error),
            DownloadError::Sink(reason) => Self::io("the export cannot be written", reason),
        }
    }
}

impl CommandLine {
    /// Does what was asked, and says how it went.
    pub fn run(self) -> ExitCode {
        let command = self.command.unwrap_or_else(|| Command::Serve(serve::Serve::default()));
        match command {
            Command::Serve(serve) => finish(false, serve.run().map(|()| None)),
            Command::Recover(recover) => finish(recover.json, recover.run().map(Some)),
            Command::Demo(demo) => finish(false, block_on(demo.run()).map(|()| None)),
            Command::Hook(hook) => hook.run(),
            Command::Host(host) => host.run().unwrap_or_else(|failure| finish(false, Err(failure))),
            Command::Connect(connect) => finish(connect.json, connect.run().map(Some)),
            Command::Completions(completions) => finish(false, completions.run().map(Some)),
            Command::Config(config) => finish(config.json, config.run().map(Some)),
            Command::Tenant(Tenant { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Agent(Agent { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Key(Key { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Vault(Vault { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Credential(Credential { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Grant(Grant { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Service(Service { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Tool(Tool { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Invocation(Invocation { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Approvals(Approvals { connection, action }) => {
                asked(&connection, approvals::run(&connection, action))
            }
            Command::Policy(Policy { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Trace(trace) => asked(&trace.connection, trace.run()),
            Command::Audit(Audit { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Login(login) => asked(&login.connection, login.run()),
        }
    }
}

use agent::Agent;
use approvals::Approvals;
use audit::Audit;
use credential::Credential;
use grant::Grant;
use invocation::Invocation;
use key::Key;
use policy::Policy;
use service::Service;
use tenant::Tenant;
use tool::Tool;
use vault::Vault;

impl Connection {
    /// A client with the key that the environment or a login gives.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        if client::is_exposed(&self.url) {
            output::say(&format!("toolgate: warning: the key travels to {} without TLS", output::clean(&self.url)));
        }
        Ok(Client::new(&self.url, &self.token()?)?)
    }

    /// The gate's URL, in the form under which tokens are saved.
    pub(crate) fn checked_url(&self) -> Result<String, Failure> {
        Ok(client::checked_url(&self.url)?)
    }

    fn token(&self) -> Result<Secret, Failure> {
        let mut environment = Environment::of_process();
        for variable in ["TOOLGATE_TOKEN", "TOOLGATE_ADMIN_TOKEN"] {
            let found = environment.take_secret(variable);
            let found = found.map_err(|_| Failure::Said(format!("{variable} is not UTF-8 text")))?;
            if let Some(token) = found {
                return Ok(token);
            }
        }
        let url = self.checked_url()?;
        if let Some(home) = environment.configuration_home()
            && let Some(token) = saved_tokens::find(&home.join(saved_tokens::FILE_NAME), &url)?
        {
            return Ok(token);
        }
        let sentence =
            format!("there is no key to show to {url}: set TOOLGATE_TOKEN, or save one with `toolgate login`");
        Err(Failure::Said(sentence))
    }
}

/// A JSON object of those members that have a value.
pub(crate) fn object(members: impl IntoIterator<Item = (&'static str, Option<Value>)>) -> Map<String, Value> {
    members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Runs a command that waits for answers.
fn asked(connection: &Connection, command: impl Future<Output = Result<Report, Failure>>) -> ExitCode {
    finish(connection.json, block_on(command).map(Some))
}

fn block_on<T>(command: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::io("the runtime cannot be started", error))?.block_on(command)
}

fn finish(json: bool, outcome: Result<Option<Report>, Failure>) -> ExitCode {
    let outcome = outcome.and_then(|report| {
        let Some(report) = report else { return Ok(ExitCode::SUCCESS) };
        report.print(json).map_err(|error| Failure::io("standard output", error))?;
        Ok(ExitCode::from(u8::from(report.refused)))
    });
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            let text = if json { format!("{:#}", failure.to_json()) } else { format!("toolgate: {failure}") };
            output::say(&clean_lines(&text));
            failure.exit_code()
        }
    }
}
