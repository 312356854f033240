//! Canonical JSON: one value has exactly one text, and two numbers never share one. It is RFC 8785, except that an
//! integer of 64 bits keeps all its digits; the RFC would round it to a double beyond 2^53, and one hash would stand for
//! two accounts. Whatever is hashed or signed is written by this module, and it runs several times per call, so it takes
//! no detours through a serializer.

use std::io::Write;

use serde_json::{Number, Value};

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

/// Writes the canonical text of a value behind what `out` already holds.
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

/// Writes a JSON string, quoted, escaping no more than RFC 8785 asks for.
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

/// Writes an object of these members, whatever order they come in. The names must differ.
pub(crate) fn write_members<'a>(members: impl Iterator<Item = (&'a str, &'a Value)>, out: &mut Vec<u8>) {
    let mut members: Vec<(&str, &Value)> = members.collect();
    // Names are ordered by their UTF-16 form. For ASCII that is the order of the bytes, which is much cheaper to find.
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

/// What is shown in ASCII, without anything to escape.
pub(crate) trait Plain {
    /// Writes what is shown.
    fn write_to(&self, out: &mut Vec<u8>);
}

/// Writes an object member by member, for what is written so often that building a value first would cost.
///
/// INVARIANT: the names are ASCII without anything to escape and come in alphabetical order.
pub(crate) struct ObjectWriter<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> ObjectWriter<'a> {
    /// Begins an object behind what `out` already holds.
    pub(crate) fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// A member that is a text.
    pub(crate) fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        write_string(text, self.out);
    }

    /// A member that is shown as plain text: an id, a time.
    pub(crate) fn shown(&mut self, name: &str, shown: impl Plain) {
        self.name(name);
        self.out.push(b'"');
        shown.write_to(self.out);
        self.out.push(b'"');
    }

    /// A member of any kind.
    pub(crate) fn value(&mut self, name: &str, value: &Value) {
        self.name(name);
        write_canonical(value, self.out);
    }

    /// A member that is an object of these members, whatever order they come in.
    pub(crate) fn members(&mut self, name: &str, members: &serde_json::Map<String, Value>) {
        self.name(name);
        write_members(members.iter().map(|(name, value)| (name.as_str(), value)), self.out);
    }

    /// A member that is an object.
    pub(crate) fn object(&mut self, name: &str, write: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.name(name);
        let mut object = ObjectWriter::begin(self.out);
        write(&mut object);
        object.end();
    }

    /// Ends the object.
    pub(crate) fn end(self) {
        self.out.push(b'}');
    }

    fn name(&mut self, name: &str) {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }
}

/// Where the first byte stands that must be escaped. Most texts have none: eight bytes are looked at together.
fn first_escaped(text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHEST: u64 = u64::from_ne_bytes([0x80; 8]);
    // Has the highest bit of each byte set that is less than this one; both of ASCII.
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
