//! Markers: the replacements of matches. A match inside a marker is ignored; otherwise an expression such as `[A-Z]+`
//! would match markers forever.

use std::borrow::Cow;
use std::ops::Range;

/// The marker of a kind without a name.
pub(super) const PLAIN: &str = "[REDACTED]";

const START: &str = "[REDACTED";
/// The number that distinguishes names; with more digits it could be sensitive itself.
const MAX_DIGITS: usize = 6;

/// The numbered marker: for the name of a member, if another has the plain one.
pub(super) fn numbered(number: usize) -> String {
    format!("{START}-{number}]")
}

/// Finds markers, in order; adjacent ones are merged.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut markers: Vec<Range<usize>> = Vec::new();
    for (start, _) in text.match_indices(START) {
        let rest = text.get(start + START.len()..).unwrap_or_default();
        let Some(length) = length_of_tail(rest.as_bytes()) else { continue };
        let end = start + START.len() + length;
        match markers.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => markers.push(start..end),
        }
    }
    markers
}

/// Whether the range is within one of these markers.
pub(super) fn is_inside(markers: &[Range<usize>], range: &Range<usize>) -> bool {
    let after = markers.partition_point(|marker| marker.start <= range.start);
    let around = after.checked_sub(1).and_then(|last| markers.get(last));
    around.is_some_and(|marker| range.end <= marker.end)
}

/// Replaces each marker.
pub(super) fn replaced<'a>(text: &'a str, by: &str) -> Cow<'a, str> {
    let markers = find(text);
    if markers.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut rest = String::with_capacity(text.len());
    let mut position = 0;
    for marker in markers {
        rest.push_str(text.get(position..marker.start).unwrap_or_default());
        rest.push_str(by);
        position = marker.end;
    }
    rest.push_str(text.get(position..).unwrap_or_default());
    Cow::Owned(rest)
}

/// The length of `]`, `-KIND]` or `-NUMBER]` at the beginning.
fn length_of_tail(rest: &[u8]) -> Option<usize> {
    let kinds: [&[u8]; 7] = [b"]", b"-EMAIL]", b"-PHONE]", b"-CARD]", b"-IBAN]", b"-ID]", b"-SECRET]"];
    if let Some(kind) = kinds.iter().find(|kind| rest.starts_with(kind)) {
        return Some(kind.len());
    }
    let number = rest.strip_prefix(b"-")?;
    let digits = number.iter().take(MAX_DIGITS + 1).take_while(|byte| byte.is_ascii_digit()).count();
    let is_ended = number.get(digits) == Some(&b']');
    (is_ended && (1..=MAX_DIGITS).contains(&digits)).then_some(digits + 2)
}
