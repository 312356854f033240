//! The open calls of a session with their stages, and how recent calls ended, for the error on a late decision.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value};
use tokio::task::AbortHandle;
use toolgate_model::approval::CallLabel;
use toolgate_model::text::Line;

use super::protocol::{ErrorCode, ErrorEvent, ResumeToken};

pub(super) const MAX_OPEN: usize = 256;
const REMEMBERED: usize = 1024;

pub(super) struct OpenCall {
    /// Distinguishes it from an earlier call with the same id.
    pub(super) serial: u64,
    pub(super) message: Line,
    pub(super) tool: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) stage: Stage,
    /// Whether a decision was ever requested.
    pub(super) asked: bool,
    /// The standing approvals that cover it.
    pub(super) standing: Vec<String>,
    /// The token to resume it, while it is suspended.
    pub(super) token: Option<ResumeToken>,
    pub(super) task: AbortHandle,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stage {
    Sent,
    Waiting { approval: String },
    Deciding { approval: String },
    Decided,
    Running,
}

#[derive(Default)]
pub(super) struct OpenCalls {
    open: BTreeMap<CallLabel, OpenCall>,
    ended: VecDeque<(CallLabel, bool)>,
    serial: u64,
}

impl OpenCalls {
    /// A number that no call has had.
    pub(super) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// The error if a call with this id cannot be opened.
    pub(super) fn objection(&self, label: &CallLabel) -> Option<ErrorEvent> {
        if self.open.contains_key(label) {
            let message = "a call with this id is open; wait until it has ended, or use another id";
            return Some(ErrorEvent::new(ErrorCode::DuplicateCall, message).about(label));
        }
        let message = || format!("{MAX_OPEN} calls are open; wait until one has ended");
        (self.open.len() >= MAX_OPEN)
            .then(|| ErrorEvent::new(ErrorCode::TooManyCalls, message()).about(label).for_now())
    }

    pub(super) fn insert(&mut self, label: CallLabel, call: OpenCall) {
        self.open.insert(label, call);
    }

    /// The call with this id, if it has this number.
    pub(super) fn get(&mut self, label: &CallLabel, serial: u64) -> Option<&mut OpenCall> {
        self.open.get_mut(label).filter(|call| call.serial == serial)
    }

    /// A call that waits for a decision, with its approval, or the error for the host.
    pub(super) fn waiting(&mut self, label: &CallLabel) -> Result<(&mut OpenCall, String), ErrorEvent> {
        let error = |code, message: &str| Err(ErrorEvent::new(code, message).about(label));
        let Some(call) = self.open.get_mut(label) else {
            return match self.ended.iter().rev().find(|(own, _)| own == label) {
                Some((_, true)) => error(ErrorCode::Expired, "this call has expired"),
                Some((_, false)) => error(ErrorCode::AlreadyDecided, "this call has already ended"),
                None => error(ErrorCode::UnknownCall, "no call with this id"),
            };
        };
        match &call.stage {
            Stage::Waiting { approval } => {
                let approval = approval.clone();
                Ok((call, approval))
            }
            Stage::Sent => {
                error(ErrorCode::NotWaiting, "no decision was requested for this call yet; wait for its tool_request")
            }
            Stage::Running if !call.asked => error(ErrorCode::NotWaiting, "this call runs without a decision"),
            Stage::Deciding { .. } | Stage::Decided | Stage::Running => {
                error(ErrorCode::AlreadyDecided, "this call was already decided")
            }
        }
    }

    /// The call with this token. Every open token is compared, in constant time.
    pub(super) fn of_token(&self, token: &ResumeToken) -> Option<CallLabel> {
        let is_it = |call: &OpenCall| call.token.as_ref().is_some_and(|own| own.is(token));
        let found = self.open.iter().fold(None, |found, (label, call)| if is_it(call) { Some(label) } else { found });
        found.cloned()
    }

    /// Removes an ended call, and remembers how it ended.
    pub(super) fn remove(&mut self, label: &CallLabel, serial: u64, expired: bool) -> Option<OpenCall> {
        self.get(label, serial)?;
        if self.ended.len() == REMEMBERED {
            self.ended.pop_front();
        }
        self.ended.push_back((label.clone(), expired));
        self.open.remove(label)
    }

    /// Removes all valid tokens from the text.
    pub(super) fn strip_tokens(&self, text: String) -> String {
        self.open.values().filter_map(|call| call.token.as_ref()).fold(text, |text, token| token.strip(text))
    }

    /// The calls that wait for a decision.
    pub(super) fn all_waiting(&self) -> Vec<CallLabel> {
        let waiting = self.open.iter().filter(|(_, call)| matches!(call.stage, Stage::Waiting { .. }));
        waiting.map(|(label, _)| label.clone()).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}
