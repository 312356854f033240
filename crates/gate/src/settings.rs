//! The operator's settings.

use std::collections::BTreeSet;
use std::time::Duration;

use toolgate_model::approval::{Attendance, DEFAULT_WAIT, Mode, Workspace};
use toolgate_model::id::InvocationId;
use toolgate_model::principal::TenantId;

use crate::builtin::WorkspaceTool;
use crate::call::refused::REFUSALS_PER_SECOND;
use crate::followers::STREAMS_OF_PRINCIPAL;
use crate::ports::ledger::{DetachedLimits, SessionTerms};

#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The lifetime of grants that set none.
    pub default_grant_lifetime: Duration,
    /// How long replaced material is kept for calls already admitted; longer than the maximum duration of a call.
    pub retire_after: Duration,
    pub approvals: ApprovalSettings,
    pub detached: DetachedSettings,
    pub machine: MachineTools,
    /// The number of refused calls of one principal that are recorded individually per second.
    pub refusals_per_second: u32,
    /// The maximum number of open tool sessions per principal.
    pub sessions_of_principal: u32,
    /// How many bytes of results are stored per day for one agent that calls with idempotency keys.
    pub stored_results: u64,
    /// The maximum number of open event streams per principal.
    pub streams_of_principal: usize,
    /// The share of calls exported as traces; `None` for none.
    pub traces: Option<SampleRatio>,
}

/// A share of all calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleRatio(u32);

impl SampleRatio {
    pub const fn per_million(count: u32) -> Self {
        Self(count)
    }

    /// Whether this call is sampled. Decided by the random part of its id, which no caller can choose.
    pub(crate) fn includes(self, call: InvocationId) -> bool {
        u64::from_be_bytes(call.low_bytes()) % 1_000_000 < u64::from(self.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DetachedSettings {
    /// Whether every call that must wait for an approver is detached.
    pub when_asked: bool,
    /// The storage limits of one agent.
    pub stored: DetachedLimits,
    /// The maximum size of a request as JSON, in bytes.
    pub request_bytes: usize,
    /// How long the outcome of a call is stored.
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

/// The workspace tools. The machine belongs to the operator, and a tenant's administrator can assign any scopes, so the
/// operator decides which tenants have these tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MachineTools {
    /// The only tenants that have them.
    pub tenants: BTreeSet<TenantId>,
    pub tools: Vec<WorkspaceTool>,
    /// The directory that they are limited to.
    pub root: Option<Workspace>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalSettings {
    /// How long a call waits for a decision by default.
    pub wait: Duration,
    /// Whether it waits if no approver is connected.
    pub attendance: Attendance,
    /// The mode of sessions that set none.
    pub mode: Mode,
    /// Whether sessions may raise their mode by a request.
    pub mode_changes: bool,
    /// The highest mode that any session can have.
    pub highest_mode: Mode,
    /// The maximum number of open approvals per agent.
    pub most_of_agent: u32,
}

/// The default maximum number of open tool sessions per principal.
const SESSIONS_OF_PRINCIPAL: u32 = 100;
/// The default for results of one agent, in bytes.
const STORED_RESULTS: u64 = 256 * 1024 * 1024;

/// The default maximum number of open approvals per agent: as many as an approver can review.
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
    /// The mode of a session, limited by the operator's settings.
    pub(crate) fn effective_mode(&self, terms: &SessionTerms) -> Mode {
        terms.mode.unwrap_or(self.mode).min(self.highest_mode)
    }
}
