//! One run of the key command: limited in time and output, and killed when it exceeds a limit.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use zeroize::Zeroizing;

use super::{CommandProvider, Verb};
use crate::key_provider::KeyError;

/// The maximum output of a command.
const RESPONSE_LIMIT: usize = 64 * 1024;

/// How much of the error output is kept.
const STDERR_LIMIT: usize = 4 * 1024;

/// How long to wait for a killed command. One that still does not exit is left to the runtime.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// The result of a run.
struct Outcome {
    status: ExitStatus,
    stdout: Zeroizing<Vec<u8>>,
    stderr: Vec<u8>,
}

/// Why a command was killed.
enum Overstep {
    Output,
    Io(std::io::Error),
}

impl CommandProvider {
    /// Runs the command and returns its standard output.
    pub(super) async fn run(&self, verb: Verb, request: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyError> {
        let mut child = self.start(verb)?;
        let outcome = match tokio::time::timeout(self.timeout, converse(&mut child, request)).await {
            Ok(Ok(outcome)) => outcome,
            unfinished => {
                // Killed again on drop if this is not enough; in either case nothing more is read from it.
                let _ = tokio::time::timeout(KILL_TIMEOUT, child.kill()).await;
                return Err(match unfinished {
                    Ok(Err(Overstep::Output)) => {
                        self.command_error(verb, &format!("wrote more than {RESPONSE_LIMIT} bytes"))
                    }
                    Ok(Err(Overstep::Io(error))) => self.command_error(verb, &format!("failed: {error}")),
                    _ => self.command_error(verb, &format!("did not exit within {:?} and was killed", self.timeout)),
                });
            }
        };
        if !outcome.status.success() {
            let stderr = match verb {
                Verb::Status => first_line(&outcome.stderr),
                Verb::Wrap | Verb::Unwrap => "; its error output is discarded, because it may contain a key".to_owned(),
            };
            return Err(self.command_error(verb, &format!("failed with {}{stderr}", outcome.status)));
        }
        Ok(outcome.stdout)
    }

    fn start(&self, verb: Verb) -> Result<Child, KeyError> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(verb.word());
        // The command must not get the settings of the gate, such as the administrator token.
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"TOOLGATE_") {
                command.env_remove(name);
            }
        }
        // The error output of a command that has the data key may contain it, so it is discarded unread.
        let stderr = match verb {
            Verb::Status => Stdio::piped(),
            Verb::Wrap | Verb::Unwrap => Stdio::null(),
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr).kill_on_drop(true);
        command.spawn().map_err(|error| self.command_error(verb, &format!("could not be started: {error}")))
    }
}

async fn converse(child: &mut Child, request: &[u8]) -> Result<Outcome, Overstep> {
    let (input, output, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let writing = async {
        if let Some(mut input) = input {
            // A command that does not read its input may close it; its output decides.
            let _ = input.write_all(request).await;
        }
        Ok(())
    };
    let reading = async {
        match output {
            Some(output) => read_all(output).await,
            None => Ok(Zeroizing::new(Vec::new())),
        }
    };
    let reading_errors = async {
        match stderr {
            Some(stderr) => read_some(stderr).await,
            None => Ok(Vec::new()),
        }
    };
    // Concurrently: a command that writes before it has read everything must not block.
    let ((), stdout, stderr) = tokio::try_join!(writing, reading, reading_errors)?;
    let status = child.wait().await.map_err(Overstep::Io)?;
    Ok(Outcome { status, stdout, stderr })
}

/// Reads to the end, into a buffer that is wiped and never reallocated.
async fn read_all(mut output: impl AsyncRead + Unpin) -> Result<Zeroizing<Vec<u8>>, Overstep> {
    let mut buffer = Zeroizing::new(vec![0; RESPONSE_LIMIT + 1]);
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match output.read(rest).await.map_err(Overstep::Io)? {
            0 => {
                buffer.truncate(filled);
                return Ok(buffer);
            }
            count => filled += count,
        }
    }
    Err(Overstep::Output)
}

/// Reads to the end and keeps the beginning, so that a full pipe does not block a verbose command.
async fn read_some(mut stderr: impl AsyncRead + Unpin) -> Result<Vec<u8>, Overstep> {
    let mut kept = Vec::new();
    let mut chunk = [0; 1024];
    loop {
        let count = stderr.read(&mut chunk).await.map_err(Overstep::Io)?;
        if count == 0 {
            return Ok(kept);
        }
        if kept.len() < STDERR_LIMIT {
            kept.extend(chunk.iter().take(count));
        }
    }
}

/// The first line, suitable for a log: short, and without invisible characters.
fn first_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line: String = text.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).take(200).collect();
    if line.trim().is_empty() { String::new() } else { format!(": {}", line.trim()) }
}
