//! Canonical JSON: one value has exactly one text, and two numbers never share one. It is RFC 8785, except that an
//! integer of 64 bits keeps all its digits; the RFC would round it to a double beyond 2^53, and one hash would stand for
//! two accounts. Whatever is hashed or signed is written by this module, and it runs several times per call, so it takes
//! no detours through a serializer.

use std::io::Write;

use serde_json::{Number, Value};

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn canonical(text: &str) -> String {
        to_canonical_string(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn doubles_are_written_as_the_table_of_the_rfc_says() {
        let table: [(u64, &str); 24] = [
            (0x0000000000000000, "0"),
            (0x8000000000000000, "0"),
            (0x0000000000000001, "5e-324"),
            (0x8000000000000001, "-5e-324"),
            (0x7fefffffffffffff, "1.7976931348623157e+308"),
            (0xffefffffffffffff, "-1.7976931348623157e+308"),
            (0x4340000000000000, "9007199254740992"),
            (0xc340000000000000, "-9007199254740992"),
            (0x4430000000000000, "295147905179352830000"),
            (0x44b52d02c7e14af5, "9.999999999999997e+22"),
            (0x44b52d02c7e14af6, "1e+23"),
            (0x44b52d02c7e14af7, "1.0000000000000001e+23"),
            (0x444b1ae4d6e2ef4e, "999999999999999700000"),
            (0x444b1ae4d6e2ef4f, "999999999999999900000"),
            (0x444b1ae4d6e2ef50, "1e+21"),
            (0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"),
            (0x3eb0c6f7a0b5ed8d, "0.000001"),
            (0x41b3de4355555553, "333333333.3333332"),
            (0x41b3de4355555554, "333333333.33333325"),
            (0x41b3de4355555555, "333333333.3333333"),
            (0x41b3de4355555556, "333333333.3333334"),
            (0x41b3de4355555557, "333333333.33333343"),
            (0xbecbf647612f3696, "-0.0000033333333333333333"),
            (0x43143ff3c1cb0959, "1424953923781206.2"),
        ];
        for (bits, text) in table {
            assert_eq!(to_canonical_string(&json!(f64::from_bits(bits))), text, "{bits:016x}");
        }
    }

    #[test]
    fn integers_of_64_bits_keep_all_their_digits() {
        for text in [
            "[9007199254740991,9007199254740992]",
            "[9007199254740993,-9007199254740993]",
            "[18446744073709551615]",
            "[-9223372036854775808]",
        ] {
            assert_eq!(canonical(text), text);
        }
        assert_eq!(canonical("[-0,0,-1,1.0,1e2]"), "[0,0,-1,1,100]");
    }

    #[test]
    fn what_was_written_with_rounded_integers_is_written_the_same_again() {
        // Events of earlier versions hold these; their hashes must still come out.
        for text in ["[9007199254740992]", "[18446744073709552000]", "[-9223372036854776000]", "[1234567890123456800]"]
        {
            let read = crate::strict_json::parse(text.as_bytes()).unwrap();
            assert_eq!(to_canonical_string(&read), text);
            assert_eq!(canonical(text), text);
        }
    }

    #[test]
    fn the_example_of_the_rfc_comes_out_as_printed_there() {
        let input = r#"{
            "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
            "literals": [null, true, false]
        }"#;
        let numbers = "[333333333.3333333,1e+30,4.5,0.002,1e-27]";
        let string = r#""€$\u000f\nA'B\"\\\\\"/""#;
        let expected = format!(r#"{{"literals":[null,true,false],"numbers":{numbers},"string":{string}}}"#);
        assert_eq!(canonical(input), expected);
    }

    #[test]
    fn names_are_sorted_by_their_utf_16_form() {
        let input = r#"{
            "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh",
            "1": "One", "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control",
            "\u00f6": "Latin Small Letter O With Diaeresis"
        }"#;
        let values = [
            "Carriage Return",
            "One",
            "Control",
            "Latin Small Letter O With Diaeresis",
            "Euro Sign",
            "Emoji: Grinning Face",
            "Hebrew Letter Dalet With Dagesh",
        ];
        let text = canonical(input);
        let places: Vec<_> = values.iter().map(|value| text.find(value).unwrap()).collect();
        assert!(places.is_sorted(), "{text}");
    }

    #[test]
    fn structures_nest_and_empty_ones_stay() {
        assert_eq!(canonical(r#"{ "b": {}, "a": [ [], {"d": null, "c": [1, 2]} ], "": "" }"#), {
            r#"{"":"","a":[[],{"c":[1,2],"d":null}],"b":{}}"#
        });
    }

    #[test]
    fn only_what_must_be_escaped_is() {
        let text: String = (0..0x80).map(char::from).chain("é\u{2028}\u{1f600}".chars()).collect();
        let mut out = Vec::new();
        write_string(&text, &mut out);
        let written = String::from_utf8(out).unwrap();
        assert!(
            written.starts_with(r#""\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f"#)
        );
        assert!(written.ends_with("~\u{7f}é\u{2028}\u{1f600}\""));
        assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
    }

    #[test]
    fn what_must_be_escaped_is_found_wherever_it_stands() {
        for length in 0..40 {
            let plain = "é\u{7f}~ aZ".repeat(8);
            let plain: String = plain.chars().take(length).collect();
            let written = |text: &str| {
                let mut out = Vec::new();
                write_string(text, &mut out);
                String::from_utf8(out).unwrap()
            };
            assert_eq!(written(&plain), format!("\"{plain}\""));
            for (place, _) in plain.char_indices() {
                for (special, escape) in [("\"", "\\\""), ("\\", "\\\\"), ("\u{1f}", "\\u001f"), ("\0", "\\u0000")] {
                    let (before, after) = plain.split_at(place);
                    assert_eq!(written(&format!("{before}{special}{after}")), format!("\"{before}{escape}{after}\""));
                }
            }
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1000i64..1000).prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..8)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn in_doubles(value: Value) -> Value {
        match value {
            Value::Number(number) => {
                let is_exact = number.as_i64().is_some_and(|integer| integer.unsigned_abs() <= 1 << 53);
                if is_exact { Value::Number(number) } else { json!(number.as_f64().unwrap()) }
            }
            Value::Array(items) => items.into_iter().map(in_doubles).collect(),
            Value::Object(members) => members.into_iter().map(|(name, value)| (name, in_doubles(value))).collect(),
            other => other,
        }
    }

    proptest! {
        #[test]
        fn every_value_that_doubles_can_hold_is_written_as_the_oracle_writes_it(value in any_value()) {
            // Large integers are the one difference from the RFC, so they are made doubles first.
            let value = in_doubles(value);
            let expected = serde_json_canonicalizer::to_string(&value).unwrap();
            prop_assert_eq!(to_canonical_string(&value), expected);
        }

        #[test]
        fn what_the_oracle_wrote_is_written_the_same_again(value in any_value()) {
            let stored = serde_json_canonicalizer::to_string(&value).unwrap();
            prop_assert_eq!(&to_canonical_string(&crate::strict_json::parse(stored.as_bytes()).unwrap()), &stored);
            prop_assert_eq!(&canonical(&stored), &stored);
        }

        #[test]
        fn reading_and_writing_again_changes_nothing(value in any_value()) {
            let once = to_canonical(&value);
            let again = to_canonical(&crate::strict_json::parse(&once).unwrap());
            prop_assert_eq!(once, again);
        }
    }
}
