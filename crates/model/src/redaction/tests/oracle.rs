//! The forms of a secret, written down the simple way: by encoding it. Shares no code with what it judges.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

/// Every form of the secret, with its name.
pub(super) fn forms(secret: &str) -> Vec<(&'static str, Vec<u8>)> {
    let json = json_text(secret);
    let percent = percent_of(secret, |byte| !byte.is_ascii_alphanumeric() && !b"-._~".contains(&byte));
    let percent_all = percent_of(secret, |_| true);
    let units = |upper: bool| -> String {
        secret
            .encode_utf16()
            .map(|unit| if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") })
            .collect()
    };
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut forms: Vec<(&'static str, Vec<u8>)> = [
        ("raw", secret.to_owned()),
        ("json", json.clone()),
        ("json with escaped slashes", json.replace('/', "\\/")),
        ("json in ascii", json_ascii(&json)),
        ("json in json", json_text(&json)),
        ("json in json in json", json_text(&json_text(&json))),
        ("unicode escapes", units(false)),
        ("unicode escapes in capitals", units(true)),
        ("percent", percent.clone()),
        ("percent in small letters", lower_escapes(&percent)),
        ("every byte percent", percent_all.clone()),
        ("every byte percent in small letters", lower_escapes(&percent_all)),
        ("percent twice", percent_of(&percent, |byte| byte == b'%')),
        ("form", percent.replace("%20", "+")),
        ("json in a form", percent_of(&json, |byte| !byte.is_ascii_alphanumeric()).replace("%20", "+")),
        (
            "percent of json with escaped slashes",
            percent_of(&json.replace('/', "\\/"), |byte| !byte.is_ascii_alphanumeric()),
        ),
        ("hex", hex.clone()),
        ("hex in capitals", hex.to_ascii_uppercase()),
        ("html", html(secret)),
        ("html decimal", secret.chars().map(|letter| format!("&#{};", u32::from(letter))).collect()),
        ("html hex", secret.chars().map(|letter| format!("&#x{:x};", u32::from(letter))).collect()),
        ("base64 alone", STANDARD.encode(secret)),
        ("base64 alone without padding", STANDARD_NO_PAD.encode(secret)),
        ("base64url alone", URL_SAFE.encode(secret)),
        ("base64url alone without padding", URL_SAFE_NO_PAD.encode(secret)),
        ("base64 percent", percent_of(&STANDARD.encode(secret), |byte| !byte.is_ascii_alphanumeric())),
        ("base64 of json", STANDARD_NO_PAD.encode(&json)),
        ("base64 of percent", STANDARD_NO_PAD.encode(&percent)),
        (
            "base64 of form",
            STANDARD_NO_PAD.encode(
                percent_of(secret, |byte| !byte.is_ascii_alphanumeric() && !b"*-._ ".contains(&byte)).replace(' ', "+"),
            ),
        ),
    ]
    .into_iter()
    .map(|(name, form)| (name, form.into_bytes()))
    .collect();
    for before in 0..3 {
        let core = base64_core(secret, before);
        let url_safe = core.replace('+', "-").replace('/', "_");
        forms.push(("base64 inside a text, with escaped slashes", core.replace('/', "\\/").into_bytes()));
        forms.push(("base64url inside a text", url_safe.into_bytes()));
        forms.push(("base64 inside a text", core.into_bytes()));
    }
    forms
}

/// The names of the forms that occur in the bytes.
pub(super) fn surviving(bytes: &[u8], secret: &str) -> Vec<&'static str> {
    let occurs = |form: &[u8]| bytes.windows(form.len()).any(|window| window == form);
    forms(secret).into_iter().filter(|(_, form)| occurs(form)).map(|(name, _)| name).collect()
}

/// What two base64 texts have in common that differ in every bit around the secret.
fn base64_core(secret: &str, before: usize) -> String {
    let encode = |filler: u8| STANDARD.encode([&vec![filler; before], secret.as_bytes(), &[filler; 3]].concat());
    let pairs: Vec<(char, char)> = encode(0).chars().zip(encode(0xff).chars()).collect();
    let same = |pair: &&(char, char)| pair.0 == pair.1;
    let different = pairs.iter().take_while(|pair| !same(pair)).count();
    pairs.iter().skip(different).take_while(same).map(|pair| pair.0).collect()
}

pub(super) fn json_text(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap().to_owned()
}

fn json_ascii(json: &str) -> String {
    let mut text = String::new();
    for letter in json.chars() {
        if letter.is_ascii() {
            text.push(letter);
        } else {
            letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}")));
        }
    }
    text
}

pub(super) fn percent_of(text: &str, escaped: impl Fn(u8) -> bool) -> String {
    let bytes =
        text.bytes().flat_map(|byte| if escaped(byte) { format!("%{byte:02X}").into_bytes() } else { vec![byte] });
    String::from_utf8(bytes.collect()).unwrap()
}

fn lower_escapes(text: &str) -> String {
    let mut parts = text.split('%');
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| {
        let (digits, rest) = part.split_at(2);
        format!("{text}%{}{rest}", digits.to_ascii_lowercase())
    })
}

fn html(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}
