//! The verdicts of guardians in a decision, one per line, and those of rules in shadow mode.

use toolgate_model::event::{EventPayload, StoredEvent};
use toolgate_model::guard::{GuardianRecord, Outcome, PolicyRef};

use crate::output::{align, clean};

/// Empty for other events.
pub(super) fn lines(event: &StoredEvent) -> Vec<String> {
    let EventPayload::HookDecided(decision) = &event.event.payload else { return Vec::new() };
    let mut lines: Vec<String> =
        align(decision.guardians.iter().map(guardian).collect()).lines().map(str::to_owned).collect();
    lines.extend(
        decision
            .shadow
            .iter()
            .map(|would_be| format!("shadow: {} would {}", rule(&would_be.policy), would_be.verdict.as_str())),
    );
    lines
}

/// Name, verdict, mode and outcome, latency, and then rules, failure and reason.
fn guardian(record: &GuardianRecord) -> Vec<String> {
    let mut mode = record.mode.as_str().to_owned();
    match record.outcome {
        // The usual outcomes follow from the mode.
        Outcome::Enforced | Outcome::Shadowed => {}
        Outcome::FailedOpen => mode.push_str(" FAILED OPEN"),
        outcome @ (Outcome::FailedClosed | Outcome::Cancelled) => {
            mode.push_str(&format!(" {}", outcome.as_str().replace('_', " ")));
        }
    }
    let rules: Vec<String> = record.policies.iter().map(rule).collect();
    let failure = record.failure.map(|failure| format!("failure: {}", failure.as_str()));
    let reason = record.reason.as_ref().map(|reason| format!("\"{}\"", clean(reason)));
    let why: Vec<String> = rules.into_iter().chain(failure).chain(reason).collect();
    vec![
        clean(&record.guardian),
        record.verdict.map_or("-", |verdict| verdict.as_str()).to_owned(),
        mode,
        duration(record.latency_us),
        why.join("  "),
    ]
}

/// Microseconds as milliseconds.
pub(super) fn duration(micros: u64) -> String {
    format!("{}.{:03} ms", micros / 1000, micros % 1000)
}

/// `ID@VERSION`.
fn rule(policy: &PolicyRef) -> String {
    format!("{}@{}", clean(&policy.id), clean(&policy.version))
}
