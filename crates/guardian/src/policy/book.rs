//! Policies without a call: checking, testing and re-evaluating them. Implements the gate's [`PolicyBook`].

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolgate_gate::ports::policy_book::{
    Examined, Judge, KnownPrincipals, PolicyBook, PolicyProblem, PolicyTool, Recorded, Reevaluation, RuleSummary,
};
use toolgate_model::arguments::arguments_hash;
use toolgate_model::guard::PolicyFile;

use super::beside;
use super::known::Replayed;
use super::policy_input::PolicyInput;
use super::problem::Problem;
use super::remedy::Remedy;
use super::rule::Rule;
use super::schema;
use super::set::CompiledSet;

/// The annotation for shadow mode.
const SHADOW: &str = "@mode(\"shadow\")";

/// [`PolicyBook`] for Cedar policies.
#[derive(Debug, Clone, Copy, Default)]
pub struct CedarBook;

impl PolicyBook for CedarBook {
    fn examine(&self, files: &[PolicyFile], tools: &[PolicyTool]) -> Examined {
        let set = match CompiledSet::compile(0, files) {
            Ok(set) => set,
            Err(problems) => return Examined { problems: policy_problems(problems), ..Examined::default() },
        };
        let rules = set.rules().iter().map(|rule| summary(rule)).collect();
        let problems = set.check(tools);
        if !problems.is_empty() {
            return Examined { problems: policy_problems(problems), rules, ..Examined::default() };
        }
        let find = |name: &str| tools.iter().find(|tool| tool.name == name).cloned();
        match beside::run(&set, files, &find) {
            Ok(tests) => Examined { rules, tests, ..Examined::default() },
            Err(problems) => Examined { problems, rules, ..Examined::default() },
        }
    }

    fn warnings(&self, files: &[PolicyFile], tools: &[PolicyTool], principals: &KnownPrincipals) -> Vec<PolicyProblem> {
        let set = CompiledSet::compile(0, files);
        set.map(|set| policy_problems(set.warnings(tools, principals))).unwrap_or_default()
    }

    fn rules(&self, files: &[PolicyFile]) -> Option<Vec<RuleSummary>> {
        let set = CompiledSet::compile(0, files).ok()?;
        Some(set.rules().iter().map(|rule| summary(rule)).collect())
    }

    fn promote(&self, files: &[PolicyFile], policy: &str) -> Result<Vec<PolicyFile>, String> {
        let unreadable = |_| "could not load the active policies".to_owned();
        let set = CompiledSet::compile(0, files).map_err(unreadable)?;
        let rule = set.rules().iter().find(|rule| rule.id == policy);
        let rule = rule.ok_or_else(|| format!("the active policies have no rule `{policy}`"))?;
        if !rule.shadow {
            return Err(format!("rule `{policy}` is already enforced"));
        }
        let text = rule.text();
        let promoted = without_shadow(&text).ok_or_else(|| {
            format!("could not edit rule `{policy}`; remove {SHADOW} from it and apply the files again")
        })?;
        let mut files = files.to_vec();
        let file = files.iter_mut().find(|file| file.name == rule.file && file.text.contains(&text));
        let file = file.ok_or_else(|| {
            format!("could not edit rule `{policy}`; remove {SHADOW} from it and apply the files again")
        })?;
        file.text = file.text.replacen(&text, &promoted, 1);
        Ok(files)
    }

    fn schema(&self, tools: &[PolicyTool]) -> String {
        schema::schema_text(tools)
    }

    fn judge(&self, version: u64, files: &[PolicyFile]) -> Result<Arc<dyn Judge>, Vec<PolicyProblem>> {
        Ok(Arc::new(CompiledJudge(CompiledSet::compile(version, files).map_err(policy_problems)?)))
    }
}

struct CompiledJudge(CompiledSet);

impl Judge for CompiledJudge {
    fn reevaluate(&self, recorded: &Recorded) -> Reevaluation {
        reevaluate(&self.0, recorded)
    }
}

fn reevaluate(set: &CompiledSet, recorded: &Recorded) -> Reevaluation {
    let facts = recorded.decision.as_ref().and_then(|decision| decision.facts.clone());
    let facts = facts.unwrap_or_else(|| known_facts(recorded));
    let find = |name: &str| recorded.tool.clone().filter(|tool| tool.name == name);
    let replayed = match PolicyInput::from_record(&facts, whole_inputs(recorded), &find) {
        Ok(policy_input) => policy_input.judge_known(set),
        Err(reason) => return Reevaluation::Undecidable { policies: Vec::new(), missing: vec![reason] },
    };
    match replayed {
        Replayed::Known(evaluation) => Reevaluation::Verdict {
            kind: evaluation.verdict.kind(),
            policies: evaluation.policies.into_iter().map(|policy| policy.id).collect(),
        },
        Replayed::Undecidable { policies, missing } => Reevaluation::Undecidable { policies, missing },
    }
}

/// The arguments as guardians saw them, if the log has all of them. The log may have fewer, by the tool's logging rule,
/// or the arguments as modified by guardians: the hash tells.
fn whole_inputs(recorded: &Recorded) -> Option<&Value> {
    let called = recorded.called.as_ref()?;
    let came = recorded.decision.as_ref().map_or(called.args_hash.as_str(), |decision| decision.hash_before.as_str());
    let inputs = called.inputs.as_ref()?;
    (came == arguments_hash(inputs, &[])).then_some(inputs)
}

/// The facts of a call without a guardian decision.
fn known_facts(recorded: &Recorded) -> Value {
    let mut facts = Map::new();
    let named = recorded.called.as_ref().map(|called| json!(called.tool_name));
    facts.insert("agent".to_owned(), recorded.principal.clone().unwrap_or_else(|| json!(recorded.agent)));
    if recorded.actor != recorded.agent {
        facts.insert("actor".to_owned(), json!(recorded.actor));
    }
    // A tool that no longer exists is known by its name only.
    let tool = match &recorded.tool {
        Some(_) => named,
        None => named.map(|name| json!({"name": name})),
    };
    facts.extend(tool.map(|tool| ("tool".to_owned(), tool)));
    facts.insert("time".to_owned(), json!(recorded.time));
    facts.extend(recorded.run.as_ref().map(|run| ("run".to_owned(), json!(run))));
    Value::Object(facts)
}

/// The text of a rule without the shadow mode annotation; `None` if it is written in an unusual way.
fn without_shadow(text: &str) -> Option<String> {
    let (before, after) = text.split_once(SHADOW)?;
    let after = after.strip_prefix('\n').or_else(|| after.strip_prefix(' ')).unwrap_or(after);
    Some(format!("{before}{after}"))
}

fn summary(rule: &Rule) -> RuleSummary {
    RuleSummary {
        id: rule.id.clone(),
        file: rule.file.clone(),
        effect: match rule.remedy {
            None => "deny",
            Some(Remedy::Ask(_)) => "ask",
            Some(Remedy::Redact(_)) => "redact",
        },
        shadow: rule.shadow,
        reason: rule.reason.clone(),
        description: rule.description.clone(),
    }
}

fn policy_problems(problems: Vec<Problem>) -> Vec<PolicyProblem> {
    problems.into_iter().map(policy_problem).collect()
}

fn policy_problem(problem: Problem) -> PolicyProblem {
    let Problem { file, line, policy, message, help } = problem;
    PolicyProblem { file, policy, line, message, help }
}
