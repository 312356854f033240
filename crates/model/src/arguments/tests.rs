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
fn of_a_known_secret_only_the_occurrence_is_replaced_however_it_is_written() {
    let spelled = [
        "tr0ub4dor&3 +%/x",
        "tr0ub4dor%263%20%2B%25%2Fx",
        "tr0ub4dor%263+%2b%25%2fx",
        "%74%72%30%75%62%34%64%6f%72%26%33%20%2b%25%2f%78",
        "tr0ub4dor&amp;3&#32;&plus;&percnt;&sol;x",
        "tr0ub4dor%25%32%363 +%/x",
        "dHIwdWI0ZG9yJjMgKyUveA==",
        "dHIwdWI0ZG9yJjMgKyUveA",
    ];
    for text in spelled {
        let around = |text: &str| json!({"a": [format!("send all to <{text}>; now")]});
        assert_eq!(shown(around(text)), around(REDACTED), "{text}");
    }
    for text in ["tr0ub4dor&3", "tr0ub4dor%263%20%2B%2", "+%", "%", ""] {
        assert_eq!(shown(json!(text)), json!(text), "{text}");
    }
    let alphabets = redacted(&json!(["Pz8/Pj4+", "Pz8_Pj4-"]), &[b"???>>>"]).into_owned();
    assert_eq!(alphabets, json!([REDACTED, REDACTED]));
}

#[test]
fn a_secret_of_digits_is_found_as_a_number() {
    let numbers = json!({"a": 12_345_678, "b": 22_345_678, "c": "is 12345678"});
    let kept = json!({"a": REDACTED, "b": 22_345_678, "c": format!("is {REDACTED}")});
    assert_eq!(redacted(&numbers, &[b"12345678"]).into_owned(), kept);
}

#[test]
fn a_short_secret_is_not_looked_for() {
    let parameters = json!({"text": "admin"});
    assert!(matches!(redacted(&parameters, &[b"admin", b"a", b""]), Cow::Borrowed(_)));
    // Nor a short part of a longer one, nor a number that is written in fewer digits.
    let parameters = json!({"text": "abcd", "number": 2500});
    assert!(matches!(without(&parameters, &[b"pg://u:abcd@host", b"00002500"]), Cow::Borrowed(_)));
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
fn a_name_hides_no_value_by_holding_a_known_secret_or_the_marker() {
    let text = std::str::from_utf8(SECRET).unwrap();
    let arguments = json!({format!("a {text}"): {"b": "c"}, text: 5, REDACTED: {"d": 2}, "other": 1});
    let kept = json!({format!("a {REDACTED}"): {"b": "c"}, format!("{REDACTED} 2"): 5, REDACTED: {"d": 2}, "other": 1});
    assert_eq!(shown(arguments), kept);
}

#[test]
fn a_name_of_the_shape_of_a_secret_goes_with_its_value() {
    let (one, other) = ("sk-proj-AbCdEfGh12345678", "sk-ant-zzzzzzzz99999999zzzz");
    let kept = json!({REDACTED: REDACTED, "other": 1});
    assert_eq!(shown(json!({one: 1, "other": 1})), kept);
    // Which of several comes last depends on the secrets, and must not show.
    let both = |first: Value, second: Value| shown(json!({REDACTED: 2, one: first, other: second}));
    let numbered = json!({REDACTED: 2, format!("{REDACTED} 2"): REDACTED, format!("{REDACTED} 3"): REDACTED});
    assert_eq!(both(json!(3), json!(4)), numbered);
    assert_eq!(both(json!(4), json!([3])), numbered);
}

#[test]
fn without_takes_out_the_known_and_leaves_what_only_looks_like_a_secret() {
    let arguments = json!({"note": "see hunter2hunter2 there", "password": "p", "list": ["hunter2hunter2", 1]});
    let kept = without(&arguments, &[b"hunter2hunter2"]);
    assert_eq!(*kept, json!({"note": format!("see {REDACTED} there"), "password": "p", "list": [REDACTED, 1]}));
    assert!(matches!(without(&arguments, &[b"something else"]), Cow::Borrowed(_)));
    // Taking out in two steps comes to the same as in one.
    let secrets: &[&[u8]] = &[b"hunter2hunter2"];
    assert_eq!(arguments_hash(&kept, &[]), arguments_hash(&arguments, secrets));
}
