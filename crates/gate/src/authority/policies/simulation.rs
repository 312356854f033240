//! Simulation: what a draft would have said about the calls of the last days. Nothing is guessed: where the draft looks at
//! what was not recorded, it says so.

use std::sync::Arc;

use serde_json::Value;
use toolgate_model::guard::{PolicyFile, VerdictKind};
use toolgate_model::permission::Permission;
use toolgate_model::time::Timestamp;

use super::recorded::{Entry, policy_record};
use super::{in_order, require_right};
use crate::gate::Gate;
use crate::identify::Caller;
use crate::ports::ledger::EventFilter;
use crate::ports::policy_book::{PolicyProblem, Rejudged};
use crate::refusal::{Code, Refusal};

/// The most changes that are listed.
const LISTED: usize = 1_000;

/// What a draft would have changed.
#[derive(Debug, Default)]
pub struct Simulation {
    /// How many calls were looked at.
    pub calls: u64,
    /// How many would have been judged otherwise.
    pub changed: u64,
    /// About how many nothing can be known.
    pub undecidable: u64,
    /// Those, in the order of the log; at most a thousand.
    pub changes: Vec<VerdictChange>,
    /// Whether the log has more than was looked through.
    pub truncated: bool,
}

/// A call that a draft judges otherwise, or cannot judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerdictChange {
    /// Its place in the log.
    pub sequence: u64,
    /// The call.
    pub invocation: Option<String>,
    /// When.
    pub time: String,
    /// Whose.
    pub agent: String,
    /// Of which tool, or at which point.
    pub subject: String,
    /// What the policies of then said.
    pub before: VerdictKind,
    /// The code that the call was refused with then, by the policies or by anything else; `None` where it was not.
    pub denied: Option<String>,
    /// What the draft says.
    pub after: Rejudged,
}

impl Gate {
    /// Judges the calls since then by a draft.
    pub async fn simulate_policies(
        &self,
        caller: &Caller,
        files: Vec<PolicyFile>,
        since: Timestamp,
    ) -> Result<Simulation, Refusal> {
        caller.require(Permission::ManagePolicies)?;
        caller.require(Permission::ReadAudit)?;
        let files = in_order(files)?;
        let tools = self.policy_tools(caller).await?;
        let checked = self.look_at(files.clone(), tools).await?;
        if !checked.problems.is_empty() {
            require_right(&checked)?;
        }
        let filter = EventFilter { since: Some(since), ..EventFilter::default() };
        let found = self.recorded(caller, filter).await?;
        let (entries, judged) = self.rejudge(0, files, found.entries).await?;
        let mut simulation = Simulation { truncated: found.truncated, ..Simulation::default() };
        for (entry, after) in entries.into_iter().zip(judged) {
            simulation.calls = simulation.calls.saturating_add(1);
            let before = said(&entry);
            if entry.is_denied_before_policies() {
                // No policy had a say in it, and none would have: it was refused, and stays so.
                continue;
            }
            match &after {
                Rejudged::Verdict { kind, .. } if *kind == before => continue,
                Rejudged::Verdict { .. } => simulation.changed = simulation.changed.saturating_add(1),
                Rejudged::Undecidable { .. } => simulation.undecidable = simulation.undecidable.saturating_add(1),
            }
            if simulation.changes.len() < LISTED {
                simulation.changes.push(VerdictChange {
                    subject: subject(&entry),
                    sequence: entry.sequence,
                    invocation: entry.invocation,
                    time: entry.recorded.time,
                    agent: entry.recorded.agent,
                    before,
                    denied: entry.denied,
                    after,
                });
            }
        }
        Ok(simulation)
    }

    /// Judges what was recorded by these policies, beside the calls that are under way.
    pub(super) async fn rejudge(
        &self,
        version: u64,
        files: Vec<PolicyFile>,
        entries: Vec<Entry>,
    ) -> Result<(Vec<Entry>, Vec<Rejudged>), Refusal> {
        let book = Arc::clone(&self.policy_book);
        let judging = tokio::task::spawn_blocking(move || {
            let recorded: Vec<_> = entries.iter().map(|entry| entry.recorded.clone()).collect();
            let judged = book.rejudge(version, &files, &recorded);
            (entries, judged)
        });
        let broken = |_| Refusal::new(Code::Internal, "the judgement of the policies broke off; see the gate's log");
        let (entries, judged) = judging.await.map_err(broken)?;
        let judged = judged.map_err(|problems| {
            let reason = problems.first().map_or_else(String::new, |problem| problem.message.clone());
            let problems: Vec<_> = problems.iter().map(PolicyProblem::to_json).collect();
            Refusal::new(Code::PolicyInvalid, reason).with("problems", problems)
        })?;
        Ok((entries, judged))
    }
}

/// What the policies of then said.
pub(super) fn said(entry: &Entry) -> VerdictKind {
    let record = policy_record(entry.recorded.decision.as_ref());
    let verdict = record.and_then(|record| record.get("verdict")).and_then(Value::as_str);
    verdict.and_then(VerdictKind::parse).unwrap_or(VerdictKind::Allow)
}

/// The tool, or the point.
pub(super) fn subject(entry: &Entry) -> String {
    let text = |data: &Option<Value>, name: &str| {
        data.as_ref().and_then(|data| data.get(name)).and_then(Value::as_str).map(str::to_owned)
    };
    text(&entry.recorded.called, "toolName")
        .or_else(|| text(&entry.recorded.decision, "tool"))
        .or_else(|| text(&entry.recorded.decision, "hook"))
        .unwrap_or_default()
}
