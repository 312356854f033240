//! The attributes of a principal that an administrator decides, at registration and afterwards. They are passed on,
//! stored and compared as a whole, so that a new one is added only here and where it is used.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize};

use super::{Principal, ToolRateLimits};
use crate::descriptor::ToolId;
use crate::permission::{Permission, PermissionSet};
use crate::principal_scope::HeldScopes;
use crate::spending::{Budget, Stop};
use crate::text::{Label, Line};

/// Changes of a principal; `None` keeps an attribute. The JSON form is what the ledger stores: the differences from a
/// newly registered principal. Scopes are then read as they were stored, valid or not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrincipalChanges {
    /// `Some(None)` removes the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Option<Line>>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "stored_scopes")]
    pub scopes: Option<HeldScopes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<PermissionSet>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limits: Option<ToolRateLimits>,
    /// `Some(None)` leaves the tools to the grants again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_allowlist: Option<Option<BTreeSet<ToolId>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeSet<Label>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detach_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progressive_discovery: Option<bool>,
    /// `Some(None)` removes it.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub budget: Option<Option<Budget>>,
    /// `Some(None)` resumes its calls.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub stopped: Option<Option<Stop>>,
}

impl PrincipalChanges {
    /// All attributes of a principal.
    pub fn of(principal: &Principal) -> Self {
        Self {
            name: Some(principal.name.clone()),
            scopes: Some(principal.scopes.clone()),
            permissions: Some(principal.permissions.clone()),
            rate_limits: Some(principal.rate_limits.clone()),
            tool_allowlist: Some(principal.tool_allowlist.clone()),
            labels: Some(principal.labels.clone()),
            detach_calls: Some(principal.detach_calls),
            progressive_discovery: Some(principal.progressive_discovery),
            budget: principal.budget.map(Some),
            stopped: principal.stopped.clone().map(Some),
        }
    }

    /// Applies the changes; returns the names of the changed attributes. Without a change the revision stays.
    pub fn apply(&self, principal: &mut Principal) -> Vec<&'static str> {
        let differences = [
            ("name", replace(&mut principal.name, self.name.as_ref())),
            ("scopes", replace(&mut principal.scopes, self.scopes.as_ref())),
            ("permissions", replace(&mut principal.permissions, self.permissions.as_ref())),
            ("rate_limits", replace(&mut principal.rate_limits, self.rate_limits.as_ref())),
            ("tool_allowlist", replace(&mut principal.tool_allowlist, self.tool_allowlist.as_ref())),
            ("labels", replace(&mut principal.labels, self.labels.as_ref())),
            ("detach_calls", replace(&mut principal.detach_calls, self.detach_calls.as_ref())),
            (
                "progressive_discovery",
                replace(&mut principal.progressive_discovery, self.progressive_discovery.as_ref()),
            ),
            ("budget", replace(&mut principal.budget, self.budget.as_ref())),
            ("stopped", replace(&mut principal.stopped, self.stopped.as_ref())),
        ];
        let changed: Vec<_> = differences.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect();
        if !changed.is_empty() {
            principal.revision = principal.revision.saturating_add(1);
        }
        changed
    }

    /// What no principal may do to itself: extend its authority, or lock itself out. The text completes "you cannot ...
    /// yourself".
    ///
    /// Additional permissions are not checked here: nobody gives away more than it has.
    pub fn denied_to(&self, own: &Principal) -> Option<String> {
        if self.permissions.as_ref().is_some_and(|permissions| !permissions.has(Permission::ManageAgents)) {
            return Some(format!("take {} from", Permission::ManageAgents));
        }
        if let Some(beyond) = self.scopes.as_ref().and_then(|scopes| scopes.first_beyond(&own.scopes)) {
            return Some(format!("give the scope `{beyond}` to"));
        }
        // A limit for one tool may be wider than the tool's own, so whether a change is narrower is unknown here.
        if self.rate_limits.as_ref().is_some_and(|limits| *limits != own.rate_limits) {
            return Some("change the rate limits of".to_owned());
        }
        if self.budget.is_some_and(|budget| budget != own.budget) {
            return Some("change the budget of".to_owned());
        }
        if self.stopped.as_ref().is_some_and(|stopped| *stopped != own.stopped) {
            return Some("stop or resume".to_owned());
        }
        let widens = |allowed: &BTreeSet<ToolId>, new: &Option<BTreeSet<ToolId>>| {
            new.as_ref().is_none_or(|new| !new.is_subset(allowed))
        };
        match (&own.tool_allowlist, &self.tool_allowlist) {
            (Some(allowed), Some(new)) if widens(allowed, new) => Some("allow more tools to".to_owned()),
            _ => None,
        }
    }
}

/// `null` is a value here: it removes the attribute.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(deserializer).map(Some)
}

/// Older scopes may violate the current rules; then they cover nothing, and the principal is still there.
fn stored_scopes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<HeldScopes>, D::Error> {
    Ok(Option::<Vec<String>>::deserialize(deserializer)?.map(HeldScopes::from_stored))
}

/// Whether there is a new value that differs.
fn replace<T: Clone + PartialEq>(place: &mut T, new: Option<&T>) -> bool {
    match new {
        Some(new) if new != place => {
            place.clone_from(new);
            true
        }
        _ => false,
    }
}
