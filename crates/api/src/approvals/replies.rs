//! Approvals in their shown form, with what an approver should know before the decision.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_model::approval::{
    self, ApprovalStatus, AskReason, CallLabel, Category, Channel, Decision, SessionName, Workspace,
};
use toolgate_model::id::{ApprovalId, CredentialId, InvocationId, StandingApprovalId};
use toolgate_model::principal::PrincipalId;
use toolgate_model::time::Timestamp;

use super::ApprovalScope;
use crate::reply::Digest;

/// A call that waits for a decision or has had one.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    pub id: ApprovalId,
    pub status: ApprovalStatus,
    /// The call that waits.
    pub invocation_id: InvocationId,
    /// The caller's name for the call.
    pub call_id: Option<CallLabel>,
    /// The agent that the call is made for.
    pub agent_id: PrincipalId,
    /// The principal that makes it.
    pub actor_id: PrincipalId,
    /// The tool, with its service.
    pub tool: String,
    /// Whether the call continues without a connection of its caller.
    pub detached: bool,
    pub category: Category,
    /// What the call does, on one line.
    pub description: String,
    /// The arguments that the decision is for, without secrets; `null` a day after the end.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub arguments: Option<Value>,
    /// The caller's arguments, if a guardian modified them.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub original_arguments: Option<Value>,
    /// What is executed after an approval; `null` for a tool that uses no credential.
    pub action: Option<Action>,
    /// SHA-256 over tool, action, request, canonical arguments, caller and session: what the decision covers.
    #[schemars(with = "Digest")]
    pub digest: String,
    /// Why the call needs an approval.
    #[schemars(length(min = 1))]
    pub reasons: Vec<AskReason>,
    #[serde(flatten)]
    pub presentation: Presentation,
    /// The question, if the tool is one.
    pub question: Option<Question>,
    /// The conversation that the call belongs to.
    pub session: Option<ShownSession>,
    pub approvers: Approvers,
    /// The approver must be in one of these groups; in any group if the list is empty.
    pub groups: BTreeSet<String>,
    /// Whether the principal that made the call cannot decide it.
    pub separation_of_duties: bool,
    /// Whether a decision may cover later calls too.
    pub coverable: bool,
    pub votes: Vec<Vote>,
    /// The reply to the question.
    pub answer: Option<String>,
    /// Why it ended as it did.
    pub reason: Option<String>,
    /// Why later calls are not covered, where that was requested.
    pub notice: Option<String>,
    /// The standing approval that this decision created.
    pub standing_approval_id: Option<StandingApprovalId>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub resolved_at: Option<Timestamp>,
}

impl Approval {
    pub fn new(approval: &approval::Approval, presentation: Presentation) -> Self {
        Self {
            id: approval.id,
            status: approval.status,
            invocation_id: approval.invocation,
            call_id: approval.call.clone(),
            agent_id: approval.agent.clone(),
            actor_id: approval.actor.clone(),
            tool: approval.tool.clone(),
            detached: approval.detached,
            category: approval.category,
            description: approval.description.clone(),
            arguments: approval.arguments.clone(),
            original_arguments: approval.original_arguments.clone(),
            action: approval.action.as_ref().map(Action::from),
            digest: approval.digest.clone(),
            reasons: approval.reasons.clone(),
            presentation,
            question: approval.is_question().then(|| Question::of(approval.arguments.as_ref())),
            session: approval.session.as_ref().map(|session| ShownSession {
                name: session.name.clone(),
                owner_id: session.owner.clone(),
                workspace: session.workspace.clone(),
            }),
            approvers: Approvers { needed: approval.rule.approvers, given: approval.given() },
            groups: approval.rule.groups.clone(),
            separation_of_duties: approval.rule.separation_of_duties,
            coverable: approval.coverable,
            votes: approval.votes.iter().map(Vote::from).collect(),
            answer: approval.answer.clone(),
            reason: approval.reason.clone(),
            notice: approval.notice.clone(),
            standing_approval_id: approval.standing,
            created_at: approval.created_at,
            expires_at: approval.expires_at,
            resolved_at: approval.resolved_at,
        }
    }
}

/// What an approver should know before the decision.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Presentation {
    pub risk: Risk,
    /// The commands of a command line.
    pub parts: Vec<CommandPart>,
    pub offers: Vec<Offer>,
    /// Why no standing approval is offered, where none can be.
    pub no_offer_reason: Option<String>,
}

/// A risk assessment by fixed rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Risk {
    pub level: RiskLevel,
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum RiskLevel {
    Low,
    Medium,
    High,
}

/// One command of a command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandPart {
    pub text: String,
    pub state: CommandState,
    pub why: String,
}

/// Covered by a standing approval, not covered, or not covered and able to do harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum CommandState {
    Granted,
    New,
    Risky,
}

/// A standing approval that an approval could create.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Offer {
    /// The `scope` of a decision that creates it.
    #[schemars(with = "ApprovalScope")]
    pub scope: Value,
    /// What it would cover, as a sentence.
    pub rule: String,
    /// Calls that it would cover.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<String>,
    /// Calls that it would not cover.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub does_not_match: Vec<String>,
}

/// What is executed after an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "BoundAction")]
pub struct Action {
    pub credential_id: CredentialId,
    /// The label of the credential.
    pub credential_label: String,
    /// The method of the request.
    pub method: String,
    /// The host that receives it, with its port where that is not the default.
    pub host: String,
    /// SHA-256 over the tool's definition, the credential and how its service is reached.
    #[schemars(with = "Digest")]
    pub digest: String,
}

impl From<&approval::BoundAction> for Action {
    fn from(action: &approval::BoundAction) -> Self {
        Self {
            credential_id: action.credential,
            credential_label: action.label.clone(),
            method: action.method.clone(),
            host: action.host.clone(),
            digest: action.digest.clone(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Question {
    pub text: Option<String>,
    /// The replies to choose from; none where any text is accepted.
    pub options: Vec<String>,
}

impl Question {
    fn of(arguments: Option<&Value>) -> Self {
        let argument = |name: &str| arguments.and_then(|arguments| arguments.get(name));
        let text = argument("question").and_then(Value::as_str).map(str::to_owned);
        let options = argument("options").and_then(Value::as_array).into_iter().flatten();
        Self { text, options: options.filter_map(Value::as_str).map(str::to_owned).collect() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ShownSession {
    pub name: SessionName,
    pub owner_id: PrincipalId,
    #[schemars(with = "Option<String>")]
    pub workspace: Option<Workspace>,
}

/// How many approvers are needed, and how many have approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Approvers {
    pub needed: u32,
    pub given: u32,
}

/// The decision of one approver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Vote {
    pub by: PrincipalId,
    pub decision: Decision,
    pub channel: Channel,
    pub reason: Option<String>,
    pub at: Timestamp,
}

impl From<&approval::Vote> for Vote {
    fn from(vote: &approval::Vote) -> Self {
        Self {
            by: vote.by.clone(),
            decision: vote.decision,
            channel: vote.channel,
            reason: vote.reason.clone(),
            at: vote.at,
        }
    }
}
