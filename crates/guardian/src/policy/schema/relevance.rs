//! Selects the part of a catalog that matters to some rules: the tools and arguments that they name, and one of each
//! group of tools that are otherwise equal.

use std::collections::BTreeSet;

use cedar_policy::PolicySet;
use serde_json::{Value, json};

use super::text::write_type;
use super::{PolicyTool, arguments};
use crate::policy::shape::Shape;

/// The relevant tools with their relevant arguments.
pub(super) fn relevant<'a>(tools: &'a [PolicyTool], rules: &PolicySet) -> Vec<(&'a str, Shape)> {
    let named = rules.clone().to_json().ok().and_then(|rules| Named::of(&rules));
    let mut known = BTreeSet::new();
    let mut kept = Vec::new();
    for tool in tools {
        let (shape, is_named) = match &named {
            Some(named) => (named.members(arguments(tool)), named.tool(&tool.name)),
            None => (arguments(tool), true),
        };
        let mut looks = String::new();
        write_type(&mut looks, &shape, 0);
        if is_named || known.insert(looks) {
            kept.push((tool.name.as_str(), shape));
        }
    }
    kept
}

/// Every string in some rules, a superset of the names in them.
struct Named(BTreeSet<String>);

impl Named {
    /// `None` if a rule uses all arguments at once.
    fn of(rules: &Value) -> Option<Self> {
        let mut named = Self(BTreeSet::new());
        named.add(rules);
        let context = json!({"Var": "context"});
        let arguments = json!({".": {"left": context, "attr": "arguments"}});
        (!uses_whole(rules, &context, &arguments)).then_some(named)
    }

    fn add(&mut self, rules: &Value) {
        match rules {
            Value::String(text) => drop(self.0.insert(text.clone())),
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(members) => {
                for (name, value) in members {
                    self.0.insert(name.clone());
                    self.add(value);
                }
            }
            _ => {}
        }
    }

    fn tool(&self, name: &str) -> bool {
        ["call", "result"].iter().any(|group| self.0.contains(&format!("{group}:{name}")))
    }

    fn members(&self, arguments: Shape) -> Shape {
        match arguments {
            Shape::Record(mut members) => {
                members.retain(|name, _| self.0.contains(name));
                Shape::Record(members)
            }
            other => other,
        }
    }
}

/// Whether the context or the arguments are used other than by accessing one member.
fn uses_whole(rules: &Value, context: &Value, arguments: &Value) -> bool {
    if rules == context || rules == arguments {
        return true;
    }
    match rules {
        Value::Array(items) => items.iter().any(|item| uses_whole(item, context, arguments)),
        Value::Object(members) => members.iter().any(|(operator, operands)| {
            let looked_at = matches!(operator.as_str(), "." | "has").then(|| operands.get("left")).flatten();
            let is_look = looked_at.is_some_and(|left| left == context || left == arguments);
            !is_look && uses_whole(operands, context, arguments)
        }),
        _ => false,
    }
}
