//! What the verifier of an export can find, each with the line and the event that it is about.

use thiserror::Error;

use crate::audit_export::MAX_LINE_BYTES;
use crate::checkpoint::CheckpointError;

/// The first thing in an export that is not as it was logged.
#[derive(Debug, Error)]
pub enum VerifyError {
    /// The first line is not the head of an export.
    #[error("line 1 is not the header of an audit export: {reason}; export the log again")]
    Header {
        /// What is wrong with it.
        reason: String,
    },
    /// The head is not signed by the key that is trusted.
    #[error("line 1: {0}")]
    Head(#[from] CheckpointError),
    /// The hashes of a block are not those that were logged, or their line is gone: none of its events can be trusted.
    #[error("block {block} (line {line}) was forged: it does not hold the hashes of events {sequence} to {last}")]
    BlockForged {
        /// Which block.
        block: u64,
        /// Its first event.
        sequence: u64,
        /// Its last event.
        last: u64,
        /// Where.
        line: u64,
    },
    /// Another event stands in its place.
    #[error("event {sequence} (line {line}) was changed: it is not the event that was logged")]
    Changed {
        /// Which event.
        sequence: u64,
        /// Where.
        line: u64,
    },
    /// The event is right but bears another number.
    #[error("event {sequence} (line {line}) was changed: its sequence is not {sequence} any more")]
    Renumbered {
        /// Which event.
        sequence: u64,
        /// Where.
        line: u64,
    },
    /// The event has the right hash but is not written as toolgate writes it.
    #[error("event {sequence} (line {line}) was changed: it is not written in canonical JSON any more")]
    Rewritten {
        /// Which event.
        sequence: u64,
        /// Where.
        line: u64,
    },
    /// An event was removed.
    #[error("event {sequence} is missing: it should stand at line {line}")]
    Missing {
        /// Which event.
        sequence: u64,
        /// Where it should be.
        line: u64,
    },
    /// Events were put into another order.
    #[error("event {sequence} is out of order: event {found} stands in its place at line {line}")]
    OutOfOrder {
        /// The event that comes too late.
        sequence: u64,
        /// The event that comes too early.
        found: u64,
        /// Where.
        line: u64,
    },
    /// Something that was never logged there, or a copy.
    #[error("line {line} was inserted before event {sequence}: it was not logged there")]
    Inserted {
        /// The event that should stand there, or would come next.
        sequence: u64,
        /// Where.
        line: u64,
    },
    /// The export stops before its end.
    #[error("the export is cut off at line {line}: {} should follow", awaited(*.sequence))]
    Truncated {
        /// The first event that is not there; `None` where no event is lacking.
        sequence: Option<u64>,
        /// Where.
        line: u64,
    },
    /// A line that cannot be read.
    #[error("line {line} cannot be read, where {} should stand: {reason}", awaited(*.sequence))]
    Malformed {
        /// The event that should stand there or follow.
        sequence: Option<u64>,
        /// Where.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A line that is too long to be one of ours.
    #[error("line {line} is longer than {MAX_LINE_BYTES} bytes, where {} should stand", awaited(*.sequence))]
    LineTooLong {
        /// The event that should stand there or follow.
        sequence: Option<u64>,
        /// Where.
        line: u64,
    },
    /// The end line counts differently.
    #[error("the end line (line {line}) was changed: the signed head has {size} events")]
    WrongEnd {
        /// What it should say.
        size: u64,
        /// Where.
        line: u64,
    },
    /// Something follows the end.
    #[error("there is more at line {line}, after the end of the export; it was not logged")]
    TrailingData {
        /// Where.
        line: u64,
    },
    /// The file could not be read.
    #[error("the export could not be read: {0}")]
    Read(#[from] std::io::Error),
}

impl VerifyError {
    /// A stable word for the kind of fault, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Header { .. } => "header",
            Self::Head(_) => "head",
            Self::BlockForged { .. } => "block_forged",
            Self::Changed { .. } | Self::Renumbered { .. } | Self::Rewritten { .. } => "changed",
            Self::Missing { .. } => "missing",
            Self::OutOfOrder { .. } => "out_of_order",
            Self::Inserted { .. } => "inserted",
            Self::Truncated { .. } => "truncated",
            Self::Malformed { .. } | Self::LineTooLong { .. } => "malformed",
            Self::WrongEnd { .. } => "end",
            Self::TrailingData { .. } => "trailing_data",
            Self::Read(_) => "unreadable",
        }
    }

    /// The first bad event; `None` where the fault is not in the events.
    pub fn sequence(&self) -> Option<u64> {
        match self {
            Self::BlockForged { sequence, .. }
            | Self::Changed { sequence, .. }
            | Self::Renumbered { sequence, .. }
            | Self::Rewritten { sequence, .. }
            | Self::Missing { sequence, .. }
            | Self::OutOfOrder { sequence, .. }
            | Self::Inserted { sequence, .. } => Some(*sequence),
            Self::Truncated { sequence, .. }
            | Self::Malformed { sequence, .. }
            | Self::LineTooLong { sequence, .. } => *sequence,
            Self::Header { .. } | Self::Head(_) | Self::WrongEnd { .. } | Self::TrailingData { .. } | Self::Read(_) => {
                None
            }
        }
    }

    /// The line of the export, counted from 1; `None` where it could not be read at all.
    pub fn line(&self) -> Option<u64> {
        match self {
            Self::Header { .. } | Self::Head(_) => Some(1),
            Self::BlockForged { line, .. }
            | Self::Changed { line, .. }
            | Self::Renumbered { line, .. }
            | Self::Rewritten { line, .. }
            | Self::Missing { line, .. }
            | Self::OutOfOrder { line, .. }
            | Self::Inserted { line, .. }
            | Self::Truncated { line, .. }
            | Self::Malformed { line, .. }
            | Self::LineTooLong { line, .. }
            | Self::WrongEnd { line, .. }
            | Self::TrailingData { line } => Some(*line),
            Self::Read(_) => None,
        }
    }
}

fn awaited(sequence: Option<u64>) -> String {
    sequence.map_or_else(|| "the end line".to_owned(), |sequence| format!("event {sequence}"))
}
