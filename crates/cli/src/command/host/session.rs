//! A session with a host: handles its commands, follows its calls and writes events.
//!
//! The session loop owns all state. Calls and decisions run in separate tasks and report to it, so that none blocks another.

use std::sync::Arc;

use tokio::io::AsyncWrite;
use tokio::sync::mpsc;
use toolgate_model::approval::{CallLabel, DENIED_BY_HOST, HOST_CLOSED, Mode, SessionName};

use super::engine::{Decided, Ended, Engine, EngineCall, EngineError, Progress, ProgressReporter, Verdict};
use super::event_writer::EventWriter;
use super::input::Command;
use super::naming;
use super::open_calls::{MAX_OPEN, OpenCall, OpenCalls, Stage};
use super::protocol::{
    ApprovalResume, COMMAND_QUEUE, Capabilities, ErrorCode, ErrorEvent, Incoming, Outgoing, Persistence, Scope,
    ToolApprove, ToolCall, ToolDeny,
};

mod reports;

/// The reason of calls that were pending when the host ended the session.
const STOPPED: &str = "stopped by host";

pub(super) struct Terms {
    pub(super) name: SessionName,
    /// The prefix of idempotency keys; unique to this process.
    pub(super) nonce: String,
    pub(super) mode: Mode,
    pub(super) mode_changes: bool,
    /// Whether pending calls are also reported as suspended.
    pub(super) suspend: bool,
}

pub(super) struct Session<E, W> {
    engine: Arc<E>,
    terms: Terms,
    event_writer: EventWriter<W>,
    calls: OpenCalls,
    reports: mpsc::Receiver<Report>,
    reporter: mpsc::Sender<Report>,
    /// Number of decisions sent.
    decisions: u64,
    /// Number of decisions in flight.
    deciding: usize,
    changing_mode: bool,
    /// Why the session ends; the reason of pending calls.
    closing: Option<&'static str>,
}

enum Report {
    Progress { label: CallLabel, serial: u64, progress: Progress },
    Ended { label: CallLabel, serial: u64, ended: Ended },
    Decided { label: CallLabel, serial: u64, while_closing: bool, outcome: Result<Decided, EngineError> },
    Mode(Result<Mode, EngineError>),
}

impl<E: Engine, W: AsyncWrite + Unpin> Session<E, W> {
    pub(super) fn new(engine: Arc<E>, terms: Terms, writer: W) -> Self {
        let (reporter, reports) = mpsc::channel(COMMAND_QUEUE);
        Self {
            engine,
            terms,
            event_writer: EventWriter::new(writer),
            calls: OpenCalls::default(),
            reports,
            reporter,
            decisions: 0,
            deciding: 0,
            changing_mode: false,
            closing: None,
        }
    }

    /// Runs until the input ends or the session is stopped, and all calls have ended. Returns whether the host read all
    /// events.
    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<Command>, stop: impl Future<Output = ()>) -> bool {
        tokio::pin!(stop);
        self.event_writer.send(&self.ready()).await;
        loop {
            if self.event_writer.is_closed() && self.closing.is_none() {
                self.close(HOST_CLOSED);
            }
            let listening = self.closing.is_none();
            if !listening && self.calls.is_empty() && self.deciding == 0 && !self.changing_mode {
                return !self.event_writer.is_closed();
            }
            tokio::select! {
                biased;
                () = &mut stop, if listening => self.close(HOST_CLOSED),
                Some(report) = self.reports.recv() => self.take_report(report).await,
                // A call after a change of the mode uses the new mode.
                command = commands.recv(), if listening && !self.changing_mode => match command {
                    Some(Ok(command)) => self.take_command(command).await,
                    Some(Err(error)) => self.fail(ErrorEvent::new(ErrorCode::EngineError, error.to_string())).await,
                    None => self.close(HOST_CLOSED),
                },
            }
        }
    }

    fn ready(&self) -> Outgoing {
        Outgoing::Ready {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            session_id: self.terms.name.to_string(),
            session_persistence: Persistence::Durable,
            capabilities: Capabilities::new(self.terms.suspend, self.terms.mode, MAX_OPEN),
        }
    }

    async fn take_command(&mut self, command: Incoming) {
        match command {
            Incoming::ToolCall(call) => self.open_call(call).await,
            Incoming::ToolApprove(ToolApprove { call, scope, answer }) => {
                self.decide(&call, true, scope, None, answer).await;
            }
            Incoming::ToolDeny(ToolDeny { call, reason }) => self.decide(&call, false, Scope::Once, reason, None).await,
            Incoming::ApprovalResume(resume) => self.resume(resume).await,
            Incoming::SetMode(mode) => self.change_mode(mode).await,
            Incoming::Ping => self.event_writer.send(&Outgoing::Pong).await,
            Incoming::Stop => self.close(STOPPED),
        }
    }

    async fn open_call(&mut self, wanted: ToolCall) {
        let ToolCall { message, call: label, tool, arguments } = wanted;
        if let Some(objection) = self.calls.objection(&label) {
            return self.fail(ErrorEvent { msg_id: Some(message), ..objection }).await;
        }
        let serial = self.calls.next_serial();
        let call = EngineCall { label: label.clone(), tool: naming::full(&tool), arguments: arguments.clone() };
        let (engine, reporter) = (Arc::clone(&self.engine), self.reporter.clone());
        let name = label.clone();
        let task = tokio::spawn(async move {
            let progress_reporter = ChannelReporter { label: name.clone(), serial, reporter: reporter.clone() };
            let ended = engine.call(call, progress_reporter).await;
            report(&reporter, Report::Ended { label: name, serial, ended }).await;
        });
        let call = OpenCall {
            serial,
            message,
            tool,
            arguments,
            stage: Stage::Sent,
            asked: false,
            standing: Vec::new(),
            token: None,
            task: task.abort_handle(),
        };
        self.calls.insert(label, call);
    }

    async fn decide(
        &mut self,
        label: &CallLabel,
        approved: bool,
        scope: Scope,
        reason: Option<String>,
        answer: Option<String>,
    ) {
        // A denial without a reason still names its source.
        let reason = reason.or_else(|| (!approved).then(|| DENIED_BY_HOST.to_owned()));
        if let Err(error) = self.send_decision(label, approved, scope, reason, answer) {
            self.fail(error).await;
        }
    }

    async fn resume(&mut self, resume: ApprovalResume) {
        match self.calls.of_token(&resume.token) {
            Some(label) => self.decide(&label, resume.approved, Scope::Once, None, resume.answer).await,
            None => {
                let message = "no pending call has this token; use the `resume_token` of its approval_required";
                self.fail(ErrorEvent::new(ErrorCode::UnknownToken, message)).await;
            }
        }
    }

    async fn change_mode(&mut self, mode: Mode) {
        if mode > self.terms.mode && !self.terms.mode_changes {
            let message = "the mode cannot be raised by the host; start `toolgate host` with \
                           --allow-mode-changes";
            return self.fail(ErrorEvent::new(ErrorCode::ModeRefused, message)).await;
        }
        self.changing_mode = true;
        let (engine, reporter) = (Arc::clone(&self.engine), self.reporter.clone());
        tokio::spawn(async move {
            let outcome = engine.set_mode(mode).await;
            report(&reporter, Report::Mode(outcome)).await;
        });
    }

    /// Ends the session: pending calls are denied, and no further commands are handled.
    fn close(&mut self, reason: &'static str) {
        self.closing = Some(reason);
        for label in self.calls.all_waiting() {
            self.deny_finally(&label, reason);
        }
    }

    fn deny_finally(&mut self, label: &CallLabel, reason: &str) {
        // INVARIANT: only pending calls get here.
        let _ = self.send_decision(label, false, Scope::Once, Some(reason.to_owned()), None);
    }

    fn send_decision(
        &mut self,
        label: &CallLabel,
        approved: bool,
        scope: Scope,
        reason: Option<String>,
        answer: Option<String>,
    ) -> Result<(), ErrorEvent> {
        let (call, approval) = self.calls.waiting(label)?;
        call.stage = Stage::Deciding { approval: approval.clone() };
        let serial = call.serial;
        self.decisions += 1;
        self.deciding += 1;
        let key = format!("{}-{}", self.terms.nonce, self.decisions);
        let verdict = Verdict { approved, scope, reason, answer, key };
        let while_closing = self.closing.is_some();
        let (engine, reporter, label) = (Arc::clone(&self.engine), self.reporter.clone(), label.clone());
        tokio::spawn(async move {
            let outcome = engine.decide(&approval, &verdict).await;
            report(&reporter, Report::Decided { label, serial, while_closing, outcome }).await;
        });
        Ok(())
    }

    async fn fail(&mut self, error: ErrorEvent) {
        self.event_writer.send(&Outgoing::Error(error)).await;
    }
}

struct ChannelReporter {
    label: CallLabel,
    serial: u64,
    reporter: mpsc::Sender<Report>,
}

impl ProgressReporter for ChannelReporter {
    async fn send(&mut self, progress: Progress) {
        let report_of_it = Report::Progress { label: self.label.clone(), serial: self.serial, progress };
        report(&self.reporter, report_of_it).await;
    }
}

async fn report(reporter: &mpsc::Sender<Report>, report: Report) {
    // The session has ended.
    let _ = reporter.send(report).await;
}
