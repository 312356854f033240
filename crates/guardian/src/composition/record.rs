//! The decision record of one event: the verdict of the policies at each evaluation, the decisions of external
//! guardians, and the resulting decision.

use std::time::Duration;

use serde_json::Value;
use toolgate_gate::ports::guardian::Hooked;
use toolgate_model::arguments::arguments_hash;
use toolgate_model::guard::{
    Content, Dialect, GuardMode, GuardianRecord, HookDecision, Outcome, TraceIds, Verdict, WouldBe,
};

use super::PolicyEvaluation;
use super::participant::microseconds;

/// The name of the gate's own policies among the guardians.
const POLICY: &str = "policy";

/// The record so far.
pub(super) struct DecisionRecord<'a> {
    hooked: &'a Hooked<'a>,
    /// `None` if no policies are active.
    policy: Option<GuardianRecord>,
    version: Option<u64>,
    shadow: Vec<WouldBe>,
    facts: Option<Value>,
    /// The external guardians, in their order.
    pub(super) others: Vec<GuardianRecord>,
}

impl<'a> DecisionRecord<'a> {
    /// Starts with the first verdict of the policies.
    pub(super) fn new(hooked: &'a Hooked<'a>, first: &PolicyEvaluation, latency: Duration) -> Self {
        let policy = first.version.map(|_| GuardianRecord {
            guardian: POLICY.to_owned(),
            dialect: Dialect::Native,
            mode: GuardMode::Enforce,
            verdict: None,
            outcome: Outcome::Enforced,
            reason: None,
            policies: Vec::new(),
            failure: None,
            latency_us: 0,
        });
        let (version, facts) = (first.version, first.facts.clone());
        let mut decision_record = Self { hooked, policy, version, shadow: Vec::new(), facts, others: Vec::new() };
        decision_record.add(first, latency);
        decision_record
    }

    /// Adds a verdict of the policies. Of several verdicts the strictest is recorded.
    pub(super) fn add(&mut self, evaluation: &PolicyEvaluation, latency: Duration) {
        for would_be in &evaluation.shadow {
            if !self.shadow.contains(would_be) {
                self.shadow.push(would_be.clone());
            }
        }
        let Some(record) = &mut self.policy else { return };
        let kind = evaluation.verdict.kind();
        if record.verdict.is_none_or(|recorded| recorded < kind) {
            record.verdict = Some(kind);
            record.reason.clone_from(&evaluation.reason);
        }
        for policy in &evaluation.policies {
            if !record.policies.contains(policy) {
                record.policies.push(policy.clone());
            }
        }
        record.latency_us = record.latency_us.saturating_add(microseconds(latency));
    }

    /// The decision to record.
    pub(super) fn decision(self, verdict: &Verdict) -> HookDecision {
        let Self { hooked, .. } = self;
        let event = hooked.event;
        let hash = |content: &Content<'_>| arguments_hash(&content.to_json(), hooked.secrets.unwrap_or_default());
        let hash_after = match verdict {
            Verdict::Pass { content: Some(content), .. } => Some(hash(content)),
            _ => None,
        };
        let owned = |text: &Option<std::borrow::Cow<'_, str>>| text.as_deref().map(str::to_owned);
        HookDecision {
            hook: event.hook,
            dialect: hooked.dialect,
            invocation: hooked.invocation,
            ids: TraceIds {
                execution: owned(&event.execution),
                session: owned(&event.session),
                turn: owned(&event.turn),
                step: owned(&event.step),
                request: hooked.request.map(str::to_owned),
            },
            tool: owned(&event.tool),
            guardians: self.policy.into_iter().chain(self.others).collect(),
            shadow: self.shadow,
            hash_before: hash(&event.content),
            hash_after,
            effective: verdict.kind(),
            approval: None,
            policy_version: self.version,
            facts: self.facts,
        }
    }
}
