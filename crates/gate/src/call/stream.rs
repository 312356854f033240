//! Streamed results: each part is held back until guardians have decided about it, and the first denial cuts the stream.

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::{Mutex, mpsc};
use toolgate_model::guard::Hook;
use toolgate_model::step::{Step, StepStream, StreamEvent, StreamMode, Unit};

use super::steps::{unmodifiable, unreadable};
use super::{Admitted, Pipeline};
use crate::ports::event_stream::{Cut, EventStream};
use crate::ports::ledger::Freshness;
use crate::refusal::{Code, Refusal};

/// Where the events of a streamed result go. Bounded, so that a caller that reads slowly slows its service down.
pub type StreamSink = mpsc::Sender<StreamEvent>;

/// The stream of one call, behind guardians.
pub(super) struct GuardedStream<'a> {
    pipeline: &'a Pipeline,
    admitted: &'a Admitted,
    sink: &'a StreamSink,
    mode: StreamMode,
    /// Whether rules or guardians inspect the result of the tool as a whole.
    inspects_whole: bool,
    state: Mutex<State>,
}

struct State {
    stream: StepStream,
    begun: bool,
    /// Why no more events are taken.
    cut: Option<Refusal>,
}

/// What came of a stream.
pub(super) struct Streamed {
    /// What is recorded and charged.
    pub(super) result: Value,
    pub(super) cut: Option<Refusal>,
}

impl<'a> GuardedStream<'a> {
    /// The stream of a call whose caller takes one; `None` if the result of its tool is never one.
    pub(super) async fn open(
        pipeline: &'a Pipeline,
        admitted: &'a Admitted,
        step: &Step,
    ) -> Result<Option<Self>, Refusal> {
        let call = admitted.call();
        let Some(sink) = &call.stream else { return Ok(None) };
        let (candidate, freshness) = (admitted.candidate(), Freshness::Newest);
        let subject = call.subject(candidate, Hook::ToolCallResult);
        let unconcerned = pipeline.guardian.unconcerned(call.caller.tenant(), &subject, freshness).await?;
        let inspects_whole = unconcerned.is_none();
        let tools = step.client_tools(admitted.parameters());
        let mode = if inspects_whole {
            StreamMode::Whole
        } else if pipeline.concerns_any(call, candidate, (step.response_hooks(), &tools), freshness).await? {
            StreamMode::Units
        } else {
            StreamMode::Off
        };
        let Some(stream) = step.stream(admitted.parameters(), mode) else { return Ok(None) };
        let state = Mutex::new(State { stream, begun: false, cut: None });
        Ok(Some(Self { pipeline, admitted, sink, mode, inspects_whole, state }))
    }

    /// `None` if no event came: then the result is one like any other.
    pub(super) fn finish(self) -> Option<Streamed> {
        let State { stream, begun, cut } = self.state.into_inner();
        begun.then(|| Streamed { result: stream.result(), cut })
    }

    async fn release(&self, state: &mut State, units: Vec<Unit>) -> Result<(), Refusal> {
        for mut unit in units {
            if let Some(question) = unit.question.take().filter(|_| self.mode != StreamMode::Off) {
                let (call, candidate) = (self.admitted.call(), self.admitted.candidate());
                let passed = self.pipeline.pass(call, candidate, &question, Freshness::Newest).await?;
                if let Some(content) = passed {
                    unit.question = Some(question);
                    state.stream.replace(&mut unit, content).map_err(|error| unmodifiable(&error))?;
                }
            }
            for event in unit.events {
                self.sink.send(event).await.map_err(|_| gone())?;
            }
        }
        Ok(())
    }

    /// Lets the whole result be inspected before any of it is passed on.
    async fn inspect_whole(&self, state: &State) -> Result<(), Refusal> {
        if !self.inspects_whole {
            return Ok(());
        }
        let result = state.stream.result();
        let inspected = self.pipeline.inspect_streamed(self.admitted, result.clone()).await?;
        if inspected == result {
            return Ok(());
        }
        let reason = "policies or guardians modify results of this tool, and a streamed result cannot be modified as a \
            whole; call it without streaming";
        Err(Refusal::new(Code::GuardianDenied, reason))
    }
}

#[async_trait]
impl EventStream for GuardedStream<'_> {
    async fn pass(&self, event: StreamEvent) -> Result<(), Cut> {
        let mut state = self.state.lock().await;
        state.begun = true;
        let units = state.stream.take(event).map_err(|error| unreadable(&error));
        let released = match units {
            Ok(units) => self.release(&mut state, units).await,
            Err(refusal) => Err(refusal),
        };
        released.map_err(|refusal| {
            state.cut = Some(refusal);
            Cut
        })
    }

    async fn end(&self) -> Result<Value, Cut> {
        let mut state = self.state.lock().await;
        state.begun = true;
        let units = state.stream.end().map_err(|error| broken(&error.reason));
        let released = match (self.inspect_whole(&state).await, units) {
            (Ok(()), Ok(units)) => self.release(&mut state, units).await,
            (Err(refusal), _) | (_, Err(refusal)) => Err(refusal),
        };
        match released {
            Ok(()) => Ok(state.stream.result()),
            Err(refusal) => {
                state.cut = Some(refusal);
                Err(Cut)
            }
        }
    }
}

fn gone() -> Refusal {
    let reason = "the caller closed the stream before its end; the service may have completed the call";
    Refusal::new(Code::CallCancelled, reason)
}

fn broken(why: &str) -> Refusal {
    Refusal::new(Code::ProxyError, format!("the stream of the service broke off: {why}"))
}
