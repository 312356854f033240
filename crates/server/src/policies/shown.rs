//! Policies in the types of the API.

use toolgate_api::policies::{
    CheckedPolicies, PolicyProblem, PolicyRule, PolicyTest, PolicyVersionNumber, RecordedVerdict, ReevaluatedVerdict,
    Reevaluation, Replay, ReplayStep, ShadowExample, ShadowReport, ShadowRule, Simulation, SimulationStep,
    VerdictChange,
};
use toolgate_gate::authority::policies as authority;
use toolgate_gate::ports::policy_book::{self, Examined, PolicyTestOutcome, RuleSummary};
use toolgate_model::hook::RunId;

pub(super) fn rule(rule: &RuleSummary) -> PolicyRule {
    PolicyRule {
        id: rule.id.clone(),
        file: rule.file.clone(),
        effect: rule.effect.to_owned(),
        shadow: rule.shadow,
        reason: rule.reason.clone(),
        description: rule.description.clone(),
    }
}

/// The findings about a draft.
pub(super) fn checked(checked: Examined) -> CheckedPolicies {
    CheckedPolicies {
        ok: checked.problems.is_empty() && checked.tests.iter().all(|test| test.failure.is_none()),
        problems: checked.problems.into_iter().map(problem).collect(),
        rules: checked.rules.iter().map(rule).collect(),
        tests: checked.tests.into_iter().map(test).collect(),
        warnings: checked.warnings.into_iter().map(problem).collect(),
    }
}

fn problem(problem: policy_book::PolicyProblem) -> PolicyProblem {
    PolicyProblem {
        file: problem.file,
        policy_id: problem.policy,
        line: problem.line,
        message: problem.message,
        help: problem.help,
    }
}

fn test(test: PolicyTestOutcome) -> PolicyTest {
    PolicyTest { passed: test.failure.is_none(), file: test.file, name: test.name, failure: test.failure }
}

/// What a draft would have changed.
pub(super) fn simulation(simulation: authority::Simulation) -> Simulation {
    Simulation {
        calls: simulation.calls,
        changed: simulation.changed,
        undecidable: simulation.undecidable,
        changes: simulation.changes.into_iter().map(change).collect(),
        truncated: simulation.truncated,
    }
}

/// The progress of a simulation: a line of its stream.
pub(super) fn simulation_progress(progress: &authority::SimulationProgress) -> SimulationStep {
    SimulationStep::Progress {
        reached: progress.reached,
        size: progress.size,
        calls: progress.calls,
        changed: progress.changed,
    }
}

/// What rules in shadow mode would have decided.
pub(super) fn shadow(report: authority::ShadowReport) -> ShadowReport {
    ShadowReport {
        decisions: report.decisions,
        rules: report.rules.into_iter().map(shadow_rule).collect(),
        truncated: report.truncated,
    }
}

/// An execution that was re-evaluated.
pub(super) fn replay(run: RunId, replay: authority::Replay) -> Replay {
    Replay { run_id: run, steps: replay.steps.into_iter().map(step).collect(), truncated: replay.truncated }
}

fn change(change: authority::VerdictChange) -> VerdictChange {
    let was = if change.denied.is_some() { "denied" } else { change.before.as_str() };
    VerdictChange {
        sequence: change.sequence,
        invocation_id: change.invocation,
        timestamp: change.time,
        agent_id: change.agent,
        subject: change.subject,
        before: change.before.into(),
        was: was.to_owned(),
        denied_with: change.denied,
        after: reevaluated(change.after),
    }
}

fn shadow_rule(rule: authority::ShadowRule) -> ShadowRule {
    ShadowRule {
        policy_id: rule.policy,
        verdicts: rule.verdicts.into_iter().map(|(verdict, count)| (verdict.to_owned(), count)).collect(),
        would_change: rule.would_change,
        examples: rule.examples.into_iter().map(example).collect(),
    }
}

fn example(example: authority::ShadowExample) -> ShadowExample {
    ShadowExample {
        sequence: example.sequence,
        invocation_id: example.invocation,
        timestamp: example.time,
        agent_id: example.agent,
        subject: example.subject,
        effective: example.effective.into(),
        would_be: example.would_be.into(),
    }
}

fn step(step: authority::ReplayStep) -> ReplayStep {
    ReplayStep {
        sequence: step.sequence,
        invocation_id: step.invocation,
        timestamp: step.time,
        hook: step.hook,
        subject: step.subject,
        policy_version: PolicyVersionNumber(step.version),
        recorded: RecordedVerdict { verdict: step.recorded.into(), policies: step.recorded_policies },
        latency_us: step.latency_us,
        replayed: reevaluated(step.replayed),
        same: step.same,
    }
}

/// A verdict by these rules, or `undecidable`, because these rules read what was not recorded.
fn reevaluated(reevaluated: policy_book::Reevaluation) -> Reevaluation {
    match reevaluated {
        policy_book::Reevaluation::Verdict { kind, policies } => {
            Reevaluation { verdict: kind.into(), policies, missing: Vec::new() }
        }
        policy_book::Reevaluation::Undecidable { policies, missing } => {
            Reevaluation { verdict: ReevaluatedVerdict::Undecidable, policies, missing }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        let problem = policy_book::PolicyProblem {
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
            assert_eq!(checked(Examined { problems, tests, ..Examined::default() }).ok, ok);
        }
    }

    #[test]
    fn what_cannot_be_known_is_never_shown_as_a_verdict() {
        let policies = vec!["a".to_owned()];
        let unknown = policy_book::Reevaluation::Undecidable { policies, missing: vec!["arguments".to_owned()] };
        let shown = json!({"verdict": "undecidable", "policies": ["a"], "missing": ["arguments"]});
        assert_eq!(json!(reevaluated(unknown)), shown);
    }
}
