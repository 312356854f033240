//! Secrets in the forms in which they could come to light: as they are, escaped, and in the usual encodings.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// What is looked for, each with where it was put.
pub struct Needles(Vec<(String, String)>);

impl Needles {
    pub fn of<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut needles = Vec::new();
        for (door, secret) in secrets {
            let mut add = |form: &str, text: String| needles.push((format!("{door}, {form}"), text));
            add("as it is", secret.to_owned());
            let json = serde_json::Value::from(secret).to_string();
            add("in JSON", json.trim_matches('"').to_owned());
            add("in ASCII JSON", ascii_json(secret));
            add("as Rust shows it", format!("{secret:?}").trim_matches('"').to_owned());
            add("percent-encoded", percent(secret, "%02X"));
            add("percent-encoded in lower case", percent(secret, "%02x"));
            add("in hex", hex(secret, false));
            add("in upper case hex", hex(secret, true));
            for skipped in 0..3 {
                // Whatever stands before it, base64 of the rest begins at one of three places. The last digits depend on
                // what follows.
                let rest = &secret.as_bytes()[skipped..];
                let whole = &rest[..rest.len() / 3 * 3];
                add("in base64", STANDARD_NO_PAD.encode(whole));
                add("in base64 for URLs", URL_SAFE_NO_PAD.encode(whole));
            }
        }
        Self(needles)
    }

    /// Panics with the door and the form, and not with the secret, where one is found.
    #[track_caller]
    pub fn assert_absent(&self, place: &str, haystack: &[u8]) {
        // The search for text is the fast one, and every needle is text: what is none around it does not hide it.
        let text = String::from_utf8_lossy(haystack);
        for (what, needle) in &self.0 {
            assert!(!text.contains(needle), "{what}: found in {place}");
        }
    }
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
        let found = needles.0.iter().any(|(_, needle)| text.contains(needle));
        assert_eq!(found, text != "6120736563726574", "{text}");
    }
}
