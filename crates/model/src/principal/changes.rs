//! What can be changed about a principal after it was registered.

use std::collections::BTreeSet;

use super::{Principal, ToolRateLimits};
use crate::descriptor::ToolId;
use crate::permission::PermissionSet;
use crate::principal_scope::HeldScopes;
use crate::text::{Label, Line};

/// What is to be different about a principal; `None` leaves it as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrincipalChanges {
    /// What people call it; `Some(None)` takes the name away.
    pub name: Option<Option<Line>>,
    /// All the scopes that it holds.
    pub scopes: Option<HeldScopes>,
    /// All that it may do.
    pub permissions: Option<PermissionSet>,
    /// All its rate limits.
    pub rate_limits: Option<ToolRateLimits>,
    /// The only tools that exist for it; `Some(None)` leaves that to its grants again.
    pub tool_allowlist: Option<Option<BTreeSet<ToolId>>>,
    /// All its labels.
    pub labels: Option<BTreeSet<Label>>,
    /// Whether its calls that must wait for an approver are detached.
    pub detaches: Option<bool>,
}

impl PrincipalChanges {
    /// Makes them; answers the names of the fields that are different now. A principal of which nothing is different
    /// keeps its revision.
    pub fn apply(&self, principal: &mut Principal) -> Vec<&'static str> {
        let differences = [
            ("name", replace(&mut principal.name, self.name.as_ref())),
            ("scopes", replace(&mut principal.scopes, self.scopes.as_ref())),
            ("permissions", replace(&mut principal.permissions, self.permissions.as_ref())),
            ("rate_limits", replace(&mut principal.rate_limits, self.rate_limits.as_ref())),
            ("tool_allowlist", replace(&mut principal.tool_allowlist, self.tool_allowlist.as_ref())),
            ("labels", replace(&mut principal.labels, self.labels.as_ref())),
            ("detach_calls", replace(&mut principal.detaches, self.detaches.as_ref())),
        ];
        let changed: Vec<_> = differences.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect();
        if !changed.is_empty() {
            principal.revision = principal.revision.saturating_add(1);
        }
        changed
    }
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
