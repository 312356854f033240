//! Secrets in the forms in which they could come to light: as they are, escaped, and in the usual encodings.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// What is looked for, each with where it was put.
pub struct Needles(Vec<(String, Vec<u8>)>);

impl Needles {
    pub fn of<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut needles = Vec::new();
        for (door, secret) in secrets {
            let mut add = |form: &str, bytes: Vec<u8>| needles.push((format!("{door}, {form}"), bytes));
            add("as it is", secret.as_bytes().to_vec());
            let json = serde_json::Value::from(secret).to_string();
            add("in JSON", json.trim_matches('"').as_bytes().to_vec());
            add("in ASCII JSON", ascii_json(secret).into_bytes());
            add("as Rust shows it", format!("{secret:?}").trim_matches('"').as_bytes().to_vec());
            add("percent-encoded", percent(secret, "%02X").into_bytes());
            add("percent-encoded in lower case", percent(secret, "%02x").into_bytes());
            add("in hex", hex(secret, false).into_bytes());
            add("in upper case hex", hex(secret, true).into_bytes());
            for skipped in 0..3 {
                // Whatever stands before it, base64 of the rest begins at one of three places. The last digits depend on
                // what follows.
                let rest = &secret.as_bytes()[skipped..];
                let whole = &rest[..rest.len() / 3 * 3];
                add("in base64", STANDARD_NO_PAD.encode(whole).into_bytes());
                add("in base64 for URLs", URL_SAFE_NO_PAD.encode(whole).into_bytes());
            }
        }
        Self(needles)
    }

    /// Panics with the door and the form, and not with the secret, where one is found.
    #[track_caller]
    pub fn assert_absent(&self, place: &str, haystack: &[u8]) {
        for (what, needle) in &self.0 {
            assert!(!contains(haystack, needle), "{what}: found in {place}");
        }
    }
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    let Some((first, rest)) = needle.split_first() else { return false };
    let mut from = haystack;
    while let Some(position) = from.iter().position(|byte| byte == first) {
        from = &from[position + 1..];
        if from.starts_with(rest) {
            return true;
        }
    }
    false
}

fn ascii_json(secret: &str) -> String {
    secret
        .chars()
        .map(|letter| match letter {
            '"' | '\\' => format!("\\{letter}"),
            letter if letter.is_ascii() => letter.to_string(),
            letter => format!("\\u{:04x}", u32::from(letter)),
        })
        .collect()
}

fn percent(secret: &str, form: &str) -> String {
    let escape = |byte: u8| if form.ends_with('X') { format!("%{byte:02X}") } else { format!("%{byte:02x}") };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    secret.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { escape(byte) }).collect()
}

fn hex(secret: &str, upper: bool) -> String {
    secret.bytes().map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") }).collect()
}

#[test]
fn a_needle_is_found_in_every_form() {
    let needles = Needles::of([("test", "a secret/é+thing")]);
    let encoded = STANDARD_NO_PAD.encode("before a secret/é+thing after");
    for text in
        ["xa secret/é+thingx", "a%20secret%2F%C3%A9%2Bthing", "6120736563726574", "a secret/\\u00e9+thing", &encoded]
    {
        let found = needles.0.iter().any(|(_, needle)| contains(text.as_bytes(), needle));
        assert_eq!(found, text != "6120736563726574", "{text}");
    }
}
