//! What the log keeps.

use serde_json::json;

use super::*;

fn summary(rule: Value, parameters: Value) -> Value {
    let rule = LoggingRule::from_json(&rule, "logging").unwrap();
    let Value::Object(parameters) = parameters else { panic!("an object") };
    Value::Object(rule.summary(&parameters))
}

#[test]
fn without_a_rule_everything_is_kept_but_what_looks_secret() {
    let parameters = json!({
        "amount": 2500, "currency": "usd", "password": "hunter2", "nested": {"apiKey": "k", "note": "n"},
        "list": [{"token": "t", "ok": true}], "card": {"number": "4242", "brand": "visa"}, "empty": {}
    });
    let kept = json!({
        "amount": 2500, "currency": "usd", "nested": {"note": "n"}, "list": [{"ok": true}], "card": {"brand": "visa"},
        "empty": {}
    });
    assert_eq!(summary(json!({}), parameters), kept);
}

#[test]
fn a_rule_names_fields_by_path_at_any_depth() {
    let rule = json!({"fields": {"customer": "hash", "metadata.note": "omit", "items.sku": "omit", "token": "log"}});
    let parameters = json!({
        "customer": "cus_1", "metadata": {"note": "private", "plan": "a"}, "items": [{"sku": 1, "n": 2}],
        "token": "page-2", "other": {"customer": "cus_2", "token": "t"}
    });
    let kept = json!({
        "customer": hash(&json!("cus_1")), "metadata": {"plan": "a"}, "items": [{"n": 2}], "token": "page-2",
        "other": {"customer": "cus_2"}
    });
    assert_eq!(summary(rule, parameters), kept);
}

#[test]
fn a_hash_is_that_of_the_canonical_value() {
    let hash_of = |value: Value| summary(json!({"fields": {"a": "hash"}}), json!({"a": value}))["a"].clone();
    assert_eq!(hash_of(json!("abc")), json!("sha256:6cc43f858fbb763301637b5af970e2a46b46f461f27e5a0f41e009c59b827b25"));
    assert_eq!(hash_of(json!({"b": 1, "a": 1.0})), hash_of(json!({"a": 1, "b": 1})));
    assert_ne!(hash_of(json!("1")), hash_of(json!(1)));
}

#[test]
fn the_default_reaches_every_leaf_that_no_rule_names() {
    let parameters = json!({"a": {"b": 1, "password": "p"}, "c": [2], "d": 3});
    let omitted = json!({"default": "omit", "fields": {"d": "log"}});
    assert_eq!(summary(omitted, parameters.clone()), json!({"d": 3}));
    let one = hash(&json!(1));
    let hashed = json!({"default": "hash", "fields": {"d": "log"}});
    assert_eq!(summary(hashed, parameters.clone()), json!({"a": {"b": one}, "c": [hash(&json!(2))], "d": 3}));
    let inner = json!({"default": "omit", "fields": {"a": "log"}});
    assert_eq!(summary(inner, parameters), json!({"a": {"b": 1}}));
}

#[test]
fn long_texts_become_their_length_and_hash() {
    let text = "x".repeat(257);
    let expected = format!("[text of 257 bytes, {}]", hash(&json!(text)));
    assert_eq!(summary(json!({}), json!({"a": text, "b": "y".repeat(256)}))["a"], json!(expected));
}

#[test]
fn a_summary_stays_small_and_says_what_it_left_out() {
    let many: Map<String, Value> =
        (0..5000).map(|number| (format!("field{number:04}"), json!("v".repeat(200)))).collect();
    let wide = summary(json!({}), Value::Object(many));
    assert!(wide.to_string().len() < 6 * 1024, "{}", wide.to_string().len());
    let kept = wide.as_object().unwrap().len() - 1;
    assert_eq!(wide[LEFT_OUT], json!(5000 - kept));
    for large in
        [json!({"a": vec![1; 100_000]}), json!({"x".repeat(100_000): 1}), json!({"a": {"b": {"y".repeat(9000): 1}}})]
    {
        let small = summary(json!({}), large).to_string();
        assert!(small.contains("left") && small.len() < 6 * 1024, "{}", small.len());
    }
}

/// A caller that writes as much as it can into what nobody looks at.
fn noisy() -> Vec<Map<String, Value>> {
    let long = "x".repeat(60_000);
    let texts = json!({"aa": vec![long.clone(); 500], "ab": vec!["y".repeat(200); 500]});
    let name = json!({"x".repeat(4_100): 1, "y".repeat(250): {"z".repeat(250): long}});
    let nested = json!({"aa": {"b": {"c": {"d": vec!["y".repeat(250); 100]}}}, "ab": (0..300).collect::<Vec<_>>()});
    [texts, name, nested].into_iter().map(|noise| noise.as_object().unwrap().clone()).collect()
}

#[test]
fn each_member_has_its_own_share_whatever_a_caller_puts_into_the_others() {
    for mut parameters in noisy() {
        parameters.extend([("amount".to_owned(), json!(2500)), ("recipient".to_owned(), json!("mallory@example.com"))]);
        let kept = summary(json!({}), Value::Object(parameters.clone()));
        assert_eq!((&kept["amount"], &kept["recipient"]), (&json!(2500), &json!("mallory@example.com")), "{kept}");
        assert!(kept.to_string().len() < 6 * 1024, "{}", kept.to_string().len());

        let inside = summary(json!({}), json!({"payment": parameters}));
        assert_eq!(inside["payment"]["amount"], json!(2500), "{inside}");

        let rule = LoggingRule { inputs: true, ..LoggingRule::default() };
        let inputs = rule.inputs(inside.as_object().unwrap()).unwrap();
        assert_eq!(inputs["payment"]["amount"], json!(2500), "{inputs}");
    }
}

#[test]
fn one_large_member_leaves_the_others_their_room() {
    let recipients: Vec<String> = (0..40).map(|number| format!("{number}@example.com")).collect();
    let noise = vec!["x".repeat(200); 39];
    let kept = summary(json!({}), json!({"a": noise, "recipients": recipients}));
    assert_eq!(kept["recipients"], json!(recipients), "{kept}");
}

#[test]
fn members_of_the_schema_come_before_any_number_of_others() {
    let mut parameters: Map<String, Value> = (0..5000).map(|number| (format!("a{number}"), json!(1))).collect();
    parameters.insert("memo".to_owned(), json!("m".repeat(3000)));
    parameters.insert("recipient_of_the_payment".to_owned(), json!("mallory@example.com"));
    let schema = json!({"type": "object", "properties": {"recipient_of_the_payment": {}, "memo": {}}});
    let kept = LoggingRule::default().summary_of(&parameters, &schema);
    assert_eq!(kept["recipient_of_the_payment"], json!("mallory@example.com"));
    assert!(kept.contains_key("memo") && kept.contains_key(LEFT_OUT));
}

#[test]
fn rules_that_contradict_each_other_are_refused() {
    let refusal = |rule: Value| LoggingRule::from_json(&rule, "logging").unwrap_err().to_string();
    assert_eq!(
        refusal(json!({"fields": {"a": "hash", "a.b": "log"}})),
        "`logging.fields.a.b` is part of `a`, which has the rule hash as a whole; remove one of the two"
    );
    assert!(refusal(json!({"fields": {"a..b": "log"}})).starts_with("`logging.fields.a..b` must not contain"));
    assert!(refusal(json!({"fields": {"a": "mask"}})).contains("must be one of log, hash, omit"));
    assert!(LoggingRule::from_json(&json!({"fields": {"a": "log", "a.b": "omit", "ab": "hash"}}), "logging").is_ok());
}
