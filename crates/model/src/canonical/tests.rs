//! Canonical JSON as RFC 8785 prints it, and compared with another implementation.

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
    for text in ["[9007199254740992]", "[18446744073709552000]", "[-9223372036854776000]", "[1234567890123456800]"] {
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
    assert!(written.starts_with(r#""\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f"#));
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

pub(super) fn any_value() -> impl Strategy<Value = Value> {
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
