//! Checks a policy set against the catalog: a rule about a tool, a parameter or an attribute that does not exist would
//! silently never apply.

use std::collections::{BTreeSet, HashMap};

use cedar_policy::{EntityUid, PolicyId, PolicySet, ValidationError, ValidationMode, ValidationWarning, Validator};
use miette::Diagnostic;
use toolgate_gate::ports::policy_book::PolicyTool;
use toolgate_model::guard::Hook;

use super::problem::{Problem, nearest};
use super::rule::Rule;
use super::schema::{EXTERNAL, schema_about};
use super::set::CompiledSet;

/// The number of rules that are checked together.
const TOGETHER: usize = 250;

impl CompiledSet {
    /// All mismatches with these tools, in the order of the files.
    pub fn check(&self, tools: &[PolicyTool]) -> Vec<Problem> {
        let names = Names::of(tools);
        let mut problems: Vec<Problem> = self.rules().iter().flat_map(|rule| names.unknown_in(rule)).collect();
        // Cedar checks every rule for every action in the schema: rules about the same actions are checked together,
        // with a schema that has no others.
        let mut rules: Vec<&Rule> = self.rules().iter().map(|rule| &**rule).collect();
        rules.sort_by(|left, right| left.scope.actions().cmp(&right.scope.actions()));
        for rules in rules.chunks(TOGETHER) {
            if let Err(message) = self.validate(rules, tools, &mut problems) {
                return vec![Problem { file: String::new(), line: None, policy: None, message, help: None }];
            }
        }
        problems.sort();
        problems.dedup();
        problems
    }

    fn validate(&self, rules: &[&Rule], tools: &[PolicyTool], problems: &mut Vec<Problem>) -> Result<(), String> {
        let policies = PolicySet::from_policies(rules.iter().map(|rule| rule.policy.clone()));
        let policies = policies.map_err(|error| error.to_string())?;
        let schema = schema_about(tools, &policies).map_err(|problem| problem.to_string())?;
        let result = Validator::new(schema).validate(&policies, ValidationMode::default());
        let by_id: HashMap<&PolicyId, &Rule> = rules.iter().map(|rule| (rule.policy.id(), *rule)).collect();
        for error in result.validation_errors() {
            // These are among the names above, with a better hint.
            if !matches!(error, ValidationError::UnrecognizedActionId(_)) {
                problems.extend(by_id.get(error.policy_id()).map(|rule| self.problem(rule, error)));
            }
        }
        for warning in result.validation_warnings() {
            if let ValidationWarning::ImpossiblePolicy(_) | ValidationWarning::InvalidActionApplication(_) = warning {
                let rule =
                    by_id.get(warning.policy_id()).filter(|rule| !problems.iter().any(|known| is_of(known, rule)));
                problems.extend(rule.map(|rule| never(rule)));
            }
        }
        Ok(())
    }

    fn problem(&self, rule: &Rule, error: &dyn Diagnostic) -> Problem {
        let file = self.files.iter().find(|file| file.name == rule.file);
        let found = Problem::of_cedar(error, &rule.file, file.map_or("", |file| &file.text));
        // Cedar begins each message with the id, which has its own field here.
        let opening = format!("for policy `{}`, ", rule.id);
        let message = found.message.strip_prefix(&opening).unwrap_or(&found.message).to_owned();
        Problem { policy: Some(rule.id.clone()), line: found.line.or(rule.line), message, ..found }
    }
}

fn is_of(problem: &Problem, rule: &Rule) -> bool {
    problem.policy.as_ref() == Some(&rule.id)
}

fn never(rule: &Rule) -> Problem {
    Problem {
        file: rule.file.clone(),
        line: rule.line,
        policy: Some(rule.id.clone()),
        message: "this rule can never apply: it matches no tool or hook".to_owned(),
        help: Some(
            "check the names of tools and parameters in it, and whether its conditions exclude each other".to_owned(),
        ),
    }
}

/// The names that rules may use.
struct Names {
    tools: BTreeSet<String>,
    services: BTreeSet<String>,
    actions: BTreeSet<String>,
    hooks: BTreeSet<String>,
}

impl Names {
    fn of(tools: &[PolicyTool]) -> Self {
        let about_tools = [Hook::ToolCallRequest, Hook::ToolCallResult];
        let hooks: BTreeSet<String> = Hook::ALL
            .into_iter()
            .filter(|hook| !about_tools.contains(hook))
            .map(|hook| hook.as_str().to_owned())
            .collect();
        let mut actions: BTreeSet<String> = ["call", "result", "hook"].map(str::to_owned).into();
        actions.extend(hooks.iter().map(|hook| format!("hook:{hook}")));
        for name in tools.iter().map(|tool| tool.name.as_str()).chain([EXTERNAL]) {
            actions.extend([format!("call:{name}"), format!("result:{name}")]);
        }
        Self {
            tools: tools.iter().map(|tool| tool.name.clone()).collect(),
            services: tools.iter().map(|tool| tool.service.clone()).collect(),
            actions,
            hooks,
        }
    }

    /// The unknown names in a rule. A rule about external tools may name any of those.
    fn unknown_in(&self, rule: &Rule) -> Vec<Problem> {
        let is_external =
            |action: &EntityUid| action.id().unescaped().split_once(':').is_some_and(|(_, of)| of == EXTERNAL);
        let of_others = rule.scope.actions().is_some_and(|actions| actions.iter().all(is_external));
        let mut unknown = Vec::new();
        for literal in rule.policy.entity_literals() {
            let (kind, known) = match literal.type_name().basename() {
                "Tool" if !of_others => ("tool", &self.tools),
                "Service" if !of_others => ("service", &self.services),
                "Action" => ("action", &self.actions),
                "Hook" => ("hook", &self.hooks),
                _ => continue,
            };
            let name = literal.id().unescaped();
            if !known.contains(name) {
                unknown.push(Problem {
                    file: rule.file.clone(),
                    line: rule.line,
                    policy: Some(rule.id.clone()),
                    message: format!("unknown {kind} `{name}`; use one of the catalog"),
                    help: nearest(name, known.iter().map(String::as_str)).map(|near| format!("did you mean `{near}`?")),
                });
            }
        }
        unknown
    }
}
