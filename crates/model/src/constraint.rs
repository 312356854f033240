//! Constraints on a grant: limits that Toolgate stores only because it enforces them.
//!
//! Every kind of constraint has an order, *narrower or equal*, and a meet: the constraint that permits exactly what
//! both sides permit. A delegated grant must not be wider than its source, and its authority is the meet of its whole
//! lineage, so authority only narrows even if a check was missed.

use std::collections::BTreeMap;

use serde_json::Value;
use thiserror::Error;

use crate::schema::Declared;

pub use self::cost::Cost;
pub use self::host::HostSet;
pub use self::network::NetworkSet;
pub use self::number::Number;
pub use self::parameter::{ParameterPath, Violation};
pub use self::rule::{Denial, ParameterRule};

mod cost;
mod host;
mod loosening;
mod network;
mod number;
mod parameter;
mod pattern;
mod rule;
mod value;
mod wire;

#[cfg(test)]
mod tests;

/// The limits of one grant. An absent kind adds no limit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Constraints {
    /// Calls in any hour.
    pub max_invocations_per_hour: Option<u64>,
    /// The maximum cost of one call by the registry's estimate.
    pub max_cost_per_invocation: Option<Cost>,
    /// What parameters must match if present.
    pub allowed_parameters: BTreeMap<ParameterPath, ParameterRule>,
    /// What parameters must not match.
    pub denied_parameters: BTreeMap<ParameterPath, Denial>,
    /// The networks that the agent may call from.
    pub ip_allowlist: Option<NetworkSet>,
    /// The hosts that a call may reach; narrows what the credential allows, never replaces it.
    pub allowed_hosts: Option<HostSet>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{path}` {reason}")]
pub struct ConstraintError {
    /// The path, from `constraints` down.
    pub path: String,
    /// What is wrong and what to write instead.
    pub reason: String,
}

/// A delegated constraint that is wider than its source.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{path}` {reason}")]
pub struct Widening {
    pub path: String,
    /// What the source allows.
    pub reason: String,
}

impl Constraints {
    /// The first constraint that permits something that `source` does not. An absent kind is not a widening: it is
    /// inherited.
    pub fn first_widening(&self, source: &Self) -> Option<Widening> {
        // Exhaustive: a new kind does not compile until it is compared here.
        let Self {
            max_invocations_per_hour,
            max_cost_per_invocation,
            allowed_parameters,
            denied_parameters,
            ip_allowlist,
            allowed_hosts,
        } = self;
        at_most("max_invocations_per_hour", *max_invocations_per_hour, source.max_invocations_per_hour)
            .or_else(|| at_most("max_cost_per_invocation", *max_cost_per_invocation, source.max_cost_per_invocation))
            .or_else(|| {
                let source = &source.allowed_parameters;
                first_of(allowed_parameters, source, "allowed_parameters", ParameterRule::widening)
            })
            .or_else(|| {
                let source = &source.denied_parameters;
                first_of(denied_parameters, source, "denied_parameters", Denial::widening)
            })
            .or_else(|| both(ip_allowlist, &source.ip_allowlist, "ip_allowlist", NetworkSet::widening))
            .or_else(|| both(allowed_hosts, &source.allowed_hosts, "allowed_hosts", HostSet::widening))
    }

    /// What both permit.
    pub fn meet(&self, other: &Self) -> Self {
        let Self {
            max_invocations_per_hour,
            max_cost_per_invocation,
            allowed_parameters,
            denied_parameters,
            ip_allowlist,
            allowed_hosts,
        } = self;
        Self {
            max_invocations_per_hour: smaller(*max_invocations_per_hour, other.max_invocations_per_hour),
            max_cost_per_invocation: smaller(*max_cost_per_invocation, other.max_cost_per_invocation),
            allowed_parameters: union(allowed_parameters, &other.allowed_parameters, ParameterRule::meet),
            denied_parameters: union(denied_parameters, &other.denied_parameters, Denial::join),
            ip_allowlist: meet_option(ip_allowlist, &other.ip_allowlist, NetworkSet::meet),
            allowed_hosts: meet_option(allowed_hosts, &other.allowed_hosts, HostSet::meet),
        }
    }

    /// Whether one parameter may have this value, as far as the rules about it alone say.
    pub fn allows_value(&self, name: &str, value: &Value) -> bool {
        let parameters = Value::Object(serde_json::Map::from_iter([(name.to_owned(), value.clone())]));
        let declared = Declared::by(None);
        let mut allowed = self.allowed_parameters.iter().filter(|(path, _)| path.as_str() == name);
        let mut denied = self.denied_parameters.iter().filter(|(path, _)| path.as_str() == name);
        allowed.all(|(path, rule)| rule.check(path, &parameters, &declared).is_ok())
            && denied.all(|(path, denial)| denial.check(path, &parameters, &declared).is_ok())
    }

    /// The first rule that these parameters violate: allow rules first, then deny rules. `schema` is that of the tool,
    /// which compiles; it defines which names are parameters of their own, and which parameters are lists.
    pub fn check_parameters(&self, parameters: &Value, schema: Option<&Value>) -> Result<(), Violation> {
        if self.allowed_parameters.is_empty() && self.denied_parameters.is_empty() {
            return Ok(());
        }
        let declared = Declared::by(schema);
        for (path, rule) in &self.allowed_parameters {
            rule.check(path, parameters, &declared)?;
        }
        for (path, denial) in &self.denied_parameters {
            denial.check(path, parameters, &declared)?;
        }
        Ok(())
    }
}

fn at_most<T: PartialOrd + std::fmt::Display>(kind: &str, own: Option<T>, source: Option<T>) -> Option<Widening> {
    match (own, source) {
        (Some(own), Some(source)) if own > source => Some(Widening {
            path: format!("constraints.{kind}"),
            reason: format!("is {own}; the source grant allows at most {source}"),
        }),
        _ => None,
    }
}

fn first_of<T>(
    own: &BTreeMap<ParameterPath, T>,
    source: &BTreeMap<ParameterPath, T>,
    kind: &str,
    widening: impl Fn(&T, &T) -> Option<String>,
) -> Option<Widening> {
    own.iter().find_map(|(path, rule)| {
        let reason = widening(rule, source.get(path)?)?;
        Some(Widening { path: format!("constraints.{kind}.{path}"), reason })
    })
}

fn both<T>(
    own: &Option<T>,
    source: &Option<T>,
    kind: &str,
    widening: impl Fn(&T, &T) -> Option<String>,
) -> Option<Widening> {
    let reason = widening(own.as_ref()?, source.as_ref()?)?;
    Some(Widening { path: format!("constraints.{kind}"), reason })
}

fn smaller<T: PartialOrd + Copy>(left: Option<T>, right: Option<T>) -> Option<T> {
    match (left, right) {
        (Some(left), Some(right)) => Some(if right < left { right } else { left }),
        (one, other) => one.or(other),
    }
}

fn meet_option<T: Clone>(left: &Option<T>, right: &Option<T>, meet: impl Fn(&T, &T) -> T) -> Option<T> {
    match (left, right) {
        (Some(left), Some(right)) => Some(meet(left, right)),
        (one, other) => one.clone().or_else(|| other.clone()),
    }
}

fn union<T: Clone>(
    left: &BTreeMap<ParameterPath, T>,
    right: &BTreeMap<ParameterPath, T>,
    meet: impl Fn(&T, &T) -> T,
) -> BTreeMap<ParameterPath, T> {
    let mut result = left.clone();
    for (path, rule) in right {
        let merged = result.get(path).map_or_else(|| rule.clone(), |own| meet(own, rule));
        result.insert(path.clone(), merged);
    }
    result
}
