//! From a secret to the patterns that find it: the parts of it that matter, and of each the encodings in which no
//! character of it is left to recognise.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use zeroize::Zeroizing;

use super::pattern::{Kind, Pattern};
use crate::canonical::write_string;

/// A shorter secret is looked for only as a word of its own, and in no encoding: it would be found everywhere.
const SEARCHABLE: usize = 4;
/// A line of a secret that is shorter says nothing on its own.
const LINE: usize = 16;
/// A value that is sent as a header often carries the name of the scheme.
const SCHEMES: [&str; 3] = ["basic", "bearer", "token"];

/// Adds the patterns of this secret and of the parts that are secrets themselves. White space around it is no part of
/// it; without any other character it is no secret.
pub(super) fn collect(secret: &str, patterns: &mut Vec<Pattern>) {
    let secret = secret.trim_ascii();
    collect_forms(secret, patterns);
    // Keys are often kept in one line, with their line breaks escaped, and used with real ones.
    if secret.starts_with("-----BEGIN") && secret.contains("\\n") {
        collect_forms(Zeroizing::new(secret.replace("\\n", "\n")).trim_ascii(), patterns);
    }
    if let Some((scheme, value)) = secret.split_once(' ')
        && SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known))
    {
        collect_forms(value.trim_ascii(), patterns);
    }
    if let Some(password) = password_of_url(secret) {
        collect_forms(password, patterns);
        let decoded = percent_decoded(password);
        if let Some(decoded) = std::str::from_utf8(&decoded).ok().filter(|decoded| *decoded != password) {
            collect_forms(decoded.trim_ascii(), patterns);
        }
    }
}

fn collect_forms(secret: &str, patterns: &mut Vec<Pattern>) {
    if secret.len() < SEARCHABLE {
        patterns.extend(Pattern::new(copy(secret.as_bytes()), Kind::Token));
        return;
    }
    if secret.contains(['\n', '\r']) {
        collect_lines(secret, patterns);
    } else {
        patterns.extend(Pattern::new(copy(secret.as_bytes()), Kind::Text));
    }
    collect_base64(secret.as_bytes(), patterns);
    collect_hex(secret.as_bytes(), patterns);
    collect_utf16(secret, patterns);
    // Most secrets are of characters that nothing escapes.
    if secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_')) {
        return;
    }
    for escaped in [json_escaped(secret), percent_encoded(secret, b"-._~"), form_encoded(secret)] {
        if *escaped != secret.as_bytes() {
            collect_base64(&escaped, patterns);
        }
    }
}

/// In UTF-16, with either byte first. The zeros between characters of ASCII are passed over wherever they stand, so that
/// the text itself needs a form of its own only where there are other characters.
fn collect_utf16(secret: &str, patterns: &mut Vec<Pattern>) {
    for bytes_of in [u16::to_le_bytes, u16::to_be_bytes] {
        let mut bytes = Zeroizing::new(Vec::with_capacity(secret.len() * 2));
        bytes.extend(secret.encode_utf16().flat_map(bytes_of));
        collect_base64(&bytes, patterns);
        collect_hex(&bytes, patterns);
        if !secret.is_ascii() {
            bytes.retain(|byte| *byte != 0);
            patterns.extend(Pattern::new(bytes, Kind::Text));
        }
    }
}

fn collect_lines(secret: &str, patterns: &mut Vec<Pattern>) {
    let mut joined = Zeroizing::new(Vec::with_capacity(secret.len()));
    joined.extend(secret.bytes().filter(|byte| !byte.is_ascii_whitespace()));
    patterns.extend(Pattern::new(joined, Kind::Lines));
    // The first and last line of a key file are the same in all of them.
    let telling = |line: &&str| line.len() >= LINE && !line.starts_with("-----");
    for line in secret.split(['\n', '\r']).map(str::trim_ascii).filter(telling) {
        patterns.extend(Pattern::new(copy(line.as_bytes()), Kind::Text));
        collect_base64(line.as_bytes(), patterns);
    }
}

fn collect_hex(secret: &[u8], patterns: &mut Vec<Pattern>) {
    let mut hex = Zeroizing::new(Vec::with_capacity(secret.len() * 2));
    for byte in secret {
        hex.extend_from_slice(&[hex_digit(byte >> 4, b'a'), hex_digit(byte & 0xf, b'a')]);
    }
    patterns.extend(Pattern::new(hex, Kind::Hex));
}

/// Base64 writes six bits as a character. For each of the three ways in which the secret can lie in a longer text, the
/// pattern is the characters that hold bits of the secret only.
fn collect_base64(secret: &[u8], patterns: &mut Vec<Pattern>) {
    for shift in 0..3_usize {
        let mut shifted = Zeroizing::new(vec![0; shift]);
        shifted.reserve_exact(secret.len());
        shifted.extend_from_slice(secret);
        let bits = shifted.len() * 8;
        let mut encoded = Zeroizing::new(vec![0; bits.div_ceil(6)]);
        if STANDARD_NO_PAD.encode_slice(&*shifted, &mut encoded).is_err() {
            continue;
        }
        encoded.truncate(bits / 6);
        encoded.drain(..(shift * 8).div_ceil(6));
        let kind = Kind::Base64 { before: shift > 0, after: bits % 6 > 0 };
        patterns.extend(Pattern::new(encoded, kind));
    }
}

fn json_escaped(secret: &str) -> Zeroizing<Vec<u8>> {
    let mut quoted = Zeroizing::new(Vec::with_capacity(secret.len() * 6 + 2));
    write_string(secret, &mut quoted);
    quoted.pop();
    quoted.drain(..1);
    quoted
}

fn percent_encoded(secret: &str, kept: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut encoded = Zeroizing::new(Vec::with_capacity(secret.len() * 3));
    for byte in secret.bytes() {
        if byte.is_ascii_alphanumeric() || kept.contains(&byte) {
            encoded.push(byte);
        } else {
            encoded.extend([b'%', hex_digit(byte >> 4, b'A'), hex_digit(byte & 0xf, b'A')]);
        }
    }
    encoded
}

fn form_encoded(secret: &str) -> Zeroizing<Vec<u8>> {
    let mut encoded = percent_encoded(secret, b"*-._ ");
    encoded.iter_mut().filter(|byte| **byte == b' ').for_each(|byte| *byte = b'+');
    encoded
}

/// The password in `scheme://user:password@host`, as it is written there.
fn password_of_url(secret: &str) -> Option<&str> {
    let (_, rest) = secret.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user_info, _) = authority.rsplit_once('@')?;
    let (_, password) = user_info.split_once(':')?;
    Some(password)
}

fn percent_decoded(text: &str) -> Zeroizing<Vec<u8>> {
    let mut decoded = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut at = 0;
    while let Some(&byte) = text.as_bytes().get(at) {
        let escaped = if byte == b'%' { hex_byte(text.as_bytes(), at + 1) } else { None };
        decoded.push(escaped.unwrap_or(byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    decoded
}

/// The byte that `%XX` after its sign stands for.
fn hex_byte(text: &[u8], at: usize) -> Option<u8> {
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    u8::try_from(digit(at)? * 16 + digit(at + 1)?).ok()
}

fn copy(bytes: &[u8]) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(bytes.to_vec())
}

fn hex_digit(value: u8, ten: u8) -> u8 {
    if value < 10 { b'0' + value } else { ten + (value - 10) }
}
