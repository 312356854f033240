//! `toolgate hook`: the command that coding agents run before they use a tool. Submits the call to the gate and prints the
//! decision in the format of the client. Every failure is a denial.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use toolgate_api::approvals::{AskForExternalCall, CallSession, ExternalCallRequest};

use super::values::{typed, typed_option};
use super::{Connection, Failure, block_on};
use crate::client::{Client, ClientError};
use crate::durations::parse_seconds;
use crate::hook::{BLOCKED, HookCall, HookClient, HookInput, HookResponse, Reply};

#[cfg(test)]
mod tests;

const INPUT_LIMIT: u64 = 8 * 1024 * 1024;

/// Decide a tool call of a coding agent, as its hook
///
/// Reads the hook input of the client, submits the call to the gate, which may wait for an approver, and prints the decision
/// in the format of the client: exit status 0 if the call is allowed, 2 and the reason if it is denied. If the gate cannot be
/// reached or the input is invalid, the call is denied. `toolgate connect` adds the hook to the settings of a client.
#[derive(Args)]
#[command(after_help = "Example:\n  toolgate hook claude-code < input.json")]
pub(crate) struct Hook {
    #[command(flatten)]
    connection: Connection,
    /// Client that runs the hook
    client: HookClient,
    /// Agent of the call, if the key belongs to another principal
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Timeout for the decision: a duration, or a number of seconds; keep it below the hook timeout of the client
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = timeout)]
    timeout: u64,
}

impl Hook {
    pub(crate) fn run(self) -> ExitCode {
        let reply = match read_input(&mut io::stdin().lock()) {
            Ok(input) => self.decide(&input),
            Err(reason) => self.client.reply_to_unreadable(reason),
        };
        give(&reply, &mut io::stdout().lock(), &mut io::stderr().lock())
    }

    fn decide(&self, input: &[u8]) -> Reply {
        let (event, call) = match self.client.read(input) {
            Ok(HookInput::Call { event, call }) => (event, call),
            Ok(HookInput::Nothing(reply)) => return reply,
            Err(error) => return self.client.reply_to_unreadable(error.to_string()),
        };
        let body = match question(self.client, self.agent.as_deref(), call) {
            Ok(body) => body,
            Err(failure) => return self.client.reply(&event, &no_decision(&failure.to_string())),
        };
        let asked = self.connection.client().and_then(|gate| {
            let gate = gate.waiting(Duration::from_secs(self.timeout));
            block_on(async { Ok(ask(&gate, &body).await) })
        });
        let response = asked.unwrap_or_else(|failure| no_decision(&failure.to_string()));
        self.client.reply(&event, &response)
    }
}

fn timeout(text: &str) -> Result<u64, String> {
    let seconds = parse_seconds(text)?;
    let valid = (1..=86_400).contains(&seconds);
    valid.then_some(seconds).ok_or_else(|| "it must be from 1s to 1d".to_owned())
}

fn read_input(source: &mut impl Read) -> Result<Vec<u8>, String> {
    let mut input = Vec::new();
    let read = source.take(INPUT_LIMIT + 1).read_to_end(&mut input);
    let length = read.map_err(|error| format!("could not read the hook input: {error}"))?;
    if u64::try_from(length).unwrap_or(u64::MAX) > INPUT_LIMIT {
        return Err(format!("the hook input is longer than {INPUT_LIMIT} bytes; split the call"));
    }
    Ok(input)
}

fn question(client: HookClient, agent: Option<&str>, call: HookCall) -> Result<ExternalCallRequest, Failure> {
    Ok(ExternalCallRequest {
        tool: format!("{}.{}", client.name(), call.tool),
        category: typed("category", call.category.name())?,
        arguments: call.arguments,
        session: Some(CallSession {
            name: typed("session.name", call.session)?,
            workspace: typed_option("session.workspace", call.workspace)?,
        }),
        ttl_seconds: None,
        call_id: typed_option("call_id", call.id)?,
        agent_id: typed_option("agent_id", agent)?,
        takes_changes: false,
    })
}

async fn ask(gate: &Client, question: &ExternalCallRequest) -> HookResponse {
    match gate.to::<AskForExternalCall>().body(question).send_as().await {
        Ok(decision) => parsed(&decision),
        Err(ClientError::BrokenOff { url, reason }) => no_decision(&format!(
            "the gate at {url} did not respond: {reason}; check `toolgate approvals` and the gate"
        )),
        Err(error) => no_decision(&error.to_string()),
    }
}

/// INVARIANT: only `allow` lets a call pass.
fn parsed(decision: &Value) -> HookResponse {
    let reason = decision.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned();
    match decision.get("decision").and_then(Value::as_str) {
        Some("allow") => HookResponse { allow: true, reason },
        Some("deny") => HookResponse { allow: false, reason },
        _ => no_decision(
            "the decision of the gate is neither allow nor deny; use the same version of toolgate as the gate",
        ),
    }
}

fn no_decision(reason: &str) -> HookResponse {
    HookResponse::deny(format!("denied because Toolgate has no decision: {reason}"))
}

/// Prints the decision. If it cannot be written, the call is blocked, because the client would continue without one.
fn give(reply: &Reply, stdout: &mut impl Write, stderr: &mut impl Write) -> ExitCode {
    let written = writeln!(stdout, "{}", reply.stdout).and_then(|()| stdout.flush());
    let reason = match written {
        Ok(()) if reply.code == 0 => return ExitCode::SUCCESS,
        Ok(()) => reply.stderr.clone(),
        Err(error) => format!("could not write the decision: {error}"),
    };
    // The exit status blocks the call even if this fails.
    let _ = writeln!(stderr, "{reason}").and_then(|()| stderr.flush());
    ExitCode::from(BLOCKED)
}
