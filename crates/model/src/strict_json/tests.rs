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
    assert!(error.to_string().starts_with("duplicate key \"x\" in \"list[1].deep\" (line 2, column "));
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
    for text in [
        "18446744073709551616",
        "-9223372036854775809",
        "123456789012345678901234567890",
        "1e400",
        "-1e400",
        "1e-400",
        "4e-324",
        "5000.00000000000000000000001",
        "0.10000000000000001",
        "9007199254740993.5",
        "1e99999999999999999999",
    ] {
        let error = refusal(&format!("{{\"s\": \"9\\\"9\",\n \"list\": [1, {text}]}}"));
        let StrictJsonError::InexactNumber { place, position } = &error else { panic!("{text}: {error}") };
        assert_eq!((place.as_str(), position.line), ("\"list[1]\"", 2), "{text}");
        assert!(error.to_string().ends_with("than can be represented exactly; send it as a string"), "{error}");
    }
    let position = Position { line: 2, column: 3 };
    let place = "\"[1]\"".to_owned();
    assert_eq!(refusal("[1.5,\n  99999999999999999999]"), StrictJsonError::InexactNumber { place, position });
    assert!(refusal("1e-400").to_string().starts_with("the number at the top (line 1, column 1) has"));
}

#[test]
fn numbers_that_fit_are_held_exactly() {
    let text = "[18446744073709551615,-9223372036854775808,9007199254740993,5e-324,0.1,1.10]";
    let value = parse(text.as_bytes()).unwrap();
    assert_eq!(value, json!([u64::MAX, i64::MIN, 9_007_199_254_740_993_u64, 5e-324, 0.1, 1.1]));
    // The canonical form of a large double is bare digits; what the writer writes, the reader takes.
    assert_eq!(parse(b"[100000000000000000000,18446744073709552000]").unwrap(), json!([1e20, 18446744073709551616.0]));
}

#[test]
fn an_integer_is_one_number_however_it_is_written() {
    let text = "[-0,0,-0.0,0e5,0e-99999999999999999999,1E+2,100.0,9007199254740993.0,1.8446744073709551615e19]";
    let value = parse(text.as_bytes()).unwrap();
    let canonical = "[0,0,0,0,0,100,100,9007199254740993,18446744073709551615]";
    assert_eq!(crate::canonical::to_canonical_string(&value), canonical);
    // It stays as it was written as long as doubles hold all integers.
    assert_eq!(value, json!([-0.0, 0, -0.0, 0.0, 0.0, 100.0, 100.0, 9_007_199_254_740_993_u64, u64::MAX]));
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

/// Whether two texts denote one number, by arithmetic of their digits that shares nothing with the code under test.
fn same_number(left: &str, right: &str) -> bool {
    fn plain(text: &str) -> (bool, String) {
        let text = text.to_ascii_lowercase();
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap();
        let (whole, fraction) = mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa, ""));
        let whole = whole.trim_start_matches('-');
        // 1000 places on either side are more than any double has.
        let mut digits = format!("{}{whole}{fraction}{}", "0".repeat(2000), "0".repeat(2000));
        let point = 2000 + i32::try_from(whole.len()).unwrap() + exponent;
        digits.insert(usize::try_from(point).unwrap(), '.');
        let digits = digits.trim_matches('0').to_owned();
        (mantissa.starts_with('-') && digits != ".", digits)
    }
    plain(left) == plain(right)
}

proptest! {
    #[test]
    fn every_double_in_its_shortest_form_reads_back_as_that_number(bits in any::<u64>()) {
        let double = f64::from_bits(bits);
        prop_assume!(double.is_finite());
        let value = parse(format!("{double:e}").as_bytes()).unwrap();
        match value.is_f64() {
            true => prop_assert_eq!(value.as_f64().unwrap().to_bits(), bits),
            false => prop_assert_eq!(value.as_f64().unwrap(), double),
        }
    }

    #[test]
    fn a_number_is_kept_with_all_its_digits_or_refused(
        sign in "-?", whole in "0|[1-9][0-9]{0,24}", fraction in "(\\.[0-9]{1,24})?", exponent in "([eE][+-]?[0-9]{1,3})?",
    ) {
        let text = format!("{sign}{whole}{fraction}{exponent}");
        match parse(text.as_bytes()) {
            Ok(value) => {
                let canonical = crate::canonical::to_canonical_string(&value);
                prop_assert!(same_number(&text, &canonical), "{} became {}", text, canonical);
                let sent = serde_json::to_string(&value).unwrap();
                prop_assert!(same_number(&text, &sent), "{} is sent as {}", text, sent);
                let again = parse(canonical.as_bytes()).unwrap();
                prop_assert_eq!(crate::canonical::to_canonical_string(&again), canonical);
            }
            Err(error) => {
                prop_assert!(matches!(error, StrictJsonError::InexactNumber { .. }), "{}: {}", text, error);
            }
        }
    }

    #[test]
    fn two_different_numbers_never_share_a_canonical_form(
        left in any::<u64>(), distance in 0u64..3, scale in 0u32..64,
    ) {
        let (left, right) = ((left >> scale).to_string(), (left >> scale).saturating_add(distance).to_string());
        let canonical = |text: &String| crate::canonical::to_canonical(&parse(text.as_bytes()).unwrap());
        prop_assert_eq!(left == right, canonical(&left) == canonical(&right));
    }

    #[test]
    fn what_it_accepts_the_plain_parser_reads_the_same(text in r#"[\[\]{}:,"a0-9.eE+\-\\ u]{0,24}"#) {
        if let Ok(value) = parse(text.as_bytes()) {
            let plain: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(crate::canonical::to_canonical(&value), crate::canonical::to_canonical(&plain));
        }
    }
}
