//! Reading connections from metadata.

use serde_json::{Map, Value, json};

use super::*;
use crate::service::{BodyFormat, Place};

fn map(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("an object") };
    map
}

fn connection(metadata: Value) -> Connection {
    Connection::from_metadata(&map(metadata)).unwrap()
}

fn refusal(metadata: Value) -> String {
    Connection::from_metadata(&map(metadata)).unwrap_err().to_string()
}

fn tool(name: &str) -> ToolName {
    ToolName::parse(name).unwrap()
}

#[test]
fn metadata_that_says_nothing_gives_the_defaults() {
    let connection = connection(json!({"auth_type": "api_key", "team": "billing", "auth": {}, "base_url": null}));
    assert_eq!((connection.adapter, connection.base_url, connection.auth), (None, None, None));
    assert_eq!(connection.timeout, Duration::from_secs(30));
    assert!(connection.endpoints.is_empty() && connection.token.is_none() && connection.allowed_hosts.is_none());
}

#[test]
fn the_metadata_of_the_reference_is_understood() {
    let connection = connection(json!({
        "base_url": "https://api.example.com/",
        "endpoints": {
            "search": {
                "path": "/v1/search", "method": "get", "headers": {"X-Custom": "value"}, "param_mapping": "body"
            },
            "users.read": {"path": "/users/{id}", "method": "GET", "param_mapping": "path"},
            "notes.add": {"headers": {"Content-Type": "application/x-www-form-urlencoded"}, "param_mapping": "query"},
            "ping": {}
        },
        "auth": {"location": "header", "header_name": "X-API-Key", "header_prefix": "Bearer "},
        "timeout_ms": 500_000, "allowed_hosts": ["api.example.com"],
        "token_url": "https://login.example.com/token?tenant=1", "token_grant_type": "refresh_token",
        "token_scope": "a b", "adapter": "oauth2_token", "service_version": "2024-01"
    }));
    assert_eq!(connection.adapter, Some(AdapterName::OAuth2));
    assert_eq!(connection.base_url.as_ref().unwrap().to_string(), "https://api.example.com");
    assert_eq!(connection.timeout, Duration::from_secs(120));
    let header = AuthPlacement::Header { name: "X-API-Key".to_owned(), prefix: Some("Bearer".to_owned()) };
    assert_eq!(connection.auth, Some(header));
    assert!(connection.allowed_hosts.as_ref().unwrap().contains("eu.api.example.com"));
    let token = connection.token.as_ref().unwrap();
    assert_eq!((token.url.as_str(), token.scope.as_deref()), ("https://login.example.com/token?tenant=1", Some("a b")));
    assert_eq!(token.grant_type, Some(TokenGrantType::RefreshToken));
    let search = connection.endpoint(&tool("search"));
    assert_eq!((search.method, search.default_placement), (HttpMethod::Get, None));
    assert_eq!(search.headers["X-Custom"], "value");
    assert_eq!(connection.endpoint(&tool("users.read")).default_placement, Some(Place::Path));
    let notes = connection.endpoint(&tool("notes.add"));
    assert_eq!((notes.path.to_string().as_str(), notes.body), ("/notes.add", BodyFormat::Form));
    assert_eq!(notes.default_placement, Some(Place::Query));
    assert_eq!(connection.endpoint(&tool("ping")), connection.endpoint(&tool("ping")));
}

#[test]
fn a_tool_without_an_endpoint_is_posted_to_its_name() {
    let connection = connection(json!({"base_url": "http://127.0.0.1:9/v1"}));
    let endpoint = connection.endpoint(&tool("charges.create"));
    let request = endpoint.render(connection.base_url.as_ref().unwrap(), &map(json!({"amount": 1}))).unwrap();
    assert_eq!(request.method, HttpMethod::Post);
    assert_eq!(request.url.as_str(), "http://127.0.0.1:9/v1/charges.create");
    assert_eq!(request.body.unwrap().bytes, br#"{"amount":1}"#);
}

#[test]
fn every_endpoint_and_scope_is_a_tool_where_there_is_an_address() {
    let scopes: ScopeSet =
        ["charges.read", "charges.create"].map(|scope| Scope::parse(scope).unwrap()).into_iter().collect();
    let endpoints = json!({"charges.read": {"method": "GET"}, "refunds": {}});
    assert!(connection(json!({"endpoints": endpoints.clone()})).implicit_tools(&scopes).is_empty());
    let tools = connection(json!({"endpoints": endpoints, "base_url": "https://a.example"})).implicit_tools(&scopes);
    assert_eq!(tools.keys().map(ToolName::as_str).collect::<Vec<_>>(), ["charges.create", "charges.read", "refunds"]);
    for (name, definition) in &tools {
        assert_eq!((definition.scope.as_str(), &definition.parameters), (name.as_str(), &None));
        assert!(!definition.idempotent);
    }
    assert_eq!(tools[&tool("charges.read")].http.as_ref().unwrap().method, HttpMethod::Get);
}

#[test]
fn the_timeout_is_brought_within_its_bounds() {
    let timeout = |value: Value| connection(json!({"timeout_ms": value})).timeout.as_millis();
    assert_eq!(
        [timeout(json!(0)), timeout(json!(-5)), timeout(json!(1500)), timeout(json!(u64::MAX))],
        [1000, 1000, 1500, 120_000]
    );
    assert!(refusal(json!({"timeout_ms": "1s"})).starts_with("`metadata.timeout_ms` must be an integer"));
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_place() {
    let cases = [
        (json!({"adapter": "soap"}), "`metadata.adapter` must be one of rest, oauth2, webhook"),
        (json!({"base_url": 5}), "`metadata.base_url` must be a string"),
        (json!({"endpoints": []}), "`metadata.endpoints` must be an object"),
        (json!({"endpoints": {"a": {"url": "/x"}}}), "`metadata.endpoints.a.url` is unknown"),
        (
            json!({"endpoints": {"a": {"param_mapping": "header"}}}),
            "`metadata.endpoints.a.param_mapping` must be one of",
        ),
        (
            json!({"endpoints": {"a": {"headers": {"Cookie": "x"}}}}),
            "`metadata.endpoints.a.headers.Cookie` is a header",
        ),
        (json!({"endpoints": {"a b": {}}}), "`metadata.endpoints.a b` is not a valid tool name"),
        (
            json!({"endpoints": {"..": {"path": "/../x"}}}),
            "`metadata.endpoints....path` must not contain the segments . and ..",
        ),
        (json!({"auth": {"type": "bearer"}}), "`metadata.auth.type` is unknown"),
        (json!({"auth": {"location": "body"}}), "`metadata.auth.location` must be one of header, none, query"),
        (json!({"auth": {"header_name": "Host"}}), "`metadata.auth.header_name` is a header that cannot carry"),
        (json!({"auth": {"header_name": "a b"}}), "`metadata.auth.header_name` is not a header name"),
        (json!({"auth": {"header_prefix": "a\nb"}}), "`metadata.auth.header_prefix` must be printable"),
        (json!({"auth": {"location": "query", "query_param": ""}}), "`metadata.auth.query_param` must not be empty"),
        (json!({"allowed_hosts": "a"}), "`metadata.allowed_hosts` must be a list"),
        (json!({"allowed_hosts": ["a/b"]}), "`metadata.allowed_hosts` has an entry"),
        (json!({"token_url": "file:///etc/passwd"}), "`metadata.token_url` must begin with http"),
        (
            json!({"auth": {"location": "none", "header_name": "X-Key"}}),
            "`metadata.auth.header_name` must not be set where the location is none",
        ),
        (json!({"token_grant_type": "refresh_token"}), "`metadata.token_url` is missing"),
        (
            json!({"token_url": "https://a.example", "token_grant_type": "password"}),
            "`metadata.token_grant_type` must be",
        ),
        (json!({"ca_certificate": "hello"}), "`metadata.ca_certificate` must be PEM certificates"),
        (
            json!({"ca_certificate": "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----"}),
            "`metadata.ca_certificate` must not contain a private key",
        ),
        (json!({"service_version": "a b"}), "`metadata.service_version` must not contain"),
    ];
    for (metadata, expected) in cases {
        let error = refusal(metadata);
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_base_url_is_an_origin_and_a_path() {
    let normal = |text: &str| BaseUrl::parse(text).unwrap().to_string();
    assert_eq!(normal("HTTPS://API.Example.com:443"), "https://api.example.com");
    assert_eq!(normal("http://127.0.0.1:8080/v1/"), "http://127.0.0.1:8080/v1");
    assert_eq!(normal("http://[::1]:8080"), "http://[::1]:8080");
    assert_eq!(normal("https://a.example/x/../y"), "https://a.example/y");
    for text in ["https://a.example/", "https://a.example/v1//", "http://a.example:80/v1"] {
        let url = BaseUrl::parse(text).unwrap();
        assert_eq!(BaseUrl::parse(&url.to_string()), Ok(url));
    }
    let bad = [
        "",
        "a",
        "/v1",
        "a.example",
        "ftp://a.example",
        "file:///etc",
        "data:,a",
        "https://",
        "https:///path",
        "http:a.example",
        "https://user@a.example",
        "https://user:pw@a.example",
        "https://@a.example",
        "https://:@a.example",
        "https://a.example?x=1",
        "https://a.example/?",
        "https://a.example#f",
        "https://a.example#",
        "https://a.exa mple",
        "https://a.example\\@b.example",
        " https://a.example",
        "https://a.example\n",
        "https://a\t.example",
        "https://a.example:99999",
        "https://a.example//b/c",
        "javascript://a.example",
    ];
    for text in bad {
        assert!(BaseUrl::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_request_cannot_bring_its_own_credential() {
    let base = BaseUrl::parse("https://a.example").unwrap();
    let with_query = |name: &str| {
        let endpoint = HttpMapping::new(HttpMethod::Get, PathTemplate::parse("/a").unwrap());
        endpoint.render(&base, &map(json!({name: "x"}))).unwrap()
    };
    let query = AuthPlacement::Query { name: "api_key".to_owned() };
    for name in ["api_key", "API_KEY", "api_key[]", "api_key[0]", "api.key", " api_key", "api key"] {
        assert!(query.is_taken_in(&with_query(name)), "{name}");
    }
    for name in ["api_keys", "key", "xapi_key"] {
        assert!(!query.is_taken_in(&with_query(name)), "{name}");
    }
    let mut request = with_query("q");
    let header = AuthPlacement::Header { name: "X-API-Key".to_owned(), prefix: None };
    assert!(!header.is_taken_in(&request));
    request.headers.push(("x_api_key".to_owned(), "x".to_owned()));
    assert!(header.is_taken_in(&request));
}
