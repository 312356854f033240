//! International bank account numbers: country code, the length for that country and valid check digits; also in lower
//! case and with single blanks or hyphens between characters.

use std::ops::Range;

use super::digits::before;

/// Finds the ranges of account numbers.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found: Vec<Range<usize>> = Vec::new();
    for (start, window) in bytes.windows(4).enumerate() {
        let [first, second, third, fourth] = window else { continue };
        let may_begin = first.is_ascii_alphabetic()
            && second.is_ascii_alphabetic()
            && third.is_ascii_digit()
            && fourth.is_ascii_digit()
            && !before(bytes, start).is_some_and(|byte| byte.is_ascii_alphanumeric());
        if may_begin && let Some(end) = end_of(bytes, start) {
            found.push(start..end);
        }
    }
    found
}

/// The end of the number that begins here.
fn end_of(bytes: &[u8], start: usize) -> Option<usize> {
    let country = [bytes.get(start)?, bytes.get(start + 1)?].map(u8::to_ascii_uppercase);
    let length = length_in(country)?;
    let mut characters = Vec::with_capacity(length);
    let mut position = start;
    while characters.len() < length {
        let byte = *bytes.get(position)?;
        let is_separator = matches!(byte, b' ' | b'-') && before(bytes, position) != Some(byte);
        if byte.is_ascii_alphanumeric() {
            characters.push(byte);
        } else if !is_separator {
            return None;
        }
        position += 1;
    }
    let is_longer = bytes.get(position).is_some_and(u8::is_ascii_alphanumeric);
    (!is_longer && remainder(&characters) == 1).then_some(position)
}

/// The remainder modulo 97, with the first four characters moved to the end and letters as numbers from 10.
fn remainder(characters: &[u8]) -> u32 {
    let (beginning, rest) = characters.split_at_checked(4).unwrap_or_default();
    rest.iter().chain(beginning).fold(0, |remainder, &byte| {
        let value = char::from(byte).to_digit(36).unwrap_or_default();
        (remainder * if value < 10 { 10 } else { 100 } + value) % 97
    })
}

/// The length of the numbers of a country in the registry.
fn length_in(country: [u8; 2]) -> Option<usize> {
    Some(match &country {
        b"NO" => 15,
        b"BE" => 16,
        b"DK" | b"FI" | b"FK" | b"FO" | b"GL" | b"NL" | b"SD" => 18,
        b"MK" | b"SI" => 19,
        b"AT" | b"BA" | b"EE" | b"KZ" | b"LT" | b"LU" | b"MN" | b"XK" => 20,
        b"CH" | b"HR" | b"LI" | b"LV" => 21,
        b"BG" | b"BH" | b"CR" | b"DE" | b"GB" | b"GE" | b"IE" | b"ME" | b"RS" | b"VA" => 22,
        b"AE" | b"GI" | b"IL" | b"IQ" | b"OM" | b"SO" | b"TL" => 23,
        b"AD" | b"CZ" | b"ES" | b"MD" | b"PK" | b"RO" | b"SA" | b"SE" | b"SK" | b"TN" | b"VG" => 24,
        b"LY" | b"PT" | b"ST" => 25,
        b"IS" | b"TR" => 26,
        b"BI" | b"DJ" | b"FR" | b"GR" | b"IT" | b"MC" | b"MR" | b"SM" => 27,
        b"AL" | b"AZ" | b"BY" | b"CY" | b"DO" | b"GT" | b"HN" | b"HU" | b"LB" | b"NI" | b"PL" | b"SV" => 28,
        b"BR" | b"EG" | b"PS" | b"QA" | b"UA" => 29,
        b"JO" | b"KW" | b"MU" | b"YE" => 30,
        b"MT" | b"SC" => 31,
        b"LC" => 32,
        b"RU" => 33,
        _ => return None,
    })
}
