//! Numbers that are not 64-bit integers, taken from the text itself.

use serde_json::Number;

use super::Position;
use super::number::exact;

/// Scans the text, from one number that became a double to the next.
///
/// The parser hands over a double without its digits, and so cannot tell whether any were lost. They are looked up
/// here.
pub(super) struct Doubles<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Doubles<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// The next number that is not a 64-bit integer, or its position if it cannot be represented exactly.
    ///
    /// INVARIANT: the parser has accepted the text up to and including that number.
    pub fn next(&mut self) -> Result<Number, Position> {
        loop {
            let start = self.offset;
            match self.bytes.get(start) {
                None => return Err(Position::of_offset(self.bytes, start)),
                Some(b'"') => self.skip_string(),
                Some(b'-' | b'0'..=b'9') => {
                    let token = self.take_number();
                    if became_double(token) {
                        // Computed only when needed: counting lines for every number would take quadratic time.
                        return exact(token).ok_or_else(|| Position::of_offset(self.bytes, start));
                    }
                }
                Some(_) => self.offset += 1,
            }
        }
    }

    fn skip_string(&mut self) {
        self.offset += 1;
        while let Some(&byte) = self.bytes.get(self.offset) {
            self.offset += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                return;
            }
        }
    }

    fn take_number(&mut self) -> &str {
        let rest = self.bytes.get(self.offset..).unwrap_or_default();
        let length =
            rest.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')).count();
        self.offset += length;
        rest.get(..length).and_then(|token| std::str::from_utf8(token).ok()).unwrap_or_default()
    }
}

/// Whether the parser makes a double of this token: of all but 64-bit integers, and of `-0`.
fn became_double(token: &str) -> bool {
    token == "-0" || (token.parse::<u64>().is_err() && token.parse::<i64>().is_err())
}
