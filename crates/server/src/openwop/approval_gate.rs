//! The conformance endpoint for approval gates (RFC 0051): a real call waits for two approvers, a principal decides,
//! and the response shows what is in the log afterwards.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolgate_gate::call::{Presence, Progress};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_gate::request_context::in_current_request;
use toolgate_model::approval::{ApprovalStatus, Decision};
use toolgate_model::hook::RunId;
use toolgate_model::principal::PrincipalId;

use super::conformance::{Sent, call_of, of_run};
use super::error::Flat;
use super::reading::Seen;
use crate::router::App;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GateBody {
    scenario: Scenario,
    principal: PrincipalId,
    reason: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Scenario {
    /// Approves without the right to.
    UnauthorizedGrant,
    /// Approves; one approval of two.
    Grant,
    Reject,
    /// Approves alone, with a reason.
    Override,
}

pub(super) async fn approval_gate(
    State(app): State<Arc<App>>,
    Sent { caller, address, body }: Sent<GateBody>,
) -> Result<Json<Value>, Flat> {
    // A made-up principal of the suite has no permissions. If the scenario needs some, the suite decides with its own.
    let made_up = !app.gate.conformance.knows_principal(&caller, &body.principal).await?;
    let decider = match body.scenario {
        Scenario::UnauthorizedGrant => body.principal,
        _ if made_up => caller.id().clone(),
        _ => body.principal,
    };
    let decision = match body.scenario {
        Scenario::UnauthorizedGrant | Scenario::Grant => Decision::Approve,
        Scenario::Reject => Decision::Deny,
        Scenario::Override => Decision::Override,
    };
    let (observer, mut progress) = mpsc::unbounded_channel();
    let (waiting, presence) = Presence::new();
    let (gate, maker) = (Arc::clone(&app.gate), caller.clone());
    let asking = async move { gate.conformance.conformance_gate(maker, address, observer, presence).await };
    let call = tokio::spawn(in_current_request(asking));
    let mut asked = None;
    while let Some(step) = progress.recv().await {
        if let Progress::Asked(approval) = step {
            asked = Some(approval);
            break;
        }
    }
    let ended = match &asked {
        Some(approval) => {
            let decided =
                app.gate.conformance.conformance_decision(&caller, approval, decider, decision, body.reason).await;
            match decided {
                Ok(approval) => approval.status != ApprovalStatus::Pending,
                // The missing permission is what the scenario tests; everything else is an error of the suite.
                Err(refusal) if refusal.code() == Code::PermissionDenied => false,
                Err(refusal) => return Err(refusal.into()),
            }
        }
        None => true,
    };
    if !ended {
        // No decision will follow: the call is cancelled.
        drop(waiting);
    }
    let lost = |_| Refusal::new(Code::Internal, "the call of the conformance endpoint was not recorded");
    let outcome = call.await.map_err(lost)?;
    let run =
        RunId::parse(&call_of(&outcome)?).map_err(|_| Refusal::new(Code::Internal, "an id is not a valid name"))?;
    let events = of_run(&app, &caller, &run).await?;
    let decided = |seen: &&Seen| seen.event.payload.approval_decided().is_some();
    let event = events.iter().rfind(decided).map(|seen| &seen.shown);
    let event = event.map(|event| json!({"type": event.kind, "payload": event.payload}));
    Ok(Json(json!({"released": outcome.is_ok(), "event": event})))
}
