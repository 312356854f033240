//! What a task requires, and which grants meet it (RFC-0014 §4.2).

use serde::{Deserialize, Serialize};

use crate::context::GrantContext;
use crate::credential::ServiceName;
use crate::id::GrantId;
use crate::scope::{Scope, ScopeSet};

/// Access to a service that a task needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRequirement {
    pub service: ServiceName,
    #[serde(default)]
    pub scopes: ScopeSet,
    /// Whether the task cannot be claimed without it.
    #[serde(default = "is_required")]
    pub required: bool,
}

fn is_required() -> bool {
    true
}

/// What an agent can use through one grant. Only grants that are active as a whole, with a usable credential.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldAccess {
    pub grant: GrantId,
    pub service: ServiceName,
    /// In effect.
    pub scopes: ScopeSet,
    /// In effect.
    pub context: GrantContext,
}

/// A requirement that no grant meets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MissingAccess {
    pub service: ServiceName,
    /// What the grant that comes closest does not have.
    pub scopes: Vec<Scope>,
}

/// Which requirements of a task an agent meets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequirementReport {
    /// A grant for each requirement that is met.
    pub met: Vec<(ToolRequirement, GrantId)>,
    /// Without these the task cannot be claimed.
    pub missing: Vec<MissingAccess>,
    pub optional_missing: Vec<MissingAccess>,
}

impl RequirementReport {
    pub fn is_sufficient(&self) -> bool {
        self.missing.is_empty()
    }
}

/// Matches requirements against what an agent holds: one grant must have all scopes of a requirement, and its context must
/// allow that of the task.
pub fn match_requirements(
    requirements: &[ToolRequirement],
    held: &[HeldAccess],
    task: &GrantContext,
) -> RequirementReport {
    let mut report = RequirementReport::default();
    for requirement in requirements {
        let fitting = held.iter().filter(|held| held.service == requirement.service && held.context.allows(task));
        let lacking = fitting.map(|held| (requirement.scopes.beyond(&held.scopes), held.grant));
        match lacking.min_by_key(|(lacking, _)| lacking.len()) {
            Some((lacking, grant)) if lacking.is_empty() => report.met.push((requirement.clone(), grant)),
            closest => {
                let all = || requirement.scopes.iter().cloned().collect();
                let missing = MissingAccess {
                    service: requirement.service.clone(),
                    scopes: closest.map_or_else(all, |(lacking, _)| lacking),
                };
                if requirement.required { report.missing.push(missing) } else { report.optional_missing.push(missing) }
            }
        }
    }
    report
}
