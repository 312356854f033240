//! Compares constraints with those that they replace. Unlike in a delegation, nothing is inherited: a kind that was removed
//! is loosened.

use std::collections::BTreeMap;

use super::{Constraints, Denial, HostSet, NetworkSet, ParameterPath, ParameterRule, smaller};

impl Constraints {
    /// The paths of the constraints that permit something that those before did not, in doubt too many.
    pub fn loosened(&self, before: &Self) -> Vec<String> {
        // Exhaustive: a new kind does not compile until it is compared here.
        let Self {
            max_invocations_per_hour,
            max_cost_per_invocation,
            allowed_parameters,
            denied_parameters,
            ip_allowlist,
            allowed_hosts,
        } = self;
        let (rate, cost) = (*max_invocations_per_hour, *max_cost_per_invocation);
        let kinds = [
            ("max_invocations_per_hour", smaller(rate, before.max_invocations_per_hour) != rate),
            ("max_cost_per_invocation", smaller(cost, before.max_cost_per_invocation) != cost),
            ("ip_allowlist", is_loosened(ip_allowlist, &before.ip_allowlist, NetworkSet::meet)),
            ("allowed_hosts", is_loosened(allowed_hosts, &before.allowed_hosts, HostSet::meet)),
        ];
        let mut paths: Vec<String> = kinds
            .into_iter()
            .filter(|(_, loosened)| *loosened)
            .map(|(kind, _)| format!("constraints.{kind}"))
            .collect();
        let allowed = loosened_parameters(allowed_parameters, &before.allowed_parameters, ParameterRule::meet);
        let denied = loosened_parameters(denied_parameters, &before.denied_parameters, Denial::join);
        paths.extend(allowed.map(|path| format!("constraints.allowed_parameters.{path}")));
        paths.extend(denied.map(|path| format!("constraints.denied_parameters.{path}")));
        paths
    }
}

fn is_loosened<T: Clone + PartialEq>(own: &Option<T>, before: &Option<T>, meet: impl Fn(&T, &T) -> T) -> bool {
    match (own, before) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(own), Some(before)) => meet(own, before) != *own,
    }
}

fn loosened_parameters<'a, T: Clone + PartialEq>(
    own: &'a BTreeMap<ParameterPath, T>,
    before: &'a BTreeMap<ParameterPath, T>,
    meet: impl Fn(&T, &T) -> T + 'a,
) -> impl Iterator<Item = &'a ParameterPath> {
    before
        .iter()
        .filter(move |(path, rule)| own.get(path).is_none_or(|own| meet(own, rule) != *own))
        .map(|(path, _)| path)
}
