//! The gate itself: its ports and its settings. What it can do stands in the modules named after it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::task::TaskTracker;
use toolgate_model::approval::{Attendance, DEFAULT_WAIT, Mode, Workspace};
use toolgate_model::blinding::Blinding;
use toolgate_model::checkpoint::SigningKey;
use toolgate_model::id::{KeyId, ProcessId};
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use crate::authority::policies::Trials;
use crate::builtin::{Builtins, WorkspaceTool};
use crate::call::detached::Runs;
use crate::call::hooks::executions::Executions;
use crate::call::hooks::parked::Parked;
use crate::call::refused::{REFUSALS_PER_SECOND, RefusedCalls};
use crate::call::renewals::Renewals;
use crate::call::stored::StoredResults;
use crate::call::tally::Tally;
use crate::call::turns::Turns;
use crate::catalog::Catalogs;
use crate::followers::{Followers, STREAMS_OF_PRINCIPAL};
use crate::identify::Attempts;
use crate::ids::Ids;
use crate::ports::approver::Approver;
use crate::ports::clock::Clock;
use crate::ports::guardian::Guardian;
use crate::ports::ledger::{DetachedLimits, Ledger};
use crate::ports::policy_book::PolicyBook;
use crate::ports::sealer::{SealError, Sealer};
use crate::ports::source::Source;
use crate::refusal::{Code, Refusal};

/// What an operator decides about authority.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How long a grant lives that does not say.
    pub default_grant_lifetime: Duration,
    /// How long replaced material stays for calls already admitted; longer than any call may take.
    pub retire_after: Duration,
    /// How people are asked.
    pub approvals: ApprovalSettings,
    /// What is stored of calls that outlive their connection.
    pub detached: DetachedSettings,
    /// The tools of the machine that the gate runs on.
    pub machine: MachineTools,
    /// How many refused calls of one principal are recorded one by one in a second.
    pub refusals_per_second: u32,
    /// How many tool sessions one principal may have open.
    pub sessions_of_principal: u32,
    /// How many bytes of results are kept in a day for one agent that calls with idempotency keys.
    pub stored_results: u64,
    /// How many streams of events one principal may have open.
    pub streams_of_principal: usize,
}

/// What an operator decides about detached calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DetachedSettings {
    /// Whether every call that must wait for an approver is detached.
    pub when_asked: bool,
    /// How much is stored for one agent.
    pub stored: DetachedLimits,
    /// The largest request, as JSON, in bytes.
    pub request_bytes: usize,
    /// How long the outcome of a call is kept.
    pub keep: Duration,
}

impl Default for DetachedSettings {
    fn default() -> Self {
        Self {
            when_asked: false,
            stored: DetachedLimits { calls: 100, bytes: 64 * 1024 * 1024 },
            request_bytes: 1024 * 1024,
            keep: Duration::from_secs(24 * 3600),
        }
    }
}

/// The tools of the machine that the gate runs on. The machine is the operator's, and a tenant's administrator gives out
/// scopes as it likes, so that the operator says which tenants there are such tools for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MachineTools {
    /// The only tenants that have them.
    pub tenants: BTreeSet<TenantId>,
    /// Which.
    pub tools: Vec<WorkspaceTool>,
    /// The directory that they are limited to.
    pub root: Option<Workspace>,
}

/// What an operator decides about asking people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalSettings {
    /// How long a call waits for an answer, where nothing else is said.
    pub wait: Duration,
    /// Whether it waits where nobody is there to answer.
    pub attendance: Attendance,
    /// The mode of sessions that set none.
    pub mode: Mode,
    /// Whether sessions may raise their mode by a request.
    pub mode_changes: bool,
    /// The most that any session may let pass.
    pub highest_mode: Mode,
    /// How many approvals of one agent may be open at a time.
    pub most_of_agent: u32,
}

/// How many tool sessions one principal may have open where nothing else is said.
const SESSIONS_OF_PRINCIPAL: u32 = 100;
/// How many bytes of results are kept for one agent where nothing else is said.
const STORED_RESULTS: u64 = 256 * 1024 * 1024;
/// How long refused calls are counted before they are summed up.
const REFUSALS_SUMMED_AFTER: Duration = Duration::from_secs(10);

/// How many approvals of one agent may be open where nothing else is said: as many as an approver can look through.
pub const MOST_OF_AGENT: u32 = 20;

impl Default for ApprovalSettings {
    fn default() -> Self {
        Self {
            wait: DEFAULT_WAIT,
            attendance: Attendance::default(),
            mode: Mode::default(),
            mode_changes: false,
            highest_mode: Mode::Force,
            most_of_agent: MOST_OF_AGENT,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            default_grant_lifetime: Duration::from_secs(30 * 24 * 3600),
            retire_after: Duration::from_secs(150),
            approvals: ApprovalSettings::default(),
            detached: DetachedSettings::default(),
            machine: MachineTools::default(),
            refusals_per_second: REFUSALS_PER_SECOND,
            sessions_of_principal: SESSIONS_OF_PRINCIPAL,
            stored_results: STORED_RESULTS,
            streams_of_principal: STREAMS_OF_PRINCIPAL,
        }
    }
}

/// What the gate is put together from.
pub struct Ports {
    /// Where everything is kept.
    pub ledger: Arc<dyn Ledger>,
    /// Seals and unseals material.
    pub sealer: Arc<dyn Sealer>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Carries out calls.
    pub source: Arc<dyn Source>,
    /// Gives verdicts.
    pub guardian: Arc<dyn Guardian>,
    /// Reads policies.
    pub policy_book: Arc<dyn PolicyBook>,
    /// Brings people's answers.
    pub approver: Arc<dyn Approver>,
    /// The process that this is, among those that share the ledger.
    pub process: ProcessId,
}

/// Everything that a transport can ask for.
pub struct Gate {
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) sealer: Arc<dyn Sealer>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) source: Arc<dyn Source>,
    pub(crate) guardian: Arc<dyn Guardian>,
    pub(crate) policy_book: Arc<dyn PolicyBook>,
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) catalogs: Catalogs,
    pub(crate) builtins: Builtins,
    pub(crate) renewals: Renewals,
    pub(crate) turns: Turns,
    /// The calls that have begun and not ended, so that the program does not end in the middle of one.
    pub(crate) in_flight: TaskTracker,
    pub(crate) process: ProcessId,
    pub(crate) detached_runs: Runs,
    pub(crate) executions: Executions,
    pub(crate) parked: Parked,
    pub(crate) audit_key: Arc<SigningKey>,
    pub(crate) settings: Settings,
    pub(crate) attempts: Attempts,
    pub(crate) refused_calls: RefusedCalls,
    pub(crate) trials: Arc<Trials>,
    pub(crate) ids: Ids,
    pub(crate) tally: Tally,
    pub(crate) stored_results: StoredResults,
    pub(crate) followers: Arc<Followers>,
    pub(crate) blinding: Blinding,
    key_uses: Mutex<BTreeMap<KeyId, Timestamp>>,
    pub(crate) rekey_wanted: AtomicBool,
}

impl Gate {
    /// Puts the gate together.
    pub fn new(ports: Ports, audit_key: Arc<SigningKey>, settings: Settings) -> Self {
        let refused_calls = RefusedCalls::new(settings.refusals_per_second);
        let stored_results = StoredResults::new(settings.stored_results);
        let Ports { ledger, sealer, clock, source, guardian, policy_book, approver, process } = ports;
        Self {
            ledger,
            sealer,
            clock,
            source,
            guardian,
            policy_book,
            approver,
            catalogs: Catalogs::default(),
            builtins: Builtins::new(&settings.machine),
            renewals: Renewals::default(),
            turns: Turns::default(),
            in_flight: TaskTracker::new(),
            process,
            detached_runs: Runs::default(),
            executions: Executions::default(),
            parked: Parked::default(),
            blinding: Blinding::new(&audit_key),
            audit_key,
            followers: Arc::new(Followers::new(settings.streams_of_principal)),
            settings,
            attempts: Attempts::default(),
            trials: Arc::default(),
            ids: Ids::default(),
            refused_calls,
            tally: Tally::default(),
            stored_results,
            key_uses: Mutex::default(),
            // A rekey that a crash cut off goes on at the next start.
            rekey_wanted: AtomicBool::new(true),
        }
    }

    /// Checks that the ledger takes writes.
    pub async fn check_ledger(&self) -> Result<(), Refusal> {
        self.ledger.check().await
    }

    /// Checks that the key provider seals and unseals.
    pub async fn check_key_provider(&self) -> Result<(), Refusal> {
        Ok(self.sealer.check().await?)
    }

    /// Checks that no credential is sealed under a master key that is not available.
    pub async fn check_sealed(&self) -> Result<(), Refusal> {
        let current = self.sealer.current_key().await?;
        let under_others = self.ledger.sealed_under_other_keys(&current, None, 1).await?;
        let Some(version) = under_others.first() else { return Ok(()) };
        match self.sealer.unseal(&version.binding, &version.sealed).await {
            Err(SealError::KeyMissing { key }) => {
                let reason = format!(
                    "credentials are sealed under master key {}, which is not available; restore it, or rotate them",
                    key.0
                );
                Err(Refusal::new(Code::KeyProviderUnavailable, reason))
            }
            _ => Ok(()),
        }
    }

    /// Whether the clock shows the time that it should. While it does not, nothing is ended for good by time.
    pub fn has_steady_clock(&self) -> bool {
        self.clock.is_steady()
    }

    /// Takes what was committed into the audit log; answers how many events.
    pub async fn integrate(&self) -> Result<u64, Refusal> {
        self.ledger.integrate(Arc::clone(&self.audit_key), self.clock.now()).await
    }

    /// Shows calls that were cut off as what they are, and forgets answers that nobody asks for again. What an earlier
    /// life of this process left running is cut off at once where the ledger knows that there is no other.
    pub async fn close_calls(&self) -> Result<u64, Refusal> {
        if !self.clock.is_steady() {
            return Ok(0);
        }
        self.ledger.close_calls(self.clock.now()).await
    }

    /// Sums up refused calls that were counted, in one event for each principal. Without `all`, only those that were begun
    /// to be counted a while ago, so that more of them share an event.
    pub async fn sum_up_refusals(&self, all: bool) -> Result<(), Refusal> {
        let now = self.clock.now();
        let before = if all { now.plus(Duration::from_secs(1)) } else { now.minus(REFUSALS_SUMMED_AFTER) };
        self.ledger.sum_up_denials(before, now).await.map(drop)
    }

    /// Brings every call that waits for an answer to its end.
    pub async fn close_approvals(&self) {
        self.approver.close().await;
    }

    /// Waits until every admitted call is settled.
    pub async fn finish_calls(&self) {
        self.in_flight.close();
        self.in_flight.wait().await;
    }

    /// Announces what has expired and destroys material that nobody needs any more.
    pub async fn sweep(&self) -> Result<(), Refusal> {
        if !self.clock.is_steady() {
            return Ok(());
        }
        let now = self.clock.now();
        let announced = self.ledger.announce_expired(now).await;
        self.ledger.destroy_retired(now).await?;
        announced.map(drop)
    }

    /// Writes down which keys were used since the last time.
    pub async fn flush_key_uses(&self) -> Result<(), Refusal> {
        let uses = std::mem::take(&mut *self.key_uses.lock().unwrap_or_else(PoisonError::into_inner));
        if uses.is_empty() { Ok(()) } else { self.ledger.note_key_use(uses).await }
    }

    /// Whether a rekey is asked for; the asking is over with this answer.
    pub fn take_rekey_request(&self) -> bool {
        self.rekey_wanted.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn note_key_use(&self, key: KeyId, now: Timestamp) {
        self.key_uses.lock().unwrap_or_else(PoisonError::into_inner).insert(key, now);
    }
}
