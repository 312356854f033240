//! Approvals: calls that wait for an approver, the decisions, and the standing approvals made from them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolgate_model::approval::{ApprovalStatus, LinkToken, SessionName};
use toolgate_model::id::{ApprovalId, StandingApprovalId};
use toolgate_model::principal::PrincipalId;
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use crate::document::{merge, only_stream, replace_content};
use crate::endpoint::endpoints;
use crate::parameters::{Cursor, DescribedPath, Limit, PathText, inline_schema};
use crate::reply::NextCursor;
use crate::schemas::Schemas;

pub use self::decisions::{
    ApprovalScope, DecisionRequest, DecisionSource, Extent, ExternalCallRequest, ExternalDecision, ExternalVerdict,
    PrefixExtent, ScopeWord,
};
pub use self::replies::{
    Action, Approval, Approvers, CommandPart, CommandState, Offer, Presentation, Question, Risk, RiskLevel,
    ShownSession, Vote,
};
pub use self::sessions::{CallSession, SessionTerms, SessionTermsRequest};
pub use self::standing::{
    CoverageExplanation, CoverageQuestion, ShownCoverage, StandingApproval, StandingApprovalPage, StandingQuery,
};

mod decisions;
mod replies;
mod sessions;
mod standing;

endpoints! {
    tag "approvals" = "Calls that wait for an approver, the decisions, and the standing approvals made from them.";

    /// List approvals, newest first
    ///
    /// With `approvals.decide` those of the tenant, otherwise those of the caller's own calls.
    ListApprovals = GET "/api/v1/approvals" as "list_approvals" {
        query: ApprovalQuery,
        reply: OK ApprovalPage = "A page of approvals.",
    }

    /// Follow the events of approvals
    ///
    /// An endless stream of server-sent events. A caller with `approvals.decide` gets the events of the tenant and
    /// counts as a connected approver; any other caller gets those of its own calls.
    FollowApprovals = GET "/api/v1/approvals/stream" as "follow_approvals" {
        query: StreamQuery,
        reply: OK String = "The events. The `id` of each is its position in the log.",
        stream: Events ApprovalEvent = "Server-sent events with JSON as `data`.",
        amend: describe_stream,
    }

    /// Submit a call for a decision that the client executes itself
    ///
    /// Needs `tools.invoke`. Waits for an approver where the call needs one. Closing the connection withdraws the call.
    AskForExternalCall = POST "/api/v1/approvals/ask" as "ask_for_external_call" {
        body: ExternalCallRequest = {
            "tool": "claude-code.Bash",
            "category": "exec",
            "arguments": {"command": "cargo test"},
            "session": {"name": "a1b2", "workspace": "/home/me/project"}
        },
        reply: OK ExternalDecision = "The decision, for or against.",
        errors: [NotFound],
    }

    /// Show an approval
    ShowApproval = GET "/api/v1/approvals/{approval_id}" as "show_approval" {
        path: ApprovalId,
        reply: OK Approval = "The approval.",
    }

    /// Decide an approval
    ///
    /// Needs `approvals.decide`. The first decision counts, whichever channel it comes through.
    DecideApproval = POST "/api/v1/approvals/{approval_id}/decide" as "decide_approval" {
        path: ApprovalId,
        body: DecisionRequest = {
            "decision": "approve",
            "scope": {"always_prefix": {"prefix": "cargo test", "reach": "workspace", "expires_in_seconds": 86400}}
        },
        reply: OK Approval = "The approval as it is now. It still waits where more approvers are needed.",
        errors: [Gone = "It can no longer be decided; `error.status` says how it ended."],
    }

    /// Redeem a one-time link
    ///
    /// Needs `approvals.decide` in the tenant of the approval. Shows the approval that the link leads to and decides
    /// nothing.
    RedeemApprovalLink = POST "/api/v1/approvals/links/{token}/redeem" as "redeem_approval_link" {
        path: LinkToken,
        reply: OK Approval = "The approval.",
        errors: [Gone = "The link was redeemed already, or the approval has expired."],
    }

    /// Show the page of one-time links
    ///
    /// The same page for every link: it asks for a key and uses the API with it. Opening it neither redeems the link
    /// nor decides anything.
    OpenApprovalLink = GET "/approvals/open/{token}" as "open_approval_link" {
        path: PathText<AnyToken>,
        reply: OK String = "The page.",
        open: true,
        amend: describe_page,
    }

    /// List standing approvals, newest first
    ///
    /// With `approvals.decide` those of the tenant, otherwise those for the caller's own calls.
    ListStandingApprovals = GET "/api/v1/standing-approvals" as "list_standing_approvals" {
        query: StandingQuery,
        reply: OK StandingApprovalPage = "A page of standing approvals.",
    }

    /// Explain whether standing approvals would cover a call
    ///
    /// A dry run: nothing is used, asked or recorded.
    ExplainStandingApprovals = POST "/api/v1/standing-approvals/explain" as "explain_standing_approvals" {
        body: CoverageQuestion = {
            "tool": "claude-code.Bash", "arguments": {"command": "cargo test && cargo fmt"}
        },
        reply: OK CoverageExplanation = "Whether they would, and why.",
    }

    /// Show a standing approval
    ShowStandingApproval = GET "/api/v1/standing-approvals/{standing_approval_id}" as "show_standing_approval" {
        path: StandingApprovalId,
        reply: OK StandingApproval = "The standing approval.",
    }

    /// Revoke a standing approval
    ///
    /// Needs `approvals.decide`. No call that is admitted after the response is based on it.
    RevokeStandingApproval = DELETE "/api/v1/standing-approvals/{standing_approval_id}" as "revoke_standing_approval" {
        path: StandingApprovalId,
        reply: OK StandingApproval = "The standing approval as it is now.",
    }

    /// Show the terms of a session of the caller
    ShowApprovalSession = GET "/api/v1/approval-sessions/{session}" as "show_approval_session" {
        path: SessionName,
        reply: OK SessionTerms = "The terms.",
    }

    /// Set the terms of a session of the caller
    ///
    /// Needs `tools.invoke`. Absent members do not change. Raising the mode needs `approvals.decide` and an operator
    /// who allows it. Calls that already wait are not affected.
    SetApprovalSession = PUT "/api/v1/approval-sessions/{session}" as "set_approval_session" {
        path: SessionName,
        body: SessionTermsRequest = {"ttl_seconds": 60, "attendance": "required"},
        reply: OK SessionTerms = "The terms.",
    }
}

fn describe_stream(operation: &mut Value, schemas: &mut Schemas) {
    only_stream(operation);
    let header = json!({
        "name": "Last-Event-ID",
        "in": "header",
        "description": "The same as `after`, over which it takes precedence.",
        "schema": schemas.request::<EventPosition>(),
    });
    merge(operation, json!({"parameters": [header]}));
}

fn describe_page(operation: &mut Value, _: &mut Schemas) {
    replace_content(operation, json!({"text/html": {"schema": {"type": "string"}}}));
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalQuery {
    /// `pending` for those that wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ApprovalStatus>,
    /// The agent of the call; another than the caller needs `approvals.decide`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<PrincipalId>,
    /// The tool, with its service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<Line>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalPage {
    pub approvals: Vec<Approval>,
    pub next_cursor: NextCursor,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamQuery {
    /// The id of the last event that was received, or `start` for the whole log. Without it and without the header the
    /// stream begins with the next event.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<EventPosition>")]
    pub after: Option<String>,
}

/// An event of the log that concerns an approval.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalEvent {
    pub sequence: u64,
    /// Such as `approval.requested`.
    #[serde(rename = "type")]
    pub kind: String,
    pub timestamp: Timestamp,
    /// The payload of the event.
    #[schemars(with = "Map<String, Value>")]
    pub data: Value,
    /// The approval as it is now; `null` for an event of a standing approval.
    pub approval: Option<Approval>,
}

struct EventPosition;

inline_schema!(EventPosition, "EventPosition", json!({"type": "string", "pattern": "^([0-9]{1,19}|start)$"}));

/// The unverified token of a link.
pub struct AnyToken;

inline_schema!(AnyToken, "AnyToken", json!({"type": "string"}));

impl DescribedPath for AnyToken {
    const DESCRIPTION: &'static str = "The token of a one-time link. Every token leads to the same page.";
}
