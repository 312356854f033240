//! Replay: re-evaluates the decisions of an execution, step by step, by the policies that were active then. The results
//! must be equal.

use std::collections::BTreeMap;

use toolgate_model::guard::VerdictKind;
use toolgate_model::permission::Permission;

use super::PolicyAdministration;
use super::recorded::{Entry, policy_record};
use super::simulation::{reevaluate, said, subject};
use crate::identify::Caller;
use crate::ports::ledger::EventFilter;
use crate::ports::policy_book::Reevaluation;
use crate::refusal::{Code, Refusal};

/// The maximum number of steps that are re-evaluated.
const MAX_STEPS: usize = 20_000;

/// A re-evaluated execution.
#[derive(Debug)]
pub struct Replay {
    /// Its steps, in the order of the log.
    pub steps: Vec<ReplayStep>,
    /// Whether the execution has more steps than were read.
    pub truncated: bool,
}

/// A re-evaluated decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayStep {
    /// Its position in the log.
    pub sequence: u64,
    pub invocation: Option<String>,
    pub time: String,
    /// The hook point of the decision.
    pub hook: String,
    /// The tool, or the hook point if there is none.
    pub subject: String,
    /// The version of the policies that decided.
    pub version: u64,
    /// The recorded verdict.
    pub recorded: VerdictKind,
    /// The rules that determined it.
    pub recorded_policies: Vec<String>,
    /// The recorded duration of the evaluation, in microseconds.
    pub latency_us: u64,
    /// The verdict of the re-evaluation.
    pub replayed: Reevaluation,
    /// Whether both are equal; `None` if that cannot be known.
    pub same: Option<bool>,
}

impl PolicyAdministration {
    /// Re-evaluates the decisions of an execution.
    pub async fn replay_policies(&self, caller: &Caller, run: &str) -> Result<Replay, Refusal> {
        caller.require(Permission::ReadAudit)?;
        let filter = EventFilter { run: Some(run.to_owned()), ..EventFilter::default() };
        let mut recording = self.begin_recording(caller, filter).await?;
        let (mut entries, mut truncated) = (Vec::new(), false);
        while let Some(more) = self.next_recorded(&mut recording).await? {
            entries.extend(more);
            truncated = entries.len() > MAX_STEPS;
            if truncated {
                entries.truncate(MAX_STEPS);
                break;
            }
        }
        if entries.is_empty() {
            let reason = format!("the log has no calls and no decisions of the execution `{run}`");
            return Err(Refusal::new(Code::RunNotFound, reason));
        }
        let mut by_version: BTreeMap<u64, Vec<Entry>> = BTreeMap::new();
        for entry in entries {
            let decision = entry.recorded.decision.as_deref();
            let version = decision.and_then(|decision| decision.policy_version);
            if let Some(version) = version.filter(|_| policy_record(decision).is_some()) {
                by_version.entry(version).or_default().push(entry);
            }
        }
        let mut steps = Vec::new();
        for (version, entries) in by_version {
            let set = self.policy_version(caller, version).await?;
            let judged = reevaluate(self.judge(version, set.files).await?, entries).await?;
            steps.extend(judged.into_iter().map(|(entry, replayed)| step(entry, version, replayed)));
        }
        steps.sort_by_key(|step| step.sequence);
        Ok(Replay { steps, truncated })
    }
}

fn step(entry: Entry, version: u64, replayed: Reevaluation) -> ReplayStep {
    let decision = entry.recorded.decision.as_deref();
    let record = policy_record(decision);
    let policies = record.map(|record| record.policies.as_slice()).unwrap_or_default();
    let recorded_policies: Vec<String> = policies.iter().map(|policy| policy.id.clone()).collect();
    let latency_us = record.map_or(0, |record| record.latency_us);
    let hook = decision.map_or_else(String::new, |decision| decision.hook.as_str().to_owned());
    let recorded = said(&entry);
    let same = match &replayed {
        // For a denial it is enough that it still stands: rules that read what was not recorded are not evaluated
        // again.
        Reevaluation::Verdict { kind: kind @ VerdictKind::Deny, policies } => {
            Some(*kind == recorded && policies.iter().all(|policy| recorded_policies.contains(policy)))
        }
        Reevaluation::Verdict { kind, policies } => Some(*kind == recorded && *policies == recorded_policies),
        Reevaluation::Undecidable { .. } => None,
    };
    ReplayStep {
        hook,
        subject: subject(&entry),
        sequence: entry.sequence,
        invocation: entry.invocation.map(|call| call.to_string()),
        time: entry.recorded.time,
        version,
        recorded,
        recorded_policies,
        latency_us,
        replayed,
        same,
    }
}
