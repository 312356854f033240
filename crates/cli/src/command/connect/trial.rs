//! The round trip: starts the command of the entry that was written, as the client would, and lists the tools.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::client::Launch;

const TIMEOUT: Duration = Duration::from_secs(60);
/// How long the command has to end after its input.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// What the command logged, at most, in a failure.
const MAX_LOG: u64 = 4_096;
const MAX_PAGES: usize = 100;

/// The names of the tools that the client sees, or why it sees none.
pub(super) async fn tools(launch: &Launch) -> Result<Vec<String>, String> {
    let mut command = Command::new(&launch.command);
    // A client may start it with much less than the environment of this terminal.
    let inherited = ["HOME", "PATH", "TMPDIR"].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    command.args(&launch.arguments).env_clear().envs(inherited).envs(launch.environment.iter().cloned());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| format!("could not start {}: {error}", launch.command))?;
    let listed = tokio::time::timeout(TIMEOUT, conversation(&mut child)).await;
    match listed.unwrap_or_else(|_| Err(format!("it did not respond in {} seconds", TIMEOUT.as_secs()))) {
        Ok(tools) => {
            let _ = tokio::time::timeout(END_TIMEOUT, child.wait()).await;
            Ok(tools)
        }
        Err(reason) => {
            let _ = child.start_kill();
            let mut log = String::new();
            if let Some(stderr) = child.stderr.take() {
                let _ = stderr.take(MAX_LOG).read_to_string(&mut log).await;
            }
            let log = log.trim();
            Err(if log.is_empty() { reason } else { format!("{reason}; it logged: {log}") })
        }
    }
}

async fn conversation(child: &mut Child) -> Result<Vec<String>, String> {
    let missing = || "it has no standard input and output".to_owned();
    let input = child.stdin.take().ok_or_else(missing)?;
    let output = BufReader::new(child.stdout.take().ok_or_else(missing)?).lines();
    let mut conversation = Conversation { input, output, next_id: 1 };
    let client = json!({"name": "toolgate connect", "version": env!("CARGO_PKG_VERSION")});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    conversation.ask("initialize", params).await?;
    conversation.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
    let mut names = Vec::new();
    let mut params = json!({});
    for _ in 0..MAX_PAGES {
        let page = conversation.ask("tools/list", params).await?;
        let tools = page.get("tools").and_then(Value::as_array).ok_or("it sent a list without tools")?;
        names.extend(tools.iter().filter_map(|tool| tool.get("name")?.as_str().map(str::to_owned)));
        match page.get("nextCursor") {
            Some(Value::String(cursor)) => params = json!({"cursor": cursor}),
            _ => return Ok(names),
        }
    }
    Ok(names)
}

struct Conversation {
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    next_id: u64,
}

impl Conversation {
    async fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
        loop {
            let line = self.output.next_line().await.map_err(|error| format!("could not read its output: {error}"))?;
            let line = line.ok_or_else(|| format!("it ended without a response to `{method}`"))?;
            let mut message: Value =
                serde_json::from_str(&line).map_err(|_| "it wrote a line that is not a message".to_owned())?;
            if message.get("id") != Some(&json!(id)) {
                continue;
            }
            if let Some(reason) = message.pointer("/error/message").and_then(Value::as_str) {
                return Err(format!("`{method}` was refused: {reason}"));
            }
            return Ok(message.get_mut("result").map(Value::take).unwrap_or_default());
        }
    }

    async fn send(&mut self, message: &Value) -> Result<(), String> {
        let line = format!("{message}\n");
        let written = async {
            self.input.write_all(line.as_bytes()).await?;
            self.input.flush().await
        };
        written.await.map_err(|error| format!("could not write to it: {error}"))
    }
}
