//! The calls of a session: those that are open, with where they stand, and how the last ones ended, so that a late answer
//! is told what became of its call.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value};
use tokio::task::AbortHandle;
use toolgate_model::approval::CallLabel;
use toolgate_model::text::Line;

use super::protocol::{ErrorCode, ErrorEvent, ResumeToken};

/// How many calls may be open at once.
pub(super) const MAX_OPEN: usize = 256;
/// How many ended calls are remembered.
const REMEMBERED: usize = 1024;

/// A call that has not ended.
pub(super) struct OpenCall {
    /// Tells it from an earlier call of the same id.
    pub(super) serial: u64,
    /// The turn that it belongs to.
    pub(super) message: Line,
    /// The tool, as the host calls it.
    pub(super) tool: String,
    /// What it is called with.
    pub(super) arguments: Map<String, Value>,
    /// Where it stands.
    pub(super) stage: Stage,
    /// Whether anybody was ever asked.
    pub(super) asked: bool,
    /// The earlier answers that cover it.
    pub(super) standing: Vec<String>,
    /// By what it can be resumed, while it can be.
    pub(super) token: Option<ResumeToken>,
    /// The task that makes it.
    pub(super) task: AbortHandle,
}

/// Where a call stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stage {
    /// On its way.
    Sent,
    /// Waits for the answer to an approval.
    Waiting {
        /// Which.
        approval: String,
    },
    /// An answer is on its way to the gate.
    Answering {
        /// To which approval.
        approval: String,
    },
    /// Answered; the gate has still to go on with it.
    Answered,
    /// Carried out.
    Running,
}

/// The calls of a session.
#[derive(Default)]
pub(super) struct OpenCalls {
    open: BTreeMap<CallLabel, OpenCall>,
    ended: VecDeque<(CallLabel, bool)>,
    serial: u64,
}

impl OpenCalls {
    /// A number that no call had.
    pub(super) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Why a call of this id cannot be opened.
    pub(super) fn objection(&self, label: &CallLabel) -> Option<ErrorEvent> {
        if self.open.contains_key(label) {
            let message = "a call of this id is open; wait for its end, or use another id";
            return Some(ErrorEvent::new(ErrorCode::DuplicateCall, message).about(label));
        }
        let message = || format!("{MAX_OPEN} calls are open; wait until one has ended");
        (self.open.len() >= MAX_OPEN)
            .then(|| ErrorEvent::new(ErrorCode::TooManyCalls, message()).about(label).for_now())
    }

    pub(super) fn insert(&mut self, label: CallLabel, call: OpenCall) {
        self.open.insert(label, call);
    }

    /// The call of this id, if it is the one of that number.
    pub(super) fn get(&mut self, label: &CallLabel, serial: u64) -> Option<&mut OpenCall> {
        self.open.get_mut(label).filter(|call| call.serial == serial)
    }

    /// A call that waits for an answer, with its approval; or what to tell whoever wants to answer it.
    pub(super) fn waiting(&mut self, label: &CallLabel) -> Result<(&mut OpenCall, String), ErrorEvent> {
        let error = |code, message: &str| Err(ErrorEvent::new(code, message).about(label));
        let Some(call) = self.open.get_mut(label) else {
            return match self.ended.iter().rev().find(|(own, _)| own == label) {
                Some((_, true)) => error(ErrorCode::Expired, "the time for an answer to this call is over"),
                Some((_, false)) => error(ErrorCode::AlreadyDecided, "this call has ended already"),
                None => error(ErrorCode::UnknownCall, "there is no call of this id"),
            };
        };
        match &call.stage {
            Stage::Waiting { approval } => {
                let approval = approval.clone();
                Ok((call, approval))
            }
            Stage::Sent => error(ErrorCode::NotWaiting, "this call has not been asked for; wait for its tool_request"),
            Stage::Running if !call.asked => error(ErrorCode::NotWaiting, "this call runs without an answer"),
            Stage::Answering { .. } | Stage::Answered | Stage::Running => {
                error(ErrorCode::AlreadyDecided, "this call was answered already")
            }
        }
    }

    /// The call that is resumed by this token. Every open token is compared, and each in full.
    pub(super) fn of_token(&self, token: &ResumeToken) -> Option<CallLabel> {
        let is_it = |call: &OpenCall| call.token.as_ref().is_some_and(|own| own.is(token));
        let found = self.open.iter().fold(None, |found, (label, call)| if is_it(call) { Some(label) } else { found });
        found.cloned()
    }

    /// Takes an ended call out, and remembers how it ended.
    pub(super) fn remove(&mut self, label: &CallLabel, serial: u64, expired: bool) -> Option<OpenCall> {
        self.get(label, serial)?;
        if self.ended.len() == REMEMBERED {
            self.ended.pop_front();
        }
        self.ended.push_back((label.clone(), expired));
        self.open.remove(label)
    }

    /// The text without any token that could still be used.
    pub(super) fn strip_tokens(&self, text: String) -> String {
        self.open.values().filter_map(|call| call.token.as_ref()).fold(text, |text, token| token.strip(text))
    }

    /// Those that wait for an answer.
    pub(super) fn all_waiting(&self) -> Vec<CallLabel> {
        let waiting = self.open.iter().filter(|(_, call)| matches!(call.stage, Stage::Waiting { .. }));
        waiting.map(|(label, _)| label.clone()).collect()
    }

    /// Whether all have ended.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}
