//! For random secrets in random surroundings: nothing of them is left, and nothing else is touched.

use base64::Engine;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use super::oracle::{forms, json_text, percent_of, surviving};
use super::redactor;

/// Printable ASCII, any Unicode, or what tokens mostly look like; long enough to be looked for in every form.
fn secret() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{4,48}", "\\PC{4,24}", "[A-Za-z0-9_+/=.-]{8,48}", "[%\\\\&+ u0-9a-f\"]{8,24}"]
        .prop_filter("white space around a secret is no part of it", |secret| secret.trim_ascii().len() >= 4)
}

fn key_file() -> impl Strategy<Value = String> {
    (vec("[A-Za-z0-9+/]{64}", 1..6), "[A-Za-z0-9+/]{20,60}={0,2}").prop_map(|(lines, last)| {
        format!("-----BEGIN EC PRIVATE KEY-----\n{}\n{last}\n-----END EC PRIVATE KEY-----\n", lines.join("\n"))
    })
}

/// Any bytes, with many of those that have a meaning in some encoding.
fn surroundings() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![any::<u8>(), select(b"\\%&+= \"/u0x25amp;#\n".to_vec())];
    vec(byte, 0..24)
}

/// One character in one of the ways in which it can be written.
fn spelled(letter: char, way: u8) -> String {
    let text = letter.to_string();
    let units = |prefix: &str| -> String {
        letter.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("{prefix}{unit:04x}")).collect()
    };
    match way {
        0 => percent_of(&text, |_| true),
        1 => units("\\u"),
        2 => units("\\\\u"),
        3 => json_text(&text),
        4 => format!("&#{};", u32::from(letter)),
        5 => format!("&amp;#x{:X};", u32::from(letter)),
        6 => percent_of(&percent_of(&text, |_| true), |byte| byte == b'%'),
        7 if letter == ' ' => "+".to_owned(),
        8 => text.bytes().map(|byte| format!("\\x{byte:02x}")).collect(),
        _ => text,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_form_survives_in_any_surroundings(
        secret in secret(), which in any::<Index>(), before in surroundings(), after in surroundings(),
    ) {
        let forms = forms(&secret);
        let (name, form) = &forms[which.index(forms.len())];
        let mut body = [before.as_slice(), form, &after, form, form].concat();
        prop_assert!(redactor(&[&secret]).redact_bytes(&mut body), "{} is found", name);
        prop_assert_eq!(surviving(&body, &secret), Vec::<&str>::new());
    }

    #[test]
    fn no_beginning_of_a_form_survives_where_the_text_is_cut_off(
        secret in secret(), which in any::<Index>(), cut in any::<Index>(), dots in 0_usize..24,
    ) {
        let secret = secret.trim_ascii();
        let forms = forms(secret);
        let (name, form) = &forms[which.index(forms.len())];
        let shown = &form[..cut.index(form.len())];
        let mut body = [".".repeat(dots).as_bytes(), shown].concat();
        redactor(&[secret]).redact_cut_off(&mut body);
        let left = body.strip_prefix(".".repeat(dots).as_bytes()).unwrap_or_default();
        // Three characters are next to nothing.
        prop_assert!(left.len() <= 3 || !shown.starts_with(left), "{}: {:?} of {:?}", name, left, secret);
    }

    #[test]
    fn no_mixture_of_spellings_survives(
        secret in secret(), ways in vec(0_u8..16, 48), before in surroundings(), after in surroundings(),
    ) {
        let secret = secret.trim_ascii();
        let text: String = secret.chars().zip(ways.iter().cycle()).map(|(letter, way)| spelled(letter, *way)).collect();
        let mut body = [before.as_slice(), text.as_bytes(), &after].concat();
        prop_assert!(redactor(&[secret]).redact_bytes(&mut body));
        prop_assert!(!body.windows(text.len()).any(|window| window == text.as_bytes()));
        prop_assert_eq!(surviving(&body, secret), Vec::<&str>::new());
    }

    #[test]
    fn base64_of_a_longer_text_gives_nothing_away(
        secret in secret(), before in vec(any::<u8>(), 0..9), after in vec(any::<u8>(), 0..9), width in 20_usize..80,
    ) {
        let whole = [before.as_slice(), secret.as_bytes(), &after].concat();
        let text = base64::engine::general_purpose::STANDARD.encode(whole);
        let mut wrapped = text.as_bytes().chunks(width).collect::<Vec<_>>().join(&b'\n');
        let mut body = text.into_bytes();
        let redactor = redactor(&[&secret]);
        prop_assert!(redactor.redact_bytes(&mut body));
        prop_assert_eq!(surviving(&body, &secret), Vec::<&str>::new());
        if secret.trim_ascii().len() >= 16 {
            prop_assert!(redactor.redact_bytes(&mut wrapped));
            wrapped.retain(|byte| *byte != b'\n');
            prop_assert_eq!(surviving(&wrapped, &secret), Vec::<&str>::new());
        }
    }

    #[test]
    fn a_text_that_contains_no_form_is_unchanged(secret in "[A-Za-z0-9]{12,40}", body in vec(surroundings(), 0..12)) {
        let body = body.concat();
        let mut redacted = body.clone();
        prop_assert!(!redactor(&[&secret]).redact_bytes(&mut redacted));
        prop_assert_eq!(redacted, body);
    }

    #[test]
    fn all_but_the_last_character_of_a_form_is_no_secret(secret in "[A-Za-z0-9]{12,40}", which in any::<Index>()) {
        // A whole base64 text is complete without its padding, and its last character may hold bits of nothing; a number
        // of HTML is complete without its semicolon.
        let mut forms = forms(&secret);
        forms.retain(|(name, _)| !name.starts_with("html ") && (!name.starts_with("base64") || name.contains("inside")));
        let (name, form) = &forms[which.index(forms.len())];
        let shortened = form.split_last().map(|(_, rest)| rest).unwrap_or_default();
        let mut body = [b"<", shortened, b">"].concat();
        prop_assert!(!redactor(&[&secret]).redact_bytes(&mut body), "{}", name);
    }

    #[test]
    fn no_form_survives_in_json(
        secret in "[A-Za-z0-9%\\\\&+/_. \"-]{8,40}", which in vec(any::<Index>(), 4), words in vec("\\PC{0,8}", 4),
    ) {
        let forms = forms(&secret);
        let pick = |n: usize| String::from_utf8(forms[which[n].index(forms.len())].1.clone()).unwrap();
        let echoed = |n: usize| format!("{}{}{}", words[n], pick(n), words[3 - n]);
        let mut value = json!({
            "plain": echoed(0),
            "list": [1, null, {"deep": echoed(1)}],
            echoed(2): {"inner": json!({"again": echoed(3)}).to_string()},
        });
        prop_assert!(redactor(&[&secret]).redact_json(&mut value));
        prop_assert_eq!(value.as_object().map(|members| members.len()), Some(3));
        prop_assert_eq!(surviving(value.to_string().as_bytes(), secret.trim_ascii()), Vec::<&str>::new());
    }

    #[test]
    fn json_without_a_secret_is_unchanged(
        secret in "[a-z0-9]{12,30}", texts in vec("\\PC{0,12}", 4), number in any::<f64>(),
    ) {
        let value = json!({&texts[0]: [texts[1], number], "token": {"secret": texts[2]}, "api_key": texts[3]});
        let mut redacted = value.clone();
        prop_assert!(!redactor(&[&secret]).redact_json(&mut redacted));
        prop_assert_eq!(redacted, value);
    }

    #[test]
    fn a_secret_of_digits_is_no_number_of_the_answer(secret in "[1-9][0-9]{3,14}") {
        let list = format!("[{secret}.0,-{secret},{secret}e0,\"{secret}\"]");
        let body = format!("{{\"pin\":{secret},\"list\":{list},\"{secret}\":0}}");
        let mut value: Value = serde_json::from_str(&body).unwrap();
        prop_assert!(redactor(&[&secret]).redact_json(&mut value));
        prop_assert!(!value.to_string().contains(&secret), "{}", value);
    }

    #[test]
    fn no_line_of_a_key_survives(
        key in key_file(), separator in select(vec!["\n", "\r\n", "\\n", "\\r\\n", " ", "", "%0a", "%0D%0A", "\n\t"]),
        first in 0_usize..5, before in surroundings(), after in surroundings(),
    ) {
        let lines: Vec<&str> = key.lines().collect();
        let telling = || lines.iter().filter(|line| !line.starts_with('-'));
        let some = lines.iter().skip(first.min(lines.len() - 2)).copied().collect::<Vec<_>>().join(separator);
        let mut body = [before.as_slice(), some.as_bytes(), &after].concat();
        prop_assert!(redactor(&[&key]).redact_bytes(&mut body));
        for line in telling() {
            prop_assert!(!body.windows(line.len()).any(|window| window == line.as_bytes()));
        }
        let mut body = [before.as_slice(), json_text(&key).as_bytes(), &after].concat();
        prop_assert!(redactor(&[&key]).redact_bytes(&mut body));
        prop_assert!(!telling().any(|line| surviving(&body, line) != Vec::<&str>::new()));
    }

    #[test]
    fn redacting_again_changes_nothing(
        secret in secret(), other in secret(), before in surroundings(), after in surroundings(),
    ) {
        let redactor = redactor(&[&secret, &other]);
        let mut body = [before.as_slice(), secret.as_bytes(), other.as_bytes(), &after, other.as_bytes()].concat();
        prop_assert!(redactor.redact_bytes(&mut body));
        let once = body.clone();
        prop_assert!(!redactor.redact_bytes(&mut body));
        prop_assert_eq!(body, once);
    }
}
