//! The normal form of a text, for searching only: full-width and non-Latin digits and letters become ASCII, encoded
//! characters are decoded, and invisible characters dropped. It keeps the position of each character in the original,
//! so that a match is cut from the text as it was written.

use std::ops::Range;

use toolgate_model::redaction::{Decoded, decoded};

/// A text in normal form.
pub(super) struct Normal {
    text: String,
    /// For each byte, the position of its character in the original; the last entry is the length of the original.
    positions: Vec<usize>,
}

/// `None` if the text is already in normal form.
pub(super) fn of(text: &str) -> Option<Normal> {
    let decoded = decoded(text);
    if decoded.is_none() && text.is_ascii() {
        return None;
    }
    let mut is_changed = decoded.is_some();
    let Decoded { bytes, positions } =
        decoded.unwrap_or_else(|| Decoded { bytes: text.as_bytes().to_vec(), positions: (0..=text.len()).collect() });
    let mut normal =
        Normal { text: String::with_capacity(bytes.len()), positions: Vec::with_capacity(positions.len()) };
    let mut at = 0;
    for chunk in bytes.utf8_chunks() {
        // An escape may decode to invalid UTF-8.
        let invalid = (!chunk.invalid().is_empty()).then_some((char::REPLACEMENT_CHARACTER, chunk.invalid().len()));
        let characters = chunk.valid().chars().map(|character| (character, character.len_utf8()));
        for (character, length) in characters.chain(invalid) {
            let plain = plain(character);
            is_changed |= plain != Some(character);
            if let (Some(plain), Some(position)) = (plain, positions.get(at)) {
                normal.text.push(plain);
                normal.positions.extend(std::iter::repeat_n(*position, plain.len_utf8()));
            }
            at += length;
        }
    }
    normal.positions.push(text.len());
    is_changed.then_some(normal)
}

impl Normal {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The corresponding range of the original, including invisible characters at its end.
    pub(super) fn original(&self, range: &Range<usize>) -> Option<Range<usize>> {
        Some(*self.positions.get(range.start)?..*self.positions.get(range.end)?)
    }
}

/// The zeros of scripts with their own digits.
const ZEROS: [u32; 18] = [
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xe50, 0xed0, 0xf20, 0x1040,
    0x17e0, 0x1810,
];

/// The ASCII character that a reader takes this one for; `None` if it is invisible.
fn plain(character: char) -> Option<char> {
    if character.is_ascii() {
        return Some(character);
    }
    let code = u32::from(character);
    let shifted = |from: u32, to: u32| char::from_u32(code - from + to);
    match code {
        0xad | 0x300..=0x36f | 0x61c | 0x115f | 0x1160 | 0x180b..=0x180e | 0x200b..=0x200f => None,
        0x202a..=0x202e | 0x2060..=0x206f | 0x20d0..=0x20ff | 0x3164 | 0xfe00..=0xfe0f => None,
        0xfeff | 0xffa0 | 0xe0000..=0xe01ef => None,
        0xa0 | 0x1680 | 0x2000..=0x200a | 0x202f | 0x205f | 0x3000 => Some(' '),
        0x2010..=0x2015 | 0x2212 | 0xfe58 | 0xfe63 => Some('-'),
        0x2024 | 0x3002 | 0xfe52 | 0xff61 => Some('.'),
        0xfe6b => Some('@'),
        0xff01..=0xff5e => shifted(0xff01, 0x21),
        0x1d400..=0x1d6a3 => Some(letter((code - 0x1d400) % 52)),
        0x1d7ce..=0x1d7ff => char::from_digit((code - 0x1d7ce) % 10, 10),
        _ => {
            let zero = ZEROS.iter().find(|&&zero| (zero..zero + 10).contains(&code));
            zero.and_then(|zero| char::from_digit(code - zero, 10)).or(Some(character))
        }
    }
}

/// The letter with this index among the capital and small letters.
fn letter(number: u32) -> char {
    let code = if number < 26 { u32::from('A') + number } else { u32::from('a') + number - 26 };
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}
