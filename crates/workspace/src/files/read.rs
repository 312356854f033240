//! `Read`: a range of lines of a text file. Memory stays within the limit however long the file or its lines are.

use std::io::{BufRead, BufReader};

use serde_json::{Map, Value, json};

use crate::arguments::Arguments;
use crate::error::WorkspaceError;
use crate::output::Output;
use crate::root::{Place, Root};
use crate::stop::Stop;

/// The default number of lines.
const LINES: u64 = 2000;

/// A parsed call.
#[derive(Debug)]
pub struct Read {
    place: Place,
    offset: u64,
    limit: u64,
}

impl Read {
    pub fn parse(root: &Root, values: &Map<String, Value>) -> Result<Self, WorkspaceError> {
        let arguments = Arguments::new(values, &["file_path", "offset", "limit"])?;
        Ok(Self {
            place: root.place(arguments.text("file_path")?)?,
            offset: arguments.optional_count("offset")?.unwrap_or(1),
            limit: arguments.optional_count("limit")?.unwrap_or(LINES),
        })
    }

    pub fn run(&self, root: &Root, most: usize, stop: &Stop) -> Result<Output, WorkspaceError> {
        let mut window = Window::new(self.offset, self.limit, most);
        let mut reader = BufReader::new(root.open_file(&self.place)?);
        loop {
            let chunk = reader.fill_buf().map_err(|error| WorkspaceError::from_io("reading the file", &error))?;
            if chunk.contains(&0) {
                return Err(WorkspaceError::Binary);
            }
            if chunk.is_empty() || stop.is_requested() {
                window.truncated |= !chunk.is_empty();
                break;
            }
            let length = chunk.len();
            if !window.take(chunk) {
                break;
            }
            reader.consume(length);
        }
        Ok(window.into_output())
    }
}

/// The requested lines, as far as they fit.
struct Window {
    first: u64,
    /// The first line after the window.
    end: u64,
    most: usize,
    /// The line of the next byte.
    line: u64,
    bytes: Vec<u8>,
    truncated: bool,
}

impl Window {
    fn new(first: u64, limit: u64, most: usize) -> Self {
        Self { first, end: first.saturating_add(limit), most, line: 1, bytes: Vec::new(), truncated: false }
    }

    /// Adds the next bytes of the file; returns false if the rest is not needed.
    fn take(&mut self, chunk: &[u8]) -> bool {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            if self.line >= self.end {
                self.truncated = true;
                return false;
            }
            if self.line >= self.first {
                let room = self.most.saturating_sub(self.bytes.len());
                self.bytes.extend(piece.iter().take(room));
                if piece.len() > room {
                    self.truncated = true;
                    return false;
                }
            }
            if piece.ends_with(b"\n") {
                self.line = self.line.saturating_add(1);
            }
        }
        true
    }

    fn into_output(mut self) -> Output {
        if self.truncated {
            drop_broken_end(&mut self.bytes);
        }
        let lossless = std::str::from_utf8(&self.bytes).is_ok();
        let text = String::from_utf8_lossy(&self.bytes).into_owned();
        let lines = text.lines().count();
        let details = json!({
            "first_line": self.first,
            "lines": lines,
            "bytes": self.bytes.len(),
            "valid_utf8": lossless,
            "end_of_file": !self.truncated,
        });
        let beyond = self.first > 1 && lines == 0;
        let text = if beyond { "offset is beyond the end of the file".to_owned() } else { text };
        Output { text, is_error: beyond, truncated: self.truncated, details }
    }
}

/// Removes an incomplete UTF-8 sequence at the end.
fn drop_broken_end(bytes: &mut Vec<u8>) {
    if let Err(error) = std::str::from_utf8(bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
}
