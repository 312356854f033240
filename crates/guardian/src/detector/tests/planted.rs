//! Whatever stands around them, nothing that a detector names survives, and a second look finds nothing.

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

/// Something of a kind.
fn item() -> impl Strategy<Value = (DetectorKind, String)> {
    prop_oneof![
        "[a-z][a-z0-9.+_-]{0,10}[a-z]@[a-z]{1,8}(-[a-z]{1,4})?\\.(com|org|co\\.uk|例子)"
            .prop_map(|text| (DetectorKind::Email, text)),
        prop_oneof!["\\+[1-9][0-9]{7,13}", "\\([2-9][0-9]{2}\\) [0-9]{3}-[0-9]{4}", "0[1-9]( [0-9]{2}){4}"]
            .prop_map(|text| (DetectorKind::Phone, text)),
        card().prop_map(|text| (DetectorKind::Card, text)),
        "[0-9]{18}".prop_map(|account| (DetectorKind::Iban, german_account(&account))),
        prop_oneof!["[1-5][0-9]{2}-[1-9]{2}-[1-9]{4}".boxed(), "[0-9]{8}".prop_map(|digits| spanish(&digits)).boxed()]
            .prop_map(|text| (DetectorKind::NationalId, text)),
        "(ghp_|tgk_|glpat-)[a-z0-9A-Z]{45}1".prop_map(|text| (DetectorKind::Secret, text)),
    ]
}

fn card() -> impl Strategy<Value = String> {
    let number = "(4[0-9]{14}|5[1-5][0-9]{13}|37[0-9]{12}|6011[0-9]{11})".prop_map(|digits| with_check_digit(&digits));
    (number, prop_oneof![Just(""), Just(" "), Just("-")]).prop_map(|(number, separator)| {
        let groups: Vec<&str> = number.as_bytes().chunks(4).map(|group| std::str::from_utf8(group).unwrap()).collect();
        groups.join(separator)
    })
}

fn with_check_digit(digits: &str) -> String {
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(place, digit)| {
            let digit = u32::from(digit - b'0') * if place % 2 == 0 { 2 } else { 1 };
            digit / 10 + digit % 10
        })
        .sum();
    format!("{digits}{}", (10 - sum % 10) % 10)
}

fn german_account(account: &str) -> String {
    let remainder = format!("{account}131400").parse::<u128>().unwrap() % 97;
    format!("DE{:02}{account}", 98 - remainder)
}

fn spanish(digits: &str) -> String {
    let letter = b"TRWAGMYFPDXBNJZSQVHLCKE"[digits.parse::<usize>().unwrap() % 23];
    format!("{digits}{}", char::from(letter))
}

/// Texts in which nothing is meant, though something may be found.
fn noise() -> impl Strategy<Value = String> {
    prop_oneof!["\\PC{0,20}", "[a-z ,.]{0,30}", "[0-9 ]{0,8}", soup()]
}

/// Pieces of what detectors look for, in any order.
fn soup() -> impl Strategy<Value = String> {
    let pieces = [
        "@",
        "a.bc",
        "4111",
        "1111",
        " ",
        "-",
        "+",
        ".",
        "(0",
        ")",
        "password",
        "=",
        ":",
        "://",
        "\"",
        "x1Y2z3W4",
        "DE89",
        "%40",
        "%",
        "\u{200b}",
        "４",
        "ghp_",
        "Bearer ",
        "[REDACTED]",
        "[REDACTED-ID]",
        "[REDACTED",
        "]",
        "eyJ",
        "é",
        "\n",
        "-----BEGIN PRIVATE KEY-----",
        "123-45-6789",
        "例子",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..30).prop_map(|pieces| pieces.concat())
}

fn separator() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["\n", ", ", "\"", "; ", " <", "> ", " | "])
}

fn expressions() -> impl Strategy<Value = Detectors> {
    let expressions = [
        "[A-Z]{2}[0-9]{4}",
        "[A-Z]+",
        ".{3}",
        "a.*b|a",
        "[0-9]",
        "[^ ]+",
        "(?s).+",
        r"\]",
        "ED",
        "x?@",
        "(?i)redacted.",
    ];
    prop::collection::vec(prop::sample::select(expressions.to_vec()), 1..3).prop_map(|expressions| {
        let custom = expressions.into_iter().map(|expression| DetectorKind::Custom(expression.to_owned()));
        Detectors::new(&custom.collect::<Vec<_>>()).unwrap()
    })
}

/// Nothing occurs in what is left, and nothing is done where nothing occurs.
fn comes_to_rest(detectors: &Detectors, text: &str) {
    let redacted = detectors.redact(text);
    assert_eq!(redacted.is_some(), detectors.occurs(text), "{text:?}");
    if let Some(redacted) = redacted {
        assert!(!detectors.occurs(&redacted), "{text:?} {redacted:?}");
        assert_eq!(detectors.redact(&redacted), None);
    }
}

proptest! {
    #[test]
    fn nothing_that_was_planted_survives(
        items in prop::collection::vec((noise(), separator(), item(), separator()), 1..4), last in noise(),
    ) {
        let pieces = items.iter().map(|(noise, before, (_, item), after)| format!("{noise}{before}{item}{after}"));
        let text = pieces.collect::<String>() + &last;
        for (_, _, (kind, item), _) in &items {
            for detectors in [only(kind), all()] {
                let redacted = detectors.redact(&text).unwrap();
                prop_assert!(!redacted.contains(item), "{item} in {redacted:?}");
            }
        }
    }

    #[test]
    fn nothing_survives_in_disguise(
        item in item(), wide in prop::collection::vec(any::<(bool, u8)>(), 64), noise in "[a-z ]{0,20}",
    ) {
        let (kind, item) = item;
        let hidden = ["", "", "\u{200b}", "\u{ad}", "\u{2060}", "\u{301}"];
        let disguised: String = item.chars().zip(wide.iter().cycle()).flat_map(|(character, (is_wide, number))| {
            let wide = char::from_u32(u32::from(character) + 0xfee0).filter(|_| *is_wide && character.is_ascii_graphic());
            std::iter::once(wide.unwrap_or(character)).chain(hidden[usize::from(*number) % hidden.len()].chars())
        }).collect();
        for detectors in [only(&kind), all()] {
            let redacted = detectors.redact(&format!("{noise},{disguised}")).unwrap();
            let seen = normal::of(&redacted).map_or(redacted, |normal| normal.text().to_owned());
            prop_assert!(!seen.contains(&item), "{item} in {seen:?}");
            let prefix = format!("{noise},");
            prop_assert!(seen.starts_with(&prefix));
        }
    }

    #[test]
    fn any_text_comes_to_rest(text in prop_oneof![noise(), soup(), "(?s).{0,60}"]) {
        NAMED.iter().for_each(|kind| comes_to_rest(&only(kind), &text));
        comes_to_rest(&all(), &text);
    }

    #[test]
    fn any_text_comes_to_rest_with_expressions_of_ones_own(
        text in prop_oneof![noise(), soup(), "[a-cA-C0-9 ]{0,40}"], detectors in expressions(),
    ) {
        comes_to_rest(&detectors, &text);
    }

    #[test]
    fn nothing_that_was_planted_survives_in_a_value(
        items in prop::collection::vec((item(), noise(), separator()), 1..4), number in card(), shape in 0..4,
        name in prop_oneof![noise(), Just("password".to_owned()), Just("api_key".to_owned())],
    ) {
        let mut value = json!({name.clone(): number.replace([' ', '-'], "").parse::<u64>().unwrap()});
        for ((_, item), noise, separator) in &items {
            let text = format!("{noise}{separator}{item}");
            value = match shape {
                0 => json!([value, {name.clone(): text}]),
                1 => Value::Object(Map::from_iter([(text, value), (noise.clone(), json!(item))])),
                2 => json!({name.clone(): [text, value], "n": 1}),
                _ => json!({"a": {"b": {text: [null, true, item]}}, "c": value}),
            };
        }
        let redacted = all().redact_json(&value).unwrap();
        let written = redacted.to_string();
        for ((_, item), _, _) in &items {
            prop_assert!(!written.contains(item), "{item} in {written}");
        }
        prop_assert!(!written.contains(&number.replace([' ', '-'], "")), "{number} in {written}");
        prop_assert_eq!(all().redact_json(&redacted), None);
    }
}
