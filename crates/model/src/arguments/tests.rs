//! What is hidden, what is not, and that the hash cannot tell two secrets apart.

use serde_json::json;

use super::*;

mod properties;
mod shapes;

const SECRET: &[u8] = b"tr0ub4dor&3 +%/x";

fn shown(parameters: Value) -> Value {
    redacted(&parameters, &[SECRET]).into_owned()
}

#[test]
fn the_hash_is_that_of_the_canonical_text() {
    let hash = "43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777";
    assert_eq!(arguments_hash(&json!({"b": 2.0, "a": 1}), &[]), hash);
    assert_eq!(arguments_hash(&json!({}), &[]), sha256(b"{}").to_hex());
}

#[test]
fn the_examples_of_rfc_8785_have_the_hash_of_the_text_printed_there() {
    let values = r#"{
        "numbers": [333333333.3333333, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"#;
    let values = crate::strict_json::parse(values.as_bytes()).unwrap();
    assert_eq!(arguments_hash(&values, &[]), "2d5e01a318d0f0879ab568c4be289c8b1f64ef8921a53c6277d5e069978baacb");
    let order = json!({
        "\u{20ac}": "Euro Sign", "\r": "Carriage Return", "\u{fb33}": "Hebrew Letter Dalet With Dagesh", "1": "One",
        "\u{1f600}": "Emoji: Grinning Face", "\u{80}": "Control", "\u{f6}": "Latin Small Letter O With Diaeresis"
    });
    assert_eq!(arguments_hash(&order, &[]), "5e321556d22018a9656991a9e94f77ec175fa193e52a2429d312f8419ec8b08c");
    // A composed letter and its two parts are different texts: nothing is normalised.
    assert_ne!(arguments_hash(&json!("\u{f6}"), &[]), arguments_hash(&json!("o\u{308}"), &[]));
}

#[test]
fn calls_that_differ_only_in_a_secret_have_one_hash() {
    let call = |password: &str, key: &str, secret: &str| {
        let parameters = json!({
            "user": "ann", "login": {"password": password}, "command": format!("curl -H 'X: {secret}'"),
            "notes": [format!("use {key}")]
        });
        arguments_hash(&parameters, &[secret.as_bytes()])
    };
    let (one, other) = ("sk-proj-AbCdEfGh12345678", "sk-ant-zzzzzzzz99999999zzzz");
    assert_eq!(call("hunter2", one, "first-secret"), call("swordfish", other, "the second"));
    let plain = |user: &str| arguments_hash(&json!({"user": user, "password": "p"}), &[]);
    assert_ne!(plain("ann"), plain("bob"));
}

#[test]
fn arguments_without_a_secret_are_not_copied() {
    let parameters = json!({
        "q": "how do bearer bonds work", "limit": 10, "deep": [{"ids": ["task-1234567890123456", null, true]}],
        "url": "https://example.com:8080/sk/@user?a=%20b+c", "tokens": 4096, "nothing": {}, "ratio": 0.5
    });
    assert!(matches!(redacted(&parameters, &[SECRET, b"another secret"]), Cow::Borrowed(_)));
}

#[test]
fn a_known_secret_is_found_however_it_is_written() {
    let spelled = [
        "tr0ub4dor&3 +%/x",
        "password: tr0ub4dor&3 +%/x!",
        "tr0ub4dor%263%20%2B%25%2Fx",
        "https://example.com/?p=tr0ub4dor%263+%2b%25%2fx&q=1",
        "%74%72%30%75%62%34%64%6f%72%26%33%20%2b%25%2f%78",
        "dHIwdWI0ZG9yJjMgKyUveA==",
        "dHIwdWI0ZG9yJjMgKyUveA",
    ];
    for text in spelled {
        assert_eq!(shown(json!({"a": [text]})), json!({"a": [REDACTED]}), "{text}");
    }
    for text in ["tr0ub4dor&3", "tr0ub4dor%263%20%2B%2", "dHIwdWI0ZG9yJjMgKyUveB", "+%", "%", ""] {
        assert_eq!(shown(json!(text)), json!(text), "{text}");
    }
    let alphabets = redacted(&json!(["-_-_-_-_", "+/+/+/+/"]), &[&[0xfb, 0xff, 0xbf, 0xfb, 0xff, 0xbf]]).into_owned();
    assert_eq!(alphabets, json!([REDACTED, REDACTED]));
}

#[test]
fn a_secret_of_digits_is_found_as_a_number() {
    let numbers = json!({"a": 12_345_678, "b": 123_456_789, "c": "is 12345678"});
    let kept = json!({"a": REDACTED, "b": 123_456_789, "c": REDACTED});
    assert_eq!(redacted(&numbers, &[b"12345678"]).into_owned(), kept);
}

#[test]
fn a_short_secret_is_not_looked_for() {
    let parameters = json!({"text": "admin"});
    assert!(matches!(redacted(&parameters, &[b"admin", b"a", b""]), Cow::Borrowed(_)));
}

#[test]
fn whatever_stands_under_a_secret_name_is_hidden() {
    let parameters = json!({
        "apiKey": "k", "password": null, "headers": {"Authorization": {"scheme": "x"}, "Accept": "*/*"},
        "card": [{"number": 4242, "brand": "visa"}], "private.key": ["a"], "token": "[redacted]"
    });
    let kept = json!({
        "apiKey": REDACTED, "password": REDACTED, "headers": {"Authorization": REDACTED, "Accept": "*/*"},
        "card": [{"number": REDACTED, "brand": "visa"}], "private.key": REDACTED, "token": REDACTED
    });
    assert_eq!(shown(parameters), kept);
}

#[test]
fn a_name_that_holds_a_secret_goes_with_its_value() {
    let text = std::str::from_utf8(SECRET).unwrap();
    let named = |name: String, value: Value| shown(json!({name: value, "other": 1}));
    let kept = json!({REDACTED: REDACTED, "other": 1});
    assert_eq!(named(format!("a {text}"), json!({"b": "c"})), kept);
    assert_eq!(named("sk-proj-AbCdEfGh12345678".to_owned(), json!(1)), kept);
    // Which of several comes last depends on the secret, and must not show.
    assert_eq!(shown(json!({REDACTED: 2, format!("a{text}"): 3, format!("z{text}"): 4, "other": 1})), kept);
}

#[test]
fn without_takes_out_the_known_and_leaves_what_only_looks_like_a_secret() {
    let arguments = json!({"note": "see hunter2hunter2 there", "password": "p", "list": ["hunter2hunter2", 1]});
    let kept = without(&arguments, &[b"hunter2hunter2"]);
    assert_eq!(*kept, json!({"note": REDACTED, "password": "p", "list": [REDACTED, 1]}));
    assert!(matches!(without(&arguments, &[b"something else"]), Cow::Borrowed(_)));
    // Taking out in two steps comes to the same as in one.
    let secrets: &[&[u8]] = &[b"hunter2hunter2"];
    assert_eq!(arguments_hash(&kept, &[]), arguments_hash(&arguments, secrets));
}
