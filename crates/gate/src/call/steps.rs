//! Guardians on the step that a call is besides the call of a tool: what is stored in a memory, sent to another agent or to a
//! model, and what comes back. Where no rule and no guardian is concerned, nothing is put together.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use toolgate_model::approval::Category;
use toolgate_model::guard::{Ask, Content, Hook, HookDecision, HookEvent, Verdict};
use toolgate_model::step::{Step, StepError, StepQuestion};

use super::eligible::{Candidate, EligibleGrant};
use super::hooks::unknown_tool;
use super::{Call, Pipeline, admit, guard};
use crate::catalog::Tool;
use crate::ports::guardian::{Hooked, HookedTool, PolicyBasis, Ruling, Subject};
use crate::ports::ledger::{Freshness, RecordDecision};
use crate::refusal::{Code, Refusal};

#[cfg(test)]
mod tests;

/// What guardians decided about the questions of a request.
#[derive(Default)]
pub(super) struct GuardedStep {
    /// The parameters, if they were modified.
    pub(super) modified: Option<Value>,
    pub(super) asks: Vec<Ask>,
    /// The policies that the answers are based on.
    pub(super) basis: Option<PolicyBasis>,
}

/// A decision about one question.
pub(super) struct Answered {
    pub(super) content: Option<Content<'static>>,
    pub(super) asks: Vec<Ask>,
    pub(super) basis: PolicyBasis,
}

impl Candidate {
    /// The step of the call. A client that executes the tool itself raises its hooks itself.
    pub(super) fn step(&self) -> Option<&Step> {
        self.tool.definition.step.as_ref().filter(|_| !self.is_client_executed())
    }
}

impl Pipeline {
    /// Asks about the request of a step. The decision of a denial is recorded with the refusal of the call.
    pub(super) async fn guard_step(
        &self,
        call: &Call,
        eligible: &EligibleGrant,
        parameters: &Value,
        freshness: Freshness,
        denied: &mut Option<Box<HookDecision>>,
    ) -> Result<GuardedStep, Refusal> {
        let mut guarded = GuardedStep::default();
        let Some(step) = eligible.candidate.step() else { return Ok(guarded) };
        let candidate = &eligible.candidate;
        let tools = step.client_tools(parameters);
        if !self.concerns_any(call, candidate, (step.request_hooks(), &tools), freshness).await? {
            return Ok(guarded);
        }
        let mut parameters = Cow::Borrowed(parameters);
        for question in step.of_request(&parameters).map_err(|error| unreadable(&error))? {
            let (answered, decision) = self.ask_about(call, candidate, &question, freshness, Some(eligible)).await;
            let answered = match (answered, decision) {
                (Err(refusal), decision) => {
                    *denied = decision;
                    return Err(refusal);
                }
                (Ok(answered), decision) => {
                    self.record_decision(call, decision).await?;
                    answered
                }
            };
            guarded.asks.extend(answered.asks);
            guarded.basis = Some(guarded.basis.map_or(answered.basis, |basis| basis.older(answered.basis)));
            if let Some(content) = answered.content {
                step.replace(parameters.to_mut(), &question, content).map_err(|error| unmodifiable(&error))?;
            }
        }
        if let Cow::Owned(modified) = parameters {
            guarded.modified = Some(modified);
        }
        Ok(guarded)
    }

    /// Asks about the result of a step. It is too late for an approval.
    pub(super) async fn inspect_step(
        &self,
        call: &Call,
        candidate: &Candidate,
        parameters: &Value,
        mut result: Value,
        freshness: Freshness,
    ) -> Result<Value, Refusal> {
        let Some(step) = candidate.step() else { return Ok(result) };
        let tools = step.client_tools(parameters);
        if !self.concerns_any(call, candidate, (step.response_hooks(), &tools), freshness).await? {
            return Ok(result);
        }
        for question in step.of_response(parameters, &result).map_err(|error| unreadable(&error))? {
            if let Some(content) = self.pass(call, candidate, &question, freshness).await? {
                step.replace(&mut result, &question, content).map_err(|error| unmodifiable(&error))?;
            }
        }
        Ok(result)
    }

    /// Asks about a part of a result, and records the decision. It is too late for an approval. Every form of the secret was
    /// redacted before. Returns the content if it was modified.
    pub(super) async fn pass(
        &self,
        call: &Call,
        candidate: &Candidate,
        question: &StepQuestion,
        freshness: Freshness,
    ) -> Result<Option<Content<'static>>, Refusal> {
        let (answered, decision) = self.ask_about(call, candidate, question, freshness, None).await;
        self.record_decision(call, decision).await?;
        let answered = answered?;
        if answered.asks.is_empty() { Ok(answered.content) } else { Err(too_late()) }
    }

    /// What guardians decide about one question: of a request with these grants, in which the secret may stand, or of a result
    /// without them.
    async fn ask_about(
        &self,
        call: &Call,
        candidate: &Candidate,
        question: &StepQuestion,
        freshness: Freshness,
        request: Option<&EligibleGrant>,
    ) -> (Result<Answered, Refusal>, Option<Box<HookDecision>>) {
        let foreign = match foreign_tool(question) {
            Ok(foreign) => foreign,
            Err(refusal) => return (Err(refusal), None),
        };
        let subject = Subject { tool: foreign.as_deref().map(hooked_tool), ..call.subject(candidate, question.hook) };
        match self.guardian.unconcerned(call.caller.tenant(), &subject, freshness).await {
            Ok(Some(basis)) => return (Ok(Answered { content: None, asks: Vec::new(), basis }), None),
            Ok(None) => {}
            Err(refusal) => return (Err(refusal), None),
        }
        let event = call.event(candidate, question.hook, question.content.clone(), self.clock.now());
        let own = |text: &Option<String>| text.clone().map(Cow::Owned);
        let event = HookEvent {
            tool: own(&question.tool).or(event.tool),
            execution: own(&question.execution).or(event.execution),
            method: own(&question.method).or(event.method),
            ..event
        };
        let none: &[&[u8]] = &[];
        let secrets = if request.is_some() { None } else { Some(none) };
        let hooked = Hooked { tool: subject.tool, ..call.hooked(candidate, &event, freshness, secrets) };
        let judged = match (self.guardian.judge(&hooked).await, request) {
            (Ok(Ruling { lacks_secrets: true, .. }), Some(eligible)) => {
                let opened = self.open(eligible).await;
                if let Some(Err(refusal)) = &opened {
                    return (Err(refusal.clone()), None);
                }
                let secrets = admit::secrets(&opened);
                self.guardian.judge(&Hooked { secrets: Some(&secrets), ..hooked }).await
            }
            (judged, _) => judged,
        };
        match judged {
            Err(refusal) => (Err(refusal), None),
            Ok(Ruling { verdict: Verdict::Deny(denial), decision, .. }) => (Err(guard::refusal_of(denial)), decision),
            Ok(Ruling { verdict: Verdict::Pass { content, asks }, decision, basis, .. }) => {
                (Ok(Answered { content: content.map(|content| *content), asks, basis }), decision)
            }
        }
    }

    /// Whether anybody is concerned by any of these hooks, those about tools being about these tools of the client.
    pub(super) async fn concerns_any(
        &self,
        call: &Call,
        candidate: &Candidate,
        (hooks, tools): (&[Hook], &[String]),
        freshness: Freshness,
    ) -> Result<bool, Refusal> {
        let tenant = call.caller.tenant();
        for &hook in hooks {
            if !matches!(hook, Hook::ToolCallRequest | Hook::ToolCallResult) {
                let subject = call.subject(candidate, hook);
                if self.guardian.unconcerned(tenant, &subject, freshness).await?.is_none() {
                    return Ok(true);
                }
                continue;
            }
            for named in tools {
                let tool = unknown_tool(named, Category::Mcp)?;
                let subject = Subject { tool: Some(hooked_tool(&tool)), ..call.subject(candidate, hook) };
                if self.guardian.unconcerned(tenant, &subject, freshness).await?.is_none() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Records a decision of its own: the record of the call has only one.
    pub(super) async fn record_decision(
        &self,
        call: &Call,
        decision: Option<Box<HookDecision>>,
    ) -> Result<(), Refusal> {
        let Some(decision) = decision else { return Ok(()) };
        let decision = Box::new(HookDecision { invocation: Some(call.id), ..*decision });
        let (audit, agent) = (self.audit(&call.caller), call.agent.clone());
        self.calls.record_decision(RecordDecision { audit, agent, run: call.run.clone(), decision }).await
    }
}

/// The tool of a question about one that the client executes.
fn foreign_tool(question: &StepQuestion) -> Result<Option<Arc<Tool>>, Refusal> {
    match (question.hook, &question.tool) {
        (Hook::ToolCallRequest | Hook::ToolCallResult, Some(named)) => {
            unknown_tool(named, Category::Mcp).map(|tool| Some(Arc::new(tool)))
        }
        _ => Ok(None),
    }
}

fn hooked_tool(tool: &Tool) -> HookedTool<'_> {
    HookedTool {
        service: &tool.service,
        name: tool.qualified_name(),
        definition: &tool.definition,
        external: true,
        registry: None,
    }
}

/// Content that nobody can judge does not pass.
pub(super) fn unreadable(error: &StepError) -> Refusal {
    let place = if error.path.is_empty() { String::new() } else { format!(" `{}`", error.path) };
    let reason = format!("guardians must decide about this call, and it cannot be read:{place} {}", error.reason);
    Refusal::new(Code::GuardianDenied, reason)
}

pub(super) fn unmodifiable(error: &StepError) -> Refusal {
    let reason = format!("policies or guardians allow this only with a modification that is not possible: {error}");
    Refusal::new(Code::GuardianDenied, reason)
}

fn too_late() -> Refusal {
    let reason = "a rule requires a person's approval of a result, and it is too late to request one";
    Refusal::new(Code::GuardianDenied, reason)
}
