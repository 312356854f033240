//! The record of what guardians said at one point: who said what, by which rule, and what came of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::failure::FailureClass;
use super::hook::Hook;
use super::selector::GuardMode;
use super::verdict::{PolicyRef, VerdictKind};
use crate::id::{ApprovalId, InvocationId};

/// In whose words the gate was asked, or asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Nobody's: a call that the gate itself carries out.
    #[default]
    Native,
    /// OWASP AOS.
    Aos,
    /// AOS with fragments, as Joch speaks it.
    Joch,
}

impl Dialect {
    pub const ALL: [Self; 3] = [Self::Native, Self::Aos, Self::Joch];

    /// Reads [`Dialect::as_str`] back.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.as_str() == text)
    }

    /// As it is stored, shown and configured.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Aos => "aos",
            Self::Joch => "joch",
        }
    }
}

/// What ties a decision to an execution.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceIds {
    /// What ties the request of a tool to its result.
    #[serde(rename = "execution_id", skip_serializing_if = "Option::is_none")]
    pub execution: Option<String>,
    /// The id of the question.
    #[serde(rename = "request_id", skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The conversation.
    #[serde(rename = "session_id", skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The step of the turn.
    #[serde(rename = "step_id", skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The turn of the conversation.
    #[serde(rename = "turn_id", skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
}

/// What became of one guardian's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It counted.
    Enforced,
    /// It was only written down.
    Shadowed,
    /// There was none, and so it was a no.
    FailedClosed,
    /// There was none, and it passed for a yes.
    FailedOpen,
    /// Another's no came first.
    Cancelled,
}

impl Outcome {
    /// As it is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforced => "enforced",
            Self::Shadowed => "shadowed",
            Self::FailedClosed => "failed_closed",
            Self::FailedOpen => "failed_open",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What one guardian said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardianRecord {
    /// The dialect that it was asked in.
    pub dialect: Dialect,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureClass>,
    /// Its name.
    pub guardian: String,
    /// How long it took, in microseconds.
    pub latency_us: u64,
    pub mode: GuardMode,
    /// What became of the verdict.
    pub outcome: Outcome,
    /// The rules behind the verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PolicyRef>,
    /// Why, in its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `None` where it gave none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictKind>,
}

/// What a rule in shadow mode would have said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WouldBe {
    #[serde(flatten)]
    pub policy: PolicyRef,
    pub verdict: VerdictKind,
}

/// What guardians said at one hook, and what came of it: the payload of `hook.decided`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookDecision {
    /// The approval that was asked for.
    #[serde(rename = "approval_id", skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
    /// The dialect that the gate was asked in.
    pub dialect: Dialect,
    /// What came of it.
    pub effective: VerdictKind,
    /// What rules could see besides the content: enough to evaluate them again.
    #[serde(skip_serializing_if = "is_nothing")]
    pub facts: Option<Value>,
    /// What each guardian said, in the order in which they count.
    pub guardians: Vec<GuardianRecord>,
    /// SHA-256 of what the content became; `None` where it was not changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash_after: Option<String>,
    /// SHA-256 of the content that was shown, after redaction.
    pub hash_before: String,
    pub hook: Hook,
    #[serde(flatten)]
    pub ids: TraceIds,
    /// The call that it belongs to, where it is one of the gate's own.
    #[serde(rename = "invocation_id", skip_serializing_if = "Option::is_none")]
    pub invocation: Option<InvocationId>,
    /// The version of the policy set that was active; `None` where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<u64>,
    /// What rules in shadow mode would have said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shadow: Vec<WouldBe>,
    /// The tool, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

fn is_nothing(facts: &Option<Value>) -> bool {
    facts.as_ref().is_none_or(Value::is_null)
}

impl HookDecision {
    /// Why it was changed, and by which rule, as the first says who changed it.
    pub fn why_changed(&self) -> (Option<String>, Option<PolicyRef>) {
        let is_change = |record: &&GuardianRecord| {
            record.mode == GuardMode::Enforce && matches!(record.verdict, Some(VerdictKind::Modify | VerdictKind::Ask))
        };
        let changing = self.guardians.iter().find(is_change);
        changing.map(|record| (record.reason.clone(), record.policies.first().cloned())).unwrap_or_default()
    }

    /// Whether something passed only because a guardian failed.
    pub fn failed_open(&self) -> bool {
        self.guardians.iter().any(|record| record.outcome == Outcome::FailedOpen)
    }
}
