//! All readings of the escapes of a text. At each byte that introduces an escape, these are the characters that the
//! bytes from there can stand for, with the end of the escape: `%41`, `\u0041`, `\x41`, `\"`, `&#65;`, `&amp;` and the
//! like.
//!
//! Escapes are read from right to left. All readings of what follows an introducer are then known, so that an escape
//! with escaped parts (`%25%37%33`) is read in the same step: one pass finds the fixed point of decoding. The length of
//! an escape and the number of readings per position are limited, which keeps the work linear in the length of the
//! text.

use super::entities::{self, MAX_NAME};
use super::steps;

/// The maximum length of an escape of one character, however often it is nested.
pub(super) const MAX_ESCAPE: usize = 256;
/// The maximum number of readings at a position.
const MAX_READINGS: usize = 32;
/// How many backslashes stand for one: each escaping doubles them.
const MAX_BACKSLASHES: usize = 16;
/// The maximum number of digits of a number, including leading zeros.
const MAX_DIGITS: usize = 32;
/// The largest code point.
const LARGEST: u32 = 0x10_FFFF;
/// How many readings of the same digits are followed.
const BEAM: usize = 8;
/// The average number of steps per byte above which escapes of escapes are no longer read.
const STEPS_PER_BYTE: usize = 16;
/// The maximum number of readings per byte of a text, and in addition. JSON in JSON in JSON has fewer.
const READINGS_PER_BYTE: usize = 4;
const SPARE_READINGS: usize = 4096;

/// A text with all its escapes decoded.
pub struct Decoded {
    /// The decoded bytes.
    pub bytes: Vec<u8>,
    /// For each of these bytes the position of its character in the text; the last entry is the length of the text.
    pub positions: Vec<usize>,
}

/// Decodes every escape of a text to its fixed point; `None` if it has none.
pub fn decoded(text: &str) -> Option<Decoded> {
    if !text.bytes().any(is_introducer) {
        return None;
    }
    let readings = Readings::of(text.as_bytes());
    let mut decoded = Decoded { bytes: Vec::with_capacity(text.len()), positions: Vec::with_capacity(text.len() + 1) };
    let mut at = 0;
    let mut is_changed = false;
    while let Some(&byte) = text.as_bytes().get(at) {
        let read = readings.at(at).iter().filter(|reading| reading.length > 0).max_by_key(|reading| reading.span);
        let raw = [byte];
        let spelled = read.map_or(raw.as_slice(), Reading::spelled);
        decoded.bytes.extend_from_slice(spelled);
        decoded.positions.extend(std::iter::repeat_n(at, spelled.len()));
        at += read.map_or(1, Reading::span);
        is_changed |= read.is_some();
    }
    decoded.positions.push(text.len());
    is_changed.then_some(decoded)
}

/// Whether an escape can start with this byte.
pub(crate) fn is_introducer(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&')
}

/// One reading: the character and the length of the escape. There may be one for every few bytes of a text, so it is
/// kept small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The second half of a surrogate pair, which is not a character by itself.
    low: u16,
    span: u16,
    bytes: [u8; 4],
    length: u8,
    /// Whether it is a run of backslashes that stands for one.
    row: bool,
}

impl Reading {
    /// The character; empty for half of a pair.
    pub(crate) fn spelled(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// The number of bytes of the text.
    pub(crate) fn span(&self) -> usize {
        usize::from(self.span)
    }

    fn byte(&self) -> Option<u8> {
        if let [byte] = *self.spelled() { Some(byte) } else { None }
    }
}

/// A position at which an escape can start.
struct Place {
    at: u32,
    /// The index of its first reading; they end at the first of the next position.
    first: u32,
    /// The position after the one backslash here, escaped or not; its own position if there is none.
    backslash: u32,
    /// The position after the whole run of backslashes.
    after_row: u32,
}

/// A text with all readings of its escapes.
pub(crate) struct Readings<'a> {
    pub(super) text: &'a [u8],
    /// From the last to the first.
    places: Vec<Place>,
    readings: Vec<Reading>,
    steps: std::cell::Cell<usize>,
    /// Whether it has more readings than are followed. From there on each position has at most one, so that neither the
    /// time nor the memory for a text depends on how it was constructed.
    is_ambiguous: bool,
}

impl<'a> Readings<'a> {
    pub(crate) fn of(text: &'a [u8]) -> Self {
        let steps = std::cell::Cell::new(text.len().saturating_mul(STEPS_PER_BYTE).saturating_add(4096));
        let mut readings = Self { text, places: Vec::new(), readings: Vec::new(), steps, is_ambiguous: false };
        let mut found = Vec::new();
        for (at, &byte) in text.iter().enumerate().rev() {
            if is_introducer(byte) {
                readings.read(at, byte, &mut found);
            }
        }
        readings
    }

    /// Whether not all of its readings are known, so that its meaning is unknown.
    pub(super) fn is_ambiguous(&self) -> bool {
        self.is_ambiguous
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.readings.len()
    }

    /// What can be read at this position instead of its byte.
    pub(crate) fn at(&self, at: usize) -> &[Reading] {
        let Some(found) = self.position(at) else { return &[] };
        let first = |place: usize| self.places.get(place).map_or(self.readings.len(), |place| wide(place.first));
        self.readings.get(first(found)..first(found + 1)).unwrap_or_default()
    }

    fn position(&self, at: usize) -> Option<usize> {
        if !self.text.get(at).copied().is_some_and(is_introducer) {
            return None;
        }
        self.places.binary_search_by(|place| at.cmp(&wide(place.at))).ok()
    }

    fn place(&self, at: usize) -> Option<&Place> {
        self.places.get(self.position(at)?)
    }

    /// The position after the one backslash here, escaped or not.
    fn backslash(&self, at: usize) -> Option<usize> {
        self.place(at).map(|place| wide(place.backslash)).filter(|end| *end > at)
    }

    /// The position after the run of backslashes that begins here.
    fn after_row(&self, at: usize) -> usize {
        self.place(at).map_or(at, |place| wide(place.after_row))
    }

    fn read(&mut self, at: usize, byte: u8, found: &mut Vec<Reading>) {
        found.clear();
        let mut finding = Finding { text: self, at, found };
        finding.introduced(byte, at + 1);
        if self.readings.len() > self.text.len().saturating_mul(READINGS_PER_BYTE).saturating_add(SPARE_READINGS) {
            self.is_ambiguous = true;
        }
        if self.is_ambiguous {
            found.truncate(1);
        }
        let mut finding = Finding { text: self, at, found };
        // Readings are signs of escapes too.
        let mut next = 0;
        while let Some(reading) = finding.found.get(next).copied().filter(|_| !finding.text.is_ambiguous) {
            next += 1;
            steps::count(1);
            if let Some(inner) = reading.byte().filter(|inner| is_introducer(*inner) && !reading.row) {
                finding.introduced(inner, at + reading.span());
            }
        }
        let escaped = found.iter().filter(|reading| !reading.row && reading.byte() == Some(b'\\'));
        let escaped = escaped.map(|reading| at + reading.span()).max();
        let backslash = if byte == b'\\' { Some(at + 1) } else { escaped };
        let after_row = backslash.map_or(at, |end| self.after_row(end));
        let first = narrow(self.readings.len());
        self.readings.extend_from_slice(found);
        let backslash = narrow(backslash.unwrap_or(at));
        self.places.push(Place { at: narrow(at), first, backslash, after_row: narrow(after_row) });
    }

    /// Calls `visit` with each byte that can be read here, and the position after it.
    fn bytes_at(&self, at: usize, visit: &mut dyn FnMut(u8, usize)) {
        let at = self.behind_nul(at);
        let Some(&byte) = self.text.get(at) else { return };
        steps::count(1);
        visit(byte, at + 1);
        if is_introducer(byte) && self.steps.get() > 0 {
            let readings = self.at(at);
            self.steps.set(self.steps.get().saturating_sub(readings.len() + 1));
            steps::count(readings.len());
            for reading in readings {
                if let Some(byte) = reading.byte() {
                    visit(byte, at + reading.span());
                }
            }
        }
    }

    /// The zero bytes between the characters of UTF-16 and UTF-32 have no meaning.
    fn behind_nul(&self, at: usize) -> usize {
        at + self.text.iter().skip(at).take(3).take_while(|byte| **byte == 0).count()
    }

    /// Calls `visit` for every number that the digits from here can be, with their count and their end.
    fn digits(&self, from: usize, radix: u32, most: usize, visit: &mut dyn FnMut(usize, usize, u32)) {
        let mut numbers = vec![(from, 0_u32)];
        for length in 1..=most {
            let mut longer: Vec<(usize, u32)> = Vec::new();
            for (end, value) in numbers {
                self.bytes_at(end, &mut |byte, end| {
                    if let Some(digit) = char::from(byte).to_digit(radix)
                        && let Some(value) = value.checked_mul(radix).and_then(|value| value.checked_add(digit))
                        && value <= LARGEST
                        && longer.len() < BEAM
                        && !longer.contains(&(end, value))
                    {
                        longer.push((end, value));
                    }
                });
            }
            longer.iter().for_each(|(end, value)| visit(length, *end, *value));
            if longer.is_empty() {
                return;
            }
            numbers = longer;
        }
    }

    fn follows(&self, at: usize, wanted: u8) -> Option<usize> {
        let mut found = None;
        self.bytes_at(at, &mut |byte, end| found = found.or((byte == wanted).then_some(end)));
        found
    }
}

/// The readings of one position, as far as they are known.
struct Finding<'r, 'a, 'f> {
    text: &'r Readings<'a>,
    at: usize,
    found: &'f mut Vec<Reading>,
}

impl Finding<'_, '_, '_> {
    /// Adds the escapes that this byte introduces, continuing at `next`.
    fn introduced(&mut self, sign: u8, next: usize) {
        match sign {
            b'%' => self.percent(next),
            b'&' => self.entity(next),
            _ => self.backslash(next),
        }
    }

    fn add(&mut self, spelled: &[u8], end: usize) {
        self.push(spelled, end, 0, false);
    }

    fn push(&mut self, spelled: &[u8], end: usize, low: u16, row: bool) {
        let mut bytes = [0; 4];
        let span = u16::try_from(end - self.at).ok().filter(|span| usize::from(*span) <= MAX_ESCAPE);
        let (Some(span), Some(place), Ok(length)) = (span, bytes.get_mut(..spelled.len()), u8::try_from(spelled.len()))
        else {
            return;
        };
        place.copy_from_slice(spelled);
        let reading = Reading { low, span, bytes, length, row };
        if self.found.len() < MAX_READINGS && !self.found.contains(&reading) {
            self.found.push(reading);
        }
    }

    fn percent(&mut self, next: usize) {
        for (end, value) in self.number(next, 16, 2) {
            self.byte(value, end);
        }
        if let Some(next) = self.text.follows(next, b'u') {
            for (end, value) in self.number(next, 16, 4) {
                self.unit(value, end);
            }
        }
    }

    fn backslash(&mut self, next: usize) {
        let mut end = next;
        for _ in 1..MAX_BACKSLASHES {
            let Some(behind) = self.text.backslash(end) else { break };
            end = behind;
            self.push(b"\\", end, 0, true);
        }
        // Every escaping doubles the backslashes, so any number of them may precede the letter.
        let letter_at = self.text.after_row(next);
        let mut letters = [(0_u8, 0_usize); BEAM];
        let mut count = 0;
        self.text.bytes_at(letter_at, &mut |letter, end| {
            if let Some(place) = letters.get_mut(count) {
                (*place, count) = ((letter, end), count + 1);
            }
        });
        for (letter, end) in letters.into_iter().take(count) {
            self.letter(letter, letter_at, end);
        }
    }

    /// The meaning of a letter after a backslash.
    fn letter(&mut self, letter: u8, letter_at: usize, end: usize) {
        match letter {
            b'n' => self.add(b"\n", end),
            b'r' => self.add(b"\r", end),
            b't' => self.add(b"\t", end),
            b'b' => self.add(b"\x08", end),
            b'f' => self.add(b"\x0c", end),
            b'v' => self.add(b"\x0b", end),
            b'x' => {
                for (end, value) in self.number(end, 16, 2) {
                    self.byte(value, end);
                }
                self.in_braces(end);
            }
            b'u' => {
                for (end, value) in self.number(end, 16, 4) {
                    self.unit(value, end);
                }
                self.in_braces(end);
            }
            b'U' => {
                for (end, value) in self.number(end, 16, 8) {
                    self.character(value, end);
                }
            }
            b'0'..=b'3' => {
                for (end, value) in self.number(letter_at, 8, 3) {
                    self.byte(value, end);
                }
            }
            _ if letter.is_ascii_punctuation() => self.add(&[letter], end),
            _ => {}
        }
    }

    fn in_braces(&mut self, next: usize) {
        let text = self.text;
        let Some(next) = text.follows(next, b'{') else { return };
        let mut values = Vec::new();
        text.digits(next, 16, MAX_DIGITS, &mut |_, end, value| {
            values.extend(text.follows(end, b'}').map(|end| (end, value)));
        });
        values.into_iter().for_each(|(end, value)| self.character(value, end));
    }

    fn entity(&mut self, next: usize) {
        let text = self.text;
        let Some(number) = text.follows(next, b'#') else { return self.named(next) };
        let hex = text.follows(number, b'x').or_else(|| text.follows(number, b'X'));
        let (from, radix) = hex.map_or((number, 10), |from| (from, 16));
        let mut values = Vec::new();
        // Without the semicolon, the last digit is unknown.
        text.digits(from, radix, MAX_DIGITS, &mut |_, end, value| {
            values.extend(text.follows(end, b';').map(|end| (end, value)));
            values.push((end, value));
        });
        values.into_iter().filter(|(_, value)| *value > 0).for_each(|(end, value)| self.character(value, end));
    }

    fn named(&mut self, next: usize) {
        let mut name = [0; MAX_NAME];
        let mut end = next;
        for length in 1..=MAX_NAME {
            let mut letter = None;
            self.text.bytes_at(end, &mut |byte, behind| {
                letter = letter.or(byte.is_ascii_alphanumeric().then_some((byte, behind)));
            });
            let Some((byte, behind)) = letter else { return };
            end = behind;
            if let Some(place) = name.get_mut(length - 1) {
                *place = byte;
            }
            let name = name.get(..length).unwrap_or_default();
            if let Some(character) = entities::loose(name) {
                self.add(character.as_bytes(), end);
            }
            if let (Some(closed), Some(character)) = (self.text.follows(end, b';'), entities::character(name)) {
                return self.add(character.as_bytes(), closed);
            }
        }
    }

    /// The numbers of exactly this many digits.
    fn number(&self, from: usize, radix: u32, count: usize) -> Vec<(usize, u32)> {
        let mut numbers = Vec::new();
        self.text.digits(from, radix, count, &mut |length, end, value| {
            if length == count {
                numbers.push((end, value));
            }
        });
        numbers
    }

    fn byte(&mut self, value: u32, end: usize) {
        if let Ok(byte) = u8::try_from(value) {
            self.add(&[byte], end);
        }
    }

    /// A unit of UTF-16: a character, or half of one.
    fn unit(&mut self, unit: u32, end: usize) {
        match unit {
            0xD800..0xDC00 => {
                let text = self.text;
                let lows = text.at(end).iter().filter(|reading| reading.low > 0);
                for low in lows {
                    let value = 0x1_0000 + ((unit - 0xD800) << 10) + (u32::from(low.low) - 0xDC00);
                    self.character(value, end + low.span());
                }
            }
            0xDC00..0xE000 => self.push(&[], end, u16::try_from(unit).unwrap_or_default(), false),
            _ => self.character(unit, end),
        }
    }

    fn character(&mut self, value: u32, end: usize) {
        if let Some(character) = char::from_u32(value) {
            self.add(character.encode_utf8(&mut [0; 4]).as_bytes(), end);
        }
    }
}

fn narrow(position: usize) -> u32 {
    // INVARIANT: no text is that long.
    u32::try_from(position).unwrap_or(u32::MAX)
}

fn wide(position: u32) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}
