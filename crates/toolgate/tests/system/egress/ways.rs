//! The way to a service is straight: no redirect is followed, no proxy asked, and both the credential and the grant
//! must allow the host.

use serde_json::{Value, json};
use toolgate_testkit::upstream::{Reply, Upstream};

use crate::tool_user::{ToolUser, bearer, bearer_with, failure};
use crate::world::{World, setup};

#[test]
fn no_redirect_is_followed() {
    let world = World::sqlite();
    let other = Upstream::start(|_| Reply::json(200, json!({"reached": true})));
    let away = other.url();
    let upstream = Upstream::start(move |request| {
        let asked = request.json();
        let to = asked["to"].as_str().unwrap_or(&away);
        let body = Reply::json(u16::try_from(asked["status"].as_u64().unwrap()).unwrap(), json!({"moved": true}));
        body.header("Location", to).header("Refresh", &format!("0; url={to}"))
    });
    let user = ToolUser::of(&world, bearer(&upstream));
    let mut calls = 0;
    for status in [300, 301, 302, 303, 305, 307, 308] {
        for to in [Value::Null, json!("/any"), json!("//169.254.169.254/"), json!("file:///etc/passwd")] {
            let reply = user.calls("any", json!({"status": status, "to": to}));
            let error = failure(&reply, 502, "SERVICE_ERROR");
            assert_eq!(error["http_status"], status);
            assert_eq!(reply.json()["result"], json!({"moved": true}));
            calls += 1;
        }
    }
    assert_eq!((upstream.count(), other.connections()), (calls, 0));
}

#[test]
fn proxies_of_the_environment_are_not_asked() {
    let proxy = Upstream::start(|_| Reply::json(200, json!({"proxied": true})));
    let mut setup = setup().reaching_loopback();
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        setup = setup.environment(name, proxy.url());
    }
    let world = World::of(&setup.environment("NO_PROXY", "").environment("REQUEST_METHOD", ""), None);
    let upstream = Upstream::start(|_| Reply::json(200, json!({"proxied": false})));
    let user = ToolUser::of(&world, bearer(&upstream));
    assert_eq!(user.calls("any", json!({})).ok()["result"], json!({"proxied": false}));
    let token = json!({"token_url": format!("{}/token", upstream.url()), "base_url": upstream.url()});
    let material = json!({"client_id": "c", "client_secret": "the-secret"});
    let credential = json!({"auth_type": "oauth2_client_credentials", "material": material, "metadata": token});
    failure(&ToolUser::of(&world, credential).calls("any", json!({})), 502, "PROXY_ERROR");
    assert_eq!((upstream.count(), proxy.connections()), (2, 0));
}

#[test]
fn credential_and_grant_must_both_allow_the_host() {
    let world = World::sqlite();
    let upstream = Upstream::start(|_| Reply::json(200, json!({})));
    let here = json!(["127.0.0.1", "api.example.com"]);
    let elsewhere = json!(["api.example.com", "127.0.0.2", "::1"]);
    let call = |own: &Value, granted: &Value| {
        let metadata = if own.is_null() { json!({}) } else { json!({"allowed_hosts": own}) };
        let limits = if granted.is_null() { json!({}) } else { json!({"constraints": {"allowed_hosts": granted}}) };
        ToolUser::limited(&world, bearer_with(&upstream, metadata), limits).calls("any", json!({}))
    };
    for (own, granted) in [(&here, &here), (&here, &Value::Null), (&Value::Null, &here)] {
        call(own, granted).ok();
    }
    for (own, granted) in [(&here, &elsewhere), (&Value::Null, &elsewhere), (&elsewhere, &elsewhere)] {
        call(own, granted).refused(403, "GRANT_HOST_DENIED");
    }
    for granted in [&here, &Value::Null] {
        let reply = call(&elsewhere, granted);
        assert_eq!(reply.error()["code"], "TOOL_NOT_EXECUTABLE");
    }
    call(&here, &json!([])).refused(403, "GRANT_HOST_DENIED");
    assert_eq!(upstream.count(), 3);
}
