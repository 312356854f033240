//! Secrets in a text: what the record of calls would redact too, cut out as closely as its format allows, and random
//! values after names such as `password=` or `api_key:`. The model defines these formats and names.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::{Map, Value};
use toolgate_model::arguments;

use super::marker;

/// The minimum length of a token with a prefix.
const MIN_TOKEN: usize = 12;
/// The minimum length of a value that is recognized by the name before it.
const MIN_VALUE: usize = 8;
/// The minimum number of different characters in a random value.
const MIN_CHARACTERS: u32 = 6;
/// How much of a value is examined to tell whether it is random.
const FAR_ENOUGH: usize = 32;
/// The minimum and maximum length of a secret's name.
const MIN_NAME: usize = 3;
const MAX_NAME: usize = 64;

/// Finds the ranges of secrets.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if has_shape(&marker::replaced(text, "[x]")) {
        found.extend(private_keys(text));
        found.extend(passwords(text));
        found.extend(tokens(text));
        if found.is_empty() {
            // The model knows a format that is not known here.
            found.push(0..text.len());
        }
    }
    found.extend(named_values(text));
    found
}

/// Whether this looks like the value of a secret, given that its name is one of a secret.
pub(super) fn is_value(text: &str) -> bool {
    !text.contains(char::is_whitespace) && is_random(marker::replaced(text, "").as_bytes())
}

/// Whether the record of a call would redact a value with this name.
pub(super) fn is_name(name: &str) -> bool {
    is_hidden(&Value::Object(Map::from_iter([(name.to_owned(), Value::Null)])))
}

/// Complete blocks with a private key.
fn private_keys(text: &str) -> Vec<Range<usize>> {
    const BEGIN: &str = "-----BEGIN ";
    let mut found = Vec::new();
    let mut done = 0;
    for (start, _) in text.match_indices(BEGIN) {
        let after = text.get(start + BEGIN.len()..).unwrap_or_default();
        let label = after.split_once("-----").map_or("", |(label, _)| label);
        if start < done || label.len() > 40 || !label.contains("PRIVATE KEY") {
            continue;
        }
        // Of a truncated block, nothing remains.
        let closing = format!("-----END {label}-----");
        let length = after.find(&closing).map_or(after.len(), |position| position + closing.len());
        done = start + BEGIN.len() + length;
        found.push(start..done);
    }
    found
}

/// The user name and password in URLs such as `postgres://name:password@host`.
fn passwords(text: &str) -> Vec<Range<usize>> {
    let ends = |letter: char| matches!(letter, '/' | '?' | '#' | '"' | '\'' | '<' | '>') || letter.is_whitespace();
    let mut found = Vec::new();
    let mut parts = text.split("://");
    let mut start = parts.next().unwrap_or_default().len() + 3;
    for after in parts {
        let authority = after.split(ends).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        if let Some(user) = user.filter(|user| user.split_once(':').is_some_and(|(_, password)| !password.is_empty())) {
            found.push(start..start + user.len());
        }
        start += after.len() + 3;
    }
    found
}

/// Tokens with a known prefix, signed tokens, and the word after `Bearer` or `Basic`.
fn tokens(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut scheme = None;
    for run in runs(text, |byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)) {
        let Some(word) = text.get(run.clone()) else { continue };
        if word.len() >= MIN_TOKEN && has_shape(word) {
            found.extend(closest(word).map(|range| run.start + range.start..run.start + range.end));
        }
        if let Some(scheme) = scheme
            && has_shape(&format!("{scheme} {word}"))
        {
            found.push(run);
        }
        scheme = Some(word).filter(|word| word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic"));
    }
    found
}

/// The parts of a word that are tokens by themselves, or the whole word.
fn closest(word: &str) -> impl Iterator<Item = Range<usize>> {
    let is_token = |part: &Range<usize>| word.get(part.clone()).is_some_and(has_shape);
    let parts: Vec<_> = runs(word, |byte| !b"=/+~".contains(&byte)).filter(is_token).collect();
    let whole = parts.is_empty().then_some(0..word.len());
    parts.into_iter().chain(whole)
}

/// Values after `name=`, `name:`, `"name": "` if the name is one of a secret and the value looks random.
fn named_values(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found: Vec<Range<usize>> = Vec::new();
    for (position, _) in bytes.iter().enumerate().filter(|(_, byte)| matches!(byte, b'=' | b':')) {
        if found.last().is_some_and(|last| position < last.end) {
            continue;
        }
        let Some(name) = name_before(text, position).filter(|name| name.len() >= MIN_NAME) else { continue };
        let rest = bytes.get(start_of_value(bytes, position)..).unwrap_or_default();
        let beginning = rest.get(..FAR_ENOUGH).unwrap_or(rest).split(|byte| ends_value(*byte)).next();
        if beginning.is_some_and(is_random) && is_name(name) {
            let start = bytes.len() - rest.len();
            found.push(start..start + rest.iter().take_while(|byte| !ends_value(**byte)).count());
        }
    }
    found
}

/// The position after the blanks and quotes that follow the sign at this position.
fn start_of_value(bytes: &[u8], position: usize) -> usize {
    let opens = |byte: &&u8| b" \"'\\`=>".contains(*byte);
    position + 1 + bytes.iter().skip(position + 1).take(8).take_while(opens).count()
}

fn ends_value(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b"\"'`\\,;&<>()[]{}".contains(&byte)
}

fn name_before(text: &str, position: usize) -> Option<&str> {
    let before = text.get(..position)?.trim_end_matches([' ', '"', '\'', '\\', '`']);
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let length = before.as_bytes().iter().rev().take(MAX_NAME).take_while(is_part).count();
    before.get(before.len() - length..)
}

/// Digits and letters, or capital and small letters in a long value; few of them equal.
fn is_random(value: &[u8]) -> bool {
    if value.len() < MIN_VALUE {
        return false;
    }
    let (mut digits, mut small, mut capitals, mut seen) = (false, false, false, 0_u128);
    for byte in value {
        digits |= byte.is_ascii_digit();
        small |= byte.is_ascii_lowercase();
        capitals |= byte.is_ascii_uppercase();
        seen |= 1_u128.checked_shl(u32::from(*byte)).unwrap_or_default();
    }
    let is_mixed = (digits && (small || capitals)) || (small && capitals && value.len() >= 20);
    is_mixed && seen.count_ones() >= MIN_CHARACTERS
}

/// Whether the record of a call would redact this text.
fn has_shape(text: &str) -> bool {
    is_hidden(&Value::from(text))
}

fn is_hidden(value: &Value) -> bool {
    matches!(arguments::redacted(value, &[]), Cow::Owned(_))
}

/// Runs of such bytes. They consist of whole characters, because a byte beyond ASCII never separates two kinds.
fn runs(text: &str, is_part: impl Fn(u8) -> bool) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut position = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(position..)?;
        let start = position + rest.iter().position(|&byte| is_part(byte))?;
        let length = bytes.get(start..)?.iter().position(|&byte| !is_part(byte));
        position = length.map_or(bytes.len(), |length| start + length);
        Some(start..position)
    })
}
