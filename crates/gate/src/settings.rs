//! What an operator decides.

use std::collections::BTreeSet;
use std::time::Duration;

use toolgate_model::approval::{Attendance, DEFAULT_WAIT, Mode, Workspace};
use toolgate_model::id::InvocationId;
use toolgate_model::principal::TenantId;

use crate::builtin::WorkspaceTool;
use crate::call::refused::REFUSALS_PER_SECOND;
use crate::followers::STREAMS_OF_PRINCIPAL;
use crate::ports::ledger::{DetachedLimits, SessionTerms};

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
    /// Which calls are exported as traces; `None` where none are.
    pub traces: Option<SampleRatio>,
}

/// A share of all calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleRatio(u32);

impl SampleRatio {
    /// So many of a million.
    pub const fn per_million(count: u32) -> Self {
        Self(count)
    }

    /// Whether this call is in it. Decided by the random part of its id, which no caller can choose.
    pub(crate) fn includes(self, call: InvocationId) -> bool {
        u64::from_be_bytes(call.low_bytes()) % 1_000_000 < u64::from(self.0)
    }
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

/// How many approvals of one agent may be open where nothing else is said: as many as an approver can look through.
pub const MAX_OF_AGENT: u32 = 20;

impl Default for ApprovalSettings {
    fn default() -> Self {
        Self {
            wait: DEFAULT_WAIT,
            attendance: Attendance::default(),
            mode: Mode::default(),
            mode_changes: false,
            highest_mode: Mode::Force,
            most_of_agent: MAX_OF_AGENT,
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
            traces: None,
        }
    }
}

impl ApprovalSettings {
    /// The mode of a session, within what the operator allows.
    pub(crate) fn effective_mode(&self, terms: &SessionTerms) -> Mode {
        terms.mode.unwrap_or(self.mode).min(self.highest_mode)
    }
}
