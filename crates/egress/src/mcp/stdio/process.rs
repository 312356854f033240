//! One running process: requests of many calls go in as lines, and each response finds its call by its id. A task writes,
//! a task reads, and none is started for a call.

use std::collections::HashMap;
use std::io;
use std::ops::Deref;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
use crate::time::now;

/// Why a process was stopped that has done nothing wrong.
const UNUSED: &str = "the server was stopped after the idle timeout";
/// How many messages wait to be written.
const QUEUE: usize = 64;
/// How many messages of the server wait to be passed on.
const HEARD: usize = 16;
/// How many requests a process has at a time, and how many of them for one principal.
const IN_FLIGHT: usize = 256;
const IN_FLIGHT_OF_AGENT: usize = 64;
/// The longest message of a process.
const MESSAGE_LIMIT: usize = 1024 * 1024;
/// How long a process lives that was started for an inspection and that no call has used.
const INSPECTED: Duration = Duration::from_secs(60);

/// On whose behalf a process runs.
pub(super) struct Origin {
    pub(super) tenant: TenantId,
    pub(super) service: Option<ServiceName>,
    pub(super) watch: Arc<dyn MountWatch>,
    /// Whether it runs for one principal alone.
    pub(super) is_exclusive: bool,
}

/// What a call hears of its server before the response.
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

/// What the calls and the tasks share.
struct Shared {
    calls: Mutex<Calls>,
    listing: Listing,
    origin: Origin,
    /// The record of what it keeps for its principal.
    kept: Mutex<Option<MountSession>>,
}

struct Calls {
    waiting: HashMap<u64, Waiting>,
    /// The highest id that was given to it.
    last_id: u64,
    /// When a call last used it, or when it was started. Inspections are no use.
    used: Instant,
    was_called: bool,
    /// Why it has ended.
    ended: Option<&'static str>,
}

struct Waiting {
    agent: Option<PrincipalId>,
    response: oneshot::Sender<Result<Vec<u8>, &'static str>>,
    /// Takes what the server says before its response.
    heard: Option<mpsc::Sender<Vec<u8>>>,
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
        let calls = Calls { waiting: HashMap::new(), last_id: 0, used: now(), was_called: false, ended: None };
        let shared =
            Arc::new(Shared { calls: Mutex::new(calls), listing: Listing::default(), origin, kept: Mutex::default() });
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
        *self.shared.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
        // It may have ended before.
        let ended = self.shared.calls().ended;
        ended.into_iter().for_each(|reason| self.shared.end(reason));
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

impl Shared {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, id: u64, waiting: Waiting) -> Result<(), SourceFailure> {
        let mut calls = self.calls();
        if let Some(reason) = calls.ended {
            return Err(SourceFailure::not_sent(FailureKind::Proxy, reason));
        }
        let of_agent = calls.waiting.values().filter(|other| other.agent == waiting.agent).count();
        if calls.waiting.len() >= IN_FLIGHT || (waiting.agent.is_some() && of_agent >= IN_FLIGHT_OF_AGENT) {
            let reason = "its server has reached its limit of in-flight calls; try again";
            return Err(SourceFailure::not_sent(FailureKind::Overloaded, reason));
        }
        if waiting.agent.is_some() {
            calls.note_use();
        }
        calls.last_id = calls.last_id.max(id);
        calls.waiting.insert(id, waiting);
        Ok(())
    }

    /// Gives a message to whom it is for. Returns whether it is a response that was waited for.
    fn route(&self, line: Vec<u8>, outgoing: &mpsc::WeakSender<Vec<u8>>) -> bool {
        match Envelope::of(&line) {
            Ok(Envelope::Response(Some(id))) => {
                let mut calls = self.calls();
                match calls.leave(id) {
                    Some(waiting) => {
                        let _ = waiting.response.send(Ok(line));
                        return true;
                    }
                    // A late response to a call that nobody waits for any more.
                    None if id <= calls.last_id => {}
                    None => calls.fail_all("the server's response has the id of no request"),
                }
            }
            Ok(Envelope::Response(None)) => self.calls().fail_all("the server's response has the id of no request"),
            Ok(Envelope::Request { id, method }) => {
                let Err(_) = self.to_only_call(line) else { return false };
                // Refused politely, if the process reads what it is sent.
                if let Some(outgoing) = outgoing.upgrade() {
                    let mut refusal = message::refusal(&id, &method);
                    refusal.push(b'\n');
                    let _ = outgoing.try_send(refusal);
                }
            }
            Ok(Envelope::Notification { method }) if method == "notifications/tools/list_changed" => {
                self.listing.expire();
                if let Some(service) = &self.origin.service {
                    self.origin.watch.changed(&self.origin.tenant, service);
                }
            }
            Ok(Envelope::Notification { method }) if method == message::PROGRESS => {
                let Some((id, _)) = message::progress(&line) else { return false };
                let calls = self.calls();
                let heard = calls.waiting.get(&id).and_then(|waiting| waiting.heard.as_ref());
                // Left out where it comes faster than it is read.
                heard.map(|heard| heard.try_send(line));
            }
            Ok(Envelope::Notification { method }) if method == message::LOG => drop(self.to_only_call(line)),
            Ok(Envelope::Notification { .. }) => {}
            Err(_) => self.calls().fail_all("the server sent something that is no message"),
        }
        false
    }

    /// When it is to be looked at again whether anybody uses the process; `None` if nobody has for too long: then it has
    /// ended, and no call begins any more.
    fn next_look(&self, idle: Duration) -> Option<Instant> {
        let (mut calls, now) = (self.calls(), now());
        if !calls.waiting.is_empty() {
            return Some(now + idle);
        }
        let until = calls.used + if calls.was_called { idle } else { idle.min(INSPECTED) };
        if until <= now {
            calls.ended.get_or_insert(UNUSED);
            return None;
        }
        Some(until)
    }

    /// Gives a message that does not say which call it belongs to to the only one that it can belong to: what a server
    /// asks during one call must not be asked of somebody else.
    fn to_only_call(&self, line: Vec<u8>) -> Result<(), Vec<u8>> {
        let calls = self.calls();
        let mut waiting = calls.waiting.values();
        match (waiting.next().and_then(|only| only.heard.as_ref()), waiting.next()) {
            (Some(heard), None) if self.origin.is_exclusive => heard.try_send(line).map_err(|full| full.into_inner()),
            _ => Err(line),
        }
    }

    fn end(&self, reason: &'static str) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        match kept {
            Some(kept) if reason != UNUSED => kept.fail(),
            kept => drop(kept),
        }
        let mut calls = self.calls();
        calls.ended.get_or_insert(reason);
        // Their senders are dropped: whoever waits reads the reason.
        calls.waiting.clear();
    }
}

impl Calls {
    fn note_use(&mut self) {
        self.used = now();
        self.was_called = true;
    }

    /// A request is over. Until then the process was in use, if it was one of a call.
    fn leave(&mut self, id: u64) -> Option<Waiting> {
        let waiting = self.waiting.remove(&id)?;
        if waiting.agent.is_some() {
            self.note_use();
        }
        Some(waiting)
    }

    fn fail_all(&mut self, reason: &'static str) {
        for (_, waiting) in self.waiting.drain() {
            let _ = waiting.response.send(Err(reason));
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

/// Reads until the process ends, breaks the rules or was idle for too long; then it is killed with all that it started.
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
                // What is no message was printed, and is passed over.
                let is_awaited = line.first() == Some(&b'{') && shared.route(line, &outgoing);
                // What nobody waits for is read only so fast: a process must not keep the gate busy.
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
