//! What servers may ask for, and what that needs of a client.

use super::*;

fn declared(value: &Value) -> InputCapabilities {
    InputCapabilities::of(Some(value))
}

fn asked(method: &str, params: Value) -> Result<InputCapabilities, Unfit> {
    let requests = json!({"key": {"method": method, "params": params}});
    needs(requests.as_object().unwrap())
}

fn form(fields: &Value) -> Value {
    json!({"message": "Who are you?", "requestedSchema": {"type": "object", "properties": fields}})
}

fn url(url: &str) -> Value {
    json!({"mode": "url", "message": "Open this.", "url": url})
}

#[test]
fn capabilities_are_declared_as_they_were_read() {
    for (value, expected) in [
        (json!({}), json!({})),
        (json!({"elicitation": {}}), json!({"elicitation": {"form": {}}})),
        (json!({"elicitation": {"url": {}}}), json!({"elicitation": {"url": {}}})),
        (json!({"elicitation": {"form": {}, "url": {}}}), json!({"elicitation": {"form": {}, "url": {}}})),
        (
            json!({"sampling": {"tools": {}}, "roots": {"listChanged": true}}),
            json!({"sampling": {"tools": {}}, "roots": {}}),
        ),
        (json!({"elicitation": true, "sampling": [], "roots": null, "tasks": {}}), json!({})),
    ] {
        assert_eq!(declared(&value).to_json(), expected, "{value}");
        assert_eq!(declared(&expected), declared(&value), "{value}");
    }
    assert_eq!(InputCapabilities::of(None), InputCapabilities::default());
}

#[test]
fn a_request_needs_what_its_method_and_mode_need() {
    let all = declared(&json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}));
    for (method, params, needed) in [
        (ELICIT, form(&json!({"name": {"type": "string"}})), json!({"elicitation": {}})),
        (ELICIT, url("https://pages.example/consent?id=7"), json!({"elicitation": {"url": {}}})),
        (SAMPLE, json!({"messages": [], "maxTokens": 5}), json!({"sampling": {}})),
        (SAMPLE, json!({"messages": [], "tools": []}), json!({"sampling": {"tools": {}}})),
        (LIST_ROOTS, json!({}), json!({"roots": {}})),
    ] {
        let needs = asked(method, params).unwrap();
        assert_eq!(needs, declared(&needed));
        assert!(all.covers(needs) && !InputCapabilities::default().covers(needs));
    }
    let both = json!({
        "one": {"method": ELICIT, "params": form(&json!({}))}, "other": {"method": LIST_ROOTS},
    });
    let needs = needs(both.as_object().unwrap()).unwrap();
    assert_eq!(needs, declared(&json!({"elicitation": {}, "roots": {}})));
    assert!(!declared(&json!({"roots": {}})).covers(needs));
}

#[test]
fn only_addresses_of_web_pages_are_passed_on() {
    for fit in ["https://pages.example/", "http://127.0.0.1:8080/a?b#c"] {
        assert!(asked(ELICIT, url(fit)).is_ok(), "{fit}");
    }
    let long = format!("https://pages.example/{}", "x".repeat(URL_LIMIT));
    for unfit in [
        "javascript:alert(1)",
        "JavaScript://pages.example/%0aalert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "vscode://open",
        "https://bank.example@evil.example/",
        "https://",
        "//pages.example",
        "java\nscript:alert(1)",
        "",
        &long,
    ] {
        assert!(asked(ELICIT, url(unfit)).is_err(), "{unfit}");
    }
}

#[test]
fn a_form_asks_for_no_secret() {
    assert!(asked(ELICIT, form(&json!({"name": {}, "favorite_color": {}, "token_count": {}}))).is_ok());
    for secret in ["password", "apiKey", "client_secret"] {
        assert!(asked(ELICIT, form(&json!({"name": {}, secret: {}}))).is_err(), "{secret}");
    }
}

#[test]
fn what_is_too_much_or_unknown_is_not_passed_on() {
    let many: Map<String, Value> =
        (0..=REQUEST_LIMIT).map(|number| (format!("key{number}"), json!({"method": LIST_ROOTS}))).collect();
    assert!(needs(&many).is_err());
    let long = "x".repeat(SIZE_LIMIT);
    let fields: Map<String, Value> = (0..=FIELD_LIMIT).map(|number| (format!("field{number}"), json!({}))).collect();
    for (method, params) in [
        ("tools/call", json!({})),
        (ELICIT, json!({})),
        (ELICIT, json!({"message": "Who?"})),
        (ELICIT, json!({"message": "x".repeat(MESSAGE_LIMIT + 1), "requestedSchema": {}})),
        (ELICIT, json!({"mode": "telepathy", "message": "Who?"})),
        (ELICIT, json!({"mode": 7, "message": "Who?"})),
        (ELICIT, form(&Value::Object(fields))),
        (ELICIT, form(&json!([]))),
        (SAMPLE, json!({"maxTokens": 5})),
        (SAMPLE, json!({"messages": [long]})),
    ] {
        assert!(asked(method, params.clone()).is_err(), "{method} {}", params.to_string().len());
    }
    for (key, request) in
        [("", json!({"method": LIST_ROOTS})), ("a\u{200b}b", json!({"method": LIST_ROOTS})), ("a", json!(7))]
    {
        assert!(needs(&Map::from_iter([(key.to_owned(), request)])).is_err(), "{key}");
    }
    assert!(needs(&Map::from_iter([("a".to_owned(), json!({"method": LIST_ROOTS, "params": []}))])).is_err());
    assert!(ServerState::new("x".repeat(STATE_LIMIT + 1)).is_err());
}

#[test]
fn the_state_of_a_server_is_not_written_to_logs() {
    let state = ServerState::new("sk_live_of_the_mount".to_owned()).unwrap();
    assert!(!format!("{state:?}").contains("sk_live"));
}

#[test]
fn a_response_is_an_object_under_each_key() {
    let check = |value: Value| check_responses(value.as_object().unwrap());
    assert!(check(json!({})).is_ok());
    assert!(check(json!({"a": {"action": "accept"}, "unknown": {}})).is_ok());
    assert!(check(json!({"a": 12345})).is_err());
    assert!(check(json!({"a": null})).is_err());
}
