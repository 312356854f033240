//! What a mapping may say, and what it may not.

use super::*;

fn refusal(http: &Value) -> String {
    HttpMapping::from_json(http, "http").unwrap_err().to_string()
}

#[test]
fn headers_that_frame_route_or_authenticate_cannot_be_set() {
    let names = [
        "Host",
        "content-length",
        "Transfer-Encoding",
        "Connection",
        "Authorization",
        "Cookie",
        "Proxy-Authorization",
        "TE",
        "Upgrade",
        "Expect",
        "X-Forwarded-For",
        "x_forwarded_host",
        "Content_Length",
        "Forwarded",
        "Accept-Encoding",
        "Range",
        "X-HTTP-Method-Override",
        "X-Original-URL",
        "Trailer",
        "Keep-Alive",
        "Sec-Fetch-Site",
        "Set-Cookie",
    ];
    for name in names {
        let by_parameter = json!({"method": "GET", "path": "/", "parameters": {"p": {"in": "header", "name": name}}});
        assert!(refusal(&by_parameter).contains("is a header that tools cannot set"), "{name}");
        let fixed = json!({"method": "GET", "path": "/", "headers": {name: "x"}});
        assert!(refusal(&fixed).contains("is a header that tools cannot set"), "{name}");
    }
    for name in ["", "a b", "a:b", "a\r\nb", "ä"] {
        assert!(
            refusal(&json!({"method": "GET", "path": "/", "headers": {name: "x"}})).contains("is not a header name")
        );
    }
    for value in ["a\r\nb", "a\nb", "\0"] {
        assert!(refusal(&json!({"method": "GET", "path": "/", "headers": {"X-A": value}})).contains("printable ASCII"));
    }
}

#[test]
fn a_content_type_says_how_the_body_is_written() {
    let http = |value: &str| json!({"method": "POST", "path": "/", "headers": {"content-type": value}});
    assert_eq!(mapping(&http("application/x-www-form-urlencoded")).body, BodyFormat::Form);
    let json_body = mapping(&http("application/json; charset=utf-8"));
    assert_eq!((json_body.body, json_body.headers.len()), (BodyFormat::Json, 0));
    assert!(refusal(&http("text/xml")).starts_with("`http.headers.content-type` must be application/json"));
    let both = json!({"method": "POST", "path": "/", "body": "form", "headers": {"Content-Type": "application/json"}});
    assert!(refusal(&both).contains("a Content-Type that conflicts"));
}

#[test]
fn templates_say_one_thing_only() {
    let cases = [
        ("a", "must begin with /"),
        ("", "must begin with /"),
        ("/a//b", "consecutive slashes"),
        ("/../a", ". and .."),
        ("/a/.", ". and .."),
        ("/a?b=c", "query"),
        ("/a#b", "fragment"),
        ("/a%2fb", "percent-encoded"),
        ("/a\\b", "must not contain"),
        ("/a b", "must not contain"),
        ("/{a", "without a }"),
        ("/a}", "must not contain"),
        ("/{a/b}", "without a }"),
        ("/{}", "must not be empty"),
        ("/{a b}", "has a placeholder that"),
    ];
    for (path, expected) in cases {
        let error = refusal(&json!({"method": "GET", "path": path}));
        assert!(error.starts_with("`http.path` ") && error.contains(expected), "{path}: {error}");
    }
    for path in ["/", "/a", "/a/", "/a/{b}/{c}.json", "/a:{b}", "/a;v=1/ü"] {
        assert_eq!(PathTemplate::parse(path).unwrap().to_string(), path);
    }
}

#[test]
fn places_must_fit_method_template_and_each_other() {
    let cases = [
        (
            json!({"method": "GET", "path": "/", "parameters": {"a": "body"}}),
            "is placed in the body, but GET has no body",
        ),
        (json!({"method": "HEAD", "path": "/", "default_in": "body"}), "is body, but HEAD has no body"),
        (json!({"method": "GET", "path": "/", "default_in": "header"}), "must be one of body, path, query"),
        (json!({"method": "GET", "path": "/", "parameters": {"a": "path"}}), "which has no {a}"),
        (json!({"method": "GET", "path": "/{a}", "parameters": {"a": "query"}}), "has another place"),
        (
            json!({"method": "GET", "path": "/", "parameters": {"a": {"in": "query", "name": "x"}, "x": "query"}}),
            "the same query name",
        ),
        (
            json!({"method": "GET", "path": "/", "headers": {"x-a": "1"}, "parameters": {"X_A": "header"}}),
            "a header that `headers` sets",
        ),
        (
            json!({"method": "GET", "path": "/", "parameters": {"a": "cookie"}}),
            "must be one of body, header, path, query",
        ),
        (json!({"method": "TRACE", "path": "/"}), "must be one of DELETE, GET"),
        (json!({"path": "/"}), "`http.method` is missing"),
        (json!({"method": "GET"}), "`http.path` is missing"),
        (json!({"method": "GET", "path": "/", "body": "xml"}), "must be one of form, json"),
    ];
    for (http, expected) in cases {
        let error = refusal(&http);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn successes_are_codes_classes_and_ranges() {
    let http = |success: Value| json!({"method": "GET", "path": "/", "success": success});
    let accepts = |success: Value, status: u16| mapping(&http(success)).is_success(status);
    assert!(mapping(&json!({"method": "GET", "path": "/"})).is_success(204));
    assert!(!mapping(&json!({"method": "GET", "path": "/"})).is_success(302));
    assert!(accepts(json!([200, 404]), 404) && !accepts(json!([200, 404]), 201));
    assert!(accepts(json!("2xx"), 299) && !accepts(json!("2xx"), 300));
    assert!(accepts(json!(["200-202", "4xx"]), 201) && accepts(json!(["200-202", "4xx"]), 410));
    for bad in [json!([]), json!([99]), json!("7xx"), json!("204-200"), json!([600]), json!(null_list()), json!("ok")] {
        assert!(refusal(&http(bad)).contains("must list status codes"));
    }
}

fn null_list() -> Vec<Value> {
    vec![Value::Null]
}
