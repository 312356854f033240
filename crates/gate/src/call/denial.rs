//! Refusals and their records: the only place that records them, with the grant and the service that they concern.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_model::arguments::arguments_hash;
use toolgate_model::credential::ServiceName;
use toolgate_model::hook::ToolReturned;
use toolgate_model::id::{GrantId, InvocationId};
use toolgate_model::invocation::{Invocation, InvocationError, InvocationStatus};
use toolgate_model::time::Timestamp;

use super::Pipeline;
use super::admit::shown;
use super::detached::StoredOutcome;
use super::eligible::Candidate;
use super::resolve::tool_part;
use super::{Call, RunState};
use crate::ports::ledger::{Freshness, HeldGrant, RecordDenial};
use crate::refusal::{Code, Kind, Refusal, Stage};

#[cfg(test)]
mod tests;

/// A call without a result: refused, or admitted and never settled.
#[derive(Debug, Clone, PartialEq)]
pub struct Denial {
    /// The record of the call; `None` if nothing could be recorded, or if it is recorded in a summary.
    pub invocation: Option<InvocationId>,
    pub refusal: Refusal,
    /// Whether the call was admitted. Then it may have been executed, and its record becomes `unknown`.
    pub admitted: bool,
}

impl Denial {
    /// A refusal, with its record.
    pub(crate) fn refused(invocation: Option<InvocationId>, refusal: Refusal) -> Self {
        Self { invocation, refusal, admitted: false }
    }

    /// A refusal without its own record.
    pub(crate) fn unrecorded(refusal: Refusal) -> Self {
        Self::refused(None, refusal)
    }

    /// A call that was admitted and whose outcome is not recorded.
    pub(super) fn unsettled(invocation: InvocationId, cause: &Refusal) -> Self {
        let reason = "the call was admitted, but its outcome could not be recorded: the service may have executed it; \
            check there before you call again";
        let refusal = Refusal::new(Code::OutcomeUnknown, reason)
            .with("invocation_id", invocation)
            .with("cause", cause.code().as_str());
        Self { invocation: Some(invocation), refusal: refusal.at(Stage::Settle), admitted: true }
    }
}

impl Denial {
    /// A call that was admitted, sent nothing, and could not be settled: it can be retried.
    pub(super) fn never_sent(invocation: InvocationId, cause: Refusal) -> Self {
        Self { invocation: Some(invocation), refusal: cause.at(Stage::Settle), admitted: true }
    }
}

/// What a refusal concerns, as far as it is known.
#[derive(Default)]
struct About {
    candidate: Option<Candidate>,
    grant: Option<GrantId>,
    /// The held grant, if the refusal names another one than the candidate's.
    held_grant: Option<Arc<HeldGrant>>,
    /// The service, if the tool itself was not found.
    service: Option<ServiceName>,
}

impl Pipeline {
    /// The only place that records refusals.
    pub(super) async fn record_denial(&self, call: &Call, run_state: &mut RunState, refusal: Refusal) -> Denial {
        self.refused_calls.count(&call.caller, &refusal, call.arrived);
        let is_recorded = self.refused_calls.is_recorded(&call.caller, &refusal, call.arrived);
        // A detached call ends with its record. If too many calls were refused, none is accepted.
        if !call.detached && !is_recorded {
            let (tenant, principal, now) = (call.caller.tenant(), call.caller.id(), self.clock.now());
            let counted = self.tally.count(&*self.calls, tenant, principal, refusal.code(), now).await;
            return match counted {
                Ok(()) => Denial::unrecorded(refusal),
                Err(uncounted) => Denial::unrecorded(uncounted.at(Stage::Settle)),
            };
        }
        let error = InvocationError { code: refusal.code().as_str().to_owned(), reason: refusal.reason().to_owned() };
        let decision = run_state.decision.take();
        let about = self.about(call, run_state, &refusal).await;
        let held_grant = about.held_grant.as_ref().or_else(|| about.candidate.as_ref().and_then(Candidate::held_grant));
        let opened = self.open_refused(held_grant).await;
        let parameters = shown(&call.parameters, &opened);
        let mut invocation = call.record(&about, &parameters, &error, self.clock.now());
        // A call that may not claim its context does not appear among those of the task or intent.
        invocation.context = match &run_state.bound {
            Some(bound) => bound.context.clone(),
            None => call.context.without_work(),
        };
        let stage = refusal.stage().map_or("", Stage::as_str);
        let code = refusal.code();
        let kind = refusal.kind();
        let returned = match kind {
            Kind::TooMany => ToolReturned::rate_limited(&invocation),
            Kind::Forbidden => ToolReturned::forbidden(&invocation),
            _ => ToolReturned::error(&invocation, code.as_str(), format!("the call was refused: {stage}"), None),
        };
        let command = RecordDenial {
            audit: self.audit(&call.caller),
            stage,
            error,
            returned,
            about_authority: kind == Kind::Forbidden,
            decision: match &call.asked {
                // Every decision that another runtime receives is recorded.
                Some(asked) => Some(asked.refused(decision, call.id, &parameters, &refusal)),
                None => decision,
            },
            detached: match call.detached {
                true => {
                    let outcome = StoredOutcome::refused(call.id, &refusal);
                    Some(self.finish(call.caller.tenant(), call.id, &outcome).await)
                }
                false => None,
            },
            invocation,
        };
        match self.calls.record_denial(command).await {
            Ok(()) => Denial::refused(Some(call.id), refusal),
            // The admission was reported as failed but had happened: the record stays as the admission wrote it.
            Err(admitted) if admitted.code() == Code::OutcomeUnknown => Denial::unsettled(call.id, &refusal),
            // No record, no response: the original refusal is not returned.
            Err(unrecorded) => Denial::unrecorded(unrecorded.at(Stage::Settle)),
        }
    }

    /// The grant that the refusal names, if the agent holds it; else the one that the call resolved to or names itself.
    async fn about(&self, call: &Call, run_state: &RunState, refusal: &Refusal) -> About {
        let mut about = About { candidate: run_state.found.clone(), grant: run_state.grant, ..About::default() };
        let named = refusal.grant().or(about.grant).or(call.grant);
        if let Some(named) = named.filter(|named| about.grant != Some(*named)) {
            let found = self.held_grants.held_grant(call.caller.tenant(), named).await.ok().flatten();
            about.held_grant = found.filter(|held_grant| held_grant.lineage.grant().agent == call.agent);
            about.grant = about.held_grant.as_ref().map(|held_grant| held_grant.grant()).or(about.grant);
        }
        if about.candidate.is_none() && call.uncataloged_tool.is_none() {
            about.service = match &about.held_grant {
                Some(held_grant) => Some(held_grant.credential.service.clone()),
                None => self.held_service(call).await,
            };
        }
        about
    }

    /// The service that the call names, if the agent holds a grant on it.
    async fn held_service(&self, call: &Call) -> Option<ServiceName> {
        let tenant = call.caller.tenant();
        let held = self
            .held_grants
            .held_grants(tenant, &call.agent, self.clock.now(), Freshness::Recent)
            .await
            .ok()?
            .held
            .clone();
        let named = held.iter().find(|held_grant| tool_part(call, &held_grant.credential.service).is_some())?;
        Some(named.credential.service.clone())
    }
}

impl Call {
    fn record(&self, about: &About, parameters: &Value, error: &InvocationError, now: Timestamp) -> Invocation {
        let found = about.candidate.as_ref();
        let hash = arguments_hash(parameters, &[]);
        let parameters = match (found, parameters) {
            (Some(candidate), Value::Object(parameters)) => candidate.tool.definition.summary(parameters),
            _ => Map::new(),
        };
        let service = found.map(|candidate| &candidate.tool.service).or(about.service.as_ref());
        let named = || service.and_then(|service| tool_part(self, service)).unwrap_or(&self.tool);
        Invocation {
            id: self.id,
            tenant: self.caller.tenant().clone(),
            grant: about.grant,
            agent: self.agent.clone(),
            actor: self.caller.id().clone(),
            service: service.cloned(),
            tool: found.map_or_else(|| named().into(), |candidate| (&candidate.tool.name).into()),
            version: found.and_then(|candidate| candidate.tool.version.clone()),
            status: InvocationStatus::Denied,
            error: Some(error.clone()),
            parameters: Arc::new(parameters),
            arguments_hash: hash.into(),
            fingerprint: None,
            http_status: None,
            cost: None,
            cost_basis: None,
            duration_ms: Some(self.milliseconds_until(now)),
            idempotency_key: self.idempotency_key.clone(),
            context: self.context.clone(),
            trace: self.trace(found),
            reported: false,
            created_at: self.arrived,
        }
    }
}
