//! Simulation: what a draft would have decided about recent calls. Nothing is guessed: if the draft reads something
//! that was not recorded, the result is undecidable.

use std::sync::Arc;

use toolgate_model::guard::{PolicyFile, VerdictKind};
use toolgate_model::permission::Permission;
use toolgate_model::time::Timestamp;

use super::PolicyAdministration;
use super::recorded::{Entry, Recording, policy_record};
use super::trials::Place;
use super::{in_order, require_right};
use crate::identify::Caller;
use crate::ports::ledger::EventFilter;
use crate::ports::policy_book::{Judge, PolicyProblem, Reevaluation};
use crate::refusal::{Code, Refusal};

/// The maximum number of changes listed.
const LISTED: usize = 1_000;

/// What a draft would have changed.
#[derive(Debug, Default)]
pub struct Simulation {
    /// The number of calls evaluated.
    pub calls: u64,
    /// How many of them would have had another verdict.
    pub changed: u64,
    /// How many of them cannot be evaluated.
    pub undecidable: u64,
    /// The changed and undecidable calls in the order of the log, at most a thousand.
    pub changes: Vec<VerdictChange>,
    /// Whether there are more changes than are listed.
    pub truncated: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimulationProgress {
    /// The position reached in the log.
    pub reached: u64,
    /// The size of the log when the simulation began.
    pub size: u64,
    /// The number of calls evaluated.
    pub calls: u64,
    /// How many of them would have had another verdict.
    pub changed: u64,
}

/// A simulation in progress. Its slot is released when it is dropped.
pub struct Simulating {
    recording: Recording,
    judge: Arc<dyn Judge>,
    size: u64,
    so_far: Simulation,
    _place: Place,
}

/// A call that a draft decides differently, or cannot evaluate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerdictChange {
    /// Its position in the log.
    pub sequence: u64,
    pub invocation: Option<String>,
    pub time: String,
    pub agent: String,
    /// The tool, or the hook point if there is none.
    pub subject: String,
    /// The recorded verdict of the policies.
    pub before: VerdictKind,
    /// The code that the call was refused with, by policies or anything else; `None` if it was not refused.
    pub denied: Option<String>,
    /// The verdict of the draft.
    pub after: Reevaluation,
}

impl PolicyAdministration {
    /// Evaluates the calls since a time by a draft.
    pub async fn simulate_policies(
        &self,
        caller: &Caller,
        files: Vec<PolicyFile>,
        since: Timestamp,
    ) -> Result<Simulation, Refusal> {
        let mut simulating = self.begin_simulation(caller, files, since).await?;
        while self.continue_simulation(&mut simulating).await?.is_some() {}
        Ok(simulating.finish())
    }

    /// Starts to evaluate the calls since a time by a draft. A principal can run one simulation at a time, and a gate a
    /// few.
    pub async fn begin_simulation(
        &self,
        caller: &Caller,
        files: Vec<PolicyFile>,
        since: Timestamp,
    ) -> Result<Simulating, Refusal> {
        caller.require(Permission::ManagePolicies)?;
        caller.require(Permission::ReadAudit)?;
        let place = self.trials.enter(caller)?;
        let files = in_order(files)?;
        let tools = self.policy_tools(caller).await?;
        let checked = self.look_at(files.clone(), tools).await?;
        if !checked.problems.is_empty() {
            require_right(&checked)?;
        }
        let judge = self.judge(0, files).await?;
        let filter = EventFilter { since: Some(since), ..EventFilter::default() };
        let recording = self.begin_recording(caller, filter).await?;
        let size = self.log.log_head(caller.tenant()).await?.map_or(0, |head| head.head.size);
        Ok(Simulating { recording, judge, size, so_far: Simulation::default(), _place: place })
    }

    /// Evaluates the next calls; `None` after the last.
    pub async fn continue_simulation(
        &self,
        simulating: &mut Simulating,
    ) -> Result<Option<SimulationProgress>, Refusal> {
        let Some(entries) = self.next_recorded(&mut simulating.recording).await? else { return Ok(None) };
        let judged = reevaluate(Arc::clone(&simulating.judge), entries).await?;
        for (entry, after) in judged {
            simulating.so_far.take(entry, after);
        }
        let Simulation { calls, changed, .. } = simulating.so_far;
        Ok(Some(SimulationProgress { reached: simulating.recording.reached, size: simulating.size, calls, changed }))
    }

    /// Compiles policies off the workers that serve calls.
    pub(super) async fn judge(&self, version: u64, files: Vec<PolicyFile>) -> Result<Arc<dyn Judge>, Refusal> {
        let book = Arc::clone(&self.policy_book);
        let compiled = tokio::task::spawn_blocking(move || book.judge(version, &files)).await.map_err(|_| broken())?;
        compiled.map_err(|problems| {
            let reason = problems.first().map_or_else(String::new, |problem| problem.message.clone());
            let problems: Vec<_> = problems.iter().map(PolicyProblem::to_json).collect();
            Refusal::new(Code::PolicyInvalid, reason).with("problems", problems)
        })
    }
}

impl Simulating {
    /// The result of the simulation.
    pub fn finish(self) -> Simulation {
        self.so_far
    }
}

impl Simulation {
    fn take(&mut self, entry: Entry, after: Reevaluation) {
        self.calls = self.calls.saturating_add(1);
        let before = said(&entry);
        if entry.is_denied_before_policies() {
            // The call was refused before any policy was evaluated, and would still be.
            return;
        }
        match &after {
            Reevaluation::Verdict { kind, .. } if *kind == before => return,
            Reevaluation::Verdict { .. } => self.changed = self.changed.saturating_add(1),
            Reevaluation::Undecidable { .. } => self.undecidable = self.undecidable.saturating_add(1),
        }
        if self.changes.len() >= LISTED {
            self.truncated = true;
            return;
        }
        self.changes.push(VerdictChange {
            subject: subject(&entry),
            sequence: entry.sequence,
            invocation: entry.invocation.map(|call| call.to_string()),
            time: entry.recorded.time,
            agent: entry.recorded.agent,
            before,
            denied: entry.denied,
            after,
        });
    }
}

/// Re-evaluates recorded decisions off the workers that serve calls.
pub(super) async fn reevaluate(
    judge: Arc<dyn Judge>,
    entries: Vec<Entry>,
) -> Result<Vec<(Entry, Reevaluation)>, Refusal> {
    let judging = tokio::task::spawn_blocking(move || {
        let judged = entries.into_iter().map(|entry| {
            let after = judge.reevaluate(&entry.recorded);
            (entry, after)
        });
        judged.collect()
    });
    judging.await.map_err(|_| broken())
}

fn broken() -> Refusal {
    Refusal::new(Code::Internal, "re-evaluating the policies failed; see the gate's log")
}

/// The recorded verdict of the policies.
pub(super) fn said(entry: &Entry) -> VerdictKind {
    let record = policy_record(entry.recorded.decision.as_deref());
    record.and_then(|record| record.verdict).unwrap_or(VerdictKind::Allow)
}

/// The tool, or the hook point if there is none.
pub(super) fn subject(entry: &Entry) -> String {
    match (&entry.recorded.called, &entry.recorded.decision) {
        (Some(called), _) => called.tool_name.to_string(),
        (None, Some(decision)) => decision.tool.clone().unwrap_or_else(|| decision.hook.as_str().to_owned()),
        (None, None) => String::new(),
    }
}
