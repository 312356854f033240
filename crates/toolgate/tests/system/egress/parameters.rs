//! What an agent writes into parameters stays data: it replaces no credential, adds no header, leaves no path.

use serde_json::{Value, json};
use toolgate_testkit::upstream::{Reply, Upstream};

use crate::tool_user::TOKEN;
use crate::world::{World, id, merged};

#[test]
fn no_parameter_stands_where_the_credential_is_put() {
    let world = World::sqlite();
    let upstream = Upstream::start(|_| Reply::json(200, json!({})));
    let in_query = user(&world, &upstream, "query", json!({"location": "query", "query_param": "api_key"}));
    for name in
        ["api_key", "API_KEY", "Api_Key", "api_key[]", "api_key[0]", "api.key", "api key", " api_key", "api_key\0"]
    {
        in_query("search", json!({name: "mine"})).refused(400, "PARAMETERS_INVALID");
    }
    in_query("search", json!({"api_key": ["a", "b"]})).refused(400, "PARAMETERS_INVALID");
    for (name, text) in [("q", "x&api_key=mine"), ("q", "x#&api_key=mine"), ("key", "mine"), ("q&api_key", "mine")] {
        in_query("search", json!({name: text})).ok();
        let received = upstream.received().pop().unwrap();
        let keys: Vec<String> =
            received.query().into_iter().filter(|(name, _)| name == "api_key").map(|(_, v)| v).collect();
        assert_eq!(keys, [TOKEN], "{}", received.target);
    }
    let sent = upstream.count();

    let in_header = user(&world, &upstream, "header", json!({"header_name": "X-Api-Key"}));
    for tool in ["same-header", "same-header-otherwise"] {
        in_header(tool, json!({"key": "mine"})).refused(400, "PARAMETERS_INVALID");
    }
    assert_eq!(upstream.count(), sent);
    for parameters in [
        json!({"X-Api-Key": "mine"}),
        json!({"Authorization": "mine", "Host": "evil.example", "headers": "X-Api-Key: mine"}),
    ] {
        in_header("search", parameters).ok();
        let received = upstream.received().pop().unwrap();
        let keys: Vec<&String> =
            received.headers.iter().filter(|(name, _)| name == "x-api-key").map(|(_, v)| v).collect();
        assert_eq!(keys, [TOKEN]);
        assert_eq!(received.header("authorization"), None);
        assert_eq!(received.header("host"), Some(upstream.address().to_string().as_str()));
    }
}

#[test]
fn no_parameter_adds_a_line_to_a_request() {
    let world = World::sqlite();
    let upstream = Upstream::start(|_| Reply::json(200, json!({})));
    let call = user(&world, &upstream, "lines", json!({}));
    let texts = [
        "a\r\nX-Evil: 1",
        "a\nX-Evil: 1",
        "a\rX-Evil: 1",
        "a\r\n\r\nGET /evil HTTP/1.1\r\n\r\n",
        "a\0b",
        "a\u{85}b",
        "é",
        "\u{560d}\u{560a}X-Evil: 1",
    ];
    for text in texts {
        call("header", json!({"note": text})).refused(400, "PARAMETERS_INVALID");
    }
    assert_eq!(upstream.count(), 0);
    for (count, text) in texts.iter().enumerate() {
        call("search", json!({"q": text, *text: "name"})).ok();
        let received = upstream.received();
        assert_eq!((received.len(), received[count].header("x-evil")), (count + 1, None));
        assert!(
            received[count].query().contains(&("q".to_owned(), (*text).to_owned())),
            "{:?}",
            received[count].target
        );
    }
    call("header", json!({"note": "plain"})).ok();
    assert_eq!(upstream.received().pop().unwrap().header("x-note"), Some("plain"));
}

#[test]
fn no_parameter_leaves_its_segment_of_the_path() {
    let world = World::sqlite();
    let upstream = Upstream::start(|_| Reply::json(200, json!({})));
    let call = user(&world, &upstream, "paths", json!({}));
    for text in [
        "..",
        ".",
        "",
        " ",
        "../admin",
        "..\\admin",
        "a/b",
        "a/../b",
        "/etc",
        "\\",
        "%2e%2e",
        "%2E.",
        ".%2e",
        "%2f",
        "a%2Fb",
        "%5c",
        "%252e%252e",
        "%252f",
        "%25252f",
        "..%00",
        "..;",
        "..;x=1",
        "a\0",
        "a\r\nb",
        "%0d%0a",
        "%c0%ae%c0%ae",
        "%c0%af",
        "..%2f..%2f",
    ] {
        let error = call("read", json!({"id": text})).refused(400, "PARAMETERS_INVALID");
        assert_eq!(error["path"], "parameters.id", "{text:?}");
    }
    for value in [json!(null), json!(["a"]), json!({"a": 1})] {
        call("read", json!({"id": value})).refused(400, "PARAMETERS_INVALID");
    }
    assert_eq!(upstream.count(), 0);
    for (text, path) in [
        ("ch_1", "/v1/things/ch_1/parts"),
        ("a b?c#d", "/v1/things/a%20b%3Fc%23d/parts"),
        ("...", "/v1/things/.../parts"),
        ("user@host:80", "/v1/things/user%40host%3A80/parts"),
        ("é", "/v1/things/%C3%A9/parts"),
    ] {
        call("read", json!({"id": text})).ok();
        assert_eq!(upstream.received().pop().unwrap().target, path);
    }
}

/// A registered service whose tools put parameters everywhere, and a way to call it with a key placed so.
fn user(world: &World, upstream: &Upstream, service: &str, auth: Value) -> impl Fn(&str, Value) -> crate::world::Reply {
    let admin = world.admin();
    let header = |name: &str| json!({"in": "header", "name": name});
    let get = |path: &str, more: Value| json!({"http": merged(json!({"method": "GET", "path": path}), more)});
    let tools = json!({
        "search": get("/v1/search", json!({})),
        "header": get("/v1/search", json!({"parameters": {"note": header("X-Note")}})),
        "same-header": get("/v1/search", json!({"parameters": {"key": header("x-api-key")}})),
        "same-header-otherwise": get("/v1/search", json!({"parameters": {"key": header("X_API_KEY")}})),
        "read": get("/v1/things/{id}/parts", json!({})),
    });
    let names: Vec<String> = tools.as_object().unwrap().keys().cloned().collect();
    admin.post("/api/v1/services", &json!({"service": service, "version": "1", "tools": tools})).created();
    let body = json!({"service": service, "label": "l", "auth_type": "api_key", "material": {"api_key": TOKEN},
        "scopes_available": names, "metadata": {"base_url": upstream.url(), "auth": auth}});
    let credential = id(&admin.post(&format!("/api/v1/vaults/{}/credentials", admin.vault()), &body).created());
    let agent = admin.registers(&format!("agent-of-{service}"), &["tools.invoke"]);
    admin.grants(&credential, &agent.id, json!({"scopes": names}));
    let service = service.to_owned();
    move |tool, parameters| {
        agent.post("/api/v1/tools/invoke", &json!({"tool": format!("{service}.{tool}"), "parameters": parameters}))
    }
}
