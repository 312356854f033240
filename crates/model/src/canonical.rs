//! Canonical JSON: one value has exactly one text, and two numbers never share one. It is RFC 8785, except that a
//! 64-bit integer keeps all its digits; the RFC would round it to a double beyond 2^53, and one hash would stand for
//! two accounts. Everything that is hashed or signed is written by this module: values by [`write_canonical`], types
//! with serde by a serializer that writes the same text.

use std::io::Write;

use serde_json::{Number, Value};

pub use self::serializer::CanonicalError;
pub(crate) use self::serializer::write_serialized;

mod serializer;

#[cfg(test)]
mod tests;

/// The canonical text of a value, as bytes.
pub fn to_canonical(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write_canonical(value, &mut out);
    out
}

/// The canonical text of a value.
pub fn to_canonical_string(value: &Value) -> String {
    // INVARIANT: only whole pieces of UTF-8 are ever written, so the lossy branch is never taken.
    String::from_utf8(to_canonical(value))
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Appends the canonical text of a value to `out`.
pub fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                write_canonical(item, out);
            }
            out.push(b']');
        }
        Value::Object(members) => write_members(members.iter().map(|(name, value)| (name.as_str(), value)), out),
    }
}

/// Writes a JSON string, quoted, escaping no more than RFC 8785 requires.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(length) = first_escaped(rest) {
        let (plain, escaped) = rest.split_at(length);
        out.extend_from_slice(plain);
        let Some((&byte, after)) = escaped.split_first() else { break };
        write_escape(byte, out);
        rest = after;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Writes an object of these members, in any input order. The names must be unique.
pub(crate) fn write_members<'a>(members: impl Iterator<Item = (&'a str, &'a Value)>, out: &mut Vec<u8>) {
    let mut members: Vec<(&str, &Value)> = members.collect();
    // Names are ordered by their UTF-16 form. For ASCII that is the byte order, which is much cheaper.
    if members.iter().all(|(name, _)| name.is_ascii()) {
        members.sort_unstable_by_key(|&(name, _)| name);
    } else {
        members.sort_by(|(left, _), (right, _)| left.encode_utf16().cmp(right.encode_utf16()));
    }
    out.push(b'{');
    for (position, (name, value)) in members.into_iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        write_string(name, out);
        out.push(b':');
        write_canonical(value, out);
    }
    out.push(b'}');
}

/// The position of the first byte that must be escaped. Most texts have none: eight bytes are checked at a time.
fn first_escaped(text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHEST: u64 = u64::from_ne_bytes([0x80; 8]);
    // Sets the highest bit of each byte that is less than the limit; both are ASCII.
    let any_below = |bytes: u64, limit: u8| bytes.wrapping_sub(ONES * u64::from(limit)) & !bytes & HIGHEST;
    let any_equal = |bytes: u64, wanted: u8| any_below(bytes ^ (ONES * u64::from(wanted)), 1);
    let (chunks, _) = text.as_chunks::<8>();
    let plain = chunks.iter().take_while(|chunk| {
        let bytes = u64::from_ne_bytes(**chunk);
        any_below(bytes, 0x20) | any_equal(bytes, b'"') | any_equal(bytes, b'\\') == 0
    });
    let start = plain.count() * 8;
    let position = text.get(start..)?.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\')?;
    Some(start + position)
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        0x08 => out.extend_from_slice(b"\\b"),
        b'\t' => out.extend_from_slice(b"\\t"),
        b'\n' => out.extend_from_slice(b"\\n"),
        0x0c => out.extend_from_slice(b"\\f"),
        b'\r' => out.extend_from_slice(b"\\r"),
        // Writing to a Vec cannot fail.
        _ => drop(write!(out, "\\u{byte:04x}")),
    }
}

fn write_number(number: &Number, out: &mut Vec<u8>) {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(double) => out.extend_from_slice(ryu_js::Buffer::new().format_finite(double).as_bytes()),
        // Writing to a Vec cannot fail.
        None => drop(write!(out, "{number}")),
    }
}
