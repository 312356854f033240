//! Handles the reports of call and decision tasks.

use serde_json::{Map, Value};
use tokio::io::AsyncWrite;
use toolgate_model::approval::{CallLabel, HOST_CLOSED, Mode};

use super::super::engine::{Decided, Ended, Engine, EngineError, Progress, Request};
use super::super::naming;
use super::super::open_calls::Stage;
use super::super::protocol::{Auto, AutoSource, ErrorCode, ErrorEvent, Outgoing, ResumeToken, ShownTool, ToolResult};
use super::{Report, Session};
use crate::entropy::random;

const SUSPENDED: &str = "awaiting host decision";

impl<E: Engine, W: AsyncWrite + Unpin> Session<E, W> {
    pub(super) async fn take_report(&mut self, report: Report) {
        match report {
            Report::Progress { label, serial, progress } => match progress {
                Progress::Asked(request) => self.asked(label, serial, *request).await,
                Progress::Covered(standing) => {
                    if let Some(call) = self.calls.get(&label, serial) {
                        call.standing = standing;
                    }
                }
                Progress::Admitted => self.admitted(label, serial).await,
            },
            Report::Ended { label, serial, ended } => self.ended(label, serial, ended).await,
            Report::Decided { label, serial, while_closing, outcome } => {
                self.deciding = self.deciding.saturating_sub(1);
                self.decided(label, serial, while_closing, outcome).await;
            }
            Report::Mode(outcome) => self.mode_changed(outcome).await,
        }
    }

    async fn asked(&mut self, label: CallLabel, serial: u64, request: Request) {
        self.close_token(&label, serial, true).await;
        let token = self.new_token();
        let Some(call) = self.calls.get(&label, serial) else { return };
        call.asked = true;
        call.stage = Stage::Waiting { approval: request.approval };
        call.token = token.clone();
        let shown = ShownTool {
            name: call.tool.clone(),
            category: request.category.unwrap_or_else(|| naming::category(&call.tool)),
            args: request.arguments.unwrap_or_else(|| Value::Object(call.arguments.clone())),
            description: request.description.unwrap_or_else(|| naming::description(&call.tool, &call.arguments)),
        };
        let context = format!("{}: {}", shown.name, shown.description);
        let event = Outgoing::ToolRequest {
            msg_id: call.message.clone(),
            call_id: label.clone(),
            tool: shown,
            approval: request.details,
        };
        self.event_writer.send(&event).await;
        if let Some(token) = token {
            let event = Outgoing::ApprovalRequired {
                call_id: label.clone(),
                resume_token: token.expose().to_owned(),
                correlation_id: label.to_string(),
                reason: request.reason,
                context,
            };
            self.event_writer.send(&event).await;
            let resume_token = token.expose().to_owned();
            self.event_writer.send(&Outgoing::Suspend { reason: SUSPENDED.to_owned(), resume_token }).await;
        }
        if let Some(reason) = self.closing {
            self.deny_finally(&label, reason);
        }
    }

    /// A token for a pending call, if calls are suspended. Without entropy there is none, and the call can still be decided
    /// by its id.
    fn new_token(&self) -> Option<ResumeToken> {
        self.terms.suspend.then(|| random().ok().map(ResumeToken::from_entropy)).flatten()
    }

    /// Withdraws the token of a decided call, and reports it.
    async fn close_token(&mut self, label: &CallLabel, serial: u64, approved: bool) {
        let token = self.calls.get(label, serial).and_then(|call| call.token.take());
        if let Some(token) = token {
            let resume_token = token.expose().to_owned();
            self.event_writer.send(&Outgoing::ApprovalResume { resume_token, approved }).await;
        }
    }

    async fn admitted(&mut self, label: CallLabel, serial: u64) {
        self.close_token(&label, serial, true).await;
        let mode = self.terms.mode;
        let Some(call) = self.calls.get(&label, serial) else { return };
        call.stage = Stage::Running;
        let (msg_id, tool_name) = (call.message.clone(), call.tool.clone());
        if !call.asked {
            let category = naming::category(&tool_name);
            let source = match &call.standing {
                standing if !standing.is_empty() => AutoSource::Standing,
                _ if mode.passes(category) => AutoSource::Mode,
                _ => AutoSource::None,
            };
            let event = Outgoing::CallAnnounced {
                msg_id: msg_id.clone(),
                call_id: label.clone(),
                tool: ShownTool {
                    name: tool_name.clone(),
                    category,
                    args: Value::Object(call.arguments.clone()),
                    description: naming::description(&tool_name, &call.arguments),
                },
                auto: Auto { source, standing_approval_ids: call.standing.clone() },
            };
            self.event_writer.send(&event).await;
        }
        self.event_writer.send(&Outgoing::ToolRunning { msg_id, call_id: label, tool_name }).await;
    }

    async fn ended(&mut self, label: CallLabel, serial: u64, ended: Ended) {
        self.close_token(&label, serial, false).await;
        let expired = matches!(ended, Ended::Cancelled { expired: true, .. });
        let Some(call) = self.calls.remove(&label, serial, expired) else { return };
        let event = match ended {
            Ended::Finished { status, output, metadata } => Outgoing::ToolResult(ToolResult {
                msg_id: call.message,
                call_id: label,
                tool_name: call.tool,
                status,
                output: self.calls.strip_tokens(output),
                output_type: "text",
                metadata: self.without_tokens(metadata),
            }),
            Ended::Cancelled { reason, .. } => Outgoing::ToolCancelled {
                msg_id: call.message,
                call_id: label,
                reason: self.calls.strip_tokens(reason),
            },
        };
        self.event_writer.send(&event).await;
    }

    fn without_tokens(&self, metadata: Map<String, Value>) -> Map<String, Value> {
        let text = Value::Object(metadata).to_string();
        // Neither tokens nor their replacement contain characters that JSON escapes.
        serde_json::from_str(&self.calls.strip_tokens(text)).unwrap_or_default()
    }

    async fn decided(
        &mut self,
        label: CallLabel,
        serial: u64,
        while_closing: bool,
        outcome: Result<Decided, EngineError>,
    ) {
        match outcome {
            Ok(Decided::Ended { approved, notice }) => {
                self.move_on(&label, serial, Stage::Decided);
                self.close_token(&label, serial, approved).await;
                if let Some(message) = notice {
                    self.event_writer.send(&Outgoing::Info { call_id: Some(label), message }).await;
                }
            }
            Ok(Decided::Counted { given, needed }) => {
                self.wait_again(&label, serial);
                let message = format!("{given} of {needed} have approved this call; it waits for the others");
                self.event_writer.send(&Outgoing::Info { call_id: Some(label), message }).await;
            }
            // The call reports how it ended.
            Err(EngineError::Already(_) | EngineError::Expired(_)) if while_closing => {
                self.move_on(&label, serial, Stage::Decided);
            }
            Err(EngineError::Already(message)) => {
                self.move_on(&label, serial, Stage::Decided);
                self.fail(ErrorEvent::new(ErrorCode::AlreadyDecided, message).about(&label)).await;
            }
            Err(EngineError::Expired(message)) => {
                self.move_on(&label, serial, Stage::Decided);
                self.fail(ErrorEvent::new(ErrorCode::Expired, message).about(&label)).await;
            }
            Err(EngineError::Refused(message) | EngineError::Unavailable(message)) if while_closing => {
                self.give_up(label, serial, &message).await;
            }
            Err(EngineError::Refused(message)) => {
                self.fail(ErrorEvent::new(ErrorCode::Refused, message).about(&label)).await;
                self.wait_again(&label, serial);
            }
            Err(EngineError::Unavailable(message)) => {
                self.fail(ErrorEvent::new(ErrorCode::GateUnavailable, message).about(&label).for_now()).await;
                self.wait_again(&label, serial);
            }
        }
    }

    /// Records that the decision was received, unless the call has progressed.
    fn move_on(&mut self, label: &CallLabel, serial: u64, stage: Stage) {
        if let Some(call) = self.calls.get(label, serial)
            && matches!(call.stage, Stage::Deciding { .. })
        {
            call.stage = stage;
        }
    }

    /// The decision did not end the approval: the call waits again, or is denied if the session ends.
    fn wait_again(&mut self, label: &CallLabel, serial: u64) {
        let Some(call) = self.calls.get(label, serial) else { return };
        let Stage::Deciding { approval } = &call.stage else { return };
        call.stage = Stage::Waiting { approval: approval.clone() };
        if let Some(reason) = self.closing {
            self.deny_finally(label, reason);
        }
    }

    /// The gate did not accept the final denial: withdrawing the call denies it too.
    async fn give_up(&mut self, label: CallLabel, serial: u64, message: &str) {
        tracing::warn!(call = %label, message, "the gate did not accept the denial of a call; the call is withdrawn");
        let reason = self.closing.unwrap_or(HOST_CLOSED).to_owned();
        if let Some(call) = self.calls.get(&label, serial) {
            call.task.abort();
            self.ended(label, serial, Ended::Cancelled { reason, expired: false }).await;
        }
    }

    async fn mode_changed(&mut self, outcome: Result<Mode, EngineError>) {
        self.changing_mode = false;
        match outcome {
            Ok(mode) => {
                self.terms.mode = mode;
                self.event_writer.send(&Outgoing::ConfigChanged { current_mode: mode }).await;
            }
            Err(EngineError::Unavailable(message)) => {
                self.fail(ErrorEvent::new(ErrorCode::GateUnavailable, message).for_now()).await;
            }
            Err(EngineError::Refused(message) | EngineError::Already(message) | EngineError::Expired(message)) => {
                self.fail(ErrorEvent::new(ErrorCode::ModeRefused, message)).await;
            }
        }
    }
}
