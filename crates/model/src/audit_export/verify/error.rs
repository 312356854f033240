//! The findings of the verifier, each with its line and event.

use thiserror::Error;

use crate::audit_export::MAX_LINE_BYTES;
use crate::checkpoint::CheckpointError;

/// The first difference between an export and the log.
#[derive(Debug, Error)]
pub enum VerifyError {
    #[error("line 1 is not the header of an audit export: {reason}; export the log again")]
    Header { reason: String },
    /// The head is not signed by the trusted key.
    #[error("line 1: {0}")]
    Head(#[from] CheckpointError),
    /// The hashes of a block are not those that were logged, or their line is missing: none of its events can be
    /// trusted.
    #[error("block {block} (line {line}) was forged: it does not contain the hashes of events {sequence} to {last}")]
    BlockForged {
        block: u64,
        /// The first event of the block.
        sequence: u64,
        /// The last event of the block.
        last: u64,
        line: u64,
    },
    /// Another event is in its place.
    #[error("event {sequence} (line {line}) was changed: it is not the event that was logged")]
    Changed { sequence: u64, line: u64 },
    /// The event is unchanged except for its sequence.
    #[error("event {sequence} (line {line}) was changed: its sequence is no longer {sequence}")]
    Renumbered { sequence: u64, line: u64 },
    /// The event has the right hash but is not in canonical form.
    #[error("event {sequence} (line {line}) was changed: it is no longer canonical JSON")]
    Rewritten { sequence: u64, line: u64 },
    #[error("event {sequence} is missing: expected at line {line}")]
    Missing {
        sequence: u64,
        /// Where it should be.
        line: u64,
    },
    #[error("event {sequence} is out of order: found event {found} at line {line}")]
    OutOfOrder {
        /// The event that comes too late.
        sequence: u64,
        /// The event that comes too early.
        found: u64,
        line: u64,
    },
    /// A line that was never logged there, or a copy.
    #[error("line {line} was inserted before event {sequence}: it was not logged there")]
    Inserted {
        /// The expected or the next event.
        sequence: u64,
        line: u64,
    },
    /// The export ends early.
    #[error("the export is truncated at line {line}: expected {}", awaited(*.sequence))]
    Truncated {
        /// The first missing event; `None` if no event is missing.
        sequence: Option<u64>,
        line: u64,
    },
    #[error("line {line} is invalid, expected {}: {reason}", awaited(*.sequence))]
    Malformed {
        /// The expected or the next event.
        sequence: Option<u64>,
        line: u64,
        reason: String,
    },
    #[error("line {line} is longer than {MAX_LINE_BYTES} bytes, expected {}", awaited(*.sequence))]
    LineTooLong {
        /// The expected or the next event.
        sequence: Option<u64>,
        line: u64,
    },
    /// The end line has another count.
    #[error("the end line (line {line}) was changed: the signed head has {size} events")]
    WrongEnd {
        /// The expected count.
        size: u64,
        line: u64,
    },
    #[error("line {line} follows the end of the export; it was not logged")]
    TrailingData { line: u64 },
    #[error("could not read the export: {0}")]
    Read(#[from] std::io::Error),
}

impl VerifyError {
    /// A stable identifier of the finding, for programs.
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

    /// The first invalid event; `None` if the fault is not in the events.
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

    /// The line of the export, counted from 1; `None` if it could not be read at all.
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
