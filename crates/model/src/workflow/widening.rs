//! Which changes widen access. Each reason completes "this ...". If unsure, a change counts as widening: a person then decides.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::context::GrantContext;
use crate::grant::Authority;
use crate::permission::{Permission, PermissionSet};
use crate::principal::Principal;
use crate::principal_scope::HeldScopes;
use crate::rate_limit::RateLimit;
use crate::service::ServiceDefinition;
use crate::spending::Budget;

/// Members of a tool that only people read.
const DESCRIPTIVE: [&str; 5] = ["cost_hint", "description", "latency_hint", "returns", "title"];

/// How one authority allows more than another on the same credential.
pub fn authority_widenings(before: &Authority, after: &Authority) -> Vec<String> {
    let mut reasons: Vec<String> =
        after.scopes.beyond(&before.scopes).iter().map(|scope| format!("adds the scope `{scope}`")).collect();
    reasons.extend(after.constraints.loosened(&before.constraints).iter().map(|path| format!("loosens `{path}`")));
    reasons.extend(context_widening(&before.context, &after.context));
    if after.delegatable && !before.delegatable {
        reasons.push("makes it delegatable".to_owned());
    }
    if !after.delegation_depth.is_within(before.delegation_depth) {
        reasons.push("raises the delegation depth".to_owned());
    }
    match (before.expires_at, after.expires_at) {
        (Some(_), None) => reasons.push("removes the expiry".to_owned()),
        (Some(before), Some(after)) if after > before => reasons.push(format!("extends the expiry to {after}")),
        _ => {}
    }
    reasons
}

fn context_widening(before: &GrantContext, after: &GrantContext) -> Option<String> {
    let parts = [
        ("intent_id", &before.intent_id, &after.intent_id),
        ("plan_id", &before.plan_id, &after.plan_id),
        ("task_id", &before.task_id, &after.task_id),
    ];
    let lost = parts.into_iter().find(|(_, before, after)| before.is_some() && before != after);
    lost.map(|(part, _, _)| format!("changes what `context.{part}` binds it to"))
}

/// How a principal may do more than before; than nothing but using its grants, if it is new.
pub fn principal_widenings(before: Option<&Principal>, after: &Principal) -> Vec<String> {
    let usual = PermissionSet::of_an_agent();
    let permissions = before.map_or(&usual, |before| &before.permissions);
    let no_scopes = HeldScopes::default();
    let scopes = before.map_or(&no_scopes, |before| &before.scopes);
    let added = |permission: &Permission| after.permissions.has(*permission) && !permissions.has(*permission);
    let mut reasons: Vec<String> = Permission::ALL
        .iter()
        .filter(|permission| added(permission))
        .map(|permission| format!("adds the permission {permission}"))
        .collect();
    reasons.extend(after.scopes.beyond(scopes).iter().map(|scope| format!("adds the scope `{scope}`")));
    if before.map_or(!after.labels.is_empty(), |before| before.labels != after.labels) {
        reasons.push("changes labels, by which policies may exempt it".to_owned());
    }
    let Some(before) = before else { return reasons };
    match (&before.tool_allowlist, &after.tool_allowlist) {
        (Some(_), None) => reasons.push("removes the tool allowlist".to_owned()),
        (Some(before), Some(after)) if !after.is_subset(before) => {
            reasons.push("adds tools to the allowlist".to_owned());
        }
        _ => {}
    }
    if is_budget_raised(before.budget.as_ref(), after.budget.as_ref()) {
        reasons.push("raises or removes the budget".to_owned());
    }
    reasons.extend(rate_widenings(&limits(before), &limits(after)));
    reasons
}

/// Whether a budget allows more than before in anything, or is gone.
pub fn is_budget_raised(before: Option<&Budget>, after: Option<&Budget>) -> bool {
    fn raised<T: PartialOrd>(before: Option<T>, after: Option<T>) -> bool {
        before.is_some_and(|before| after.is_none_or(|after| after > before))
    }
    let Some(before) = before else { return false };
    after.is_none_or(|after| {
        raised(before.calls_per_day, after.calls_per_day)
            || raised(before.cost_per_day, after.cost_per_day)
            || raised(before.calls_total, after.calls_total)
            || raised(before.cost_total, after.cost_total)
    })
}

/// The limit for all tools adds to those of the tools; a limit for one tool replaces the tool's own, even if it is wider.
fn rate_widenings(before: &BTreeMap<String, RateLimit>, after: &BTreeMap<String, RateLimit>) -> Vec<String> {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let widens = |name: &&&String| match (before.get(**name), after.get(**name)) {
        (None, Some(_)) => name.as_str() != "*",
        (Some(before), Some(after)) => after.stricter(*before) != *after,
        (before, _) => before.is_some(),
    };
    names.iter().filter(widens).map(|name| format!("loosens the rate limit of `{name}`")).collect()
}

fn limits(principal: &Principal) -> BTreeMap<String, RateLimit> {
    let read = serde_json::to_value(&principal.rate_limits).and_then(serde_json::from_value);
    read.unwrap_or_default()
}

/// How a definition lets existing grants do something else than before.
pub fn definition_widenings(before: Option<&ServiceDefinition>, after: &ServiceDefinition) -> Vec<String> {
    let Some(before) = before else {
        return vec![format!("registers {} tools", after.tools.len())];
    };
    let mut reasons = Vec::new();
    let url = |definition: &ServiceDefinition| definition.base_url.as_ref().map(ToString::to_string);
    if url(before) != url(after) || before.source != after.source {
        reasons.push("changes where calls are sent".to_owned());
    }
    for (name, tool) in &after.tools {
        match before.tools.get(name) {
            None => reasons.push(format!("adds the tool `{name}`")),
            Some(earlier) if enforced(&earlier.to_json()) != enforced(&tool.to_json()) => {
                reasons.push(format!("changes the tool `{name}`"));
            }
            Some(_) => {}
        }
    }
    for name in before.tools.keys().filter(|name| !after.tools.contains_key(*name)) {
        reasons.push(format!("drops the tool `{name}`: calls of it fall back to what a credential defines"));
    }
    reasons
}

/// How the removal of a version lets existing grants do something else than before: what it limited, another definition
/// limits differently. `versions` are those of its service now, the last registered first.
pub fn removal_widening(removed: &ServiceDefinition, versions: &[&ServiceDefinition]) -> String {
    let (service, version) = (&removed.service, &removed.version);
    let is_default = versions.first().is_none_or(|newest| newest.version == *version);
    let next = versions.iter().find(|other| other.version != *version).filter(|_| is_default);
    match next {
        Some(next) => format!("calls of `{service}` fall back to version `{}`", next.version),
        None => format!("calls of version `{version}` of `{service}` fall back to what its credentials define"),
    }
}

fn enforced(tool: &Value) -> Value {
    let members = tool.as_object().into_iter().flatten();
    let kept = members.filter(|(name, _)| !DESCRIPTIVE.contains(&name.as_str()));
    Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
}
