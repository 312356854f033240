//! What an event of a stream has.

use crate::step::StepQuestion;

/// What one event has.
#[derive(Default)]
pub(super) struct Reading {
    /// Parts of texts and of the inputs of calls.
    pub(super) pieces: Vec<Piece>,
    /// Whole texts and inputs that were streamed before.
    pub(super) copies: Vec<Piece>,
    /// The tools that are called, by the key of the call.
    pub(super) tools: Vec<(String, Tool)>,
    /// The calls that begin.
    pub(super) opens: Vec<String>,
    /// What has no text of its own, by its key.
    pub(super) ready: Vec<(String, Vec<StepQuestion>)>,
    /// The texts and calls that are complete.
    pub(super) closes: Vec<Closed>,
    /// Whether it is the last event of the stream.
    pub(super) last: bool,
    /// Whether the answer is complete, though more may come.
    pub(super) finished: bool,
    /// Whether it has nothing but the usage.
    pub(super) is_usage: bool,
}

/// A part of a text, or all of it.
pub(super) struct Piece {
    /// Names the text.
    pub(super) key: String,
    /// Where it stands in the event.
    pub(super) at: String,
    pub(super) text: String,
    pub(super) kind: Kind,
}

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// Text that the provider takes back only as it is.
    Fixed,
    /// The input of a call.
    Call,
}

/// A tool that is called.
pub(super) struct Tool {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    /// Whether its input is free text rather than JSON.
    pub(super) is_free: bool,
}

/// What is complete.
pub(super) enum Closed {
    One(String),
    /// All whose keys begin like this.
    Below(String),
}

impl Closed {
    pub(super) fn covers(&self, key: &str) -> bool {
        match self {
            Self::One(closed) => key == closed,
            Self::Below(beginning) => key.starts_with(beginning.as_str()),
        }
    }
}
