//! How policies, and what is found out about them, look in answers.

use serde_json::{Map, Value, json};
use toolgate_gate::authority::policies::{
    Replay, ReplayStep, ShadowExample, ShadowReport, ShadowRule, Simulation, SimulationProgress, VerdictChange,
};
use toolgate_gate::ports::policy_book::{Examined, PolicyProblem, PolicyTestOutcome, Reevaluation, RuleSummary};
use toolgate_model::guard::{PolicyFile, PolicySetVersion};
use toolgate_model::hook::RunId;

/// A version, without its texts and its rules.
pub(super) fn version(version: &PolicySetVersion) -> Map<String, Value> {
    Map::from_iter([
        ("version".to_owned(), json!(version.version)),
        ("digest".to_owned(), json!(version.digest)),
        ("note".to_owned(), json!(version.note)),
        ("applied_by".to_owned(), json!(version.applied_by)),
        ("created_at".to_owned(), json!(version.created_at)),
    ])
}

/// What is in force where nothing was ever applied.
pub(super) fn no_version() -> Value {
    json!({"version": null, "digest": null, "note": null, "applied_by": null, "created_at": null, "rules": []})
}

/// A file with its text.
pub(super) fn file(file: &PolicyFile) -> Value {
    json!({"name": file.name, "text": file.text})
}

/// A rule.
pub(super) fn rule(rule: &RuleSummary) -> Value {
    json!({
        "id": rule.id, "file": rule.file, "effect": rule.effect, "shadow": rule.shadow, "reason": rule.reason,
        "description": rule.description,
    })
}

/// What was found about a draft.
pub(super) fn checked(checked: &Examined) -> Value {
    let ok = checked.problems.is_empty() && checked.tests.iter().all(|test| test.failure.is_none());
    json!({
        "ok": ok,
        "problems": checked.problems.iter().map(PolicyProblem::to_json).collect::<Vec<_>>(),
        "rules": checked.rules.iter().map(rule).collect::<Vec<_>>(),
        "tests": checked.tests.iter().map(PolicyTestOutcome::to_json).collect::<Vec<_>>(),
        "warnings": checked.warnings.iter().map(PolicyProblem::to_json).collect::<Vec<_>>(),
    })
}

/// What a draft would have changed.
pub(super) fn simulation(simulation: &Simulation) -> Value {
    json!({
        "calls": simulation.calls,
        "changed": simulation.changed,
        "undecidable": simulation.undecidable,
        "changes": simulation.changes.iter().map(change).collect::<Vec<_>>(),
        "truncated": simulation.truncated,
    })
}

/// How far a simulation has come.
pub(super) fn simulation_progress(progress: &SimulationProgress) -> Value {
    json!({
        "event": "progress", "reached": progress.reached, "size": progress.size, "calls": progress.calls,
        "changed": progress.changed,
    })
}

/// What rules in shadow would have done.
pub(super) fn shadow(report: &ShadowReport) -> Value {
    json!({
        "decisions": report.decisions,
        "rules": report.rules.iter().map(shadow_rule).collect::<Vec<_>>(),
        "truncated": report.truncated,
    })
}

/// An execution that was judged again.
pub(super) fn replay(run: &RunId, replay: &Replay) -> Value {
    json!({
        "run_id": run.as_str(),
        "steps": replay.steps.iter().map(step).collect::<Vec<_>>(),
        "truncated": replay.truncated,
    })
}

fn change(change: &VerdictChange) -> Value {
    json!({
        "sequence": change.sequence, "invocation_id": change.invocation, "timestamp": change.time,
        "agent_id": change.agent, "subject": change.subject, "before": change.before.as_str(),
        "was": if change.denied.is_some() { "denied" } else { change.before.as_str() },
        "denied_with": change.denied, "after": reevaluated(&change.after),
    })
}

fn shadow_rule(rule: &ShadowRule) -> Value {
    json!({
        "policy_id": rule.policy, "verdicts": rule.verdicts, "would_change": rule.would_change,
        "examples": rule.examples.iter().map(example).collect::<Vec<_>>(),
    })
}

fn example(example: &ShadowExample) -> Value {
    json!({
        "sequence": example.sequence, "invocation_id": example.invocation, "timestamp": example.time,
        "agent_id": example.agent, "subject": example.subject, "effective": example.effective.as_str(),
        "would_be": example.would_be.as_str(),
    })
}

fn step(step: &ReplayStep) -> Value {
    json!({
        "sequence": step.sequence, "invocation_id": step.invocation, "timestamp": step.time, "hook": step.hook,
        "subject": step.subject, "policy_version": step.version,
        "recorded": {"verdict": step.recorded.as_str(), "policies": step.recorded_policies},
        "latency_us": step.latency_us, "replayed": reevaluated(&step.replayed), "same": step.same,
    })
}

/// A verdict by these rules, or `undecidable`, because these rules look at what was not recorded.
fn reevaluated(reevaluated: &Reevaluation) -> Value {
    match reevaluated {
        Reevaluation::Verdict { kind, policies } => {
            json!({"verdict": kind.as_str(), "policies": policies, "missing": []})
        }
        Reevaluation::Undecidable { policies, missing } => {
            json!({"verdict": "undecidable", "policies": policies, "missing": missing})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tested(failure: Option<&str>) -> PolicyTestOutcome {
        PolicyTestOutcome {
            file: "a.test.yaml".to_owned(),
            name: "a test".to_owned(),
            failure: failure.map(str::to_owned),
        }
    }

    #[test]
    fn a_draft_is_ok_only_without_problems_and_with_every_test_passed() {
        let problem = PolicyProblem {
            file: "a.cedar".to_owned(),
            policy: None,
            line: Some(3),
            message: "there is no such tool".to_owned(),
            help: None,
        };
        for (problems, tests, ok) in [
            (vec![], vec![], true),
            (vec![], vec![tested(None)], true),
            (vec![], vec![tested(None), tested(Some("it said deny"))], false),
            (vec![problem], vec![], false),
        ] {
            assert_eq!(checked(&Examined { problems, tests, ..Examined::default() })["ok"], ok);
        }
    }

    #[test]
    fn what_cannot_be_known_is_never_shown_as_a_verdict() {
        let unknown =
            Reevaluation::Undecidable { policies: vec!["a".to_owned()], missing: vec!["arguments".to_owned()] };
        let shown = json!({"verdict": "undecidable", "policies": ["a"], "missing": ["arguments"]});
        assert_eq!(reevaluated(&unknown), shown);
    }
}
