//! What the strict reader takes and refuses.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn refusal(text: &str) -> StrictJsonError {
    parse(text.as_bytes()).unwrap_err()
}

#[test]
fn ordinary_json_reads_as_ever() {
    let text = r#" {"a": [1, -2, 3.5, "x\n\u00e9", null, true, {}], "b": {"c": [], "1e5": "2.5"}} "#;
    let expected = json!({"a": [1, -2, 3.5, "x\né", null, true, {}], "b": {"c": [], "1e5": "2.5"}});
    assert_eq!(parse(text.as_bytes()), Ok(expected));
}

#[test]
fn a_key_that_appears_twice_is_refused_with_its_place() {
    let error = refusal("{\"list\": [0,\n {\"deep\": {\"x\": 1, \"x\": 1}}]}");
    let StrictJsonError::DuplicateKey { key, place, position } = &error else { panic!("{error}") };
    assert_eq!((key.as_str(), place.as_str(), position.line), ("x", "\"list[1].deep\"", 2));
    assert!(error.to_string().starts_with("the key \"x\" appears twice in \"list[1].deep\" (line 2, column "));
    assert!(refusal(r#"{"a":1,"b":2,"a":3}"#).to_string().contains("in the outermost object"));
}

#[test]
fn keys_that_differ_only_in_their_escapes_are_the_same_key() {
    for text in [r#"{"a":1,"\u0061":2}"#, r#"{"/":1,"\/":2}"#, r#"{"😀":1,"\ud83d\ude00":2}"#] {
        assert!(matches!(refusal(text), StrictJsonError::DuplicateKey { .. }), "{text}");
    }
}

#[test]
fn a_long_or_hostile_key_is_quoted_in_part_and_escaped() {
    let key = format!("\u{1b}[31m{}", "k".repeat(10_000));
    let text = format!("{{{0}:1,{0}:2}}", serde_json::to_string(&key).unwrap());
    let message = refusal(&text).to_string();
    assert!(message.len() < 300 && !message.contains('\u{1b}'), "{message}");
}

#[test]
fn bytes_that_are_no_utf_8_are_refused_where_they_stand() {
    let error = parse(b"{\"a\":\n\"\xff\"}").unwrap_err();
    assert_eq!(error, StrictJsonError::Encoding { position: Position { line: 2, column: 2 } });
    assert!(parse(b"\"\xed\xa0\x80\"").is_err());
    assert!(parse(br#""\ud800""#).is_err());
}

#[test]
fn nesting_ends_at_sixty_four() {
    let nested = |open: &str, close: &str, depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        assert!(parse(nested(open, close, MAX_DEPTH).as_bytes()).is_ok());
        assert!(matches!(refusal(&nested(open, close, MAX_DEPTH + 1)), StrictJsonError::TooDeep { .. }));
        assert!(matches!(refusal(&open.repeat(1_000_000)), StrictJsonError::TooDeep { .. }));
    }
}

#[test]
fn what_follows_the_value_is_refused() {
    for text in ["{} {}", "1 2", "[]x", "null\0", "{},"] {
        assert!(matches!(refusal(text), StrictJsonError::TrailingData { .. }), "{text}");
    }
    assert!(parse(b"\t{}\r\n ").is_ok());
}

#[test]
fn numbers_that_would_lose_digits_are_refused() {
    for text in ["18446744073709551616", "-9223372036854775809", "123456789012345678901234567890", "1e400", "-1e400"] {
        let error = refusal(&format!("[1, \"9\\\"9\",\n {text}]"));
        assert!(matches!(error, StrictJsonError::NumberTooLarge { position } if position.line == 2), "{text}: {error}");
    }
    let position = Position { line: 2, column: 3 };
    assert_eq!(refusal("[1.5,\n  99999999999999999999]"), StrictJsonError::NumberTooLarge { position });
}

#[test]
fn numbers_that_fit_are_held_exactly() {
    let text = "[18446744073709551615,-9223372036854775808,-0,0,1e-400,5e-324,1E+2]";
    let value = parse(text.as_bytes()).unwrap();
    assert_eq!(value, json!([u64::MAX, i64::MIN, -0.0, 0, 0.0, 5e-324, 100.0]));
    // The canonical form of a large double is bare digits; what the writer writes, the reader takes.
    assert_eq!(parse(b"[100000000000000000000,18446744073709552000]").unwrap(), json!([1e20, 18446744073709551616.0]));
}

#[test]
fn what_is_not_json_is_refused_with_a_reason() {
    for text in ["", "{", "[1,", "\"abc", "tru"] {
        assert!(matches!(refusal(text), StrictJsonError::CutOff { .. }), "{text}: {}", refusal(text));
    }
    for text in ["{a:1}", "[1,]", "01", "nul1", "NaN", "'a'", "\u{feff}{}", "\"a\nb\"", "// x\n1", "+1", "1."] {
        let error = refusal(text);
        assert!(
            matches!(
                error,
                StrictJsonError::Malformed { .. }
                    | StrictJsonError::TrailingData { .. }
                    | StrictJsonError::CutOff { .. }
            ),
            "{text}: {error}"
        );
    }
}

proptest! {
    #[test]
    fn every_double_reads_back_to_the_same_bits(
        bits in any::<u64>(), digits in "[1-9][0-9]{0,30}", exponent in -330i32..300,
    ) {
        let double = f64::from_bits(bits);
        prop_assume!(double.is_finite());
        let text = format!("[{double:e},{digits}.5e{exponent}]");
        match parse(text.as_bytes()) {
            Ok(value) => {
                prop_assert_eq!(value[0].as_f64().unwrap().to_bits(), bits);
                prop_assert_eq!(value[1].as_f64().unwrap(), format!("{digits}.5e{exponent}").parse::<f64>().unwrap());
            }
            Err(error) => prop_assert!(matches!(error, StrictJsonError::NumberTooLarge { .. }), "{}: {}", text, error),
        }
    }

    #[test]
    fn what_it_accepts_the_plain_parser_reads_the_same(text in r#"[\[\]{}:,"a0-9.eE+\-\\ u]{0,24}"#) {
        if let Ok(value) = parse(text.as_bytes()) {
            let plain: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(crate::canonical::to_canonical(&value), crate::canonical::to_canonical(&plain));
        }
    }
}
