//! The log line of a finished call: the caller, the tool and the duration, and never the contents of the call.

use std::time::Duration;

use toolgate_gate::call::Wait;
use toolgate_gate::ports::telemetry::{FinishedAs, FinishedCall};
use toolgate_gate::refusal::Stage;
use toolgate_gate::request_context::RequestContext;

/// The maximum length of a logged tool name, in characters: the caller of a refused call may have written anything.
const MAX_TOOL: usize = 200;

/// Which finished calls get a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallLog {
    Off,
    /// Refused calls and those with an unknown outcome.
    Refused,
    All,
}

impl CallLog {
    /// Writes the line of a call, if it gets one. Refusals that are only counted get none: otherwise a caller could fill the
    /// log with calls that cost it nothing.
    pub fn write(self, call: &FinishedCall<'_>) {
        if self.includes(call) {
            write(call);
        }
    }

    fn includes(self, call: &FinishedCall<'_>) -> bool {
        match self {
            Self::Off => false,
            Self::Refused => call.is_recorded && matches!(call.outcome, FinishedAs::Denied | FinishedAs::Unknown),
            Self::All => call.is_recorded,
        }
    }
}

fn write(call: &FinishedCall<'_>) {
    let mut stages = [None; Stage::ALL.len()];
    let mut waits = [None; Wait::ALL.len()];
    for time in call.times.iter().flat_map(|times| times.stages()) {
        if let Some(stage) = stages.get_mut(time.stage as usize) {
            *stage = Some(microseconds(time.spent));
        }
    }
    for (wait, waited) in call.times.iter().flat_map(|times| times.waits()) {
        if let Some(wait) = waits.get_mut(wait as usize) {
            *wait = Some(microseconds(waited));
        }
    }
    let [identify, resolve, authorize, constrain, guard, approve, admit, execute, inspect, settle] = stages;
    let [approval_wait, admission_commit, settlement_commit] = waits;
    // Every line of a request has its id already; a detached call may have finished without one.
    let request = call.request.filter(|_| RequestContext::current().is_none()).map(|id| id.to_string());
    let tool: Option<String> = call.tool.map(|tool| tool.to_string().chars().take(MAX_TOOL).collect());
    tracing::info!(
        target: "toolgate::calls",
        request_id = request.as_deref(),
        call_id = call.id.to_string().as_str(),
        tenant = call.tenant.as_str(),
        agent = call.agent.map(|agent| agent.as_str()),
        tool = tool.as_deref(),
        outcome = call.outcome.as_str(),
        stage = call.stage.map(Stage::as_str),
        code = call.code,
        trace_id = call.trace.map(|trace| trace.context.trace.to_string()).as_deref(),
        duration_us = call.times.map(|times| microseconds(times.total())),
        identify_us = identify,
        resolve_us = resolve,
        authorize_us = authorize,
        constrain_us = constrain,
        guard_us = guard,
        approve_us = approve,
        approval_wait_us = approval_wait,
        admit_us = admit,
        admission_commit_us = admission_commit,
        execute_us = execute,
        inspect_us = inspect,
        settle_us = settle,
        settlement_commit_us = settlement_commit,
        "call finished"
    );
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
