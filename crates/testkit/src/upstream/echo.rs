//! An upstream that echoes everything: it responds with all that it was sent, and with each value in every encoding
//! that it knows. What passes the gate is what it fails to redact.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::Value;

use super::{Received, Reply};

pub(super) fn reply(request: &Received) -> Reply {
    let headers: Vec<String> =
        request.headers.iter().map(|(name, value)| format!("[{},{}]", quoted(name), quoted(value))).collect();
    let forms: Vec<String> = values(request).iter().flat_map(|(of, value)| forms(of, value)).collect();
    let text = format!(
        "{{\"method\":{},\n\"target\":{},\n\"headers\":[{}],\n\"body\":{},\n\"forms\":[\n{}\n]}}\n",
        quoted(&request.method),
        quoted(&request.target),
        headers.join(","),
        quoted(&request.text()),
        forms.join(",\n"),
    );
    let reply = Reply::json_text(200, &text);
    request.headers.iter().fold(reply, |reply, (name, value)| reply.header(&format!("x-echo-{name}"), value))
}

/// Everything in the request that may be or contain a secret, with its place.
fn values(request: &Received) -> Vec<(String, Vec<u8>)> {
    let mut values = Vec::new();
    for (name, value) in &request.headers {
        values.push((name.clone(), value.clone().into_bytes()));
        let Some((scheme, rest)) = value.split_once(' ') else { continue };
        values.push((format!("{name} without {scheme}"), rest.into()));
        if let ("basic", Ok(decoded)) = (scheme.to_ascii_lowercase().as_str(), STANDARD.decode(rest)) {
            let password = decoded.splitn(2, |byte| *byte == b':').nth(1).map(<[u8]>::to_vec);
            values.push((format!("{name} decoded"), decoded));
            values.extend(password.map(|password| (format!("{name} password"), password)));
        }
    }
    values.extend(request.query().into_iter().map(|(name, value)| (format!("query {name}"), value.into_bytes())));
    values
}

/// One value in all encodings, each as a JSON object.
fn forms(of: &str, value: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(value);
    let mut forms = vec![("raw".to_owned(), quoted(&text)), ("json".to_owned(), escaped(&text))];
    let mut add = |form: String, text: String| forms.push((form, quoted(&text)));
    add("percent".to_owned(), percent(value));
    add("percent everything".to_owned(), value.iter().map(|byte| format!("%{byte:02X}")).collect());
    add("percent everything lower".to_owned(), value.iter().map(|byte| format!("%{byte:02x}")).collect());
    add("form".to_owned(), url::form_urlencoded::byte_serialize(value).collect());
    add("hex".to_owned(), value.iter().map(|byte| format!("{byte:02x}")).collect());
    add("hex upper".to_owned(), value.iter().map(|byte| format!("{byte:02X}")).collect());
    for alignment in 0..3 {
        let bytes = [&b"<>"[..alignment], value, b"<>"].concat();
        add(format!("base64 at {alignment}"), STANDARD.encode(&bytes));
        add(format!("base64url at {alignment}"), URL_SAFE.encode(&bytes));
    }
    add("base64".to_owned(), STANDARD.encode(value));
    add("base64url".to_owned(), URL_SAFE_NO_PAD.encode(value));
    let object = |(form, text)| format!("{{\"of\":{},\"form\":{},\"text\":{text}}}", quoted(of), quoted(form));
    forms.iter().map(|(form, text)| object((form, text))).collect()
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A JSON string in which every character is an escape.
fn escaped(text: &str) -> String {
    let units: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    format!("\"{units}\"")
}

fn percent(value: &[u8]) -> String {
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode = |byte: &u8| if unreserved(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") };
    value.iter().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::upstream::Body;

    /// The echo of a request with this header and this target, as JSON.
    fn echo(value: &str, target: &str) -> Value {
        let request = Received {
            method: "GET".to_owned(),
            target: target.to_owned(),
            headers: vec![("authorization".to_owned(), value.to_owned())],
            body: b"{\"a\":1}".to_vec(),
        };
        let Reply::Answer { headers, body: Body::Whole(body), .. } = reply(&request) else { panic!("an answer") };
        assert!(headers.contains(&("x-echo-authorization".to_owned(), value.to_owned())), "{headers:?}");
        serde_json::from_slice(&body).unwrap()
    }

    fn text<'a>(echo: &'a Value, of: &str, form: &str) -> &'a str {
        let forms = echo["forms"].as_array().unwrap();
        let found = forms.iter().find(|entry| entry["of"] == of && entry["form"] == form);
        found.and_then(|entry| entry["text"].as_str()).unwrap_or_else(|| panic!("no {form} of {of}"))
    }

    #[test]
    fn an_echo_holds_the_request_and_each_value_in_every_encoding() {
        let echo = echo("Bearer s/k", "/a?key=x%26y");
        assert_eq!((&echo["method"], &echo["target"]), (&json!("GET"), &json!("/a?key=x%26y")));
        assert_eq!(echo["headers"], json!([["authorization", "Bearer s/k"]]));
        assert_eq!(echo["body"], json!("{\"a\":1}"));
        let of = "authorization without Bearer";
        for (form, expected) in [
            ("raw", "s/k"),
            ("json", "s/k"),
            ("percent", "s%2Fk"),
            ("percent everything", "%73%2F%6B"),
            ("hex", "732f6b"),
            ("base64", "cy9r"),
            ("base64 at 1", "PHMvazw+"),
            ("base64url at 1", "PHMvazw-"),
        ] {
            assert_eq!(text(&echo, of, form), expected, "{form}");
        }
        assert_eq!(text(&echo, "query key", "raw"), "x&y");
        assert_eq!(escaped("s\u{1f600}"), "\"\\u0073\\ud83d\\ude00\"");
    }

    #[test]
    fn an_echo_tells_the_password_of_basic_authentication() {
        let echo = echo("Basic dXNlcjpwYTpzcw==", "/");
        assert_eq!(text(&echo, "authorization decoded", "raw"), "user:pa:ss");
        assert_eq!(text(&echo, "authorization password", "raw"), "pa:ss");
    }
}
