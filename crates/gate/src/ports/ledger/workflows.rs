//! Workflows that were applied from files, and what each of them owns.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_model::grant::Grant;
use toolgate_model::id::{CoordinatorId, GrantId, IntentId, PlanId};
use toolgate_model::principal::{Principal, PrincipalId, TenantId};
use toolgate_model::spending::Budget;
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;
use toolgate_model::workflow::{WorkflowName, WorkflowVersion};

use super::{
    ApplyPolicies, ApplyService, ChangeCoordinator, CreateCoordinator, CreateGrant, CreateIntent, CreatePlan,
    CreatePrincipal, CreateTask, Mandate, RemovePrincipal, RemoveService, RevokeGrant, SetTenantBudget,
    UpdatePrincipal,
};
use crate::refusal::Refusal;

#[async_trait]
pub trait Workflows: Send + Sync {
    /// Returns everything that a file is compared with, in one consistent read.
    async fn workflow_state(&self, query: WorkflowQuery) -> Result<WorkflowState, Refusal>;
    /// Makes all changes of a file or none. A state that is not the expected one is a conflict.
    async fn apply_workflow(&self, command: ApplyWorkflow) -> Result<(), Refusal>;
}

/// What a file is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowQuery {
    pub tenant: TenantId,
    pub name: WorkflowName,
    /// The principals that the file declares or refers to.
    pub agents: BTreeSet<PrincipalId>,
    /// The time at which expiry is evaluated.
    pub now: Timestamp,
}

/// The part of a tenant that a file is about.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowState {
    /// The workflow as it was applied last.
    pub record: Option<WorkflowRecord>,
    /// What it owns.
    pub owned: BTreeMap<OwnedObject, Ownership>,
    /// What other workflows own.
    pub of_others: BTreeMap<OwnedObject, WorkflowName>,
    /// The principals of the query and those that the workflow owns, removed ones too.
    pub principals: BTreeMap<PrincipalId, Principal>,
    /// The direct grants of these principals that are neither revoked nor expired, by id.
    pub grants: BTreeMap<GrantId, Grant>,
    /// The coordinator of the work that was created last, unless it has ended.
    pub coordination: Option<Coordination>,
    /// The budget of the tenant.
    pub budget: Option<Budget>,
    /// Counts the changes of the registry.
    pub registry: u64,
    /// The active version of the policies; zero for none.
    pub policies: u64,
}

/// The coordinator of the work of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coordination {
    pub coordinator: CoordinatorId,
    pub intent: IntentId,
    pub agent: PrincipalId,
    /// Whether its guardrails bound anything.
    pub is_limited: bool,
    /// The number of tasks of the intent that have not ended.
    pub open_tasks: u64,
}

/// A workflow as it was applied last.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowRecord {
    pub name: WorkflowName,
    /// As its file states it.
    pub version: WorkflowVersion,
    /// Counts the applications that changed something.
    pub revision: u64,
    /// The principal that applied it first.
    pub created_by: PrincipalId,
    pub applied_by: PrincipalId,
    pub applied_at: Timestamp,
    pub details: WorkflowDetails,
}

/// What a file declares that no other object has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowDetails {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capabilities: BTreeMap<PrincipalId, Vec<Line>>,
    /// The plan in its normal form, with what was created from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkflowWork>,
}

/// The plan of one version of a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowWork {
    /// The version of the workflow that it was created for.
    pub version: WorkflowVersion,
    pub declared: Value,
    pub intent: String,
    pub plan: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordinator: Option<String>,
}

impl WorkflowWork {
    pub fn new(
        version: WorkflowVersion,
        declared: Value,
        intent: IntentId,
        plan: PlanId,
        coordinator: Option<CoordinatorId>,
    ) -> Self {
        let coordinator = coordinator.map(|id| id.to_string());
        Self { version, declared, intent: intent.to_string(), plan: plan.to_string(), coordinator }
    }
}

/// Something that a workflow can own: what it created, and takes away when its file no longer declares it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnedObject {
    pub kind: OwnedKind,
    /// Its id; for a service the name and the version with a space between them.
    pub id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnedKind {
    Agent,
    /// The budget of the tenant.
    Budget,
    Grant,
    /// The policies of the tenant.
    Policies,
    Service,
}

impl OwnedKind {
    pub const ALL: [Self; 5] = [Self::Agent, Self::Budget, Self::Grant, Self::Policies, Self::Service];

    /// The stored and displayed form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Budget => "budget",
            Self::Grant => "grant",
            Self::Policies => "policies",
            Self::Service => "service",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// How a workflow owns an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ownership {
    /// A grant whose file does not state when it expires.
    #[serde(default)]
    pub default_expiry: bool,
    /// The version of the policies that the workflow applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policies: Option<u64>,
    /// The budget of the tenant that the workflow set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

/// Makes the changes of a file in one transaction.
#[derive(Debug, Clone)]
pub struct ApplyWorkflow {
    pub audit: Mandate,
    pub query: WorkflowQuery,
    /// The state that the changes were computed from.
    pub expected: Box<WorkflowState>,
    /// In the order in which they are made.
    pub steps: Vec<WorkflowStep>,
    pub record: WorkflowRecord,
    pub taken: BTreeMap<OwnedObject, Ownership>,
    pub released: BTreeSet<OwnedObject>,
    /// SHA-256 of the file.
    pub digest: String,
    /// The number of changes that widen authority.
    pub widenings: u64,
}

/// One change, as the single operation would make it.
#[derive(Debug, Clone)]
pub enum WorkflowStep {
    CreatePrincipal(Box<CreatePrincipal>),
    UpdatePrincipal(Box<UpdatePrincipal>),
    SetTenantBudget(SetTenantBudget),
    RevokeGrant(RevokeGrant),
    CreateGrant(Box<CreateGrant>),
    RemovePrincipal(RemovePrincipal),
    RemoveService(RemoveService),
    ApplyService(Box<ApplyService>),
    ApplyPolicies(Box<ApplyPolicies>),
    CreateIntent(Box<CreateIntent>),
    ChangeCoordinator(Box<ChangeCoordinator>),
    CreateCoordinator(Box<CreateCoordinator>),
    CreatePlan(Box<CreatePlan>),
    CreateTasks(Box<CreateTask>),
}
