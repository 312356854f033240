//! The command tree, and how commands are run and reported.

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use serde_json::{Value, json};
use thiserror::Error;
use toolgate_model::audit_export::VerifyError;

use crate::client::{ClientError, DownloadError, Refused};
use crate::output::{self, Report, clean_lines};
use crate::private_file::PrivateFileError;

mod agent;
mod approvals;
mod audit;
mod budget;
mod completions;
pub(crate) mod config;
mod connect;
mod connection;
mod coordinator;
mod credential;
pub(crate) mod demo;
mod diff;
mod grant;
mod help;
mod hook;
pub(crate) mod host;
mod intent;
mod invocation;
mod key;
mod knowledge;
mod line_reader;
pub(crate) mod local;
mod login;
mod logout;
mod material;
mod mcp;
mod memory;
mod mount;
mod paging;
mod peer;
mod plan;
mod policy;
mod profile;
mod provider;
pub(crate) mod recover;
pub(crate) mod serve;
mod service;
pub(crate) mod stop;
mod stop_calls;
mod task;
mod tenant;
#[cfg(test)]
mod tests;
mod tool;
mod trace;
mod typos;
pub(crate) mod values;
mod vault;
mod whoami;
mod workflow;

/// Gateway between AI agents and their tools: keeps credentials, checks grants and records every call.
///
/// Without a command it runs the gate. Most other commands are clients of a running gate: they use the login saved by
/// `toolgate login`, or the key in TOOLGATE_TOKEN, and the gate at --url or TOOLGATE_URL. Exit status: 0 success, 1 refused
/// or failed, 2 invalid usage.
#[derive(Parser)]
#[command(name = "toolgate", version, after_help = EXAMPLE)]
pub struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
}

const EXAMPLE: &str = "To see what it does in one minute, without leaving anything behind:
  toolgate demo

Example, from the first start to a grant:
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
    Budget(budget::Budget),
    Stop(stop_calls::StopCommand),
    Resume(stop_calls::ResumeCommand),
    Key(key::Key),
    Vault(vault::Vault),
    Credential(credential::Credential),
    Grant(grant::Grant),
    Service(service::Service),
    Provider(provider::Provider),
    Apply(workflow::Apply),
    Diff(workflow::Diff),
    Export(workflow::Export),
    Mount(mount::Mount),
    Peer(peer::Peer),
    Memory(memory::Memory),
    Knowledge(knowledge::Knowledge),
    Tool(tool::Tool),
    Invocation(invocation::Invocation),
    Intent(intent::Intent),
    Plan(plan::Plan),
    Task(task::Task),
    Coordinator(coordinator::Coordinator),
    Approvals(approvals::Approvals),
    Policy(policy::Policy),
    Trace(trace::Trace),
    Audit(audit::Audit),
    Config(config::Config),
    Login(login::Login),
    Logout(logout::Logout),
    Whoami(whoami::Whoami),
    Profile(profile::Profile),
    Hook(hook::Hook),
    Host(host::Host),
    Mcp(mcp::Mcp),
    Connect(Box<connect::Connect>),
    Demo(demo::Demo),
    Recover(recover::Recover),
    Completions(completions::Completions),
}

#[derive(Debug, Error)]
pub enum Failure {
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A refusal of the gate that the command explains.
    #[error("{text}")]
    Explained {
        text: String,
        /// The error object of the gate, for `--json`.
        body: Box<Value>,
    },
    #[error("{what}: {reason}")]
    Io { what: String, reason: std::io::Error },
    #[error("not verified: {0}")]
    NotVerified(Box<VerifyError>),
    #[error(transparent)]
    PrivateFile(#[from] PrivateFileError),
    #[error("{0}")]
    Said(String),
    /// Exit status 2.
    #[error("{0}")]
    Usage(String),
}

impl Failure {
    pub fn io(what: impl Into<String>, reason: std::io::Error) -> Self {
        Self::Io { what: what.into(), reason }
    }

    pub fn explained(text: String, body: &Refused) -> Self {
        Self::Explained { text, body: Box::new(json!(body)) }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Client(ClientError::Refused { body, .. }) => json!(body),
            Self::Explained { body, .. } => body.as_ref().clone(),
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
            DownloadError::Sink(reason) => Self::io("could not write the export", reason),
        }
    }
}

impl CommandLine {
    /// Parses the arguments of the process. Exits if they are invalid or ask for help.
    pub fn read() -> Self {
        let matches = help::with_verbatim_examples(Self::command()).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// Runs the command and prints its outcome. Commands that run a gate in this process are those of `local`.
    pub fn run(self, local: &impl LocalCommands) -> ExitCode {
        let command = self.command.unwrap_or_else(|| Command::Serve(serve::Serve::default()));
        match command {
            Command::Serve(serve) => finish(false, local.serve(serve).map(|()| None)),
            Command::Recover(recover) => finish(recover.json, local.recover(recover).map(Some)),
            Command::Demo(demo) => finish(false, block_on(local.demo(demo)).map(|()| None)),
            Command::Hook(hook) => hook.run(),
            Command::Host(host) => host.run(local).unwrap_or_else(|failure| finish(false, Err(failure))),
            Command::Mcp(mcp) => mcp.run(local).unwrap_or_else(|failure| finish(false, Err(failure))),
            Command::Connect(connect) => asked(&connect.connection, connect.run()),
            Command::Completions(completions) => finish(false, completions.run().map(Some)),
            Command::Config(config) => finish(config.json, local.config(config).map(Some)),
            Command::Tenant(Tenant { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Agent(Agent { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Budget(Budget { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Stop(stop) => asked(&stop.connection, stop.run()),
            Command::Resume(resume) => asked(&resume.connection, resume.run()),
            Command::Key(Key { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Vault(Vault { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Credential(Credential { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Grant(Grant { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Service(Service { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Provider(Provider { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Mount(Mount { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Peer(Peer { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Memory(Memory { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Knowledge(Knowledge { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Tool(Tool { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Invocation(Invocation { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Intent(Intent { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Plan(Plan { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Task(Task { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Coordinator(Coordinator { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Approvals(Approvals { connection, action }) => {
                asked(&connection, approvals::run(&connection, action))
            }
            Command::Policy(Policy { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Apply(apply) => asked(&apply.connection, apply.run()),
            Command::Diff(diff) => asked(&diff.connection, diff.run()),
            Command::Export(export) => asked(&export.connection, export.run()),
            Command::Trace(trace) => asked(&trace.connection, trace.run()),
            Command::Audit(Audit { connection, action }) => asked(&connection, action.run(&connection)),
            Command::Login(login) => asked(&login.connection, login.run()),
            Command::Logout(logout) => finish(logout.json, logout.run().map(Some)),
            Command::Whoami(whoami) => asked(&whoami.connection, whoami.run()),
            Command::Profile(profile) => finish(profile.json, profile.run().map(Some)),
        }
    }
}

use agent::Agent;
use approvals::Approvals;
use audit::Audit;
use budget::Budget;
pub(crate) use connection::Connection;
use coordinator::Coordinator;
use credential::Credential;
use grant::Grant;
use intent::Intent;
use invocation::Invocation;
use key::Key;
use knowledge::Knowledge;
use local::LocalCommands;
use memory::Memory;
use mount::Mount;
use peer::Peer;
use plan::Plan;
use policy::Policy;
use provider::Provider;
use service::Service;
use task::Task;
use tenant::Tenant;
use tool::Tool;
use vault::Vault;

fn asked(connection: &Connection, command: impl Future<Output = Result<Report, Failure>>) -> ExitCode {
    finish(connection.json, block_on(command).map(Some))
}

fn block_on<T>(command: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::io("could not start the async runtime", error))?.block_on(command)
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
