//! One call of a provider's tool. It runs in a task of its own, for as long as its client waits for the response.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use toolgate_gate::call::{CallResult, Denial, Presence, Progress, Waiting};
use toolgate_gate::ports::clock::pause;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_gate::request_context::in_current_request;
use toolgate_model::step::StreamEvent;

use super::fail_over::Target;
use super::request::ModelRequest;

/// The interval of keep-alive comments on a quiet stream.
pub(super) const SILENCE: Duration = Duration::from_secs(10);
/// How many events wait for a client that reads slowly.
const EVENTS: usize = 16;

pub(super) type Outcome = Result<Box<CallResult>, Denial>;

/// A call that goes on.
pub(super) struct Attempt {
    call: JoinHandle<Result<CallResult, Denial>>,
    events: mpsc::Receiver<StreamEvent>,
    progress: mpsc::UnboundedReceiver<Progress>,
    streams: bool,
    waiting: Waiting,
}

/// What is known before anything is said to the client.
pub(super) enum Begun {
    Ended(Outcome),
    Streams(Box<Answer>),
}

/// An answer that comes as a stream.
pub(super) struct Answer {
    first: Option<StreamEvent>,
    call: JoinHandle<Result<CallResult, Denial>>,
    /// What came of the call, while the last events are not passed on yet.
    ended: Option<Outcome>,
    events: mpsc::Receiver<StreamEvent>,
    /// The caller's side of the call's presence: present as long as the answer is read.
    _waiting: Waiting,
}

/// The next thing that a stream says.
pub(super) enum Next {
    Event(StreamEvent),
    Silence,
    Ended(Outcome),
}

impl Attempt {
    pub(super) fn start(request: &ModelRequest, target: &Target) -> Self {
        let mut parameters = request.parameters.clone();
        if let Some(model) = parameters.get_mut("model") {
            *model = Value::from(target.model.as_str());
        }
        let streams = request.streams();
        let ((sink, events), (observer, progress)) = (mpsc::channel(EVENTS), mpsc::unbounded_channel());
        let (waiting, presence) = Presence::new();
        let mut call = request.call(&target.provider, parameters);
        call.stream = streams.then_some(sink);
        call.observer = streams.then_some(observer);
        call.presence = Some(presence);
        let (gate, caller) = (Arc::clone(&request.app.gate), request.caller.clone());
        let call = tokio::spawn(in_current_request(async move { gate.pipeline.invoke(caller, call).await }));
        Self { call, events, progress, streams, waiting }
    }

    /// Waits until the call has ended, or something is to be said while it goes on: an event, or that it takes long.
    pub(super) async fn begun(self) -> Begun {
        let Self { mut call, mut events, mut progress, streams, waiting } = self;
        let silence = pause(SILENCE);
        tokio::pin!(silence);
        let (first, ended) = loop {
            tokio::select! {
                biased;
                Some(event) = events.recv(), if streams => break (Some(event), None),
                ended = &mut call => match (outcome(ended), events.try_recv()) {
                    (ended, Ok(event)) => break (Some(event), Some(ended)),
                    (ended, Err(_)) => return Begun::Ended(ended),
                },
                Some(step) = progress.recv() => if matches!(step, Progress::Asked(_)) {
                    break (None, None);
                },
                () = &mut silence, if streams => break (None, None),
            }
        };
        Begun::Streams(Box::new(Answer { first, call, ended, events, _waiting: waiting }))
    }
}

impl Answer {
    pub(super) async fn next(&mut self) -> Next {
        if let Some(event) = self.first.take() {
            return Next::Event(event);
        }
        if self.ended.is_none() {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => return Next::Event(event),
                ended = &mut self.call => self.ended = Some(outcome(ended)),
                () = pause(SILENCE) => return Next::Silence,
            }
        }
        match (self.events.try_recv(), self.ended.take()) {
            (Ok(event), ended) => {
                self.ended = ended;
                Next::Event(event)
            }
            (Err(_), Some(ended)) => Next::Ended(ended),
            (Err(_), None) => Next::Silence,
        }
    }
}

fn outcome(ended: Result<Result<CallResult, Denial>, JoinError>) -> Outcome {
    match ended {
        Ok(outcome) => outcome.map(Box::new),
        Err(_) => {
            let refusal = Refusal::new(Code::Internal, "the call failed inside the gate; see the gate's log");
            Err(Denial { invocation: None, refusal, admitted: true })
        }
    }
}
