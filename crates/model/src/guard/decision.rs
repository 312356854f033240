//! The record of what guardians said at one point: who said what, by which rule, and what came of it.

use serde_json::{Map, Value, json};

use super::failure::FailureClass;
use super::hook::Hook;
use super::selector::GuardMode;
use super::verdict::{PolicyRef, VerdictKind};
use crate::id::{ApprovalId, InvocationId};

/// In whose words the gate was asked, or asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceIds {
    /// What ties the request of a tool to its result.
    pub execution: Option<String>,
    /// The conversation.
    pub session: Option<String>,
    /// Its turn.
    pub turn: Option<String>,
    /// The step of the turn.
    pub step: Option<String>,
    /// The id of the question.
    pub request: Option<String>,
}

/// What became of one guardian's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardianRecord {
    /// Which.
    pub guardian: String,
    /// In whose words it was asked.
    pub dialect: Dialect,
    /// Whether its word counts.
    pub mode: GuardMode,
    /// What it said; `None` where it said nothing.
    pub verdict: Option<VerdictKind>,
    /// What became of that.
    pub outcome: Outcome,
    /// Why, in its words.
    pub reason: Option<String>,
    /// By which rules.
    pub policies: Vec<PolicyRef>,
    /// What went wrong.
    pub failure: Option<FailureClass>,
    /// How long it took, in microseconds.
    pub latency_us: u64,
}

/// What a rule in shadow would have said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WouldBe {
    /// Which rule.
    pub policy: PolicyRef,
    /// What it would have said.
    pub verdict: VerdictKind,
}

/// What guardians said at one point, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct HookDecision {
    /// At which point.
    pub hook: Hook,
    /// In whose words the gate was asked.
    pub dialect: Dialect,
    /// The call that it belongs to, where it is one of the gate's own.
    pub invocation: Option<InvocationId>,
    /// What ties it to an execution.
    pub ids: TraceIds,
    /// The tool, where it is about one.
    pub tool: Option<String>,
    /// What each guardian said, in the order in which they count.
    pub guardians: Vec<GuardianRecord>,
    /// What rules in shadow would have said.
    pub shadow: Vec<WouldBe>,
    /// SHA-256 of the content that was shown, after redaction.
    pub hash_before: String,
    /// SHA-256 of what it became; `None` where it was not changed.
    pub hash_after: Option<String>,
    /// What came of it.
    pub effective: VerdictKind,
    /// The approval that was asked for.
    pub approval: Option<ApprovalId>,
    /// The version of the policy set that was active; `None` where there was none.
    pub policy_version: Option<u64>,
    /// What rules could see besides the content: enough to judge it again.
    pub facts: Option<Value>,
}

impl HookDecision {
    /// Its data in the log.
    pub fn data(&self) -> Value {
        let Self { ids, .. } = self;
        let mut data = Map::new();
        let mut put = |name: &str, value: Value| {
            if !value.is_null() {
                data.insert(name.to_owned(), value);
            }
        };
        put("hook", json!(self.hook.as_str()));
        put("dialect", json!(self.dialect.as_str()));
        put("invocation_id", json!(self.invocation));
        for (name, id) in [
            ("execution_id", &ids.execution),
            ("session_id", &ids.session),
            ("turn_id", &ids.turn),
            ("step_id", &ids.step),
            ("request_id", &ids.request),
        ] {
            put(name, json!(id));
        }
        put("tool", json!(self.tool));
        put("guardians", self.guardians.iter().map(GuardianRecord::data).collect());
        if !self.shadow.is_empty() {
            put("shadow", self.shadow.iter().map(WouldBe::data).collect());
        }
        put("hash_before", json!(self.hash_before));
        put("hash_after", json!(self.hash_after));
        put("effective", json!(self.effective.as_str()));
        put("approval_id", json!(self.approval));
        put("policy_version", json!(self.policy_version));
        put("facts", json!(self.facts));
        Value::Object(data)
    }

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

impl GuardianRecord {
    fn data(&self) -> Value {
        let mut data = json!({
            "guardian": self.guardian, "dialect": self.dialect.as_str(), "mode": self.mode.as_str(),
            "outcome": self.outcome.as_str(), "latency_us": self.latency_us,
        });
        let Value::Object(members) = &mut data else { return data };
        if let Some(verdict) = self.verdict {
            members.insert("verdict".to_owned(), json!(verdict.as_str()));
        }
        if let Some(reason) = &self.reason {
            members.insert("reason".to_owned(), json!(reason));
        }
        if !self.policies.is_empty() {
            members.insert("policies".to_owned(), self.policies.iter().map(PolicyRef::data).collect());
        }
        if let Some(failure) = self.failure {
            members.insert("failure".to_owned(), json!(failure.as_str()));
        }
        data
    }
}

impl WouldBe {
    fn data(&self) -> Value {
        json!({
            "policy_id": self.policy.id, "policy_version": self.policy.version, "verdict": self.verdict.as_str(),
        })
    }
}

impl PolicyRef {
    fn data(&self) -> Value {
        json!({"policy_id": self.id, "policy_version": self.version})
    }
}
