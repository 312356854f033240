//! The inbox as it is at one moment, and how news change it. What keys do is in [`super::press`], how it looks in
//! [`super::screen`].

use std::time::Duration;

use serde_json::Value;
use toolgate_model::time::Timestamp;

use super::card;
use super::panel;
use super::screen::{Layout, Size};
use super::text::{Line, Tone};
use crate::client::ClientError;
use crate::command::approvals::approval::Approval;
use crate::command::approvals::decide::{self, Answer};
use crate::command::approvals::feed::News;
use crate::output::{at, plain};
use toolgate_model::approval::RequestedReach as Reach;

/// For how long keys are ignored after the card has changed by itself: they were meant for the one before.
pub(super) const SETTLING: Duration = Duration::from_millis(500);

/// The inbox.
#[derive(Debug)]
pub(super) struct Inbox {
    /// The gate that is looked at.
    pub(super) url: String,
    /// What waits, oldest first, so that what arrives does not move what is being looked at.
    pub(super) waiting: Vec<Approval>,
    /// The id of the one that is shown.
    pub(super) selected: Option<String>,
    /// The first line of the pane that is on the screen.
    pub(super) scroll: usize,
    pub(super) mode: Mode,
    pub(super) link: Link,
    pub(super) message: Option<(Tone, String)>,
    /// The answer that is on its way: only one at a time.
    pub(super) sending: Option<String>,
    pub(super) size: Size,
    /// Until when keys that decide are ignored.
    pub(super) deaf_until: Timestamp,
}

/// What the keys are for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mode {
    /// Looking and choosing.
    Browse,
    /// Looking at the keys.
    Help,
    /// A rule is shown and waits for a yes.
    Confirm { approval: String, rule: Rule },
    /// A line is written.
    Write { approval: String, purpose: Purpose, text: String },
}

/// A rule that would stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) reach: Reach,
    /// Which of the offers of a prefix; `None` for every call of the tool.
    pub(super) prefix: Option<usize>,
}

/// What a line is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Saying why not.
    Reason,
    /// Answering a question.
    Answer,
}

/// How the gate is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Link {
    Connecting,
    Live,
    Lost(String),
}

/// What the inbox wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    /// Send this answer.
    Decide { id: String, answer: Answer },
    /// Leave.
    Quit,
}

impl Inbox {
    /// Nothing is known yet.
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

    /// The one that is shown.
    pub(super) fn current(&self) -> Option<&Approval> {
        self.selected.as_ref().and_then(|id| self.approval(id))
    }

    /// The one of this id, while it waits.
    pub(super) fn approval(&self, id: &str) -> Option<&Approval> {
        self.waiting.iter().find(|approval| approval.id == id)
    }

    /// Whether the approval that a confirmation or a line is about has ended meanwhile. Keys then only close it: they
    /// were typed for something that is gone.
    pub(super) fn subject_is_gone(&self) -> bool {
        match &self.mode {
            Mode::Browse | Mode::Help => false,
            Mode::Confirm { approval, .. } | Mode::Write { approval, .. } => self.approval(approval).is_none(),
        }
    }

    /// All lines of the lower pane.
    pub(super) fn pane(&self, now: Timestamp) -> Vec<Line> {
        let cells = usize::from(self.size.columns);
        let gone = || vec![Line::of(Tone::Warning, "This call no longer waits. Press Esc to go back.")];
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
                None => vec![Line::of(Tone::Faint, "Nothing waits for an answer.")],
            },
        }
    }

    /// How many lines of the pane are below the screen.
    pub(super) fn lines_below(&self, now: Timestamp) -> usize {
        let lines = self.pane(now).len();
        match Layout::of(self.size, self.waiting.len()).pane {
            0 => lines,
            room => lines.saturating_sub(self.scroll.saturating_add(room)),
        }
    }

    /// Learns something.
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
                        format!("{unreadable} approvals cannot be read here; is the gate newer than this program?");
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

    /// Takes over how an approval is now.
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

    /// INVARIANT: whenever what is shown becomes something else without a key, keys are ignored for a while.
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

    /// Where the chosen one stands in the list.
    pub(super) fn place(&self) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        self.waiting.iter().position(|approval| approval.id == *selected)
    }

    /// Learns what became of an answer.
    pub(super) fn answered(&mut self, id: &str, outcome: Result<Value, ClientError>, now: Timestamp) {
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

    /// The terminal has another size.
    pub(super) fn resize(&mut self, size: Size) {
        self.size = size;
        self.scroll = 0;
    }
}

/// Why an answer was not taken, and whether the approval is over.
fn refusal(id: &str, error: &ClientError) -> (String, bool) {
    let ClientError::Refused { body, .. } = error else {
        return (format!("not sent: {error}; whether it arrived will be seen when the gate answers"), false);
    };
    let described = |name: &str| plain(body.detail(name).unwrap_or(&Value::Null));
    match body.code() {
        "APPROVAL_DECIDED" => {
            let who = format!("{} by {} ({})", described("status"), described("decided_by"), described("channel"));
            (format!("too late: {id} was {who}"), true)
        }
        "APPROVAL_ENDED" => (format!("too late: {id} is {}", described("status").replace('_', " ")), true),
        "APPROVAL_NOT_FOUND" => (format!("{id} is not there any more"), true),
        _ => (error.to_string(), false),
    }
}

#[cfg(test)]
mod tests;
