//! Standing approvals: decisions that also cover later calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_model::approval::{self, Coverage, Reach, SessionName, StandingState, Workspace};
use toolgate_model::id::{ApprovalId, StandingApprovalId};
use toolgate_model::principal::PrincipalId;
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use super::{Action, CallSession};
use crate::endpoint::RequestBody;
use crate::parameters::{Cursor, Limit};
use crate::reading::optional_object;
use crate::reply::NextCursor;

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StandingQuery {
    /// The agent whose calls are covered; another than the caller needs `approvals.decide`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<PrincipalId>,
    /// The tool, with its service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<Line>,
    /// Whether to list only those that still cover calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub active: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct StandingApprovalPage {
    pub standing_approvals: Vec<StandingApproval>,
    pub next_cursor: NextCursor,
}

/// A decision that also covers later calls.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StandingApproval {
    pub id: StandingApprovalId,
    /// The agent whose calls are covered.
    pub agent_id: PrincipalId,
    /// The tool, with its service.
    pub tool: String,
    /// The action that was approved; `null` for a tool that uses no credential.
    pub action: Option<Action>,
    pub coverage: ShownCoverage,
    #[schemars(with = "approval::RequestedReach")]
    pub reach: String,
    /// The session, where it reaches one session.
    pub session: Option<SessionName>,
    /// The directory, where it reaches one directory.
    #[schemars(with = "Option<String>")]
    pub workspace: Option<Workspace>,
    /// What it covers, as a sentence.
    pub rule: String,
    pub state: StandingState,
    /// The decision that created it.
    pub approval_id: ApprovalId,
    pub created_by: PrincipalId,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub max_uses: Option<u64>,
    pub used: u64,
    pub last_used_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    pub revoked_by: Option<PrincipalId>,
}

impl StandingApproval {
    pub fn new(standing: &approval::StandingApproval, now: Timestamp) -> Self {
        let (session, workspace) = match &standing.reach {
            Reach::Session { name, .. } => (Some(name.clone()), None),
            Reach::Workspace(workspace) => (None, Some(workspace.clone())),
            Reach::User => (None, None),
        };
        Self {
            id: standing.id,
            agent_id: standing.agent.clone(),
            tool: standing.tool.clone(),
            action: standing.action.as_ref().map(Action::from),
            coverage: match &standing.coverage {
                Coverage::Tool => ShownCoverage::Tool,
                Coverage::Prefix(words) => ShownCoverage::Prefix { prefix: words.clone() },
            },
            reach: standing.reach.as_str().to_owned(),
            session,
            workspace,
            rule: standing.rule(),
            state: standing.state(now),
            approval_id: standing.source,
            created_by: standing.created_by.clone(),
            created_at: standing.created_at,
            expires_at: standing.expires_at,
            max_uses: standing.max_uses,
            used: standing.used,
            last_used_at: standing.last_used_at,
            revoked_at: standing.revoked_at,
            revoked_by: standing.revoked_by.clone(),
        }
    }
}

/// All calls of the tool, or those whose commands begin with these words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ShownCoverage {
    Tool,
    #[serde(untagged)]
    Prefix {
        #[schemars(length(min = 1))]
        prefix: Vec<String>,
    },
}

/// A call that standing approvals may cover.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoverageQuestion {
    /// The caller where absent; another principal needs `approvals.decide`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<PrincipalId>,
    pub tool: Line,
    pub arguments: Map<String, Value>,
    #[serde(default, deserialize_with = "optional_object", skip_serializing_if = "Option::is_none")]
    pub session: Option<CallSession>,
}

impl RequestBody for CoverageQuestion {}

/// Whether a call is covered.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CoverageAnswer")]
pub struct CoverageExplanation {
    pub covered: bool,
    pub why: String,
    /// All that are needed to cover it.
    pub standing_approval_ids: Vec<StandingApprovalId>,
}
