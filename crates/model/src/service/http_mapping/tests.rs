//! Reading mappings, and rendering requests from what agents send.

use serde_json::{Map, Value, json};

use super::*;
use crate::connection::BaseUrl;

mod definitions;
mod properties;

fn mapping(value: &Value) -> HttpMapping {
    HttpMapping::from_json(value, "http").unwrap()
}

fn base() -> BaseUrl {
    BaseUrl::parse("https://api.example.com/v1").unwrap()
}

fn map(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("an object") };
    map
}

fn render(http: &Value, parameters: Value) -> Result<RenderedRequest, RenderError> {
    mapping(http).render(&base(), &map(parameters))
}

fn body(request: &RenderedRequest) -> &str {
    std::str::from_utf8(&request.body.as_ref().unwrap().bytes).unwrap()
}

#[test]
fn parameters_go_where_the_method_and_the_template_say() {
    let request = render(&json!({"method": "POST", "path": "/a/{id}"}), json!({"id": "x", "n": 1, "o": {"p": null}}));
    let request = request.unwrap();
    assert_eq!(request.url.as_str(), "https://api.example.com/v1/a/x");
    assert_eq!(body(&request), r#"{"n":1,"o":{"p":null}}"#);
    assert_eq!(request.body.unwrap().content_type, "application/json");
    for method in ["GET", "DELETE", "HEAD"] {
        let request = render(&json!({"method": method, "path": "/a/{id}"}), json!({"id": 7, "q": "a b&c", "z": null}));
        let request = request.unwrap();
        assert_eq!(request.url.as_str(), "https://api.example.com/v1/a/7?q=a+b%26c");
        assert_eq!(request.body, None);
    }
}

#[test]
fn parameters_go_where_the_definition_says_under_the_name_it_says() {
    let http = json!({
        "method": "DELETE", "path": "/users/{user}/keys/{key}.json",
        "parameters": {
            "user_id": {"in": "path", "name": "user"}, "reason": "body",
            "trace": {"in": "header", "name": "X-Trace"}, "dry": {"in": "query", "name": "dry_run"}
        },
        "headers": {"Accept": "application/json"}
    });
    let given = json!({"user_id": "ann", "key": "k1", "reason": "old", "trace": "t-1", "dry": true});
    let request = render(&http, given).unwrap();
    assert_eq!(request.url.as_str(), "https://api.example.com/v1/users/ann/keys/k1.json?dry_run=true");
    let headers = [("Accept", "application/json"), ("X-Trace", "t-1")];
    assert_eq!(request.headers, headers.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(body(&request), r#"{"reason":"old"}"#);
}

#[test]
fn lists_are_repeated_in_the_query_and_objects_have_no_form_there() {
    let http = json!({"method": "GET", "path": "/a"});
    let request = render(&http, json!({"tag": ["a", 1, true], "none": []})).unwrap();
    assert_eq!(request.url.query(), Some("tag=a&tag=1&tag=true"));
    for bad in [json!({"tag": {"a": 1}}), json!({"tag": [["a"]]}), json!({"tag": [null]})] {
        assert!(matches!(render(&http, bad), Err(RenderError::Shape { place: "query", .. })));
    }
}

#[test]
fn forms_nest_in_brackets_that_only_the_definition_may_write() {
    let parameters = json!({"expand": {"in": "body", "name": "expand[]"}});
    let http = json!({"method": "POST", "path": "/a", "body": "form", "parameters": parameters});
    let given = json!({"a": {"b": "c d", "e": [1, {"f": true}]}, "n": null, "expand": "x"});
    let request = render(&http, given).unwrap();
    let decoded: Vec<_> = url::form_urlencoded::parse(&request.body.as_ref().unwrap().bytes).into_owned().collect();
    let expected = [("a[b]", "c d"), ("a[e][0]", "1"), ("a[e][1][f]", "true"), ("expand[]", "x")];
    assert_eq!(decoded, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(request.body.unwrap().content_type, "application/x-www-form-urlencoded");
    for bad in [json!({"a[b]": 1}), json!({"a": {"b][c": 1}}), json!({"a": [{"[": 1}]})] {
        assert!(matches!(render(&http, bad), Err(RenderError::Brackets { .. })));
    }
}

#[test]
fn large_integers_keep_their_digits() {
    let request = render(&json!({"method": "POST", "path": "/a"}), json!({"n": u64::MAX})).unwrap();
    assert_eq!(body(&request), r#"{"n":18446744073709551615}"#);
}

#[test]
fn a_post_without_parameters_sends_an_empty_object() {
    let request = render(&json!({"method": "POST", "path": "/a/"}), json!({})).unwrap();
    assert_eq!((body(&request), request.url.path()), ("{}", "/v1/a/"));
}

#[test]
fn a_value_cannot_leave_its_segment() {
    let http = json!({"method": "GET", "path": "/charges/{id}/lines"});
    let bad = [
        "",
        ".",
        "..",
        " .. ",
        "../admin",
        "a/b",
        "/",
        "\\",
        "a\\..\\b",
        "%2e%2e",
        "%2E.",
        "%252e%252e",
        "%25252e%25252e",
        "a%2fb",
        "a%2Fb",
        "a%5cb",
        "a%252fb",
        "..;",
        "..;x=y",
        ".%3B",
        "%00",
        "a\0",
        "a\r\nHost: b",
        "a\nb",
        "\t",
        "%0d%0a",
        "%c0%ae%c0%ae",
        "%c0%af",
        "\u{85}",
        ";",
        ";x",
        " ",
    ];
    for text in bad {
        let error = render(&http, json!({"id": text})).unwrap_err();
        assert_eq!(error, RenderError::Segment { parameter: "id".to_owned() }, "{text:?}");
    }
    let good = [
        ("ch_1", "ch_1"),
        ("a b", "a%20b"),
        ("a?b#c", "a%3Fb%23c"),
        ("a;b", "a%3Bb"),
        ("...", "..."),
        (".hidden", ".hidden"),
        ("50%", "50%25"),
        ("@evil.com", "%40evil.com"),
        ("über:1", "%C3%BCber%3A1"),
    ];
    for (text, encoded) in good {
        let request = render(&http, json!({"id": text})).unwrap();
        assert_eq!(request.url.as_str(), format!("https://api.example.com/v1/charges/{encoded}/lines"));
    }
}

#[test]
fn pieces_of_a_segment_cannot_make_dots_together() {
    let http = json!({"method": "GET", "path": "/a/.{x}/{y}{z}"});
    assert!(matches!(render(&http, json!({"x": ".", "y": "a", "z": "b"})), Err(RenderError::Segment { .. })));
    assert!(matches!(render(&http, json!({"x": "x", "y": ".", "z": "."})), Err(RenderError::Segment { .. })));
    assert!(matches!(render(&http, json!({"x": "x", "y": "%2", "z": "f"})), Err(RenderError::Segment { .. })));
    assert!(render(&http, json!({"x": "x", "y": "a", "z": "."})).is_ok());
}

#[test]
fn a_parameter_of_the_path_must_be_there_and_simple() {
    let http = json!({"method": "GET", "path": "/a/{id}", "parameters": {"number": {"in": "path", "name": "id"}}});
    assert_eq!(render(&http, json!({})), Err(RenderError::Missing { parameter: "id".to_owned() }));
    assert_eq!(render(&http, json!({"number": null})), Err(RenderError::Missing { parameter: "id".to_owned() }));
    for bad in [json!(["a"]), json!({"a": "b"})] {
        assert!(matches!(render(&http, json!({"number": bad})), Err(RenderError::Shape { place: "path", .. })));
    }
}

#[test]
fn a_header_takes_one_line_of_ascii() {
    let http = json!({"method": "GET", "path": "/a", "parameters": {"trace": {"in": "header", "name": "X-Trace"}}});
    for bad in ["a\r\nX-Admin: 1", "a\nb", "a\rb", "a\0b", "a\u{7f}", "ä", "\u{2028}", "\t"] {
        let error = render(&http, json!({"trace": bad})).unwrap_err();
        assert!(matches!(error, RenderError::HeaderValue { .. }), "{bad:?}");
    }
    assert!(matches!(render(&http, json!({"trace": ["a"]})), Err(RenderError::Shape { place: "header", .. })));
    assert_eq!(render(&http, json!({"trace": null})).unwrap().headers, []);
    assert_eq!(render(&http, json!({"trace": 5})).unwrap().headers, [("X-Trace".to_owned(), "5".to_owned())]);
}

#[test]
fn two_parameters_cannot_go_by_one_name() {
    let http = json!({"method": "GET", "path": "/a", "parameters": {"count": {"in": "query", "name": "limit"}}});
    assert!(matches!(render(&http, json!({"count": 1, "limit": 1000})), Err(RenderError::Reserved { .. })));
    let http = json!({"method": "GET", "path": "/a/{id}", "parameters": {"n": {"in": "path", "name": "id"}}});
    assert!(matches!(render(&http, json!({"n": 1, "id": 2})), Err(RenderError::Reserved { .. })));
}

#[test]
fn what_has_no_place_is_refused_rather_than_dropped() {
    let http = json!({"method": "GET", "path": "/a/{id}", "default_in": "path"});
    let error = render(&http, json!({"id": 1, "other": 2})).unwrap_err();
    assert_eq!(error, RenderError::NoPlace { parameter: "other".to_owned() });
    assert_eq!(error.parameter(), Some("other"));
}

#[test]
fn an_address_has_a_limit() {
    let error = render(&json!({"method": "GET", "path": "/a"}), json!({"q": "x".repeat(9000)})).unwrap_err();
    assert_eq!(error, RenderError::TooLong);
}

#[test]
fn a_mapping_made_of_a_name_cannot_climb() {
    for name in [".", ".."] {
        let mapping = HttpMapping::new(HttpMethod::Post, PathTemplate::of_segment(name));
        assert_eq!(mapping.render(&base(), &Map::new()), Err(RenderError::Strayed));
    }
}

#[test]
fn a_parameter_under_the_name_that_another_is_mapped_to_is_refused() {
    let body = json!({"method": "POST", "path": "/", "parameters": {"amount": {"in": "body", "name": "amt"}}});
    let query = json!({"method": "GET", "path": "/", "parameters": {"amount": {"in": "query", "name": "amt"}}});
    let path = json!({"method": "GET", "path": "/{amt}", "parameters": {"amount": {"in": "path", "name": "amt"}}});
    for http in [&body, &query, &path] {
        for parameters in [json!({"amt": 99_999}), json!({"amount": 1, "amt": 99_999})] {
            let error = render(http, parameters).unwrap_err();
            assert_eq!(error, RenderError::Reserved { parameter: "amt".to_owned() });
            assert_eq!(error.parameter(), Some("amt"));
        }
        assert!(render(http, json!({"amount": 1})).is_ok());
    }
    // Mapped elsewhere itself, it does not stand in the other's place.
    let swapped = json!({"method": "POST", "path": "/", "parameters": {
        "amount": {"in": "body", "name": "amt"}, "amt": {"in": "body", "name": "amount"}
    }});
    assert_eq!(body_of(&swapped, json!({"amt": 1, "amount": 2})), r#"{"amount":1,"amt":2}"#);
    let elsewhere = json!({"method": "POST", "path": "/", "parameters": {"amount": {"in": "query", "name": "amt"}}});
    assert_eq!(body_of(&elsewhere, json!({"amt": 1})), r#"{"amt":1}"#);
}

fn body_of(http: &Value, parameters: Value) -> String {
    body(&render(http, parameters).unwrap()).to_owned()
}

#[test]
fn a_list_that_is_sent_as_one_text_keeps_its_items_apart() {
    let http = json!({"method": "GET", "path": "/{ids}", "parameters": {
        "ids": {"in": "path", "divider": ","}, "tags": {"in": "query", "name": "t", "divider": "|"},
        "X-List": {"in": "header", "divider": " "}
    }});
    assert_eq!(mapping(&http).to_json(), http, "the normal form keeps the dividers");
    let request = render(&http, json!({"ids": [1, 2], "tags": ["a", true], "X-List": ["p", "q"]})).unwrap();
    assert_eq!(request.url.as_str(), "https://api.example.com/v1/1%2C2?t=a%7Ctrue");
    assert_eq!(request.headers, [("X-List".to_owned(), "p q".to_owned())]);
    assert_eq!(render(&http, json!({"ids": 1, "tags": []})).unwrap().url.as_str(), "https://api.example.com/v1/1");
    for (parameters, parameter) in [
        (json!({"ids": ["1,2"]}), "ids"),
        (json!({"ids": "1,2"}), "ids"),
        (json!({"ids": [1], "tags": ["a|b"]}), "tags"),
        (json!({"ids": [1], "X-List": ["a b"]}), "X-List"),
        (json!({"ids": [[1]]}), "ids"),
        (json!({"ids": []}), "ids"),
    ] {
        assert_eq!(render(&http, parameters.clone()).unwrap_err().parameter(), Some(parameter), "{parameters}");
    }
    let body = json!({"method": "POST", "path": "/", "parameters": {"a": {"in": "body", "divider": ","}}});
    assert!(HttpMapping::from_json(&body, "http").unwrap_err().to_string().contains("a body has lists"));
    let odd = json!({"method": "GET", "path": "/", "parameters": {"a": {"in": "query", "divider": ";"}}});
    assert!(HttpMapping::from_json(&odd, "http").is_err());
}
