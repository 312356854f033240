//! What rules in shadow mode would have decided: the evidence for enforcing them.

use std::collections::BTreeMap;

use toolgate_model::guard::{HookDecision, VerdictKind};
use toolgate_model::time::Timestamp;

use super::PolicyAdministration;
use super::recorded::Entry;
use super::simulation::subject;
use crate::identify::Caller;
use crate::ports::ledger::EventFilter;
use crate::refusal::Refusal;
use toolgate_model::permission::Permission;

/// The maximum number of examples per rule.
const EXAMPLES: usize = 10;

/// What rules in shadow mode would have decided.
#[derive(Debug, Default)]
pub struct ShadowReport {
    /// The number of decisions read.
    pub decisions: u64,
    /// The rules, by id.
    pub rules: Vec<ShadowRule>,
    /// Whether the log has more decisions than were read.
    pub truncated: bool,
}

/// What one rule in shadow mode would have decided.
#[derive(Debug, Default)]
pub struct ShadowRule {
    pub policy: String,
    /// The number of verdicts by kind.
    pub verdicts: BTreeMap<&'static str, u64>,
    /// The number of verdicts that were stricter than the effective one.
    pub would_change: u64,
    /// The newest of those.
    pub examples: Vec<ShadowExample>,
}

/// A call for which a rule in shadow mode had a stricter verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowExample {
    /// Its position in the log.
    pub sequence: u64,
    pub invocation: Option<String>,
    pub time: String,
    pub agent: String,
    /// The tool, or the hook point if there is none.
    pub subject: String,
    /// The effective verdict.
    pub effective: VerdictKind,
    /// The verdict of the rule.
    pub would_be: VerdictKind,
}

impl PolicyAdministration {
    /// What rules in shadow mode would have decided since a time.
    pub async fn shadow_report(&self, caller: &Caller, since: Timestamp) -> Result<ShadowReport, Refusal> {
        caller.require(Permission::ReadAudit)?;
        let filter = EventFilter { since: Some(since), ..EventFilter::default() };
        let _place = self.trials.enter(caller)?;
        let mut recording = self.begin_recording(caller, filter).await?;
        let mut rules: BTreeMap<String, ShadowRule> = BTreeMap::new();
        let mut decisions = 0u64;
        while let Some(entries) = self.next_recorded(&mut recording).await? {
            for entry in &entries {
                let Some(decision) = &entry.recorded.decision else { continue };
                decisions = decisions.saturating_add(1);
                note(&mut rules, entry, decision);
            }
        }
        Ok(ShadowReport { decisions, rules: rules.into_values().collect(), truncated: false })
    }
}

/// Adds the verdicts of rules in shadow mode to the report.
fn note(rules: &mut BTreeMap<String, ShadowRule>, entry: &Entry, decision: &HookDecision) {
    let effective = decision.effective;
    for would_be in &decision.shadow {
        let (policy, verdict) = (&would_be.policy.id, would_be.verdict);
        let rule = rules.entry(policy.clone()).or_default();
        policy.clone_into(&mut rule.policy);
        let count = rule.verdicts.entry(verdict.as_str()).or_default();
        *count = count.saturating_add(1);
        if verdict > effective {
            rule.would_change = rule.would_change.saturating_add(1);
            rule.examples.push(example(entry, effective, verdict));
            if rule.examples.len() > EXAMPLES {
                rule.examples.remove(0);
            }
        }
    }
}

fn example(entry: &Entry, effective: VerdictKind, would_be: VerdictKind) -> ShadowExample {
    ShadowExample {
        sequence: entry.sequence,
        invocation: entry.invocation.map(|call| call.to_string()),
        time: entry.recorded.time.clone(),
        agent: entry.recorded.agent.clone(),
        subject: subject(entry),
        effective,
        would_be,
    }
}
