//! National identification numbers. Each format is narrow, with a checksum or impossible ranges, so that ordinary
//! numbers are not matched; a format without separators that would match too many of them is left out.

use std::ops::Range;

use super::digits;

mod checks;

/// A notation, and a check of the capital letters and digits in it.
///
/// `d` is a digit, `a` a letter, `x` either; `_` is an optional blank, `~` an optional hyphen; anything else stands for
/// itself.
struct Form(&'static [u8], fn(&[u8]) -> bool);

const FORMS: [Form; 14] = [
    // United States: social security number
    Form(b"ddd-dd-dddd", checks::united_states),
    Form(b"ddd dd dddd", checks::united_states),
    // United Kingdom: national insurance number
    Form(b"aa_dd_dd_dd_a", checks::united_kingdom),
    // Germany: tax identification number
    Form(b"ddddddddddd", checks::germany),
    Form(b"dd ddd ddd ddd", checks::germany),
    // France: registration number with its key
    Form(b"d_dd_dd_dx_ddd_ddd_dd", checks::france),
    // Spain: identity numbers of citizens and of foreigners
    Form(b"dddddddd~a", checks::spain),
    Form(b"dd.ddd.ddd~a", checks::spain),
    Form(b"a~ddddddd~a", checks::spain),
    // Italy: tax code, in which letters may stand for digits
    Form(b"aaa_aaa_xxaxx_axxxa", checks::italy),
    // India: Aadhaar, as it is printed
    Form(b"dddd dddd dddd", checks::india),
    Form(b"dddd-dddd-dddd", checks::india),
    // Brazil: number of natural persons
    Form(b"ddd.ddd.ddd-dd", checks::brazil),
    Form(b"ddddddddd~dd", checks::brazil),
];

/// No format is longer.
const LONGEST: usize = 21;

/// Finds the ranges of such numbers.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut is_inside_word = false;
    for (start, byte) in bytes.iter().enumerate() {
        let rest = bytes.get(start..).unwrap_or_default();
        if !is_inside_word && byte.is_ascii_alphanumeric() && rest.iter().take(LONGEST).any(u8::is_ascii_digit) {
            let ranges = FORMS.iter().filter_map(|form| Some(start..start + form.length_in(rest)?));
            found.extend(ranges.filter(|range| stands_alone(bytes, range)));
        }
        is_inside_word = is_word(*byte);
    }
    found
}

impl Form {
    /// The length of the number at the beginning of the text.
    fn length_in(&self, text: &[u8]) -> Option<usize> {
        let Self(form, check) = self;
        let mut rest = text;
        for sign in *form {
            let (byte, after) = rest.split_first()?;
            let (fits, is_optional) = match sign {
                b'd' => (byte.is_ascii_digit(), false),
                b'a' => (byte.is_ascii_alphabetic(), false),
                b'x' => (byte.is_ascii_alphanumeric(), false),
                b'_' => (*byte == b' ', true),
                b'~' => (*byte == b'-', true),
                itself => (byte == itself, false),
            };
            if fits {
                rest = after;
            } else if !is_optional {
                return None;
            }
        }
        let length = text.len() - rest.len();
        let characters = text.iter().take(length).filter(|byte| byte.is_ascii_alphanumeric());
        let is_longer = rest.first().copied().is_some_and(is_word);
        (!is_longer && check(&characters.map(u8::to_ascii_uppercase).collect::<Vec<u8>>())).then_some(length)
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Not part of something longer: digits joined by punctuation, a fraction, a UUID.
fn stands_alone(bytes: &[u8], range: &Range<usize>) -> bool {
    let before = bytes.get(range.start.saturating_sub(5)..range.start).unwrap_or_default();
    let after = bytes.get(range.end..bytes.len().min(range.end + 5)).unwrap_or_default();
    let is_joined = matches!(before, [.., digit, b'-'] if digit.is_ascii_digit())
        || matches!(after, [b'-', digit, ..] if digit.is_ascii_digit());
    // Three of more groups of four digits are part of a card number.
    let is_four = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
    let has_fours = bytes.get(range.clone()).is_some_and(|own| own.len() == 14 && own.get(4) == Some(&b' '));
    let has_more = matches!(before, [digits @ .., b' '] if digits.len() == 4 && is_four(digits))
        || matches!(after, [b' ', digits @ ..] if digits.len() == 4 && is_four(digits));
    let is_part = is_joined || (has_fours && has_more) || digits::is_fraction(bytes, range.start);
    !is_part && !digits::is_in_uuid(bytes, range.start, range.end)
}
