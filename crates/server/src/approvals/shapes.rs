//! How approvals look in answers, in one place.

use serde_json::{Value, json};
use toolgate_gate::ports::approver::Presentation;
use toolgate_model::approval::{Approval, BoundAction, Coverage, Reach, StandingApproval};
use toolgate_model::time::Timestamp;

/// An approval, with what a person should know before answering.
pub(crate) fn approval(approval: &Approval, presentation: &Presentation) -> Value {
    let arguments = approval.arguments.as_ref();
    let question = approval.is_question().then(|| {
        let asked = |name: &str| arguments.and_then(|arguments| arguments.get(name)).cloned();
        json!({"text": asked("question"), "options": asked("options").unwrap_or_else(|| json!([]))})
    });
    let votes: Vec<Value> = approval
        .votes
        .iter()
        .map(|vote| {
            json!({
                "by": vote.by, "decision": vote.decision, "channel": vote.channel, "reason": vote.reason, "at": vote.at
            })
        })
        .collect();
    let session = approval
        .session
        .as_ref()
        .map(|session| json!({"name": session.name, "owner_id": session.owner, "workspace": session.workspace}));
    json!({
        "id": approval.id,
        "status": approval.status,
        "invocation_id": approval.invocation,
        "call_id": approval.call,
        "agent_id": approval.agent,
        "actor_id": approval.actor,
        "tool": approval.tool,
        "detached": approval.detached,
        "category": approval.category,
        "description": approval.description,
        "arguments": approval.arguments,
        "original_arguments": approval.original_arguments,
        "action": approval.action.as_ref().map(action),
        "digest": approval.digest,
        "reasons": approval.reasons,
        "risk": presentation.risk,
        "parts": presentation.parts,
        "offers": presentation.offers,
        "no_offer_reason": presentation.no_offer_reason,
        "question": question,
        "session": session,
        "approvers": {"needed": approval.rule.approvers, "given": approval.given()},
        "groups": approval.rule.groups,
        "separation_of_duties": approval.rule.separation_of_duties,
        "coverable": approval.coverable,
        "votes": votes,
        "answer": approval.answer,
        "reason": approval.reason,
        "notice": approval.notice,
        "standing_approval_id": approval.standing,
        "created_at": approval.created_at,
        "expires_at": approval.expires_at,
        "resolved_at": approval.resolved_at,
    })
}

/// What is executed after a yes.
fn action(action: &BoundAction) -> Value {
    json!({
        "credential_id": action.credential, "credential_label": action.label, "method": action.method,
        "host": action.host, "digest": action.digest,
    })
}

/// A standing approval.
pub(crate) fn standing(standing: &StandingApproval, now: Timestamp) -> Value {
    let coverage = match &standing.coverage {
        Coverage::Tool => json!("tool"),
        Coverage::Prefix(words) => json!({"prefix": words}),
    };
    let (session, workspace) = match &standing.reach {
        Reach::Session { name, .. } => (Some(name), None),
        Reach::Workspace(workspace) => (None, Some(workspace)),
        Reach::User => (None, None),
    };
    json!({
        "id": standing.id,
        "agent_id": standing.agent,
        "tool": standing.tool,
        "action": standing.action.as_ref().map(action),
        "coverage": coverage,
        "reach": standing.reach.as_str(),
        "session": session,
        "workspace": workspace,
        "rule": standing.rule(),
        "state": standing.state(now).as_str(),
        "approval_id": standing.source,
        "created_by": standing.created_by,
        "created_at": standing.created_at,
        "expires_at": standing.expires_at,
        "max_uses": standing.max_uses,
        "used": standing.used,
        "last_used_at": standing.last_used_at,
        "revoked_at": standing.revoked_at,
        "revoked_by": standing.revoked_by,
    })
}
