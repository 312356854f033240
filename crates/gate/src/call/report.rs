//! Reports finished calls to telemetry.

use toolgate_model::id::InvocationId;
use toolgate_model::principal::TenantId;

use super::eligible::Candidate;
use super::{Call, CallResult, Denial, Pipeline, RunState};
use crate::ports::telemetry::{FinishedAs, FinishedCall, ToolLabel};
use crate::refusal::Stage;
use crate::request_context::RequestContext;

#[cfg(test)]
mod tests;

struct End<'a> {
    outcome: FinishedAs,
    code: Option<&'a str>,
    stage: Option<Stage>,
    is_recorded: bool,
}

impl<'a> End<'a> {
    fn of(outcome: &'a Result<CallResult, Denial>) -> Self {
        match outcome {
            Ok(result) => {
                let error = result.outcome.error.as_ref();
                let outcome = match error {
                    _ if result.replayed => FinishedAs::Replayed,
                    None => FinishedAs::Success,
                    Some(_) => FinishedAs::Error,
                };
                let code = error.filter(|_| outcome == FinishedAs::Error).map(|error| error.code.as_str());
                Self { outcome, code, stage: None, is_recorded: true }
            }
            Err(denial) => Self::refused(denial),
        }
    }

    fn refused(denial: &'a Denial) -> Self {
        Self {
            outcome: if denial.admitted { FinishedAs::Unknown } else { FinishedAs::Denied },
            code: Some(denial.refusal.code().as_str()),
            stage: denial.refusal.stage(),
            is_recorded: denial.invocation.is_some(),
        }
    }
}

impl Pipeline {
    /// Reports a call that has finished.
    pub(super) fn report(&self, call: &Call, run_state: &mut RunState, outcome: &Result<CallResult, Denial>) {
        let end = End::of(outcome);
        // A detached call without a record is run again.
        if call.detached && !end.is_recorded {
            return;
        }
        run_state.times.finish(&*self.clock);
        let tool = match &run_state.found {
            Some(Candidate { tool, .. }) => ToolLabel { service: Some(&tool.service), name: tool.name.as_str() },
            None => ToolLabel { service: None, name: &call.tool },
        };
        self.telemetry.call_finished(&FinishedCall {
            id: call.id,
            tenant: call.caller.tenant(),
            agent: Some(&call.agent),
            tool: Some(tool),
            request: call.request,
            trace: call.traced.as_deref(),
            started: self.clock.now().minus(run_state.times.total()),
            outcome: end.outcome,
            code: end.code,
            stage: end.stage,
            is_recorded: end.is_recorded,
            times: Some(&run_state.times),
        });
    }

    /// Reports a call that failed inside the gate. Its details are lost with its task.
    pub(super) fn report_broken(&self, tenant: &TenantId, id: InvocationId, denial: &Denial) {
        let end = End::refused(denial);
        self.telemetry.call_finished(&FinishedCall {
            id,
            tenant,
            agent: None,
            tool: None,
            request: RequestContext::current().map(|context| context.id),
            trace: None,
            started: id.time(),
            outcome: end.outcome,
            code: end.code,
            stage: end.stage,
            // An internal error is worth a log line, whatever is recorded of the call.
            is_recorded: true,
            times: None,
        });
    }
}
