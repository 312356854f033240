//! One form of a secret, and matching it at a position of a text, however its characters are escaped there.

use std::collections::BTreeSet;
use std::ops::Range;

use super::readings::{MAX_ESCAPE, Readings, is_introducer};
use super::steps;

/// Shorter encodings are not searched for across line breaks: a few letters match by accident.
const WRAPPED: usize = 16;

/// How the bytes of a pattern are compared with those of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A secret so short that it counts only if no letter or digit is adjacent.
    Token,
    /// The bytes themselves.
    Text,
    /// The bytes without white space, with any white space between them in the text.
    Lines,
    /// Standard base64, found in the URL-safe alphabet as well.
    Base64 {
        /// The character before the pattern also has bits of the secret.
        before: bool,
        /// The character after the pattern also has bits of the secret.
        after: bool,
    },
    /// Lower-case hex, found in either case and with separators between the digits.
    Hex,
}

/// One form of a secret.
///
/// INVARIANT: `bytes` is not empty and does not start with white space.
#[derive(Clone, Copy)]
pub(super) struct Pattern<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) kind: Kind,
}

impl Pattern<'_> {
    /// The number that the secret itself spells, if it does.
    pub(super) fn as_number(&self) -> Option<f64> {
        if !matches!(self.kind, Kind::Token | Kind::Text) {
            return None;
        }
        std::str::from_utf8(self.bytes).ok()?.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// The range of the pattern, if it starts at `start`; of several ends the furthest.
    pub(super) fn find_at(&self, readings: &Readings<'_>, start: usize) -> Option<Range<usize>> {
        let text = readings.text;
        let end = self.end_from(readings, start)?;
        let before = start.checked_sub(1).and_then(|before| text.get(before)).copied();
        let after = text.get(end).copied();
        match self.kind {
            Kind::Token if before.is_some_and(is_wordy) || after.is_some_and(is_wordy) => None,
            Kind::Base64 { before: shares_before, after: shares_after } => {
                let widened_start = start - usize::from(shares_before && before.is_some_and(is_base64));
                let end = end + usize::from(shares_after && after.is_some_and(is_base64));
                // The padding reveals the length of the secret.
                let padding = text.iter().skip(end).take(2).take_while(|byte| **byte == b'=').count();
                Some(widened_start..end + padding)
            }
            _ => Some(start..end),
        }
    }

    fn end_from(&self, readings: &Readings<'_>, start: usize) -> Option<usize> {
        let text = readings.text;
        let matched = self.plain_run(text, 0, start);
        if matched == self.bytes.len() {
            return Some(start + matched);
        }
        // Nearly every attempt ends here.
        let (wanted, next) = (*self.bytes.get(matched)?, *text.get(start + matched)?);
        let skips = matched > 0 && (next == 0 || self.may_skip(next));
        if !is_introducer(next) && !self.accepts(wanted, next) && !skips {
            return None;
        }
        self.furthest_end(readings, matched, start + matched)
    }

    /// The number of matching bytes from here that have only one reading.
    fn plain_run(&self, text: &[u8], matched: usize, at: usize) -> usize {
        let wanted = self.bytes.get(matched..).unwrap_or_default();
        let pairs = wanted.iter().zip(text.get(at..).unwrap_or_default());
        let run = pairs.take_while(|(wanted, byte)| self.accepts(**wanted, **byte) && !is_ambiguous(**byte)).count();
        steps::count(run + 1);
        run
    }

    /// The start of the pattern, if it starts at `start` and the text ends before it does.
    pub(super) fn cut_off_at(&self, readings: &Readings<'_>, start: usize) -> Option<usize> {
        let text = readings.text;
        let mut states = BTreeSet::from([(0, start)]);
        while let Some((matched, at)) = states.pop_first() {
            let run = self.plain_run(text, matched, at);
            let (matched, at) = (matched + run, at + run);
            if matched == self.bytes.len() {
                continue;
            }
            if at >= text.len() || is_cut_escape(text, at) {
                let before = start.checked_sub(1).filter(|before| text.get(*before).copied().is_some_and(is_base64));
                let shares = matches!(self.kind, Kind::Base64 { before: true, .. });
                return before.filter(|_| shares).or(Some(start));
            }
            self.step(readings, matched, at, &mut states);
        }
        None
    }

    /// Follows all readings of the text at once. A state is the matched length of the pattern and the position in the
    /// text.
    fn furthest_end(&self, readings: &Readings<'_>, matched: usize, at: usize) -> Option<usize> {
        let text = readings.text;
        let mut furthest = None;
        let mut states = BTreeSet::from([(matched, at)]);
        while let Some((matched, at)) = states.pop_first() {
            let run = self.plain_run(text, matched, at);
            let (matched, at) = (matched + run, at + run);
            if matched == self.bytes.len() {
                furthest = furthest.max(Some(at));
            } else {
                self.step(readings, matched, at, &mut states);
            }
        }
        furthest
    }

    /// Adds the states that follow this one.
    fn step(&self, readings: &Readings<'_>, matched: usize, at: usize, states: &mut BTreeSet<(usize, usize)>) {
        let (Some(&wanted), Some(&byte)) = (self.bytes.get(matched), readings.text.get(at)) else { return };
        if self.accepts(wanted, byte) {
            states.insert((matched + 1, at + 1));
        }
        if matched > 0 && (self.may_skip(byte) || is_filler(readings.text, at)) {
            states.insert((matched, at + 1));
        }
        steps::count(1 + readings.at(at).len());
        for reading in readings.at(at) {
            let (spelled, end) = (reading.spelled(), at + reading.span());
            if spelled.is_empty() {
                continue;
            }
            let wanted = self.bytes.get(matched..matched + spelled.len()).unwrap_or_default();
            if wanted.len() == spelled.len() && wanted.iter().zip(spelled).all(|(w, s)| self.accepts(*w, *s)) {
                states.insert((matched + spelled.len(), end));
            }
            if matched > 0 && spelled.iter().all(|byte| self.may_skip(*byte) || *byte == 0) {
                states.insert((matched, end));
            }
        }
    }

    fn accepts(&self, wanted: u8, byte: u8) -> bool {
        match self.kind {
            Kind::Token | Kind::Text | Kind::Lines => wanted == byte || (wanted == b' ' && byte == b'+'),
            // A form decoder turns plus signs into spaces.
            Kind::Base64 { .. } => wanted == byte || matches!((wanted, byte), (b'+', b'-' | b' ') | (b'/', b'_')),
            Kind::Hex => wanted == byte.to_ascii_lowercase(),
        }
    }

    /// Whether this byte may occur between two of the pattern without a meaning.
    fn may_skip(&self, byte: u8) -> bool {
        match self.kind {
            Kind::Token | Kind::Text => false,
            // A form encoder turns spaces into plus signs.
            Kind::Lines => byte.is_ascii_whitespace() || byte == b'+',
            Kind::Base64 { .. } => self.bytes.len() >= WRAPPED && byte.is_ascii_whitespace(),
            Kind::Hex => {
                self.bytes.len() >= WRAPPED && (byte.is_ascii_whitespace() || matches!(byte, b':' | b'-' | b','))
            }
        }
    }
}

/// Maps all bytes that some pattern treats as equal to one.
pub(super) fn fold(byte: u8) -> u8 {
    match byte {
        b'-' | b' ' => b'+',
        b'_' => b'/',
        _ => byte.to_ascii_lowercase(),
    }
}

/// All bytes that [`fold`] maps to this one; some of them twice.
pub(super) fn alike(folded: u8) -> [u8; 3] {
    match folded {
        b'+' => [b'+', b'-', b' '],
        b'/' => [b'/', b'_', b'_'],
        _ => [folded, folded, folded.to_ascii_uppercase()],
    }
}

/// Whether a text may have more than one reading at this byte.
fn is_ambiguous(byte: u8) -> bool {
    is_introducer(byte) || byte == b'+' || byte == 0 || byte.is_ascii_whitespace()
}

/// Whether this is one of the zero bytes that UTF-16 and UTF-32 put between ASCII characters.
fn is_filler(text: &[u8], at: usize) -> bool {
    let row = text.get(at.saturating_sub(3)..=at).unwrap_or_default();
    text.get(at) == Some(&0) && row.iter().any(|byte| *byte != 0)
}

/// Whether an escape may begin here that the end of the text cuts off.
pub(super) fn is_cut_escape(text: &[u8], at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    rest.len() < MAX_ESCAPE && rest.first().copied().is_some_and(is_introducer)
}

fn is_wordy(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii()
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_alike_is_exactly_what_is_folded_to_the_same() {
        for byte in 0..=u8::MAX {
            assert!(alike(fold(byte)).contains(&byte), "{byte}");
            assert!(alike(fold(byte)).into_iter().all(|other| fold(other) == fold(byte)), "{byte}");
        }
    }
}
