//! One run of the key command: bounded in time and in what it may say, and ended when it oversteps.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use zeroize::Zeroizing;

use super::{CommandProvider, Verb};
use crate::key_provider::KeyError;

/// The most that a command may answer.
const RESPONSE_LIMIT: usize = 64 * 1024;

/// How much of the error output is looked at.
const COMPLAINT_LIMIT: usize = 4 * 1024;

/// How long a killed command is waited for. One that does not even die then is left to the runtime.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// What a command left behind.
struct Outcome {
    status: ExitStatus,
    answer: Zeroizing<Vec<u8>>,
    complaint: Vec<u8>,
}

/// Why a command was ended before its time.
enum Overstep {
    Output,
    Io(std::io::Error),
}

impl CommandProvider {
    /// Runs the command and gives back what it wrote to its output.
    pub(super) async fn run(&self, verb: Verb, request: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyError> {
        let mut child = self.start(verb)?;
        let outcome = match tokio::time::timeout(self.timeout, converse(&mut child, request)).await {
            Ok(Ok(outcome)) => outcome,
            unfinished => {
                // Killed again on drop if this is not enough; either way nothing more is read from it.
                let _ = tokio::time::timeout(KILL_TIMEOUT, child.kill()).await;
                return Err(match unfinished {
                    Ok(Err(Overstep::Output)) => {
                        self.misspoken(verb, &format!("answered with more than {RESPONSE_LIMIT} bytes"))
                    }
                    Ok(Err(Overstep::Io(error))) => self.misspoken(verb, &format!("could not be talked to: {error}")),
                    _ => self.misspoken(verb, &format!("did not finish within {:?} and was killed", self.timeout)),
                });
            }
        };
        if !outcome.status.success() {
            let complaint = match verb {
                Verb::Status => first_line(&outcome.complaint),
                Verb::Wrap | Verb::Unwrap => "; its error output is not kept, because it may hold a key".to_owned(),
            };
            return Err(self.misspoken(verb, &format!("ended with {}{complaint}", outcome.status)));
        }
        Ok(outcome.answer)
    }

    fn start(&self, verb: Verb) -> Result<Child, KeyError> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(verb.word());
        // The gate's own settings, the administrator's token among them, are none of the command's business.
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"TOOLGATE_") {
                command.env_remove(name);
            }
        }
        // The error output of a command that has the data key may hold it, so it is thrown away unread.
        let complaints = match verb {
            Verb::Status => Stdio::piped(),
            Verb::Wrap | Verb::Unwrap => Stdio::null(),
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(complaints).kill_on_drop(true);
        command.spawn().map_err(|error| self.misspoken(verb, &format!("could not be started: {error}")))
    }
}

async fn converse(child: &mut Child, request: &[u8]) -> Result<Outcome, Overstep> {
    let (input, output, complaints) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let ask = async {
        if let Some(mut input) = input {
            // A command that does not care for its input may close it; it is judged by its answer.
            let _ = input.write_all(request).await;
        }
        Ok(())
    };
    let listen = async {
        match output {
            Some(output) => read_all(output).await,
            None => Ok(Zeroizing::new(Vec::new())),
        }
    };
    let overhear = async {
        match complaints {
            Some(complaints) => read_some(complaints).await,
            None => Ok(Vec::new()),
        }
    };
    // All at once: a command that writes before it has read everything must not wait for us for ever.
    let ((), answer, complaint) = tokio::try_join!(ask, listen, overhear)?;
    let status = child.wait().await.map_err(Overstep::Io)?;
    Ok(Outcome { status, answer, complaint })
}

/// Reads to the end, into a buffer that is wiped and never grows.
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

/// Reads to the end and keeps the beginning, so that a talkative command is not stopped by a full pipe.
async fn read_some(mut complaints: impl AsyncRead + Unpin) -> Result<Vec<u8>, Overstep> {
    let mut kept = Vec::new();
    let mut chunk = [0; 1024];
    loop {
        let count = complaints.read(&mut chunk).await.map_err(Overstep::Io)?;
        if count == 0 {
            return Ok(kept);
        }
        if kept.len() < COMPLAINT_LIMIT {
            kept.extend(chunk.iter().take(count));
        }
    }
}

/// The first line, fit for a log: short, and without characters that are not shown.
fn first_line(complaint: &[u8]) -> String {
    let text = String::from_utf8_lossy(complaint);
    let line: String = text.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).take(200).collect();
    if line.trim().is_empty() { String::new() } else { format!(": {}", line.trim()) }
}
