//! Calls that the client executes itself: the hook of a coding agent waits here for the decision.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use toolgate_api::approvals::{DecisionSource, ExternalCallRequest, ExternalDecision, ExternalVerdict};
use toolgate_gate::call::{CallRequest, ExternalCall};
use toolgate_gate::refusal::{Code, Kind};
use toolgate_model::id::ApprovalId;

use crate::body::Body;
use crate::caller::Calling;
use crate::openintent::error::Denied;
use crate::router::App;

pub(super) async fn ask(
    State(app): State<Arc<App>>,
    calling: Calling,
    Body(body): Body<ExternalCallRequest>,
) -> Result<Json<ExternalDecision>, Denied> {
    let Calling { caller, agent, address } = calling;
    let request = CallRequest {
        agent: body.agent_id.or(agent),
        approval_session: body.session.map(|session| (session.name, session.workspace)),
        approval_wait: body.ttl_seconds.map(|seconds| Duration::from_secs(u64::from(seconds))),
        label: body.call_id,
        ..CallRequest::new(body.tool, body.arguments, address)
    };
    let call = ExternalCall { request, category: body.category, takes_changes: body.takes_changes };
    match app.gate.hooks.ask(caller, call).await {
        Ok(permit) => {
            let (source, reason) = match (permit.approval, permit.standing.is_empty()) {
                (Some(_), _) => (DecisionSource::Person, "a person approved this call"),
                (None, false) => (DecisionSource::Standing, "a standing approval covers this call"),
                (None, true) => (DecisionSource::Mode, "the mode of the session allows this call"),
            };
            Ok(Json(ExternalDecision {
                decision: ExternalVerdict::Allow,
                reason: reason.to_owned(),
                source,
                approval_id: permit.approval,
                standing_approval_ids: permit.standing,
                invocation_id: Some(permit.invocation),
                arguments: permit.arguments,
            }))
        }
        // A decision is a response; what could not be decided is an error.
        Err(denial) if is_decision(denial.refusal.code()) => {
            let approval = denial.refusal.details().find(|(name, _)| *name == "approval_id");
            Ok(Json(ExternalDecision {
                decision: ExternalVerdict::Deny,
                reason: denial.refusal.reason().to_owned(),
                source: source(denial.refusal.code()),
                approval_id: approval.and_then(|(_, id)| ApprovalId::parse(id.as_str()?).ok()),
                standing_approval_ids: Vec::new(),
                invocation_id: denial.invocation,
                arguments: None,
            }))
        }
        Err(denial) => Err(denial.into()),
    }
}

fn is_decision(code: Code) -> bool {
    matches!(code.kind(), Kind::Forbidden | Kind::TooMany) && code != Code::PermissionDenied
}

fn source(code: Code) -> DecisionSource {
    match code {
        Code::ApprovalDenied => DecisionSource::Person,
        Code::ApprovalTimedOut | Code::ApprovalCancelled | Code::ApprovalRequired => DecisionSource::Nobody,
        _ => DecisionSource::Policy,
    }
}
