//! Workflows as files: apply one, compare it, write the present state as one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_model::workflow::{WorkflowName, WorkflowVersion};

use crate::endpoint::{RequestBody, endpoints};
use crate::policies::PolicyFiles;

endpoints! {
    tag "workflows" = "Workflows as files: the agents, grants, services, policies and plan of a file, applied in one transaction.";

    /// Apply a workflow file
    ///
    /// Needs for each change what the endpoint for that change needs. The second application of a file changes nothing. A
    /// file with problems is refused with `WORKFLOW_INVALID`, and `error.problems` has each with its line and column.
    /// Changes that widen access are refused with `WIDENING_NOT_ALLOWED` unless `allow_widening` is
    /// set; `error.widening` lists them. Everything is changed, or nothing.
    ApplyWorkflow = POST "/api/v1/apply" as "apply_workflow" {
        body: ApplyRequest = {
            "document": "name: quarterly-compliance\nversion: \"1.0\"\nagents:\n  billing-agent:\n    capabilities: [billing]\n",
            "dry_run": true
        },
        reply: OK AppliedWorkflow = "The changes that were made, or that would be made.",
    }

    /// Write the present state as a workflow file
    ///
    /// Needs `tools.manage`, `agents.act_as` and `agents.manage`, and for the policies `policies.manage` or `audit.read`.
    /// The file contains no secrets. Applying it changes nothing.
    ExportWorkflow = GET "/api/v1/export" as "export_workflow" {
        query: ExportQuery,
        reply: OK ExportedWorkflow = "The file.",
        errors: [NotFound],
    }
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyRequest {
    /// The file, in YAML or JSON; at most 1 MiB.
    pub document: String,
    /// The files of the directory that `policies` of the file names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_files: Option<PolicyFiles>,
    /// Only report what would change.
    #[serde(default)]
    pub dry_run: bool,
    /// Allow changes that widen access.
    #[serde(default)]
    pub allow_widening: bool,
}

impl RequestBody for ApplyRequest {}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct AppliedWorkflow {
    pub workflow: WorkflowName,
    pub version: WorkflowVersion,
    /// Whether changes were made. `false` after a dry run, and if there were none.
    pub applied: bool,
    /// In the order in which they are made; empty if the present state is what the file declares.
    pub changes: Vec<WorkflowChange>,
    /// The number of changes that widen access.
    pub widening: u64,
    /// The intent that was created from the plan.
    pub intent_id: Option<String>,
    pub plan_id: Option<String>,
    pub coordinator_id: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowChange {
    /// `create`, `update`, `replace`, `remove` or `revoke`.
    pub action: String,
    /// `agent`, `budget`, `coordinator`, `grant`, `service`, `policies`, `plan` or `workflow`.
    pub object: String,
    /// The id of the object, or what a new one is about.
    pub name: String,
    /// What differs.
    pub details: Vec<String>,
    /// How the change widens access; empty if it does not.
    pub widens: Vec<String>,
    /// Where the file declares it; `null` for what it no longer declares.
    pub line: Option<u32>,
    pub column: Option<u32>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportQuery {
    /// The workflow; the whole tenant where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowName>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExportedWorkflow {
    /// The file, in YAML.
    pub document: String,
}
