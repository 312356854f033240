//! A gate of the tests, and a host that speaks to a session of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream, Lines};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use toolgate_model::approval::{Category, Mode, SessionName};

use super::super::engine::{
    Decided, Ended, Engine, EngineCall, EngineError, Progress, ProgressReporter, Request, Verdict,
};
use super::super::input::Command;
use super::super::protocol::{Incoming, ResultStatus};
use super::super::session::{Session, Terms};

/// Calls of `Bash` ask, all others run at once. Its argument `print` is what a call gives; `hold` makes it run until
/// [`FakeGate::release`]; `covered` lists what covers it.
#[derive(Default)]
pub(super) struct FakeGate {
    waiting: Mutex<BTreeMap<String, oneshot::Sender<Ended>>>,
    held: Mutex<BTreeMap<String, oneshot::Sender<()>>>,
    /// What was decided, in order.
    pub(super) verdicts: Mutex<Vec<(String, Verdict)>>,
    /// What answers do, where they do not do what they say.
    pub(super) outcomes: Mutex<VecDeque<Result<Decided, EngineError>>>,
    /// What changes of the mode do, where they do not do what they say.
    pub(super) modes: Mutex<VecDeque<Result<Mode, EngineError>>>,
    /// The calls that came, in order.
    pub(super) made: Mutex<Vec<EngineCall>>,
}

impl FakeGate {
    /// Ends a call that waits, as somebody else would.
    pub(super) fn end(&self, label: &str, ended: Ended) {
        self.waiting.lock().unwrap().remove(&format!("appr_{label}")).unwrap().send(ended).unwrap();
    }

    /// Lets a call that is held come to its end.
    pub(super) fn release(&self, label: &str) {
        self.held.lock().unwrap().remove(label).unwrap().send(()).unwrap();
    }

    fn said(call: &EngineCall) -> Ended {
        let print = call.arguments.get("print").and_then(Value::as_str).unwrap_or("done").to_owned();
        Ended::Finished { status: ResultStatus::Success, output: print, metadata: Map::new() }
    }

    async fn ask(&self, call: &EngineCall, progress_reporter: &mut impl ProgressReporter) -> Ended {
        let approval = format!("appr_{}", call.label);
        let (answer, answered) = oneshot::channel();
        self.waiting.lock().unwrap().insert(approval.clone(), answer);
        let request = Request {
            approval,
            category: Some(Category::Exec),
            description: Some("Execute: it".to_owned()),
            arguments: None,
            reason: "mode default asks".to_owned(),
            details: Map::new(),
        };
        progress_reporter.send(Progress::Asked(Box::new(request))).await;
        answered.await.expect("an answer")
    }
}

impl Engine for FakeGate {
    async fn call(&self, call: EngineCall, mut progress_reporter: impl ProgressReporter) -> Ended {
        self.made.lock().unwrap().push(call.clone());
        if let Some(covered) = call.arguments.get("covered") {
            let ids = covered.as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect();
            progress_reporter.send(Progress::Covered(ids)).await;
        } else if call.tool.ends_with(".Bash") {
            let answer = self.ask(&call, &mut progress_reporter).await;
            if matches!(answer, Ended::Cancelled { .. }) {
                return answer;
            }
        }
        let held = call.arguments.contains_key("hold").then(|| {
            let (release, released) = oneshot::channel();
            self.held.lock().unwrap().insert(call.label.to_string(), release);
            released
        });
        progress_reporter.send(Progress::Admitted).await;
        if let Some(released) = held {
            released.await.expect("released");
        }
        Self::said(&call)
    }

    async fn decide(&self, approval: &str, verdict: &Verdict) -> Result<Decided, EngineError> {
        self.verdicts.lock().unwrap().push((approval.to_owned(), verdict.clone()));
        if let Some(outcome) = self.outcomes.lock().unwrap().pop_front() {
            return outcome;
        }
        let waiting = self.waiting.lock().unwrap().remove(approval).expect("an approval that waits");
        let reason = verdict.reason.clone().unwrap_or_default();
        let ended = match verdict.approved {
            true => Ended::Finished { status: ResultStatus::Success, output: String::new(), metadata: Map::new() },
            false => Ended::Cancelled { reason, expired: false },
        };
        // A call that was given up does not hear it any more.
        let _ = waiting.send(ended);
        Ok(Decided::Ended { approved: verdict.approved, notice: None })
    }

    async fn set_mode(&self, mode: Mode) -> Result<Mode, EngineError> {
        self.modes.lock().unwrap().pop_front().unwrap_or(Ok(mode))
    }
}

/// A host of the tests.
pub(super) struct Host {
    pub(super) gate: Arc<FakeGate>,
    commands: Option<mpsc::Sender<Command>>,
    events: Lines<BufReader<DuplexStream>>,
    session: JoinHandle<bool>,
    signal: Option<oneshot::Sender<()>>,
}

impl Host {
    /// A session that has said that it is ready.
    pub(super) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// The same, on other terms.
    pub(super) async fn with(change: impl FnOnce(&mut Terms)) -> Self {
        let mut terms = Terms {
            name: SessionName::parse("host-test").unwrap(),
            nonce: "nonce".to_owned(),
            mode: Mode::Default,
            mode_changes: false,
            suspend: false,
        };
        change(&mut terms);
        let gate = Arc::new(FakeGate::default());
        let (commands, taken) = mpsc::channel(64);
        let (writer, reader) = tokio::io::duplex(64 * 1024);
        let (signal, signalled) = oneshot::channel::<()>();
        let stop = async move {
            if signalled.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let session = tokio::spawn(Session::new(Arc::clone(&gate), terms, writer).run(taken, stop));
        let events = BufReader::new(reader).lines();
        let mut host = Self { gate, commands: Some(commands), events, session, signal: Some(signal) };
        let ready = host.next().await;
        assert_eq!(ready["type"], "ready");
        host
    }

    /// Sends a line.
    pub(super) async fn send(&self, line: Value) {
        self.send_text(&line.to_string()).await;
    }

    pub(super) async fn send_text(&self, line: &str) {
        let command = Incoming::parse(line.as_bytes());
        self.commands.as_ref().unwrap().send(command).await.unwrap();
    }

    /// Wants a tool.
    pub(super) async fn call(&self, label: &str, tool: &str, arguments: Value) {
        let line = json!({"type": "tool_call", "msg_id": "m1", "call_id": label, "tool": tool, "arguments": arguments});
        self.send(line).await;
    }

    /// The next event.
    pub(super) async fn next(&mut self) -> Value {
        let line = self.events.next_line().await.unwrap().expect("another event");
        serde_json::from_str(&line).unwrap()
    }

    /// The next event, which is of this type and about this call.
    pub(super) async fn expect(&mut self, kind: &str, label: &str) -> Value {
        let event = self.next().await;
        assert_eq!((event["type"].as_str(), event["call_id"].as_str()), (Some(kind), Some(label)), "{event}");
        event
    }

    /// The next event, which is an error.
    pub(super) async fn expect_error(&mut self, code: &str) -> Value {
        let event = self.next().await;
        assert_eq!((event["type"].as_str(), event["code"].as_str()), (Some("error"), Some(code)), "{event}");
        event
    }

    /// Nothing was said up to now that was not heard.
    pub(super) async fn expect_silence(&mut self) {
        self.send(json!({"type": "ping"})).await;
        assert_eq!(self.next().await, json!({"type": "pong"}));
    }

    /// Ends the input.
    pub(super) fn close_input(&mut self) {
        self.commands = None;
    }

    /// Asks the process to end.
    pub(super) fn terminate(&mut self) {
        self.signal.take().unwrap().send(()).unwrap();
    }

    /// Does not listen any more.
    pub(super) fn close_output(&mut self) {
        self.events = BufReader::new(tokio::io::duplex(1).0).lines();
    }

    /// The session comes to its end, and says nothing more; answers whether all was heard.
    pub(super) async fn end(mut self) -> bool {
        let heard = self.session.await.unwrap();
        if heard {
            assert_eq!(self.events.next_line().await.unwrap(), None);
        }
        heard
    }

    /// The reasons and answers that the gate got.
    pub(super) fn verdicts(&self) -> Vec<(String, bool, Option<String>)> {
        let verdicts = self.gate.verdicts.lock().unwrap();
        verdicts.iter().map(|(id, verdict)| (id.clone(), verdict.approved, verdict.reason.clone())).collect()
    }
}
