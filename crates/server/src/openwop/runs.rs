//! Runs: calls grouped by a run id. They can be read; none can be started here, since Toolgate runs no workflows.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, json};
use toolgate_api::Endpoint;
use toolgate_api::openwop::runs::{CreateRun, ListEventsOfRun, PollEventsOfRun, PolledEvents, Run, RunStatus, ShowRun};
use toolgate_api::openwop::{FlatDetails, FlatError};
use toolgate_gate::Caller;
use toolgate_gate::ports::ledger::{Freshness, PageRequest};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::event::{Event, EventPayload};
use toolgate_model::hook::{ReturnStatus, RunId};
use toolgate_model::id::{InvocationId, SessionId};
use toolgate_model::openwop_event::RunEvent;
use toolgate_model::time::Timestamp;

use super::error::Flat;
use super::events;
use super::reading::Reading;
use crate::mount::TypedRequest;
use crate::router::App;

/// The maximum and the default wait of a poll, in seconds.
const MAX_POLL: u64 = 60;
const USUAL_POLL: u64 = 30;
/// The maximum number of events per poll.
const POLL_EVENTS: usize = 1000;

pub(super) async fn create(request: TypedRequest<CreateRun>) -> Result<Response, Flat> {
    if request.body.workflow_id.is_empty() {
        return Err(Refusal::new(Code::InvalidField, "`workflowId` is empty").with("path", "workflowId").into());
    }
    let message =
        "Toolgate runs no workflows: call tools at POST /api/v1/tools/invoke, with `context.run_id` for the run";
    let others = Map::from_iter([("capability".to_owned(), json!("workflows"))]);
    let body = FlatError {
        error: "capability_not_provided".to_owned(),
        message: message.to_owned(),
        details: FlatDetails { others, ..FlatDetails::default() },
    };
    Ok((CreateRun::STATUS, Json(body)).into_response())
}

pub(super) async fn show(request: TypedRequest<ShowRun>) -> Result<Run, Flat> {
    let TypedRequest { app, caller, path, .. } = request;
    let run = run_id(&path.text)?;
    let trace = trace(&app, &caller, &run, None, Freshness::Newest).await?;
    let (Some(started_at), Some(updated_at)) = (trace.started_at, trace.updated_at) else {
        return Err(no_run().into());
    };
    Ok(Run { run_id: run, status: trace.status(), event_count: trace.count, started_at, updated_at })
}

pub(super) async fn events(request: TypedRequest<ListEventsOfRun>) -> Result<Response, Flat> {
    let TypedRequest { app, caller, path, query, headers, .. } = request;
    let reading = Reading::of_run(&run_id(&path.text)?);
    if reading.page(&app, &caller, 1, Freshness::Newest).await?.events.is_empty() {
        return Err(no_run().into());
    }
    events::respond(app, caller, reading, query.after.as_deref(), query.limit, &headers).await
}

/// Waits for events after the last one that the client has seen, unless no more can follow.
pub(super) async fn poll(request: TypedRequest<PollEventsOfRun>) -> Result<PolledEvents, Flat> {
    let TypedRequest { app, caller, path, query, .. } = request;
    let run = run_id(&path.text)?;
    let timeout = query.timeout.unwrap_or(USUAL_POLL);
    if !(1..=MAX_POLL).contains(&timeout) {
        let reason = format!("`timeout` must be from 1 to {MAX_POLL} seconds");
        return Err(Refusal::new(Code::InvalidField, reason).with("path", "timeout").into());
    }
    let mut caller = caller;
    let mut freshness = Freshness::Newest;
    let follower = app.gate.streams.follow_events(&caller, Reading::of_run(&run).filter)?;
    let mut over = pin!(app.shutdown.drains_within(Duration::from_secs(timeout)));
    let mut is_over = false;
    loop {
        let trace = trace(&app, &caller, &run, query.last_sequence, freshness).await?;
        if trace.count == 0 {
            return Err(no_run().into());
        }
        let complete = trace.status() != RunStatus::Running && !trace.cut;
        if !trace.events.is_empty() || complete || is_over {
            return Ok(PolledEvents { events: trace.events, is_complete: complete });
        }
        tokio::select! {
            () = follower.news() => {}
            _ = &mut over => is_over = true,
        }
        caller = app.gate.authenticator.identify_again(&caller).await?;
        freshness = Freshness::Recent;
    }
}

/// A summary of the events of a run.
#[derive(Default)]
struct Trace {
    count: u64,
    started_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
    /// Calls that have started and not ended.
    calls: BTreeSet<InvocationId>,
    /// Sessions that have started and not ended.
    sessions: BTreeSet<SessionId>,
    /// Whether the last returned call failed.
    failed: bool,
    /// Those behind the one that was seen last.
    events: Vec<RunEvent>,
    /// Whether there are more events.
    cut: bool,
}

impl Trace {
    fn status(&self) -> RunStatus {
        match (self.calls.is_empty() && self.sessions.is_empty(), self.failed) {
            (false, _) => RunStatus::Running,
            (true, true) => RunStatus::Failed,
            (true, false) => RunStatus::Completed,
        }
    }

    fn add(&mut self, event: &Event, shown: RunEvent, seen: Option<u64>) {
        self.count += 1;
        self.started_at.get_or_insert(event.time);
        self.updated_at = Some(event.time);
        match &event.payload {
            EventPayload::AgentToolCalled(called) => drop(self.calls.insert(called.call_id)),
            EventPayload::ToolForbidden(_) => self.failed = true,
            EventPayload::ToolSessionOpened(opened) => drop(self.sessions.insert(opened.session_id)),
            EventPayload::ToolSessionClosed(closed) => drop(self.sessions.remove(&closed.session_id)),
            _ => {}
        }
        if let Some(returned) = event.returned() {
            self.calls.remove(&returned.call_id);
            self.failed = returned.status != ReturnStatus::Ok;
        }
        if seen.is_none_or(|seen| shown.sequence > seen) {
            match self.events.len() < POLL_EVENTS {
                true => self.events.push(shown),
                false => self.cut = true,
            }
        }
    }
}

/// Reads a run, as far as the caller may see it.
async fn trace(
    app: &App,
    caller: &Caller,
    run: &RunId,
    seen: Option<u64>,
    freshness: Freshness,
) -> Result<Trace, Refusal> {
    let mut trace = Trace::default();
    let mut reading = Reading::of_run(run);
    let mut freshness = freshness;
    loop {
        let found = reading.page(app, caller, PageRequest::LIMIT, freshness).await?;
        reading.place = found.end().unwrap_or(reading.place);
        let more = found.more;
        found.events.into_iter().for_each(|found| trace.add(&found.event, found.shown, seen));
        if !more {
            return Ok(trace);
        }
        freshness = Freshness::Recent;
    }
}

fn run_id(text: &str) -> Result<RunId, Refusal> {
    RunId::parse(text).map_err(|_| no_run())
}

/// The same for a run that does not exist and for one that the caller may not see.
fn no_run() -> Refusal {
    Refusal::new(Code::RunNotFound, "there is no such run, or you may not see it")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use toolgate_model::event::StoredEvent;

    use super::*;

    const CALLS: [&str; 2] = ["inv_01KGYB3881EC1R60R30C1G60R3", "inv_01KGYB3882EC1R60R30C1G60R3"];
    const SESSION: &str = "session_01KGYB3883EG2881040G208104";

    fn add(trace: &mut Trace, kind: &str, data: Value, sequence: u64, seen: Option<u64>) {
        let stored = json!({
            "actor": "admin", "data": data, "id": "evt_01KGYB38B4FMEST78X3MEHT78X", "tenant": "default",
            "timestamp": Timestamp::from_millis(i64::try_from(sequence).unwrap()).unwrap(), "type": kind,
        });
        let stored = StoredEvent::read(&stored.to_string(), sequence).unwrap();
        let shown = RunEvent::of(&stored, sequence).unwrap();
        trace.add(&stored.event, shown, seen);
    }

    fn called(call: &str) -> Value {
        json!({
            "agentId": "billing", "argsHash": "ab", "callId": call, "principal": "billing", "toolName": "a.b",
            "transport": "http",
        })
    }

    fn invoked(call: &str, status: &str) -> Value {
        json!({
            "arguments_hash": "ab", "cost": {"api_units": 1, "estimated_cost_usd": null}, "duration_ms": 1,
            "grant_id": null, "invocation_id": call, "parameters_summary": {}, "service": "a", "status": status,
            "tool": "b",
        })
    }

    #[test]
    fn a_run_is_running_while_a_call_or_a_session_is_open_and_ends_as_its_last_call_did() {
        let mut trace = Trace::default();
        let [first, second] = CALLS;
        let steps = [
            ("tool.session.opened", json!({"sessionId": SESSION, "toolId": "t"}), RunStatus::Running),
            ("agent.toolCalled", called(first), RunStatus::Running),
            ("tool.invoked", invoked(first, "error"), RunStatus::Running),
            (
                "tool.session.closed",
                json!({"sessionId": SESSION, "toolId": "t", "outcome": "failed"}),
                RunStatus::Failed,
            ),
            ("agent.toolCalled", called(second), RunStatus::Running),
            ("tool.invoked", invoked(second, "success"), RunStatus::Completed),
        ];
        for (sequence, (kind, data, status)) in (0..).zip(steps) {
            add(&mut trace, kind, data, sequence, Some(3));
            assert_eq!(trace.status(), status, "after event {sequence}");
        }
        let times = [trace.started_at, trace.updated_at].map(|time| time.map(Timestamp::as_millis));
        assert_eq!((trace.count, times), (6, [Some(0), Some(5)]));
        let behind: Vec<u64> = trace.events.iter().map(|event| event.sequence).collect();
        assert_eq!((behind, trace.cut), (vec![4, 5], false));
    }

    #[test]
    fn a_poll_that_is_cut_says_so() {
        let mut trace = Trace::default();
        (0..=POLL_EVENTS as u64).for_each(|sequence| add(&mut trace, "a.b", json!({}), sequence, None));
        assert_eq!((trace.events.len(), trace.cut), (POLL_EVENTS, true));
    }
}
