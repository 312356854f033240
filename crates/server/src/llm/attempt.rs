//! One call of a provider's tool. It goes on in a task of its own, for as long as somebody waits for its answer.

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

/// After how long without anything to say a client is told that its request goes on.
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
    pub(super) first: Option<StreamEvent>,
    call: JoinHandle<Result<CallResult, Denial>>,
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
        let first = loop {
            tokio::select! {
                biased;
                event = events.recv(), if streams => match event {
                    Some(event) => break Some(event),
                    // The call is about to end.
                    None => return Begun::Ended(outcome(call.await)),
                },
                ended = &mut call => return Begun::Ended(outcome(ended)),
                Some(step) = progress.recv() => if matches!(step, Progress::Asked(_)) {
                    break None;
                },
                () = &mut silence, if streams => break None,
            }
        };
        Begun::Streams(Box::new(Answer { first, call, events, _waiting: waiting }))
    }
}

impl Answer {
    pub(super) async fn next(&mut self) -> Next {
        if let Some(event) = self.first.take() {
            return Next::Event(event);
        }
        tokio::select! {
            biased;
            event = self.events.recv() => match event {
                Some(event) => Next::Event(event),
                None => Next::Ended(outcome((&mut self.call).await)),
            },
            () = pause(SILENCE) => Next::Silence,
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
