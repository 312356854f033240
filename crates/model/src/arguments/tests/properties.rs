//! Whatever the arguments look like and wherever the secret stands in them.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

use super::*;
use crate::canonical::to_canonical_string;

/// Where the secret is put in, as it is or in another spelling. The texts around it are Greek, and so hold no secret.
const PLACES: [char; 4] = ['①', '②', '③', '④'];

fn spelled(secret: &str, place: char) -> String {
    match place {
        '①' => secret.to_owned(),
        '②' => secret.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        '③' => STANDARD.encode(secret),
        _ => URL_SAFE_NO_PAD.encode(secret),
    }
}

fn filled_text(text: &str, secret: &str) -> String {
    let letters = text.chars();
    letters.map(|letter| if PLACES.contains(&letter) { spelled(secret, letter) } else { letter.into() }).collect()
}

fn filled(value: &Value, secret: &str) -> Value {
    match value {
        Value::String(text) => Value::from(filled_text(text, secret)),
        Value::Array(items) => items.iter().map(|item| filled(item, secret)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (filled_text(name, secret), filled(value, secret))).collect()
        }
        other => other.clone(),
    }
}

fn tree(
    texts: impl Strategy<Value = String> + 'static,
    names: impl Strategy<Value = String> + Clone + 'static,
) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        texts.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(names.clone(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn with_places() -> impl Strategy<Value = Value> {
    let texts = prop_oneof!["[α-ω ]{0,6}", "[α-ω ]{0,3}[①②][α-ω ]{0,3}", "[③④]"];
    let names = prop_oneof![
        "[α-ω]{1,3}",
        "[α-ω]{0,2}[①②][α-ω]{0,2}",
        prop::sample::select(vec!["password", "card", "number", "api", "keys", REDACTED]).prop_map(str::to_owned),
    ];
    tree(texts, names.boxed())
}

/// Neither a number nor anything that must be escaped in JSON, and with no white space around it.
fn secret() -> impl Strategy<Value = String> {
    "[A-Za-z][A-Za-z0-9!#$%&+/=?@ é-]{6,40}[A-Za-z]"
}

proptest! {
    #[test]
    fn two_secrets_in_the_same_places_cannot_be_told_apart(
        arguments in with_places(), one in secret(), other in secret(),
    ) {
        let shown = |secret: &str| {
            let arguments = filled(&arguments, secret);
            let known: [&[u8]; 1] = [secret.as_bytes()];
            (arguments_hash(&arguments, &known), to_canonical_string(&redacted(&arguments, &known)))
        };
        let ((hash, text), (other_hash, other_text)) = (shown(&one), shown(&other));
        prop_assert_eq!(&text, &other_text);
        prop_assert_eq!(hash, other_hash);
        for place in PLACES {
            prop_assert!(!text.contains(&spelled(&one, place)) && !text.contains(&spelled(&other, place)));
        }
    }

    #[test]
    fn redacting_once_more_changes_nothing(arguments in with_places(), secret in secret()) {
        let arguments = filled(&arguments, &secret);
        let known: [&[u8]; 1] = [secret.as_bytes()];
        let once = redacted(&arguments, &known).into_owned();
        prop_assert!(matches!(redacted(&once, &known), Cow::Borrowed(_)));
        prop_assert_eq!(arguments_hash(&once, &known), arguments_hash(&arguments, &known));
    }

    #[test]
    fn a_difference_elsewhere_shows(
        one in tree("[α-ω ]{0,2}", "[α-γ]"), other in tree("[α-ω ]{0,2}", "[α-γ]"), secret in secret(),
    ) {
        let hash = |value: &Value| {
            arguments_hash(&json!({"value": value, "password": secret}), &[secret.as_bytes()])
        };
        prop_assert_eq!(hash(&one) == hash(&other), to_canonical(&one) == to_canonical(&other));
    }
}
