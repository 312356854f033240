//! The record of the guardians' decisions at one hook: who decided what, by which rule, and the result.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::failure::FailureClass;
use super::hook::Hook;
use super::selector::GuardMode;
use super::verdict::{PolicyRef, VerdictKind};
use crate::id::{ApprovalId, InvocationId};

/// The dialect in which the gate was asked, or asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// None: a call that the gate itself executes.
    #[default]
    Native,
    Aos,
    /// AOS with fragments, as Joch speaks it.
    Joch,
}

impl Dialect {
    pub const ALL: [Self; 3] = [Self::Native, Self::Aos, Self::Joch];

    /// Parses [`Dialect::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.as_str() == text)
    }

    /// The form that is stored, shown and configured.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Aos => "aos",
            Self::Joch => "joch",
        }
    }
}

/// What links a decision to an execution.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceIds {
    /// Links the request of a tool to its result.
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

/// The effect of one guardian's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Enforced,
    /// Recorded only.
    Shadowed,
    /// There was none, which denied.
    FailedClosed,
    /// There was none, which allowed.
    FailedOpen,
    /// Another guardian denied first.
    Cancelled,
}

impl Outcome {
    /// The stored and displayed form.
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

/// The decision of one guardian.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardianRecord {
    /// The dialect in which it was asked.
    pub dialect: Dialect,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureClass>,
    pub guardian: String,
    pub latency_us: u64,
    pub mode: GuardMode,
    pub outcome: Outcome,
    /// The rules that decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PolicyRef>,
    /// The guardian's own reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `None` if it gave none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictKind>,
}

/// What a rule in shadow mode would have decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WouldBe {
    #[serde(flatten)]
    pub policy: PolicyRef,
    pub verdict: VerdictKind,
}

/// The decisions of guardians at one hook, and the result: the payload of `hook.decided`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookDecision {
    /// The approval that was requested.
    #[serde(rename = "approval_id", skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
    /// The dialect in which the gate was asked.
    pub dialect: Dialect,
    /// The resulting verdict.
    pub effective: VerdictKind,
    /// What rules could read besides the content: enough to re-evaluate them.
    #[serde(skip_serializing_if = "is_nothing")]
    pub facts: Option<Value>,
    /// The guardians, in their order.
    pub guardians: Vec<GuardianRecord>,
    /// SHA-256 of the modified content; `None` if it was not modified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash_after: Option<String>,
    /// SHA-256 of the content that was shown, after redaction.
    pub hash_before: String,
    pub hook: Hook,
    #[serde(flatten)]
    pub ids: TraceIds,
    /// The call that it belongs to, if it is one of the gate's own.
    #[serde(rename = "invocation_id", skip_serializing_if = "Option::is_none")]
    pub invocation: Option<InvocationId>,
    /// The active version of the policy set; `None` if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<u64>,
    /// What rules in shadow mode would have decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shadow: Vec<WouldBe>,
    /// The tool, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

fn is_nothing(facts: &Option<Value>) -> bool {
    facts.as_ref().is_none_or(Value::is_null)
}

impl HookDecision {
    /// Why it was modified, and by which rule, by the first guardian that modified it.
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
