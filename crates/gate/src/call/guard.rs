//! Guardians on the request: a denial ends it, a modification goes back through the constraints, an ask demands approval.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use toolgate_model::guard::{
    AgentRef, Ask, Content, Denial, DenialCause, FailureClass, Hook, HookDecision, HookEvent, Verdict,
};
use toolgate_model::time::Timestamp;

use super::Pipeline;
use super::constrain::constrain_all;
use super::eligible::{Alternative, Candidate, EligibleGrant};
use super::steps::GuardedStep;
use super::{Call, RunState, admit};
use crate::ports::guardian::{Hooked, HookedTool, PolicyBasis, Ruling, Subject};
use crate::ports::ledger::{Freshness, MarkScope};
use crate::refusal::{Code, Refusal};

#[cfg(test)]
mod tests;

/// A call that the guardians allow as this action, with its final parameters.
pub(super) struct Guarded {
    alternative: Alternative,
    /// The parameters as modified by guardians, if they were.
    modified: Option<Value>,
    asks: Vec<Ask>,
    judged: Judged,
}

/// What the guardians decided, and by which policies.
#[derive(Clone, Default)]
pub(super) struct Judged {
    pub(super) decision: Option<Box<HookDecision>>,
    pub(super) basis: PolicyBasis,
}

impl Guarded {
    pub(super) fn asks(&self) -> &[Ask] {
        &self.asks
    }

    /// One of the grants that the call may use; a decision for it holds for the others.
    pub(super) fn eligible(&self) -> &EligibleGrant {
        &self.alternative.first
    }

    /// In order of preference.
    pub(super) fn eligible_grants(&self) -> impl Iterator<Item = &EligibleGrant> {
        self.alternative.eligible_grants()
    }

    pub(super) fn modified(&self) -> Option<&Value> {
        self.modified.as_ref()
    }

    pub(super) fn into_parts(self) -> (Alternative, Option<Value>, Judged) {
        (self.alternative, self.modified, self.judged)
    }
}

impl Pipeline {
    /// Consults the guardians about one of the possible actions of the call. Their verdict is for this action only.
    pub(super) async fn guard(
        &self,
        call: &Call,
        alternative: Alternative,
        freshness: Freshness,
        run_state: &mut RunState,
    ) -> Result<Guarded, Refusal> {
        let guarded = self.guard_tool(call, alternative, freshness, run_state).await?;
        let mut guarded = self.guard_its_step(call, guarded, freshness, run_state).await?;
        let parameters = guarded.modified.as_ref().unwrap_or(&call.parameters);
        let (passed, decision) = self.guard_message(call, &guarded.alternative.first, parameters, freshness).await;
        if passed.is_err() && decision.is_some() {
            run_state.decision.clone_from(&decision);
        }
        guarded.asks.extend(passed?);
        guarded.judged.decision = guarded.judged.decision.or(decision);
        Ok(guarded)
    }

    /// Consults the guardians about what the call is besides the call of a tool.
    async fn guard_its_step(
        &self,
        call: &Call,
        mut guarded: Guarded,
        freshness: Freshness,
        run_state: &mut RunState,
    ) -> Result<Guarded, Refusal> {
        let parameters = guarded.modified.as_ref().unwrap_or(&call.parameters);
        let eligible = &guarded.alternative.first;
        let mut denied = None;
        let step = self.guard_step(call, eligible, parameters, freshness, &mut denied).await;
        if denied.is_some() {
            run_state.decision = denied;
        }
        let GuardedStep { modified, asks, basis } = step?;
        guarded.asks.extend(asks);
        if let Some(basis) = basis {
            guarded.judged.basis = guarded.judged.basis.older(basis);
        }
        match modified {
            None => Ok(guarded),
            Some(_) if !call.takes_changes => Err(unchangeable()),
            Some(parameters) => {
                let alternative = modified_alternative(call, guarded.alternative, &parameters)?;
                Ok(Guarded { alternative, modified: Some(parameters), ..guarded })
            }
        }
    }

    async fn guard_tool(
        &self,
        call: &Call,
        alternative: Alternative,
        freshness: Freshness,
        run_state: &mut RunState,
    ) -> Result<Guarded, Refusal> {
        if let Some(basis) = self.unconcerned(call, &alternative.first.candidate, freshness).await? {
            run_state.decision = None;
            let judged = Judged { decision: None, basis };
            return Ok(Guarded { alternative, modified: None, asks: Vec::new(), judged });
        }
        let Ruling { verdict, decision, basis, .. } = self.rule_on(call, &alternative.first, freshness).await?;
        run_state.decision.clone_from(&decision);
        let (content, asks) = match verdict {
            Verdict::Deny(denial) => return Err(refusal_of(denial)),
            Verdict::Pass { content, asks } => (content, asks),
        };
        if content.is_some() && !call.takes_changes {
            // The client would execute the call as requested, whatever the gate modifies.
            return Err(unchangeable());
        }
        let judged = Judged { decision, basis };
        match content.map(|content| *content) {
            None => Ok(Guarded { alternative, modified: None, asks, judged }),
            Some(Content::Arguments(arguments)) => {
                let parameters = Value::Object(arguments.into_owned());
                let alternative = modified_alternative(call, alternative, &parameters)?;
                Ok(Guarded { alternative, modified: Some(parameters), asks, judged })
            }
            Some(changed) if call.asked.as_ref().is_some_and(|asked| asked.hook != Hook::ToolCallRequest) => {
                let modified = Some(json!({"content": changed.to_json()}));
                Ok(Guarded { alternative, modified, asks, judged })
            }
            Some(_) => Err(Refusal::new(
                Code::Internal,
                "a guardian replaced the arguments of a call by other \
                content",
            )),
        }
    }

    /// The basis of the policies if neither rules nor guardians apply to the call. Hook requests of other runtimes are
    /// always evaluated: their decision is recorded.
    async fn unconcerned(
        &self,
        call: &Call,
        candidate: &Candidate,
        freshness: Freshness,
    ) -> Result<Option<PolicyBasis>, Refusal> {
        if call.asked.is_some() {
            return Ok(None);
        }
        let subject = call.subject(candidate, Hook::ToolCallRequest);
        self.guardian.unconcerned(call.caller.tenant(), &subject, freshness).await
    }

    async fn rule_on(&self, call: &Call, eligible: &EligibleGrant, freshness: Freshness) -> Result<Ruling, Refusal> {
        let nothing = Map::new();
        let arguments = call.parameters.as_object().unwrap_or(&nothing);
        let content = match &call.asked {
            // An event that is not about a tool is shown as it is.
            Some(asked) if asked.hook != Hook::ToolCallRequest => asked.content.clone(),
            _ => Content::Arguments(Cow::Borrowed(arguments)),
        };
        let hook = call.asked.as_ref().map_or(Hook::ToolCallRequest, |asked| asked.hook);
        let event = call.event(&eligible.candidate, hook, content, self.clock.now());
        let hooked = call.hooked(&eligible.candidate, &event, freshness, None);
        let ruling = self.guardian.judge(&hooked).await?;
        if !ruling.lacks_secrets {
            return Ok(ruling);
        }
        let opened = self.open(eligible).await;
        if let Some(Err(refusal)) = &opened {
            return Err(refusal.clone());
        }
        let secrets = admit::secrets(&opened);
        self.guardian.judge(&Hooked { secrets: Some(&secrets), ..hooked }).await
    }
}

/// The same action with modified parameters, as far as the grants allow it.
fn modified_alternative(call: &Call, alternative: Alternative, parameters: &Value) -> Result<Alternative, Refusal> {
    let candidates = alternative.into_eligible_grants().map(|eligible| eligible.candidate).collect();
    let mut changed = constrain_all(call, candidates, parameters)?.into_alternatives().into_iter();
    // INVARIANT: definition and credential are the same as before, so it is still one action.
    changed.next().ok_or_else(|| Refusal::new(Code::Internal, "a call has no action after its consultation"))
}

/// The client would execute the call as requested, whatever the gate modifies.
fn unchangeable() -> Refusal {
    let reason =
        "policies or guardians allow this call only with modified arguments, and the caller cannot modify them";
    Refusal::new(Code::GuardianDenied, reason)
}

impl Call {
    /// The principals and objects of an event of this call.
    pub(super) fn subject<'a>(&'a self, candidate: &'a Candidate, hook: Hook) -> Subject<'a> {
        let (tool, asked) = (&candidate.tool, self.asked.as_deref());
        let about_tool = matches!(hook, Hook::ToolCallRequest | Hook::ToolCallResult);
        Subject {
            hook,
            agent: &self.agent,
            principal: candidate.agent.as_deref(),
            actor: self.caller.principal(),
            tool: about_tool.then_some(HookedTool {
                service: &tool.service,
                name: tool.qualified_name(),
                definition: &tool.definition,
                external: candidate.is_client_executed() && !asked.is_some_and(|asked| asked.standing.is_governed()),
                registry: candidate.registry.filter(|_| tool.version.is_some()),
            }),
            dialect: asked.map(|asked| asked.dialect).unwrap_or_default(),
        }
    }

    /// The event for guardians. Its time is that of the evaluation: a call may have waited for days.
    pub(super) fn event<'a>(
        &'a self,
        candidate: &'a Candidate,
        hook: Hook,
        content: Content<'a>,
        time: Timestamp,
    ) -> HookEvent<'a> {
        let asked = self.asked.as_deref();
        let borrowed = |text: &'a Option<String>| text.as_deref().map(Cow::Borrowed);
        let own_session = || Some(Cow::Borrowed(self.approval_session.as_ref()?.name.as_str()));
        HookEvent {
            hook,
            agent: AgentRef {
                id: Cow::Borrowed(self.agent.as_str()),
                name: candidate.agent.as_ref().and_then(|agent| Some(Cow::Borrowed(agent.name.as_ref()?.as_str()))),
            },
            tool: match asked.and_then(|asked| asked.tool.as_deref()) {
                Some(named) => Some(Cow::Borrowed(named)),
                None => Some(Cow::Borrowed(candidate.tool.qualified_name())),
            },
            execution: match asked.and_then(|asked| asked.ids.execution.as_deref()) {
                Some(execution) => Some(Cow::Borrowed(execution)),
                None => Some(Cow::Owned(self.id.to_string())),
            },
            session: asked.and_then(|asked| borrowed(&asked.ids.session)).or_else(own_session),
            turn: asked.and_then(|asked| borrowed(&asked.ids.turn)),
            step: asked.and_then(|asked| borrowed(&asked.ids.step)),
            user: asked.and_then(|asked| borrowed(&asked.user)),
            method: asked.and_then(|asked| borrowed(&asked.method)),
            reasoning: borrowed(&self.reasoning),
            time,
            content,
        }
    }

    /// The same with everything that the gate knows.
    pub(super) fn hooked<'a>(
        &'a self,
        candidate: &'a Candidate,
        event: &'a HookEvent<'a>,
        freshness: Freshness,
        secrets: Option<&'a [&'a [u8]]>,
    ) -> Hooked<'a> {
        let asked = self.asked.as_deref();
        Hooked {
            event,
            dialect: asked.map(|asked| asked.dialect).unwrap_or_default(),
            request: asked.and_then(|asked| asked.ids.request.as_deref()),
            tenant: self.caller.tenant(),
            invocation: Some(self.id),
            agent: &self.agent,
            principal: candidate.agent.as_ref(),
            actor: self.caller.principal(),
            tool: self.subject(candidate, event.hook).tool,
            arguments: None,
            run: self.run.as_ref(),
            marks: self.mark_scope(),
            address: self.address,
            freshness,
            secrets,
        }
    }

    /// Whose earlier calls count as leading to this one.
    pub(super) fn mark_scope(&self) -> MarkScope {
        let session = match &self.approval_session {
            Some(session) if session.owner != self.agent => session.name.as_str().to_owned(),
            _ => String::new(),
        };
        MarkScope { agent: self.agent.clone(), session }
    }
}

/// A guardian's denial as a refusal for the caller.
pub(super) fn refusal_of(denial: Denial) -> Refusal {
    let Denial { cause, reason, policy } = denial;
    let refusal = match cause {
        DenialCause::Policy => Refusal::new(Code::PolicyDenied, reason),
        DenialCause::Unevaluable => Refusal::new(Code::PolicyUnevaluable, reason),
        DenialCause::Guardian(guardian) => Refusal::new(Code::GuardianDenied, reason).with("guardian", guardian),
        DenialCause::Failure { guardian, class } => {
            let code = match class {
                FailureClass::Timeout => Code::GuardianTimedOut,
                _ => Code::GuardianFailed,
            };
            Refusal::new(code, reason).with("guardian", guardian).with("failure", class.as_str())
        }
        DenialCause::Authority { code } => Refusal::new(Code::GuardianDenied, reason).with("refused_as", code),
    };
    match policy {
        Some(policy) => refusal.with("policy_id", policy.id).with("policy_version", policy.version),
        None => refusal,
    }
}
