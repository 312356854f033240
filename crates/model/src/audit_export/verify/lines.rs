//! The lines of an export, read one at a time into one buffer, and their types.

use std::io::{BufRead, Read};

use serde::Deserialize;
use serde_json::Value;

use super::error::VerifyError;
use crate::audit_export::{MAX_LINE_BYTES, SEQUENCE, broken_reason, exported_leaf, to_canonical};
use crate::merkle::Hash;
use crate::strict_json;

/// A line after the header.
pub(super) enum Entry {
    Block(Block),
    Event(Event),
    End(u64),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Block {
    pub block: u64,
    pub leaves: Vec<Hash>,
    pub proof: Vec<Hash>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    end: u64,
}

pub(super) struct Event {
    /// The sequence in the line.
    pub sequence: Option<u64>,
    /// The leaf computed from the line.
    pub leaf: Hash,
    /// Whether the line is in canonical form. Several texts can have one hash (1.0 and 1), but only one of them was
    /// exported.
    pub canonical: bool,
}

/// The rest of a block after an invalid event.
pub(super) struct RestOfBlock {
    /// The number of remaining lines.
    pub events: usize,
    /// Whether the expected event is among them.
    pub holds_expected: bool,
}

pub(super) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub fn new(reader: R) -> Self {
        Self { reader, buffer: Vec::new(), number: 0 }
    }

    /// The next line; `None` at the end of the file. `awaited` is the expected event, for the error.
    pub fn next(&mut self, awaited: Option<u64>) -> Result<Option<&[u8]>, VerifyError> {
        self.buffer.clear();
        self.number += 1;
        let limit = u64::try_from(MAX_LINE_BYTES).unwrap_or(u64::MAX);
        if self.reader.by_ref().take(limit).read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(None);
        }
        if self.buffer.len() == MAX_LINE_BYTES && !self.ended() {
            return Err(VerifyError::LineTooLong { sequence: awaited, line: self.number });
        }
        Ok(Some(&self.buffer))
    }

    /// The next line, parsed, with its number.
    pub fn entry(&mut self, awaited: Option<u64>) -> Result<(u64, Entry), VerifyError> {
        let Some(line) = self.next(awaited)? else {
            return Err(VerifyError::Truncated { sequence: awaited, line: self.number });
        };
        match Entry::parse(line) {
            Ok(entry) => Ok((self.number, entry)),
            Err(_) if !self.ended() => Err(VerifyError::Truncated { sequence: awaited, line: self.number }),
            Err(reason) => Err(VerifyError::Malformed { sequence: awaited, line: self.number, reason }),
        }
    }

    /// The number of the next block line, wherever it is.
    pub fn next_block(&mut self) -> Option<u64> {
        while let Ok(Some(line)) = self.next(None) {
            if let Ok(Entry::Block(block)) = Entry::parse(line) {
                return Some(block.block);
            }
        }
        None
    }

    /// Reads on to the end of the block.
    pub fn rest_of_block(&mut self, expected: Option<&Hash>) -> RestOfBlock {
        let mut rest = RestOfBlock { events: 0, holds_expected: false };
        while let Ok(Some(line)) = self.next(None) {
            match Entry::parse(line) {
                Ok(Entry::Event(event)) => rest.holds_expected |= Some(&event.leaf) == expected,
                Ok(Entry::Block(_) | Entry::End(_)) => break,
                // Invalid, but it takes the place of an event.
                Err(_) => {}
            }
            rest.events += 1;
        }
        rest
    }

    /// Whether the line in the buffer is complete.
    fn ended(&self) -> bool {
        self.buffer.last() == Some(&b'\n')
    }
}

impl Entry {
    fn parse(line: &[u8]) -> Result<Self, String> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if let Some(reason) = broken_reason(line) {
            return Err(format!("the gate aborted the export: {reason}"));
        }
        let value = strict_json::parse_written(line).map_err(|error| error.to_string())?;
        let Value::Object(event) = value else { return Err("not a JSON object".to_owned()) };
        // An event may have members of any name, so a line with a sequence is one.
        let names = |name: &str| !event.contains_key(SEQUENCE) && event.contains_key(name);
        if names("block") {
            let block = serde_json::from_value(Value::Object(event));
            return block.map(Self::Block).map_err(|_| "a block line must have block, leaves and proof".to_owned());
        }
        if names("end") {
            let end = serde_json::from_value::<End>(Value::Object(event));
            return end.map(|end| Self::End(end.end)).map_err(|_| "an end line must have only `end`".to_owned());
        }
        Ok(Self::Event(Event {
            sequence: event.get(SEQUENCE).and_then(Value::as_u64),
            leaf: exported_leaf(&event),
            canonical: to_canonical(&event) == line,
        }))
    }
}
