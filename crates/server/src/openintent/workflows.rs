//! Workflows as files.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use toolgate_api::workflows::{AppliedWorkflow, ApplyRequest, ExportWorkflow, ExportedWorkflow, WorkflowChange};
use toolgate_gate::Caller;
use toolgate_gate::authority::workflows::{Application, Change, NewApplication};
use toolgate_model::guard::PolicyFile;
use toolgate_model::permission::Permission;

use super::error::Denied;
use crate::body::{self, Object};
use crate::caller::Identified;
use crate::mount::TypedRequest;
use crate::router::App;

/// The largest request, in bytes: a file and its policies, escaped.
const FILE_LIMIT: usize = 12 * 1024 * 1024;

pub(super) async fn apply(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    request: Request,
) -> Result<Json<AppliedWorkflow>, Denied> {
    // Only callers that may declare something large may send it.
    let limit = if is_manager(&caller) { app.max_body.max(FILE_LIMIT) } else { app.max_body };
    let body: ApplyRequest = body::json(request, limit).await?;
    let files = body
        .policy_files
        .map(|files| files.0.into_iter().map(|Object(file)| PolicyFile { name: file.name, text: file.text }).collect());
    let new = NewApplication {
        document: body.document,
        policy_files: files,
        dry_run: body.dry_run,
        allow_widening: body.allow_widening,
    };
    Ok(Json(shown(app.gate.workflows.apply_workflow(&caller, new).await?)))
}

pub(super) async fn export(request: TypedRequest<ExportWorkflow>) -> Result<ExportedWorkflow, Denied> {
    let TypedRequest { app, caller, query, .. } = request;
    Ok(ExportedWorkflow { document: app.gate.workflows.export_workflow(&caller, query.workflow).await? })
}

fn is_manager(caller: &Caller) -> bool {
    [Permission::ManageAgents, Permission::ManagePolicies, Permission::ManageTools]
        .into_iter()
        .any(|own| caller.may(own))
}

fn shown(application: Application) -> AppliedWorkflow {
    let widening = application.changes.iter().filter(|change| !change.widens.is_empty()).count();
    let (intent_id, plan_id, coordinator_id) = match application.work {
        Some(work) => (Some(work.intent), Some(work.plan), work.coordinator),
        None => (None, None, None),
    };
    AppliedWorkflow {
        workflow: application.name,
        version: application.version,
        applied: application.applied,
        changes: application.changes.into_iter().map(change).collect(),
        widening: u64::try_from(widening).unwrap_or(u64::MAX),
        intent_id,
        plan_id,
        coordinator_id,
    }
}

fn change(change: Change) -> WorkflowChange {
    WorkflowChange {
        action: change.action.as_str().to_owned(),
        object: change.object.as_str().to_owned(),
        name: change.name,
        details: change.details,
        widens: change.widens,
        line: change.at.map(|at| at.line),
        column: change.at.map(|at| at.column),
    }
}
