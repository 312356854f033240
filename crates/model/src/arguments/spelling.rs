//! The ways in which a known secret may be written in an argument: as it is, percent-encoded, or as the base64 of which
//! the argument consists. Compared in place, so that no further copy of a secret is made.

/// Whether the secret is written in this text.
pub(super) fn occurs(secret: &[u8], text: &str) -> bool {
    let plain = || std::str::from_utf8(secret).is_ok_and(|secret| text.contains(secret));
    text.len() >= secret.len() && (plain() || occurs_encoded(secret, text.as_bytes()) || is_base64(secret, text))
}

fn occurs_encoded(secret: &[u8], text: &[u8]) -> bool {
    if !text.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return false;
    }
    let mut rest = text;
    while !rest.is_empty() {
        if starts_encoded(secret, rest) {
            return true;
        }
        rest = rest.split_first().map_or(&[], |(_, after)| after);
    }
    false
}

/// Whether the text starts with the secret, any bytes of which may be percent-encoded.
fn starts_encoded(secret: &[u8], text: &[u8]) -> bool {
    let mut rest = text;
    secret.iter().all(|&wanted| {
        let after = match rest {
            [b'%', high, low, after @ ..] if byte_of(*high, *low) == Some(wanted) => after,
            [b'+', after @ ..] if wanted == b' ' => after,
            [byte, after @ ..] if *byte == wanted => after,
            _ => return false,
        };
        rest = after;
        true
    })
}

fn byte_of(high: u8, low: u8) -> Option<u8> {
    let digit = |letter: u8| char::from(letter).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

/// Whether the text is the base64 of the secret, in either alphabet, padded or not.
fn is_base64(secret: &[u8], text: &str) -> bool {
    let text = text.trim_end_matches('=').as_bytes();
    let groups = || secret.chunks(3).zip(text.chunks(4));
    text.len() == (secret.len() * 4).div_ceil(3) && groups().all(|(bytes, letters)| is_group(bytes, letters))
}

fn is_group(bytes: &[u8], letters: &[u8]) -> bool {
    let bits = bytes.iter().chain(&[0; 3]).take(3).fold(0, |bits: u32, &byte| bits << 8 | u32::from(byte));
    letters.iter().zip([18, 12, 6, 0]).all(|(&letter, shift)| sextet(letter) == Some(bits >> shift & 63))
}

fn sextet(letter: u8) -> Option<u32> {
    let value = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    };
    Some(value.into())
}
