//! `toolgate hook`: stands in a coding agent's settings as the command that it runs before it uses a tool. Asks the gate
//! and answers in the client's words. Whatever goes wrong is a no.

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

/// The longest input that is read.
const INPUT_LIMIT: u64 = 8 * 1024 * 1024;

/// Decide about a tool call of a coding agent, as its hook
///
/// Reads what the client writes to its hook before it uses a tool, asks the gate, which may ask a person, and answers in
/// the client's format: yes with exit status 0, no with exit status 2 and the reason. If the gate cannot be asked, or the
/// input cannot be read, the answer is no. `toolgate connect` writes the settings that make a client run this.
#[derive(Args)]
#[command(after_help = "Example:\n  toolgate hook claude-code < input.json")]
pub(crate) struct Hook {
    #[command(flatten)]
    connection: Connection,
    /// Whose hook it is
    client: HookClient,
    /// The agent to ask for, where the key is not its own
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// How long to wait for the decision, as 1h, or a number of seconds; keep it below the timeout in the client's settings
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = timeout)]
    timeout: u64,
}

impl Hook {
    /// Reads, asks, answers.
    pub(crate) fn run(self) -> ExitCode {
        let reply = match read_input(&mut io::stdin().lock()) {
            Ok(input) => self.answer(&input),
            Err(reason) => self.client.reply_to_unreadable(reason),
        };
        give(&reply, &mut io::stdout().lock(), &mut io::stderr().lock())
    }

    fn answer(&self, input: &[u8]) -> Reply {
        let (event, call) = match self.client.read(input) {
            Ok(HookInput::Call { event, call }) => (event, call),
            Ok(HookInput::Nothing(reply)) => return reply,
            Err(error) => return self.client.reply_to_unreadable(error.to_string()),
        };
        let body = match question(self.client, self.agent.as_deref(), call) {
            Ok(body) => body,
            Err(failure) => return self.client.reply(&event, &unanswered(&failure.to_string())),
        };
        let asked = self.connection.client().and_then(|gate| {
            let gate = gate.waiting(Duration::from_secs(self.timeout));
            block_on(async { Ok(ask(&gate, &body).await) })
        });
        let answer = asked.unwrap_or_else(|failure| unanswered(&failure.to_string()));
        self.client.reply(&event, &answer)
    }
}

fn timeout(text: &str) -> Result<u64, String> {
    let seconds = parse_seconds(text)?;
    let valid = (1..=86_400).contains(&seconds);
    valid.then_some(seconds).ok_or_else(|| "it must be from 1s to 1d".to_owned())
}

/// All of the input, or why it cannot be read.
fn read_input(source: &mut impl Read) -> Result<Vec<u8>, String> {
    let mut input = Vec::new();
    let read = source.take(INPUT_LIMIT + 1).read_to_end(&mut input);
    let length = read.map_err(|error| format!("the input of the hook cannot be read: {error}"))?;
    if u64::try_from(length).unwrap_or(u64::MAX) > INPUT_LIMIT {
        return Err(format!("the input of the hook is longer than {INPUT_LIMIT} bytes; let the agent do it in parts"));
    }
    Ok(input)
}

/// What the gate is asked.
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

/// Puts the call to the gate and waits for the decision.
async fn ask(gate: &Client, question: &ExternalCallRequest) -> HookResponse {
    match gate.to::<AskForExternalCall>().body(question).send_as().await {
        Ok(answer) => understood(&answer),
        Err(ClientError::BrokenOff { url, reason }) => unanswered(&format!(
            "the gate at {url} gave no answer: {reason}; look at `toolgate approvals`, and whether the gate still runs"
        )),
        Err(error) => unanswered(&error.to_string()),
    }
}

/// INVARIANT: only the very word `allow` lets a call pass.
fn understood(answer: &Value) -> HookResponse {
    let reason = answer.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned();
    match answer.get("decision").and_then(Value::as_str) {
        Some("allow") => HookResponse { allow: true, reason },
        Some("deny") => HookResponse { allow: false, reason },
        _ => unanswered("the gate answered neither allow nor deny; run the same version of toolgate here and there"),
    }
}

fn unanswered(reason: &str) -> HookResponse {
    HookResponse::deny(format!("Toolgate could not be asked, so the answer is no: {reason}"))
}

/// Says it. An answer that cannot be written is a no, since the client would take silence for none.
fn give(reply: &Reply, stdout: &mut impl Write, stderr: &mut impl Write) -> ExitCode {
    let written = writeln!(stdout, "{}", reply.stdout).and_then(|()| stdout.flush());
    let reason = match written {
        Ok(()) if reply.code == 0 => return ExitCode::SUCCESS,
        Ok(()) => reply.stderr.clone(),
        Err(error) => format!("the answer of the hook cannot be written: {error}"),
    };
    // The status alone blocks where even this cannot be written.
    let _ = writeln!(stderr, "{reason}").and_then(|()| stderr.flush());
    ExitCode::from(BLOCKED)
}
