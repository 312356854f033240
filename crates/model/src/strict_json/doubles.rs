//! Numbers that are not 64-bit integers, taken from the text itself.

use serde_json::{Number, Value};

use super::Position;
use crate::canonical::to_canonical;

/// Walks over the text, from one number that became a double to the next.
///
/// The parser hands over a double without the digits it was made of: it may be off by one place (exact conversion is a
/// feature that some other crate may or may not have switched on), and it may be an integer that no longer fits. Both
/// would make an event's hash depend on who read it, so the digits are looked up here and converted exactly.
pub(super) struct Doubles<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Doubles<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// The next number that is not a 64-bit integer, or where it stands if it cannot be held.
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
                    if let Some(result) = double(token) {
                        // Found only when it is needed: counting lines for every number would take quadratic time.
                        return result.ok_or_else(|| Position::of_offset(self.bytes, start));
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

/// `None`: a 64-bit integer. `Some(None)`: cannot be held. The parser makes a double of `-0` as well.
fn double(token: &str) -> Option<Option<Number>> {
    let integer = !token.contains(['.', 'e', 'E']);
    if integer && token != "-0" && (token.parse::<u64>().is_ok() || token.parse::<i64>().is_ok()) {
        return None;
    }
    let Some(number) = token.parse().ok().and_then(Number::from_f64) else { return Some(None) };
    // A large integer passes if nothing is lost: it is then exactly how the canonical writer writes this double.
    let value = Value::Number(number.clone());
    let lossless = !integer || token == "-0" || to_canonical(&value) == token.as_bytes();
    Some(lossless.then_some(number))
}
