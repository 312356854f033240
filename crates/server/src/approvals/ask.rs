//! Asking before a call that somebody else makes: a coding agent's hook waits here until it may go on, or may not.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolgate_gate::call::ExternalCall;
use toolgate_gate::refusal::{Code, Kind};
use toolgate_model::approval::{CallLabel, Category};
use toolgate_model::principal::PrincipalId;

use super::sessions::SessionBody;
use crate::body::{Body, optional_object};
use crate::caller::Calling;
use crate::openintent::error::Denied;
use crate::router::App;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AskBody {
    tool: String,
    category: Category,
    arguments: Map<String, Value>,
    #[serde(default, deserialize_with = "optional_object")]
    session: Option<SessionBody>,
    ttl_seconds: Option<u32>,
    call_id: Option<CallLabel>,
    agent_id: Option<PrincipalId>,
    /// Whether whoever asks uses the `arguments` of the answer, where there are any.
    #[serde(default)]
    takes_changes: bool,
}

pub(super) async fn ask(
    State(app): State<Arc<App>>,
    calling: Calling,
    Body(body): Body<AskBody>,
) -> Result<Json<Value>, Denied> {
    let Calling { caller, agent, address } = calling;
    let asked = ExternalCall {
        agent: body.agent_id.or(agent),
        tool: body.tool,
        category: body.category,
        arguments: body.arguments,
        session: body.session.map(|SessionBody { name, workspace }| (name, workspace)),
        wait: body.ttl_seconds.map(|seconds| Duration::from_secs(u64::from(seconds))),
        label: body.call_id,
        takes_changes: body.takes_changes,
        address,
    };
    match app.gate.hooks.ask(caller, asked).await {
        Ok(permit) => {
            let (source, reason) = match (permit.approval, permit.standing.is_empty()) {
                (Some(_), _) => ("person", "a person approved this call"),
                (None, false) => ("standing", "a standing approval covers this call"),
                (None, true) => ("mode", "the mode of the session lets this call pass"),
            };
            Ok(Json(json!({
                "decision": "allow", "reason": reason, "source": source, "approval_id": permit.approval,
                "standing_approval_ids": permit.standing, "invocation_id": permit.invocation,
                "arguments": permit.arguments,
            })))
        }
        // What was decided is an answer; what could not be decided is an error.
        Err(denial) if is_decision(denial.refusal.code()) => {
            let approval = denial.refusal.details().find(|(name, _)| *name == "approval_id").map(|(_, id)| id.clone());
            Ok(Json(json!({
                "decision": "deny", "reason": denial.refusal.reason(), "source": source(denial.refusal.code()),
                "approval_id": approval, "standing_approval_ids": [], "invocation_id": denial.invocation,
            })))
        }
        Err(denial) => Err(denial.into()),
    }
}

fn is_decision(code: Code) -> bool {
    matches!(code.kind(), Kind::Forbidden | Kind::TooMany) && code != Code::PermissionDenied
}

fn source(code: Code) -> &'static str {
    match code {
        Code::ApprovalDenied => "person",
        Code::ApprovalTimedOut | Code::ApprovalCancelled | Code::ApprovalRequired => "nobody",
        _ => "policy",
    }
}
