//! One running process: requests of many calls go in as lines, and each response finds its call by its id. A task writes,
//! a task reads, and none is started for a call.

use std::io;
use std::ops::Deref;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use toolgate_gate::ports::mount::{MountSession, MountWatch};
use toolgate_gate::ports::source::{FailureKind, SourceFailure};
use toolgate_model::credential::ServiceName;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::redaction::Redactor;

use super::StdioMount;
use super::group::Group;
use super::lines::Lines;
use super::log::log;
use super::throttle::Throttle;
use crate::mcp::greeting::Greeting;
use crate::mcp::listing::Listing;
use crate::mcp::message::{self, Envelope};
use crate::mcp::questions::{Questions, UNANSWERED};
use crate::mcp::reporter::Reporter;
use crate::mcp::result::malformed;

use self::calls::{Shared, UNUSED, Waiting};

mod calls;

/// How many messages wait to be written.
const QUEUE: usize = 64;
/// How many messages of the server wait to be passed on.
const HEARD: usize = 16;
/// The longest message of a process.
const MESSAGE_LIMIT: usize = 1024 * 1024;

/// On whose behalf a process runs.
pub(super) struct Origin {
    pub(super) tenant: TenantId,
    pub(super) service: Option<ServiceName>,
    pub(super) watch: Arc<dyn MountWatch>,
    /// Whether it runs for one principal alone.
    pub(super) is_exclusive: bool,
}

/// Receives what the server of a call sends before the response.
#[derive(Clone, Copy)]
pub(crate) struct CallListener<'a> {
    pub(crate) reporter: Option<&'a Reporter<'a>>,
    pub(crate) questions: Option<&'a Questions<'a>>,
    /// Knows the secrets that must not be heard.
    pub(crate) redactor: &'a Redactor,
}

/// A process that may not have been greeted yet. Dropping it ends the process.
pub(crate) struct Running {
    shared: Arc<Shared>,
    outgoing: mpsc::Sender<Vec<u8>>,
    tasks: [JoinHandle<()>; 3],
}

/// A process that has said who it is.
pub(crate) struct Process {
    running: Running,
    pub(crate) greeting: Greeting,
}

impl Deref for Process {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.running
    }
}

impl Process {
    /// What is known of its list of tools.
    pub(crate) fn listing(&self) -> &Listing {
        &self.running.shared.listing
    }
}

impl Running {
    /// Starts a process with nothing of the gate's environment but what it needs to find programs.
    pub(super) fn start(mount: &StdioMount, secret: Option<&str>, origin: Origin) -> Result<Self, SourceFailure> {
        let mut words = mount.command.iter();
        let program = words.next().ok_or_else(|| not_started(io::ErrorKind::InvalidInput))?;
        let mut command = std::process::Command::new(program);
        command.args(words).env_clear();
        for name in ["PATH", "HOME"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.envs(mount.environment.iter().map(|(name, value)| (name, value)));
        command.envs(mount.credential.as_ref().zip(secret));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(directory) = &mount.directory {
            command.current_dir(directory);
        }
        if !mount.leads_group {
            command.process_group(0);
        }
        let spawned = Command::from(command).kill_on_drop(true).spawn();
        let mut child = spawned.map_err(|error| not_started(error.kind()))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let group = Group::of(child);
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(not_started(io::ErrorKind::BrokenPipe));
        };
        let shared = Arc::new(Shared::new(origin));
        let (outgoing, queue) = mpsc::channel(QUEUE);
        let log = log(stderr, mount.name.clone(), secret);
        let tasks = [
            tokio::spawn(write(stdin, queue)),
            tokio::spawn(read(stdout, Arc::clone(&shared), outgoing.downgrade(), group, mount.idle)),
            tokio::spawn(log),
        ];
        tracing::debug!(mount = %mount.name, "a mounted server was started");
        Ok(Self { shared, outgoing, tasks })
    }

    pub(super) fn greeted(self, greeting: Greeting) -> Process {
        Process { running: self, greeting }
    }

    /// Notes the record of what the process keeps for its principal, which ends with it.
    pub(super) fn keep(&self, session: MountSession) {
        self.shared.keep(session);
    }

    /// Sends a request and gives its response.
    pub(crate) async fn ask(
        &self,
        id: u64,
        message: Vec<u8>,
        agent: Option<&PrincipalId>,
        deadline: Instant,
    ) -> Result<Vec<u8>, SourceFailure> {
        self.ask_listening(id, message, agent, deadline, None).await
    }

    /// The same, passing on what the server says meanwhile.
    pub(crate) async fn ask_listening(
        &self,
        id: u64,
        mut message: Vec<u8>,
        agent: Option<&PrincipalId>,
        deadline: Instant,
        listener: Option<CallListener<'_>>,
    ) -> Result<Vec<u8>, SourceFailure> {
        let (sender, mut response) = oneshot::channel();
        let (heard, mut messages) = listener.map(|_| mpsc::channel(HEARD)).unzip();
        self.shared.enter(id, Waiting { agent: agent.cloned(), response: sender, heard })?;
        let mut call = InFlight { running: self, id, is_sent: false };
        message.push(b'\n');
        match timeout_at(deadline, self.outgoing.send(message)).await {
            Ok(Ok(())) => call.is_sent = true,
            Ok(Err(_)) => return Err(self.gone(false)),
            Err(_) => return Err(super::late("the time for this call was over before its server read the request")),
        }
        let responded = async {
            while let (Some(listener), Some(messages)) = (listener, &mut messages) {
                let message = tokio::select! {
                    biased;
                    message = messages.recv() => message,
                    responded = &mut response => return responded,
                };
                let Some(message) = message else { break };
                // A server that does not wait for what it has asked for gets nothing.
                tokio::select! {
                    biased;
                    said = listener.hear(&message, id, deadline) => {
                        if let Some(said) = said {
                            self.notify(said);
                        }
                    }
                    responded = &mut response => return responded,
                }
            }
            response.await
        };
        match timeout_at(deadline, responded).await {
            Ok(Ok(Ok(message))) => Ok(message),
            Ok(Ok(Err(reason))) => Err(malformed(super::OK, reason)),
            Ok(Err(_)) => Err(self.gone(true)),
            Err(_) => {
                let is_asked = listener.and_then(|listener| listener.questions).is_some_and(Questions::is_open);
                let reason = match is_asked {
                    true => UNANSWERED,
                    false => "the time for this call was over before its server responded",
                };
                Err(SourceFailure { sent: true, ..super::late(reason) })
            }
        }
    }

    /// Sends something that has no response. Left out where the process does not keep up.
    pub(super) fn notify(&self, mut message: Vec<u8>) {
        message.push(b'\n');
        let _ = self.outgoing.try_send(message);
    }

    /// Whether it runs for one principal alone, so that what it asks is meant for that one.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.shared.origin.is_exclusive
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.shared.calls().ended.is_some()
    }

    /// Whether it was stopped after the idle timeout.
    pub(super) fn was_unused(&self) -> bool {
        self.shared.calls().ended == Some(UNUSED)
    }

    /// Keeps it for a call that is about to begin; false if it has ended.
    pub(super) fn keep_for_call(&self) -> bool {
        let mut calls = self.shared.calls();
        calls.note_use();
        calls.ended.is_none()
    }

    /// Whether no call waits for it.
    pub(super) fn is_idle(&self) -> bool {
        self.shared.calls().waiting.is_empty()
    }

    /// When it was last used.
    pub(super) fn used(&self) -> Instant {
        self.shared.calls().used
    }

    fn gone(&self, sent: bool) -> SourceFailure {
        let reason = self.shared.calls().ended.unwrap_or("the server has ended by itself");
        SourceFailure { sent, ..SourceFailure::not_sent(FailureKind::Proxy, reason) }
    }
}

impl CallListener<'_> {
    /// Passes a message on; returns what the server is sent for it.
    async fn hear(&self, message: &[u8], id: u64, deadline: Instant) -> Option<Vec<u8>> {
        match (Envelope::of(message).ok()?, self.questions) {
            (Envelope::Notification { method }, _) if method == message::PROGRESS => {
                self.reporter?.report(message, id, self.redactor);
                None
            }
            (Envelope::Notification { .. }, questions) => {
                questions?.log(message, self.redactor);
                None
            }
            (Envelope::Request { id, method }, Some(questions)) => {
                Some(questions.response(message, (&id, &method), self.redactor, deadline).await)
            }
            (Envelope::Request { id, method }, None) => Some(message::refusal(&id, &method)),
            (Envelope::Response(_), _) => None,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The task that reads owns the process.
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// A request whose response is waited for. If the caller no longer waits, the process gets a cancellation.
struct InFlight<'a> {
    running: &'a Running,
    id: u64,
    is_sent: bool,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let was_waiting = self.running.shared.calls().leave(self.id).is_some();
        if was_waiting && self.is_sent {
            self.running.notify(message::cancelled(self.id));
        }
    }
}

async fn write(mut stdin: ChildStdin, mut queue: mpsc::Receiver<Vec<u8>>) {
    let mut batch = Vec::new();
    while queue.recv_many(&mut batch, QUEUE).await > 0 {
        let written = match batch.as_slice() {
            [message] => stdin.write_all(message).await,
            messages => stdin.write_all(&messages.concat()).await,
        };
        batch.clear();
        if written.is_err() {
            return;
        }
    }
}

/// Reads until the process ends, violates the protocol or reaches the idle timeout; then it is killed with all that it
/// started.
async fn read(
    stdout: ChildStdout,
    shared: Arc<Shared>,
    outgoing: mpsc::WeakSender<Vec<u8>>,
    group: Group,
    idle: Duration,
) {
    let (mut lines, mut throttle) = (Lines::new(stdout, MESSAGE_LIMIT), Throttle::new());
    let reason = loop {
        let Some(look) = shared.next_look(idle) else { break UNUSED };
        match timeout_at(look, lines.next()).await {
            Ok(Ok(Some(line))) => {
                let length = line.len();
                // A line that is not a message is output, and skipped.
                let is_awaited = line.first() == Some(&b'{') && shared.route(line, &outgoing);
                // Unsolicited output is throttled: a process must not keep the gate busy.
                if !is_awaited {
                    throttle.spend(length).await;
                }
            }
            Ok(Ok(None)) => break "the server has ended by itself",
            Ok(Err(error)) if error.kind() == io::ErrorKind::FileTooLarge => {
                break "the server's response is larger than is read; it was stopped";
            }
            Ok(Err(_)) => break "the server's output could not be read",
            Err(_) => {}
        }
    };
    shared.end(reason);
    group.end().await;
}

fn not_started(kind: io::ErrorKind) -> SourceFailure {
    let reason = format!("its server could not be started ({kind}); check the `command` of the mount");
    SourceFailure::not_sent(FailureKind::Proxy, reason)
}
