//! Path segments with values of an agent: what stays inside one, and its encoding.

/// How often a value is decoded to find what it may become behind the service's own proxies.
const DECODINGS: usize = 8;

/// Whether a segment is one segment to everybody, however often it is decoded on its way.
pub(super) fn stays_in_segment(text: &str) -> bool {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..DECODINGS {
        // Overlong encodings of `.` and `/` are invalid UTF-8.
        let Ok(plain) = std::str::from_utf8(&bytes) else { return false };
        // After a semicolon some servers see parameters of the segment, and drop them.
        let name = plain.split(';').next().unwrap_or_default().trim();
        let leaves = |letter: char| matches!(letter, '/' | '\\') || letter.is_control();
        if matches!(name, "" | "." | "..") || plain.contains(leaves) {
            return false;
        }
        let decoded = decode(&bytes);
        if decoded == bytes {
            return true;
        }
        bytes = decoded;
    }
    false
}

/// Percent-encodes everything but unreserved characters.
pub(super) fn encode(text: &str, out: &mut String) {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or('0');
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.extend(['%', digit(byte >> 4), digit(byte & 0x0f)]);
        }
    }
}

fn decode(bytes: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, after)) = rest.split_first() {
        let escaped = match (first, after) {
            (b'%', [high, low, behind @ ..]) => {
                digit(*high).zip(digit(*low)).map(|(high, low)| (high << 4 | low, behind))
            }
            _ => None,
        };
        let (byte, behind) = escaped.unwrap_or((first, after));
        out.push(byte);
        rest = behind;
    }
    out
}
