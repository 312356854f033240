//! `Bash`: runs one command line and returns its output. All processes that the command started are killed when it
//! exits, when it reaches its timeout or the output limit, and when the caller no longer waits.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use crate::arguments::Arguments;
use crate::error::WorkspaceError;
use crate::limits::Limits;
use crate::output::Output;
use crate::root::{Place, Root};
use crate::sandbox::Sandbox;

mod clip;
mod environment;
mod group;

use clip::Clip;
use group::Group;

/// The longest command line: the kernel accepts no argument above 128 KiB.
const LONGEST: usize = 100_000;

/// How long to wait for the rest of the output after everything was killed. Only a process that left the group can
/// delay it, and the sandbox prevents leaving.
const DRAIN: Duration = Duration::from_secs(1);

/// A parsed call.
#[derive(Debug)]
pub struct Bash {
    command: String,
    timeout: Duration,
    place: Place,
}

/// Why a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Exited,
    TimedOut,
    Flooded,
}

impl Bash {
    pub fn parse(root: &Root, limits: &Limits, values: &Map<String, Value>) -> Result<Self, WorkspaceError> {
        let arguments = Arguments::new(values, &["command", "timeout_ms", "description", "working_directory"])?;
        let command = arguments.text("command")?;
        if command.is_empty() || command.len() > LONGEST || command.contains('\0') {
            let expected = "a command line of at most 100000 bytes without null bytes";
            return Err(WorkspaceError::BadArgument { name: "command", expected });
        }
        // Shown to the approver; not used here.
        arguments.optional_text("description")?;
        let asked = arguments.optional_count("timeout_ms")?.map(Duration::from_millis);
        let longest = limits.bash_longest;
        if asked.is_some_and(|asked| asked > longest) {
            return Err(WorkspaceError::TimeoutTooLong { longest });
        }
        let directory = arguments.optional_text("working_directory")?;
        Ok(Self {
            command: command.to_owned(),
            timeout: asked.unwrap_or(limits.bash_timeout.min(longest)),
            place: directory.map_or(Ok(Place::root()), |path| root.place(path))?,
        })
    }

    pub async fn run(&self, root: &Root, limits: &Limits, sandbox: &Sandbox) -> Result<Output, WorkspaceError> {
        let failed = |error: io::Error| WorkspaceError::System { doing: "starting the command", kind: error.kind() };
        let directory = root.open_directory(&self.place)?;
        root.refuse_led(&directory, None, &self.place)?;
        let mut command = sandbox.command(&self.command, &root.path().join(self.place.path()))?;
        let (reader, writer) = io::pipe().map_err(failed)?;
        command
            .env_clear()
            .envs(environment::inherited(std::env::vars_os(), &limits.environment))
            .env("TMPDIR", sandbox.temporary())
            .stdin(Stdio::null())
            .stdout(writer.try_clone().map_err(failed)?)
            .stderr(writer);
        if cfg!(target_os = "linux") {
            // The directory that was opened beneath the root, even if its path leads elsewhere by now.
            command.current_dir(format!("/proc/self/fd/{}", directory.as_raw_fd()));
        } else {
            command.current_dir(root.path().join(self.place.path()));
        }
        let mut group = Group::start(command).map_err(failed)?;
        let mut reader = Receiver::from_owned_fd(OwnedFd::from(reader)).map_err(failed)?;

        let mut clip = Clip::new(limits.output_bytes);
        let flood = limits.flood_bytes;
        let running = pump(&mut reader, &mut clip, flood, &mut group);
        let end = tokio::time::timeout(self.timeout, running).await.unwrap_or(End::TimedOut);
        let status = group.end().await.map_err(failed)?;
        // All writers are gone, unless one left the group; then the timeout ends the wait.
        let _rest_or_elapsed = tokio::time::timeout(DRAIN, drain(&mut reader, &mut clip, flood)).await;
        Ok(self.output(clip, end, status, sandbox))
    }

    fn output(&self, clip: Clip, end: End, status: ExitStatus, sandbox: &Sandbox) -> Output {
        let bytes = clip.seen();
        let (mut text, cut) = clip.into_text();
        let note = match end {
            End::TimedOut => Some(format!("killed after the timeout of {} ms", self.timeout.as_millis())),
            End::Flooded => Some("killed because it exceeded the output limit".to_owned()),
            End::Exited => match (status.code(), status.signal()) {
                (Some(0), _) => None,
                (Some(code), _) => Some(format!("exit status {code}")),
                (None, Some(signal)) => Some(format!("killed by signal {signal}")),
                (None, None) => Some("exited without a status".to_owned()),
            },
        };
        if let Some(note) = &note {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("({note})"));
        }
        let details = json!({
            "exit_code": if end == End::Exited { status.code() } else { None },
            "signal": if end == End::Exited { status.signal() } else { None },
            "timed_out": end == End::TimedOut,
            "flooded": end == End::Flooded,
            "bytes": bytes,
            "bytes_left_out": cut,
            "shell": sandbox.shell_name(),
            "sandbox": sandbox.report().kind,
        });
        Output { text, is_error: note.is_some(), truncated: cut > 0, details }
    }
}

/// Reads the output until the command exits or exceeds the output limit. Does not wait for background children that
/// keep the pipe open.
async fn pump(reader: &mut Receiver, clip: &mut Clip, flood: usize, group: &mut Group) -> End {
    let mut buffer = vec![0; 64 * 1024];
    let mut open = true;
    loop {
        tokio::select! {
            read = reader.read(&mut buffer), if open => match read {
                Ok(0) | Err(_) => open = false,
                Ok(length) => {
                    clip.push(buffer.get(..length).unwrap_or_default());
                    if clip.seen() > flood {
                        return End::Flooded;
                    }
                }
            },
            () = group.exited() => return End::Exited,
        }
    }
}

async fn drain(reader: &mut Receiver, clip: &mut Clip, flood: usize) {
    let mut buffer = vec![0; 64 * 1024];
    while clip.seen() <= flood {
        match reader.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(length) => clip.push(buffer.get(..length).unwrap_or_default()),
        }
    }
}
