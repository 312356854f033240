//! Mounted servers that are processes of this machine. Only the operator says which; they are started when they are
//! called, kept while they are used, and started again with growing pauses when they crash.

use std::any::Any;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, timeout_at};
use toolgate_gate::ports::mount::{McpEra, MountWatch};
use toolgate_gate::ports::source::{FailureKind, SourceFailure};
use toolgate_gate::ports::telemetry::TracedCall;
use toolgate_model::client_input::InputCapabilities;
use toolgate_model::credential::{Credential, ServiceName};
use toolgate_model::id::CredentialId;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::secret::Material;

use super::greeting::{Greeting, NO_COMMON_VERSION, may_be_legacy};
use super::guarded::{after_greeting, before_greeting};
use super::listing::Peer;
use super::message::{self, Request};
use super::result::{Raw, malformed};
use super::servers::PeerUser;
use crate::adapter::not_executable;
use crate::time::now;

pub(crate) use self::process::{CallListener, Process};
use self::process::{Origin, Running};

mod group;
mod lines;
mod log;
mod process;
mod throttle;

/// How long a process has for its handshake.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a process has to say whether it is modern. Some of the legacy era do not respond to what they do not know.
const DISCOVER_TIMEOUT: Duration = Duration::from_secs(5);
/// The pauses between starts of a process that crashes.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A process that has run this long has not crashed at its start.
const STEADY: Duration = Duration::from_secs(60);
/// The status of a process that responded, in the words of HTTP.
const OK: u16 = 200;

/// A server that the operator has configured.
#[derive(Clone)]
pub struct StdioMount {
    /// The service that it is registered as.
    pub name: String,
    /// The tenants that may have such a service.
    pub tenants: BTreeSet<TenantId>,
    /// The digest of what the operator has configured to be started.
    pub digest: String,
    /// The program and its arguments, exactly; what starts it in confinement comes first.
    pub command: Vec<OsString>,
    /// Whether the command makes itself the leader of a process group.
    pub leads_group: bool,
    pub directory: Option<PathBuf>,
    /// The variables that the process has, besides `PATH` and `HOME`.
    pub environment: Vec<(String, String)>,
    /// The variable that the secret of the credential is put into.
    pub credential: Option<String>,
    /// Whether it keeps state between calls, so that each principal needs a process of its own.
    pub stateful: bool,
    /// How many processes there may be.
    pub max_processes: usize,
    /// How long a process may be idle.
    pub idle: Duration,
    /// Kept as long as the mount, such as the directory for its temporary files.
    pub keep: Option<Arc<dyn Any + Send + Sync>>,
}

/// What tells processes of one mount apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ProcessKey {
    tenant: TenantId,
    name: String,
    /// The credential that it was started with, and the version of its material.
    credential: Option<(CredentialId, u32)>,
    agent: Option<PrincipalId>,
    /// What it may ask its client for. One that is shared asks for nothing.
    input: InputCapabilities,
}

/// The processes of all mounts.
pub(crate) struct Processes {
    mounts: HashMap<String, Arc<StdioMount>>,
    slots: Mutex<HashMap<ProcessKey, Arc<Slot>>>,
    eras: Mutex<HashMap<String, McpEra>>,
    watch: Arc<dyn MountWatch>,
}

/// The place of a process.
#[derive(Default)]
struct Slot {
    current: Mutex<Option<Arc<Process>>>,
    /// Held by the one that starts it.
    starting: tokio::sync::Mutex<Crashes>,
}

#[derive(Default)]
struct Crashes {
    count: u32,
    /// Not to be started before.
    pause_until: Option<Instant>,
    started: Option<Instant>,
}

impl Processes {
    pub(crate) fn new(mounts: Vec<StdioMount>, watch: Arc<dyn MountWatch>) -> Self {
        let mounts = mounts.into_iter().map(|mount| (mount.name.clone(), Arc::new(mount))).collect();
        Self { mounts, slots: Mutex::default(), eras: Mutex::default(), watch }
    }

    /// The digest of what starts the process of this mount.
    pub(crate) fn digest(&self, service: &ServiceName) -> Option<String> {
        self.mounts.get(service.as_str()).map(|mount| mount.digest.clone())
    }

    /// The running process for calls of this principal with this credential, started now if there is none.
    pub(crate) async fn of(
        &self,
        user: &PeerUser<'_>,
        (credential, material): (Option<&Credential>, &Material),
        input: InputCapabilities,
        deadline: Instant,
        ids: &(dyn Fn() -> u64 + Sync),
    ) -> Result<Arc<Process>, SourceFailure> {
        let PeerUser { tenant, principal: agent, .. } = *user;
        let name = user.service.as_str();
        let mount = self.mounts.get(name).filter(|mount| mount.tenants.contains(tenant)).ok_or_else(|| {
            not_executable("its service has no `base_url`, and `mounts.file` of the configuration has no such mount")
        })?;
        let key = ProcessKey {
            tenant: tenant.clone(),
            name: name.to_owned(),
            credential: mount.credential.as_ref().and(credential).map(|credential| (credential.id, credential.version)),
            agent: agent.filter(|_| mount.stateful).cloned(),
            input: if mount.stateful { input } else { InputCapabilities::default() },
        };
        let slot = self.slot(&key, mount)?;
        // The gate's own looking at a server keeps no process.
        let current = || slot.current().filter(|process| agent.is_none() || process.keep_for_call());
        if let Some(process) = current() {
            return Ok(process);
        }
        let waiting = timeout_at(deadline, slot.starting.lock()).await;
        let mut crashes = waiting.map_err(|_| late("the time for this call was over while its server was started"))?;
        if let Some(process) = current() {
            return Ok(process);
        }
        crashes.look_back(slot.lock().as_ref().is_some_and(|process| process.was_unused()));
        if let Some(pause) =
            crashes.pause_until.map(|until| until.saturating_duration_since(now())).filter(|p| !p.is_zero())
        {
            let seconds = pause.as_secs() + 1;
            let reason = format!("its server keeps ending by itself; it is started again in {seconds} s");
            return Err(SourceFailure::not_sent(FailureKind::Proxy, reason));
        }
        let known = self.eras().get(name).copied();
        before_greeting(user.guard, known).await?;
        crashes.started = Some(now());
        let started = self.start(mount, &key, material, deadline.min(now() + START_TIMEOUT), ids).await;
        match started {
            Ok(process) => {
                after_greeting(user.guard, &process.greeting).await?;
                if key.agent.is_some()
                    && let Some(kept) = user.begin().await?
                {
                    process.keep(kept);
                }
                let process = Arc::new(process);
                *slot.lock() = Some(Arc::clone(&process));
                Ok(process)
            }
            Err(failure) => {
                crashes.count_one();
                // The call itself was not sent.
                Err(SourceFailure { sent: false, ..failure })
            }
        }
    }

    fn slot(&self, key: &ProcessKey, mount: &StdioMount) -> Result<Arc<Slot>, SourceFailure> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(key) {
            return Ok(Arc::clone(slot));
        }
        // What nobody starts and nobody uses has ended: its pauses are over too, or are begun again.
        slots.retain(|_, slot| Arc::strong_count(slot) > 1 || slot.current().is_some() || slot.is_paused());
        let of_mount = |other: &ProcessKey| other.name == key.name;
        let of_agent = |other: &ProcessKey| of_mount(other) && other.agent == key.agent;
        if key.agent.is_some() {
            make_room(&mut slots, of_agent, (mount.max_processes / 4).max(1))?;
        }
        make_room(&mut slots, of_mount, mount.max_processes)?;
        let slot = Arc::<Slot>::default();
        slots.insert(key.clone(), Arc::clone(&slot));
        Ok(slot)
    }

    async fn start(
        &self,
        mount: &Arc<StdioMount>,
        key: &ProcessKey,
        material: &Material,
        deadline: Instant,
        ids: &(dyn Fn() -> u64 + Sync),
    ) -> Result<Process, SourceFailure> {
        let secret = match &mount.credential {
            Some(_) => Some(secret_of(material)?),
            None => None,
        };
        let start = || {
            let origin = Origin {
                tenant: key.tenant.clone(),
                service: ServiceName::parse(&mount.name).ok(),
                watch: Arc::clone(&self.watch),
                is_exclusive: key.agent.is_some(),
            };
            Running::start(mount, secret, origin)
        };
        let known = self.eras().get(&mount.name).copied();
        let running = start()?;
        let greeting = match greet(&running, (known, key.input), deadline, ids).await {
            // A server that ends at what it does not know is asked again, in the words that it may know.
            Err(_) if known != Some(McpEra::Legacy) && running.has_ended() => {
                let again = start()?;
                let greeting = greet(&again, (Some(McpEra::Legacy), key.input), deadline, ids).await?;
                self.eras().insert(mount.name.clone(), greeting.era);
                return Ok(again.greeted(greeting));
            }
            greeting => greeting?,
        };
        self.eras().insert(mount.name.clone(), greeting.era);
        Ok(running.greeted(greeting))
    }

    fn eras(&self) -> MutexGuard<'_, HashMap<String, McpEra>> {
        self.eras.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the process that was idle longest, if there are as many of these as there may be.
fn make_room(
    slots: &mut HashMap<ProcessKey, Arc<Slot>>,
    is_one: impl Fn(&ProcessKey) -> bool,
    most: usize,
) -> Result<(), SourceFailure> {
    if slots.keys().filter(|key| is_one(key)).count() < most {
        return Ok(());
    }
    let unused = slots.iter().filter(|(key, slot)| is_one(key) && Arc::strong_count(slot) == 1);
    let running = unused.filter_map(|(key, slot)| Some((key, slot.current()?)));
    let idle = running.filter(|(_, process)| process.is_idle());
    let longest = idle.min_by_key(|(_, process)| process.used()).map(|(key, _)| key.clone());
    match longest {
        Some(longest) => {
            slots.remove(&longest);
            Ok(())
        }
        None => {
            let reason = "its server has as many processes as it may have, and all are in use; try again";
            Err(SourceFailure::not_sent(FailureKind::Overloaded, reason))
        }
    }
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<Process>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process, while it runs.
    fn current(&self) -> Option<Arc<Process>> {
        self.lock().as_ref().filter(|process| !process.has_ended()).cloned()
    }

    fn is_paused(&self) -> bool {
        self.starting.try_lock().map_or(true, |crashes| crashes.pause_until.is_some_and(|until| now() < until))
    }
}

impl Crashes {
    /// Counts the end of the process that ran before, unless it was stopped after the idle timeout.
    fn look_back(&mut self, was_unused: bool) {
        if let Some(started) = self.started.take() {
            if !was_unused && now() - started < STEADY {
                self.count_one();
            } else {
                *self = Self::default();
            }
        }
    }

    fn count_one(&mut self) {
        self.started = None;
        // The first time it may be started again at once.
        if self.count > 0 {
            let pause = FIRST_PAUSE.saturating_mul(1 << (self.count - 1).min(8)).min(LONGEST_PAUSE);
            self.pause_until = Some(now() + pause);
        }
        self.count = self.count.saturating_add(1);
    }
}

/// The handshake. A server that does not respond to what it does not know is taken for one of the legacy era.
async fn greet(
    running: &Running,
    (known, input): (Option<McpEra>, InputCapabilities),
    deadline: Instant,
    ids: &(dyn Fn() -> u64 + Sync),
) -> Result<Greeting, SourceFailure> {
    if known != Some(McpEra::Legacy) {
        let id = ids();
        let discover = Request::of_protocol("server/discover", "").write(id, McpEra::Modern, None);
        let limit = deadline.min(now() + DISCOVER_TIMEOUT);
        match running.ask(id, discover, None, limit).await {
            Ok(raw) => match message::response(&raw, id) {
                Ok(Ok(result)) => return Greeting::modern(&result).map_err(|reason| malformed(OK, reason)),
                Ok(Err(error)) if may_be_legacy(&error) => {}
                Ok(Err(_)) => return Err(malformed(OK, NO_COMMON_VERSION)),
                Err(reason) => return Err(malformed(OK, &format!("the server's response {reason}"))),
            },
            Err(failure) if failure.timed_out && now() < deadline => {}
            Err(failure) => return Err(failure),
        }
    }
    let id = ids();
    let raw = running.ask(id, Request::initialize(input).write(id, McpEra::Legacy, None), None, deadline).await?;
    let greeting = match message::response(&raw, id) {
        Ok(Ok(result)) => Greeting::legacy(&result).map_err(|reason| malformed(OK, reason))?,
        Ok(Err(error)) => {
            let reason = format!("the server refused the handshake with error {}", error.code);
            return Err(SourceFailure { kind: FailureKind::Service, ..malformed(OK, &reason) });
        }
        Err(reason) => return Err(malformed(OK, &format!("the server's response {reason}"))),
    };
    running.notify(message::notification("notifications/initialized", ""));
    Ok(greeting)
}

/// What a process gets of the material: its one secret, or the one that is usually presented.
fn secret_of(material: &Material) -> Result<&str, SourceFailure> {
    let usual = ["token", "access_token", "api_key", "bearer_token", "secret_key", "password"];
    let usual = usual.iter().find_map(|name| material.get(name));
    let only = || material.iter().next().map(|(_, secret)| secret).filter(|_| material.names().count() == 1);
    usual.or_else(only).map(|secret| secret.expose()).ok_or_else(|| {
        not_executable("its server is started with a secret, and the credential has none; rotate it with a `token`")
    })
}

/// A process within one call.
pub(crate) struct ProcessPeer<'a> {
    pub(crate) process: &'a Process,
    pub(crate) agent: Option<&'a PrincipalId>,
    pub(crate) deadline: Instant,
    pub(crate) traced: Option<&'a TracedCall>,
    pub(crate) listener: Option<CallListener<'a>>,
    pub(crate) ids: &'a (dyn Fn() -> u64 + Sync),
}

#[async_trait]
impl Peer for ProcessPeer<'_> {
    async fn ask(&mut self, request: &Request<'_>) -> Result<Raw, SourceFailure> {
        let id = (self.ids)();
        let message = request.write(id, self.process.greeting.era, self.traced);
        let message = self.process.ask_listening(id, message, self.agent, self.deadline, self.listener).await?;
        Ok(Raw { message, id, http_status: OK })
    }
}

fn late(reason: &str) -> SourceFailure {
    SourceFailure { timed_out: true, ..SourceFailure::not_sent(FailureKind::Proxy, reason) }
}
