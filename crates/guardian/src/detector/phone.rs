//! Phone numbers: with `+` or `00` and a country code, with an area code in parentheses, with a leading 0, or in the
//! groupings of North America and China. Other numbers are not matched.

use std::ops::{Range, RangeInclusive};

use super::digits::{self, Group};

const FEWEST: usize = 8;
const MOST: usize = 15;

/// Finds the ranges of phone numbers.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let groups = digits::groups(bytes);
    let mut found = Vec::new();
    let mut rest = groups.as_slice();
    while let Some((_, others)) = rest.split_first() {
        match number_at(bytes, rest) {
            Some((range, taken)) => {
                found.push(range);
                rest = rest.get(taken..).unwrap_or_default();
            }
            None => rest = others,
        }
    }
    found
}

/// The number that begins with the first of these groups, and how many groups it has.
fn number_at(bytes: &[u8], groups: &[Group]) -> Option<(Range<usize>, usize)> {
    let first = *groups.first()?;
    let joined = joined(bytes, groups);
    let (start, taken) = international(bytes, first, joined)
        .or_else(|| with_area_code(bytes, first, joined))
        .or_else(|| with_zero(bytes, first, joined))
        .or_else(|| in_known_groups(bytes, first, joined))?;
    let last = joined.get(taken.checked_sub(1)?)?;
    let is_something_else = digits::is_in_uuid(bytes, start, last.end);
    (!is_something_else).then_some((start..last.end, taken))
}

/// The first group and those that may belong to the same number, up to the maximum number of digits.
fn joined<'a>(bytes: &[u8], groups: &'a [Group]) -> &'a [Group] {
    let mut length = 0;
    let mut count = 0;
    let mut previous: Option<Group> = None;
    for &group in groups {
        length += group.len();
        let belongs = previous.is_none_or(|previous| joins(digits::between(bytes, previous, group)));
        if length > MOST || !belongs {
            break;
        }
        count += 1;
        previous = Some(group);
    }
    groups.get(..count).unwrap_or_default()
}

/// Whether this may separate two groups of one number.
fn joins(between: &[u8]) -> bool {
    matches!(
        between,
        b" " | b"-" | b"." | b"/" | b" (" | b"-(" | b"(" | b") " | b")-" | b")" | b" - " | b" / " | b") -"
    )
}

/// `+49 30 1234567`, `0049 30 1234567`.
fn international(bytes: &[u8], first: Group, joined: &[Group]) -> Option<(usize, usize)> {
    let number = first.of(bytes);
    let plus = first.start.checked_sub(1).filter(|&sign| bytes.get(sign) == Some(&b'+'));
    if let Some(plus) = plus {
        let has_country = !number.starts_with(b"0");
        let taken = joined.len();
        let length = length_of(joined);
        // `+1.2345678` is a number with a sign.
        let is_decimal = taken == 2 && length < 10 && bytes.get(first.end) == Some(&b'.');
        let fits = has_country && length >= FEWEST && !is_decimal && !follows_word(bytes, plus);
        return fits.then_some((plus, taken));
    }
    let code = number.strip_prefix(b"00")?;
    let is_code = code.len() <= 3 && code.first().is_some_and(|&digit| digit != b'0');
    let taken = longest(bytes, joined, FEWEST + 2..=MOST)?;
    (is_code && begins(bytes, first.start)).then_some((first.start, taken))
}

/// `(555) 123-4567`, `(030) 1234567`, `(11) 91234-5678`; not `(2019) 123-145`, which is a volume and its pages.
fn with_area_code(bytes: &[u8], first: Group, joined: &[Group]) -> Option<(usize, usize)> {
    let open = first.start.checked_sub(1).filter(|&sign| bytes.get(sign) == Some(&b'('))?;
    let area = first.of(bytes);
    let is_year = area.len() == 4 && (area.starts_with(b"19") || area.starts_with(b"20"));
    let is_area = (2..=5).contains(&area.len()) && bytes.get(first.end) == Some(&b')') && !is_year;
    let taken = longest(bytes, joined, FEWEST..=12)?;
    is_area.then_some((open, taken))
}

/// `020 7946 0958`, `06 12 34 56 78`, `0171/1234567`; not `01.02.2024 10`, which is a date.
fn with_zero(bytes: &[u8], first: Group, joined: &[Group]) -> Option<(usize, usize)> {
    let number = first.of(bytes);
    let is_area = (2..=6).contains(&number.len()) && number.starts_with(b"0") && !number.starts_with(b"00");
    if !is_area || !begins(bytes, first.start) || is_date(bytes, joined) {
        return None;
    }
    Some((first.start, longest(bytes, joined, 9..=12)?))
}

/// `555-123-4567`, `1-800-555-0199`, `138 1234 5678`.
fn in_known_groups(bytes: &[u8], first: Group, joined: &[Group]) -> Option<(usize, usize)> {
    let number = first.of(bytes);
    let begins_with =
        |from: u8, to: u8, place: usize| number.get(place).is_some_and(|digit| (from..=to).contains(digit));
    let has_lengths = |lengths: &[usize]| {
        joined.len() >= lengths.len() && joined.iter().zip(lengths).all(|(group, &length)| group.len() == length)
    };
    let taken = match number.len() {
        3 if begins_with(b'2', b'9', 0) && has_lengths(&[3, 3, 4]) => 3,
        1 if begins_with(b'1', b'1', 0) && has_lengths(&[1, 3, 3, 4]) => 4,
        3 if begins_with(b'1', b'1', 0) && begins_with(b'3', b'9', 1) && has_lengths(&[3, 4, 4]) => 3,
        _ => return None,
    };
    let last = joined.get(taken - 1)?;
    (begins(bytes, first.start) && ends(bytes, last.end)).then_some((first.start, taken))
}

/// The number of groups, at least two, of the longest number with so many digits.
fn longest(bytes: &[u8], joined: &[Group], lengths: RangeInclusive<usize>) -> Option<usize> {
    (2..=joined.len()).rev().find(|&taken| {
        let groups = joined.get(..taken).unwrap_or_default();
        let is_grouped = groups.iter().all(|group| group.len() >= 2);
        is_grouped && lengths.contains(&length_of(groups)) && groups.last().is_some_and(|last| ends(bytes, last.end))
    })
}

fn length_of(groups: &[Group]) -> usize {
    groups.iter().map(|group| group.len()).sum()
}

/// Whether these groups begin with day, month and year.
fn is_date(bytes: &[u8], groups: &[Group]) -> bool {
    let [day, month, year, ..] = groups else { return false };
    let sign = digits::between(bytes, *day, *month);
    let has_signs = matches!(sign, b"." | b"/" | b"-") && sign == digits::between(bytes, *month, *year);
    has_signs && (day.len(), month.len(), year.len()) == (2, 2, 4)
}

/// Whether a number may begin here: not inside a word, and not after digits joined by punctuation.
fn begins(bytes: &[u8], start: usize) -> bool {
    let sign = digits::before(bytes, start);
    let is_joined = matches!(sign, Some(b'-' | b'.' | b'/' | b':'))
        && digits::before(bytes, start.saturating_sub(1)).is_some_and(|byte| byte.is_ascii_digit());
    !is_joined && !follows_word(bytes, start) && sign != Some(b'_')
}

/// Whether a number may end here: before an extension (`x12`), but not inside a word, a time or a longer list.
fn ends(bytes: &[u8], end: usize) -> bool {
    let next = bytes.get(end).copied();
    let is_joined = matches!(next, Some(b'-' | b'.' | b'/' | b':'))
        && bytes.get(end + 1).is_some_and(|byte| byte.is_ascii_alphanumeric());
    let is_in_word = next.is_some_and(|byte| (byte.is_ascii_alphabetic() && byte != b'x') || byte == b'_');
    !is_joined && !is_in_word
}

fn follows_word(bytes: &[u8], start: usize) -> bool {
    digits::before(bytes, start).is_some_and(|byte| byte.is_ascii_alphanumeric())
}
