//! The state of the inbox, and how events change it. [`super::press`] handles keys, [`super::screen`] renders it.

use std::time::Duration;

use serde_json::Value;
use toolgate_model::time::Timestamp;

use super::card;
use super::panel;
use super::screen::{Layout, Size};
use super::text::{Line, Tone};
use crate::client::ClientError;
use crate::command::approvals::approval::Approval;
use crate::command::approvals::decide::{self, ApproverDecision};
use crate::command::approvals::feed::News;
use crate::output::{at, plain};
use toolgate_model::approval::RequestedReach as Reach;

/// How long keys are ignored after the card has changed by itself: they were meant for the previous one.
pub(super) const SETTLING: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) url: String,
    /// Pending approvals, oldest first, so that new ones do not move the selected one.
    pub(super) waiting: Vec<Approval>,
    pub(super) selected: Option<String>,
    /// The first visible line of the pane.
    pub(super) scroll: usize,
    pub(super) mode: Mode,
    pub(super) link: Link,
    pub(super) message: Option<(Tone, String)>,
    /// The approval whose decision is in flight; one at a time.
    pub(super) sending: Option<String>,
    pub(super) size: Size,
    /// Keys that decide are ignored until then.
    pub(super) deaf_until: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mode {
    Browse,
    Help,
    /// Shows a standing approval to confirm.
    Confirm {
        approval: String,
        rule: Rule,
    },
    /// Text input.
    Write {
        approval: String,
        purpose: Purpose,
        text: String,
    },
}

/// A standing approval to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) reach: Reach,
    /// The number of an offered prefix; `None` for every call of the tool.
    pub(super) prefix: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Reason,
    Answer,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Link {
    Connecting,
    Live,
    Lost(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    Decide { id: String, decision: ApproverDecision },
    Quit,
}

impl Inbox {
    pub(super) fn new(url: &str, size: Size, now: Timestamp) -> Self {
        Self {
            url: url.to_owned(),
            waiting: Vec::new(),
            selected: None,
            scroll: 0,
            mode: Mode::Browse,
            link: Link::Connecting,
            message: None,
            sending: None,
            size,
            deaf_until: now.plus(SETTLING),
        }
    }

    /// The selected approval.
    pub(super) fn current(&self) -> Option<&Approval> {
        self.selected.as_ref().and_then(|id| self.approval(id))
    }

    /// `None` if it is no longer pending.
    pub(super) fn approval(&self, id: &str) -> Option<&Approval> {
        self.waiting.iter().find(|approval| approval.id == id)
    }

    /// Whether the approval of a confirmation or text input has ended. Keys then only close it.
    pub(super) fn subject_is_gone(&self) -> bool {
        match &self.mode {
            Mode::Browse | Mode::Help => false,
            Mode::Confirm { approval, .. } | Mode::Write { approval, .. } => self.approval(approval).is_none(),
        }
    }

    pub(super) fn pane(&self, now: Timestamp) -> Vec<Line> {
        let cells = usize::from(self.size.columns);
        let gone = || vec![Line::of(Tone::Warning, "This call is no longer pending. Press Esc to go back.")];
        match &self.mode {
            Mode::Help => panel::help(cells),
            Mode::Confirm { approval, rule } => {
                self.approval(approval).map_or_else(gone, |approval| panel::confirmation(approval, rule, cells))
            }
            Mode::Write { approval, .. } => {
                self.approval(approval).map_or_else(gone, |approval| card::card(approval, now, cells))
            }
            Mode::Browse => match self.current() {
                Some(approval) => card::card(approval, now, cells),
                None => vec![Line::of(Tone::Faint, "No call waits for approval.")],
            },
        }
    }

    /// The number of lines below the visible part of the pane.
    pub(super) fn lines_below(&self, now: Timestamp) -> usize {
        let lines = self.pane(now).len();
        match Layout::of(self.size, self.waiting.len()).pane {
            0 => lines,
            room => lines.saturating_sub(self.scroll.saturating_add(room)),
        }
    }

    pub(super) fn receive(&mut self, news: News, now: Timestamp) {
        match news {
            News::Open => self.link = Link::Live,
            News::Lost(why) => self.link = Link::Lost(why),
            News::Waiting(values) => {
                let mut unreadable = 0_usize;
                let read = values.iter().filter_map(|value| {
                    let approval = Approval::read(value).ok();
                    unreadable += usize::from(approval.is_none());
                    approval
                });
                let waiting = read.filter(Approval::is_pending).collect();
                if unreadable > 0 {
                    let text =
                        format!("could not parse {unreadable} approvals; the gate may be newer than this program");
                    self.message = Some((Tone::Bad, text));
                }
                self.change(now, |before| *before = waiting);
            }
            News::Happened(event) => self.happened(&event, now),
        }
    }

    fn happened(&mut self, event: &Value, now: Timestamp) {
        let value = at(event, "approval");
        if value.is_null() {
            return;
        }
        match Approval::read(value) {
            Ok(approval) => self.put(approval, now),
            Err(why) => self.message = Some((Tone::Bad, why)),
        }
    }

    fn put(&mut self, approval: Approval, now: Timestamp) {
        let is_known = self.approval(&approval.id).is_some();
        if is_known && !approval.is_pending() && self.sending.as_ref() != Some(&approval.id) {
            self.message = Some((Tone::Warning, format!("{} is {}", approval.id, approval.ending())));
        }
        self.change(now, |waiting| {
            waiting.retain(|other| other.id != approval.id);
            if approval.is_pending() {
                waiting.push(approval);
            }
        });
    }

    /// INVARIANT: if the card changes without a key, keys are ignored for a while.
    fn change(&mut self, now: Timestamp, change: impl FnOnce(&mut Vec<Approval>)) {
        let shown = |inbox: &Self| inbox.current().map(|approval| (approval.id.clone(), approval.digest.clone()));
        let (before, place) = (shown(self), self.place().unwrap_or(0));
        change(&mut self.waiting);
        self.waiting.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        if self.current().is_none() {
            let next = self.waiting.get(place).or(self.waiting.last());
            self.selected = next.map(|approval| approval.id.clone());
        }
        if before != shown(self) {
            self.deaf_until = now.plus(SETTLING);
            self.scroll = 0;
        }
    }

    /// The position of the selected approval.
    pub(super) fn place(&self) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        self.waiting.iter().position(|approval| approval.id == *selected)
    }

    /// Handles the result of a decision.
    pub(super) fn decided(&mut self, id: &str, outcome: Result<Value, ClientError>, now: Timestamp) {
        self.sending = None;
        match outcome {
            Ok(value) => {
                if let Ok(approval) = Approval::read(&value) {
                    self.put(approval, now);
                }
                self.message = Some((Tone::Good, decide::described(&value)));
            }
            Err(error) => {
                let (text, is_over) = refusal(id, &error);
                self.message = Some((Tone::Bad, text));
                if is_over {
                    self.change(now, |waiting| waiting.retain(|approval| approval.id != id));
                }
            }
        }
    }

    pub(super) fn resize(&mut self, size: Size) {
        self.size = size;
        self.scroll = 0;
    }
}

/// The message of a failed decision, and whether the approval has ended.
fn refusal(id: &str, error: &ClientError) -> (String, bool) {
    let ClientError::Refused { body, .. } = error else {
        return (format!("{error}; it is not known whether the decision was received"), false);
    };
    let described = |name: &str| plain(body.detail(name).unwrap_or(&Value::Null));
    match body.code() {
        "APPROVAL_DECIDED" => {
            let who = format!("{} by {} ({})", described("status"), described("decided_by"), described("channel"));
            (format!("too late: {id} was {who}"), true)
        }
        "APPROVAL_ENDED" => (format!("too late: {id} is {}", described("status").replace('_', " ")), true),
        "APPROVAL_NOT_FOUND" => (format!("{id} no longer exists"), true),
        _ => (error.to_string(), false),
    }
}

#[cfg(test)]
mod tests;
