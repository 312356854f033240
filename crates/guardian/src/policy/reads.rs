//! The context attributes that a rule reads, derived from its text. Attributes that no rule reads are neither fetched
//! nor converted, and unknown ones make only the rules undecidable that read them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Some members of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Members {
    Only(BTreeSet<String>),
    /// All members, or the record as a whole.
    All,
}

/// The attributes of `context` that are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reads {
    whole: bool,
    attributes: BTreeMap<String, Members>,
}

static ALL: Members = Members::All;

impl Members {
    /// The names, or `None` for all.
    pub fn names(&self) -> Option<&BTreeSet<String>> {
        match self {
            Self::Only(names) => Some(names),
            Self::All => None,
        }
    }

    pub fn contains(&self, name: &str) -> bool {
        self.names().is_none_or(|names| names.contains(name))
    }

    pub fn is_empty(&self) -> bool {
        self.names().is_some_and(BTreeSet::is_empty)
    }

    fn add(&mut self, others: &Self) {
        match (&mut *self, others) {
            (Self::Only(names), Self::Only(others)) => names.extend(others.iter().cloned()),
            _ => *self = Self::All,
        }
    }
}

impl Default for Members {
    fn default() -> Self {
        Self::Only(BTreeSet::new())
    }
}

impl Reads {
    /// Derives the reads from the JSON form of a rule.
    pub(super) fn of(rule: &Value) -> Self {
        let mut reads = Self::default();
        if let Some(conditions) = rule.get("conditions") {
            reads.walk(conditions);
        }
        reads
    }

    /// The members that are read of an attribute of `context`; `None` if it is not read at all.
    pub fn attribute(&self, name: &str) -> Option<&Members> {
        if self.whole { Some(&ALL) } else { self.attributes.get(name) }
    }

    pub fn any_of(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.attribute(name).is_some())
    }

    /// Adds the reads of another rule.
    pub(super) fn add(&mut self, other: &Self) {
        self.whole |= other.whole;
        for (name, members) in &other.attributes {
            self.attributes.entry(name.clone()).or_default().add(members);
        }
    }

    fn walk(&mut self, expression: &Value) {
        if let Some((path, is_test)) = path(expression) {
            return self.note(&path, is_test);
        }
        match expression {
            Value::Array(items) => items.iter().for_each(|item| self.walk(item)),
            Value::Object(members) => members.values().for_each(|member| self.walk(member)),
            _ => {}
        }
    }

    fn note(&mut self, path: &[&str], is_test: bool) {
        let (attribute, members) = match path {
            [] => {
                self.whole = true;
                return;
            }
            [attribute] if is_test => (attribute, Members::default()),
            [attribute] => (attribute, Members::All),
            [attribute, member, ..] => (attribute, Members::Only(BTreeSet::from([(*member).to_owned()]))),
        };
        self.attributes.entry((*attribute).to_owned()).or_default().add(&members);
    }
}

/// The path from `context` to what an expression reads, and whether it only tests for presence.
fn path(expression: &Value) -> Option<(Vec<&str>, bool)> {
    let members = expression.as_object().filter(|members| members.len() == 1)?;
    let (operator, operand) = members.iter().next()?;
    match operator.as_str() {
        "Var" => (operand == "context").then(|| (Vec::new(), false)),
        "." | "has" => {
            let (mut path, _) = path(operand.get("left")?)?;
            match operand.get("attr")? {
                Value::String(name) => path.push(name),
                Value::Array(names) => path.extend(names.iter().filter_map(Value::as_str)),
                _ => return None,
            }
            Some((path, operator == "has"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use cedar_policy::Policy;

    use super::*;

    fn reads(condition: &str) -> Reads {
        let policy = Policy::from_str(&format!("forbid(principal, action, resource) when {{ {condition} }};")).unwrap();
        Reads::of(&policy.to_json().unwrap())
    }

    fn only(names: &[&str]) -> Members {
        Members::Only(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn a_rule_reads_what_it_names_and_nothing_else() {
        let found = reads(
            r#"context.arguments has title && context.arguments.title like "*x*" && context.arguments.deep.down == 1
               || context.time.hour > 3 && (if context has session then context.session == "a" else principal.id == "b")"#,
        );
        assert_eq!(found.attribute("arguments"), Some(&only(&["deep", "title"])));
        assert_eq!(found.attribute("time"), Some(&only(&["hour"])));
        assert_eq!(found.attribute("session"), Some(&Members::All));
        assert_eq!(found.attribute("reasoning"), None);
        assert_eq!(found.attribute("principal"), None);
    }

    #[test]
    fn asking_whether_something_is_there_reads_no_more_than_that() {
        assert_eq!(reads("context has arguments").attribute("arguments"), Some(&only(&[])));
        assert_eq!(reads("context has arguments.a.b").attribute("arguments"), Some(&only(&["a"])));
        assert_eq!(reads(r#"context["arguments"]["a b"] == 1"#).attribute("arguments"), Some(&only(&["a b"])));
    }

    #[test]
    fn a_record_as_a_whole_is_read_with_all_its_members() {
        assert_eq!(reads("context.arguments == {a: 1}").attribute("arguments"), Some(&Members::All));
        assert_eq!(reads("context == {a: 1}").attribute("reasoning"), Some(&Members::All));
        let both = reads(r#"context.arguments.a == 1 && [context.arguments].contains({a: 1})"#);
        assert_eq!(both.attribute("arguments"), Some(&Members::All));
        assert_eq!(reads(r#"{"x": context}.x.address.isLoopback()"#).attribute("address"), Some(&Members::All));
    }

    #[test]
    fn what_is_named_like_a_variable_is_none() {
        assert_eq!(reads(r#"{"Var": "context"} == {"Var": "context"}"#), Reads::default());
    }
}
