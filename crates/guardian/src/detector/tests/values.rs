//! Detectors over JSON values and over some of their fields.

use serde_json::json;

use super::*;

fn fields(text: &str) -> FieldSelector {
    FieldSelector::parse(text).unwrap()
}

#[test]
fn texts_names_and_numbers_are_redacted_and_the_rest_stays() {
    let value = json!({
        "to": ["ann@example.com", {"deep": "+49 30 1234567"}],
        "card": 4_111_111_111_111_111_u64, "as float": 4_111_111_111_111_111.0, "amount": 12.5, "count": 4111,
        "bob@example.com": {"x": true}, "none": null,
    });
    let redacted = json!({
        "to": ["[REDACTED-EMAIL]", {"deep": "[REDACTED-PHONE]"}],
        "card": "[REDACTED-CARD]", "as float": "[REDACTED-CARD]", "amount": 12.5, "count": 4111,
        "[REDACTED-EMAIL]": {"x": true}, "none": null,
    });
    assert_eq!(all().redact_json(&value), Some(redacted.clone()));
    assert_eq!(all().redact_json(&redacted), None);
    assert_eq!(all().redact_json(&json!({"a": [1, "b", {"c": false}]})), None);
}

#[test]
fn names_that_become_one_cost_no_member() {
    let value = json!({"a@example.com": 1, "b@example.com": 2, "c@example.com": 3, "[REDACTED-2]": 4});
    let redacted = all().redact_json(&value).unwrap();
    assert_eq!(redacted, json!({"[REDACTED-EMAIL]": 1, "[REDACTED-3]": 2, "[REDACTED-4]": 3, "[REDACTED-2]": 4}));
    assert_eq!(all().redact_json(&redacted), None);
}

#[test]
fn a_random_value_is_a_secret_when_its_name_says_so() {
    let value = json!({"password": "tr0ub4dor", "apiKeys": ["0123456789abcdef"], "color": "0123456789abcdef",
        "token": "a word", "pin": 1234});
    let redacted = json!({"password": "[REDACTED-SECRET]", "apiKeys": ["[REDACTED-SECRET]"], "color": "0123456789abcdef",
        "token": "a word", "pin": 1234});
    assert_eq!(all().redact_json(&value), Some(redacted));
    assert_eq!(only(&DetectorKind::Email).redact_json(&value), None);
    let mixed = json!({"password": "ab12cd34,4111 1111 1111 1111"});
    assert_eq!(all().redact_json(&mixed), Some(json!({"password": "[REDACTED-SECRET]"})));
}

#[test]
fn a_deep_value_costs_no_more_than_its_size() {
    let nested = (0..100).fold(json!("ann@example.com"), |value, _| json!({"bob@example.com": value}));
    let redacted = all().redact_json(&nested).unwrap();
    assert!(!redacted.to_string().contains('@'));
}

#[test]
fn fields_are_read_with_their_mistakes_named() {
    assert_eq!(fields(" * "), FieldSelector::All);
    assert_eq!(fields("a, b.c"), fields("a,b.c"));
    for wrong in ["", ",", "a,", "a..b", ".a", "a.", "a, ,b"] {
        assert_eq!(FieldSelector::parse(wrong), Err(FieldError::Empty(wrong.to_owned())));
    }
}

#[test]
fn only_what_is_below_the_fields_is_redacted() {
    let mail = "ann@example.com";
    let value = json!({"body": mail, "address": {"street": mail, "city": mail}, "items": [{"note": mail, "id": mail}]});
    let hidden = "[REDACTED-EMAIL]";
    let redacted =
        json!({"body": hidden, "address": {"street": hidden, "city": mail}, "items": [{"note": hidden, "id": mail}]});
    for text in
        ["body,address.street,items.*.note", "body,address.street,items.note", "body,address.street,items.0.note"]
    {
        assert_eq!(redact_fields(&value, &fields(text), Some(&all())), Some(redacted.clone()), "{text}");
    }
    assert_eq!(redact_fields(&redacted, &fields("body,items.note"), Some(&all())), None);
    for absent in ["none", "body.deeper", "items.7.note", "address.*.x", "Body"] {
        assert_eq!(redact_fields(&value, &fields(absent), Some(&all())), None, "{absent}");
    }
    assert_eq!(redact_fields(&value, &FieldSelector::All, Some(&all())), all().redact_json(&value));
    let named = json!({"api_key": ["0123456789abcdef"]});
    let redacted = json!({"api_key": ["[REDACTED-SECRET]"]});
    assert_eq!(redact_fields(&named, &fields("api_key"), Some(&all())), Some(redacted));
}

#[test]
fn without_detectors_the_whole_field_is_replaced() {
    let value = json!({"body": {"a": [1]}, "items": [{"note": 1}, {"note": 2}, 3], "to": "x"});
    let redacted =
        json!({"body": "[REDACTED]", "items": [{"note": "[REDACTED]"}, {"note": "[REDACTED]"}, 3], "to": "x"});
    assert_eq!(redact_fields(&value, &fields("body,items.*.note"), None), Some(redacted.clone()));
    assert_eq!(redact_fields(&redacted, &fields("body,items.*.note"), None), None);
    let redacted = json!({"body": "[REDACTED]", "items": "[REDACTED]", "to": "[REDACTED]"});
    assert_eq!(redact_fields(&value, &FieldSelector::All, None), Some(redacted.clone()));
    assert_eq!(redact_fields(&redacted, &FieldSelector::All, None), None);
    assert_eq!(redact_fields(&json!("text"), &FieldSelector::All, None), Some(json!("[REDACTED]")));
}
