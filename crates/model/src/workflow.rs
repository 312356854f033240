//! Workflows as files (RFC-0014 §9): one YAML file with the agents, grants and tasks of a workflow, and with everything
//! else of a gate that can be declared: services, policies, limits. Parsing is strict and reports every problem with its
//! position; what the file means for a gate is decided by the gate.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::constraint::Constraints;
use crate::context::GrantContext;
use crate::credential::ServiceName;
use crate::grant::DelegationDepth;
use crate::guard::PolicyFile;
use crate::id::CredentialId;
use crate::principal::{PrincipalChanges, PrincipalId, PrincipalKind};
use crate::scope::Scope;
use crate::service::ServiceDefinition;
use crate::spending::Budget;
use crate::text::{Line, identifiers};
use crate::time::Timestamp;
use crate::work::Guardrails;

pub use self::document::{Document, GrantPlace};
pub use self::problem::{Located, PROBLEM_LIMIT, Place, Problem, in_order, meant, quoted};
pub use self::tree::FILE_LIMIT;
pub use self::widening::{
    authority_widenings, definition_widenings, is_budget_raised, principal_widenings, removal_widening,
};
pub use self::write::to_yaml;

mod document;
mod members;
mod problem;
mod read;
mod scalar;
mod tree;
mod widening;
mod write;

#[cfg(test)]
mod tests;

identifiers! {
    /// The name of a workflow: the owner of what its file creates.
    WorkflowName;
    /// The version of a workflow. A plan is created once for each.
    WorkflowVersion;
    /// The name of a task inside its file.
    TaskName;
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Workflow {
    pub name: Located<WorkflowName>,
    pub version: Located<WorkflowVersion>,
    /// The vault whose credentials grants are about, unless they name another: its name or id.
    pub vault: Option<Located<String>>,
    pub grants: Vec<DeclaredGrant>,
    pub agents: Vec<DeclaredAgent>,
    pub services: Vec<Located<ServiceDefinition>>,
    pub policies: Option<Located<DeclaredPolicies>>,
    /// The budget of the tenant.
    pub budget: Option<Located<Budget>>,
    pub plan: Option<Located<DeclaredPlan>>,
}

/// A grant of a file. Absent terms have the defaults of a direct grant.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredGrant {
    pub at: Place,
    pub agent: Located<PrincipalId>,
    pub service: Located<ServiceName>,
    pub scopes: Vec<Located<Scope>>,
    pub constraints: Constraints,
    pub context: GrantContext,
    pub delegatable: bool,
    pub delegation_depth: Option<DelegationDepth>,
    /// `None` is the default lifetime, counted from when it is created; `Some(None)` is no expiry.
    pub expires_at: Option<Option<Timestamp>>,
    pub allow_indefinite: bool,
    /// Another vault than that of the file.
    pub vault: Option<Located<String>>,
    /// Required if the vault has several credentials for the service.
    pub credential: Option<Located<CredentialId>>,
}

/// An agent of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredAgent {
    pub id: Located<PrincipalId>,
    pub kind: Option<Located<PrincipalKind>>,
    /// The attributes that the file states.
    pub attributes: PrincipalChanges,
    /// What the agent is for. Kept with the workflow; the gate attaches no authority to it.
    pub capabilities: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum DeclaredPolicies {
    /// A directory beside the file, which the client reads.
    Directory(String),
    /// The files themselves, sorted by name.
    Files(Vec<PolicyFile>),
}

/// The work of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredPlan {
    pub tasks: Vec<DeclaredTask>,
    /// The agent that coordinates the plan.
    pub coordinator: Option<Located<PrincipalId>>,
    /// The limits of the coordinator.
    pub guardrails: Option<Located<Guardrails>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredTask {
    pub name: Located<TaskName>,
    pub agent: Option<Located<PrincipalId>>,
    pub description: Option<String>,
    pub depends_on: Vec<Located<TaskName>>,
    pub requires_tools: Vec<DeclaredRequirement>,
    /// The names of what it produces.
    pub outputs: Vec<Line>,
    pub input: Map<String, Value>,
    pub timeout_seconds: Option<u64>,
    pub deadline: Option<Timestamp>,
    pub max_attempts: Option<u64>,
}

/// The access to a service that a task needs (RFC-0014 §4).
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredRequirement {
    pub at: Place,
    pub service: Located<ServiceName>,
    pub scopes: Vec<Located<Scope>>,
    /// Whether the task cannot do without it.
    pub required: bool,
}

/// A file that was read as far as possible.
#[derive(Debug)]
pub struct Read {
    /// `None` if not even name and version are there.
    pub workflow: Option<Workflow>,
    pub problems: Vec<Problem>,
}

impl Workflow {
    /// Reads a file. It may be used only if there are no problems.
    pub fn read(text: &str) -> Read {
        read::read(text)
    }

    /// The capabilities of each agent that has some.
    pub fn capabilities(&self) -> BTreeMap<&PrincipalId, &[Line]> {
        let stated = self.agents.iter().filter(|agent| !agent.capabilities.is_empty());
        stated.map(|agent| (&agent.id.value, agent.capabilities.as_slice())).collect()
    }
}
