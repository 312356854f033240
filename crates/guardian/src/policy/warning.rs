//! Valid rules that cannot apply at present: they name a field, a label, a principal, a group of approvers, a tier or a
//! weekday that does not exist. That is a warning and not an error, because all of these may be created later.

use std::collections::BTreeSet;

use serde_json::Value;
use toolgate_gate::ports::policy_book::{KnownPrincipals, PolicyTool};
use toolgate_model::approval::ApprovalRule;
use toolgate_model::descriptor::SafetyTier;

use super::facts::WEEKDAYS;
use super::problem::{Problem, nearest};
use super::remedy::Remedy;
use super::rule::Rule;
use super::set::CompiledSet;
use crate::detector::FieldSelector;

impl CompiledSet {
    /// The names in rules that do not exist, in the order of the files.
    pub(super) fn warnings(&self, tools: &[PolicyTool], principals: &KnownPrincipals) -> Vec<Problem> {
        let labels = tools.iter().flat_map(|tool| tool.definition.labels.iter().map(|label| label.as_str().to_owned()));
        let known = Known { tools, principals, labels: labels.chain(principals.labels.iter().cloned()).collect() };
        let mut warnings: Vec<Problem> = self.rules().iter().flat_map(|rule| known.unknown_in(rule)).collect();
        warnings.sort();
        warnings.dedup();
        warnings
    }
}

struct Known<'a> {
    tools: &'a [PolicyTool],
    principals: &'a KnownPrincipals,
    /// Labels of tools and of principals.
    labels: BTreeSet<String>,
}

impl Known<'_> {
    fn unknown_in(&self, rule: &Rule) -> Vec<Problem> {
        let mut warnings = Vec::new();
        let mut warn = |kind: &str, name: &str, known: &BTreeSet<String>| {
            warnings.push(Problem {
                file: rule.file.clone(),
                line: rule.line,
                policy: Some(rule.id.clone()),
                message: format!("unknown {kind} `{name}`; this part of the rule never applies"),
                help: nearest(name, known.iter().map(String::as_str)).map(|near| format!("did you mean `{near}`?")),
            });
        };
        for literal in rule.policy.entity_literals() {
            let (kind, known) = match literal.type_name().basename() {
                "Principal" if self.principals.complete => ("principal", &self.principals.ids),
                "Label" if self.principals.complete => ("label", &self.labels),
                _ => continue,
            };
            let name = literal.id().unescaped();
            if !known.contains(name) {
                warn(kind, name, known);
            }
        }
        let form = rule.policy.to_json().unwrap_or_default();
        for (attribute, known) in [("tier", tiers()), ("weekday", WEEKDAYS.map(str::to_owned).into())] {
            let mut compared = BTreeSet::new();
            compared_with(attribute, &form, &mut compared);
            compared.iter().filter(|name| !known.contains(*name)).for_each(|name| warn(attribute, name, &known));
        }
        match &rule.remedy {
            Some(Remedy::Ask(asking)) if self.principals.complete => {
                let none = BTreeSet::new();
                for group in asking.groups.iter().filter(|group| !self.has_approver(group)) {
                    warn("approver group", group, &none);
                }
            }
            Some(Remedy::Redact(redaction)) => {
                if let (FieldSelector::Paths(paths), Some(known)) = (&redaction.fields, self.fields_of(rule)) {
                    let first = paths.iter().filter_map(|path| path.first_name());
                    first.filter(|name| !known.contains(*name)).for_each(|name| warn("field", name, &known));
                }
            }
            _ => {}
        }
        warnings
    }

    fn has_approver(&self, group: &str) -> bool {
        let scope = ApprovalRule::scope_of_group(group);
        self.principals.scopes.iter().any(|scopes| scopes.cover_all([scope.as_str()]).is_ok())
    }

    /// The parameters of the tools whose calls the rule concerns; `None` if any name may be one.
    fn fields_of(&self, rule: &Rule) -> Option<BTreeSet<String>> {
        let actions = rule.scope.actions().filter(|actions| !actions.is_empty())?;
        let mut fields = BTreeSet::new();
        for action in actions {
            let called = action.id().unescaped().strip_prefix("call:")?;
            let tool = self.tools.iter().find(|tool| tool.name == called)?;
            let schema = tool.definition.parameters.as_ref()?;
            let open = schema.get("additionalProperties").is_some_and(|others| *others != Value::Bool(false));
            let named = schema.get("properties").and_then(Value::as_object).filter(|_| !open)?;
            fields.extend(named.keys().cloned());
        }
        Some(fields)
    }
}

fn tiers() -> BTreeSet<String> {
    SafetyTier::WORDS.iter().map(|(word, _)| (*word).to_owned()).collect()
}

/// The strings that an attribute of this name is compared with, in the JSON form of a rule.
fn compared_with(attribute: &str, form: &Value, found: &mut BTreeSet<String>) {
    match form {
        Value::Object(members) => {
            for (operator, operands) in members {
                let sides = [operands.get("left"), operands.get("right")];
                let is_compared = matches!(operator.as_str(), "==" | "!=" | "contains")
                    && sides.iter().flatten().any(|side| {
                        side.get(".").and_then(|access| access.get("attr")).and_then(Value::as_str) == Some(attribute)
                    });
                if is_compared {
                    sides.iter().flatten().for_each(|side| texts(side, found));
                }
                compared_with(attribute, operands, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| compared_with(attribute, item, found)),
        _ => {}
    }
}

/// The strings of a literal, or of a set of literals.
fn texts(side: &Value, found: &mut BTreeSet<String>) {
    let text = |value: &Value| value.get("Value").and_then(Value::as_str).map(str::to_owned);
    found.extend(text(side));
    let items = side.get("Set").and_then(Value::as_array);
    found.extend(items.into_iter().flatten().filter_map(text));
}
