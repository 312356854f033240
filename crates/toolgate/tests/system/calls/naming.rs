//! How a call names its tool: with the service, by a bare scope that only one tool has, and in which version.

use serde_json::{Value, json};

use super::shop::{Shop, credential, payments};
use crate::world::{World, id, on_both_engines};

on_both_engines! {
    a_bare_scope_is_enough_where_one_tool_has_it,
    a_bare_scope_that_several_tools_have_is_refused_with_the_candidates,
    what_the_agent_may_not_use_makes_nothing_ambiguous,
    a_bare_service_is_refused,
    an_unknown_name_is_not_found,
    versions_of_a_service_coexist_and_a_call_can_name_one,
    a_credential_can_be_pinned_to_a_version,
}

fn a_bare_scope_is_enough_where_one_tool_has_it(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({}));
    for body in [json!({"tool": "charges.read"}), json!({"tool_name": "charges.read", "grant_id": grant["id"]})] {
        let mut body = body;
        body["parameters"] = json!({"charge_id": "ch_3"});
        let answer = shop.agent.invokes(body).ok();
        assert_eq!((&answer["tool_name"], &answer["result"]["id"]), (&json!("payments.charges.read"), &json!("ch_3")));
    }
    // Beyond its scopes the refusal says what there is.
    let error = shop.denied(&shop.call("refunds.create", json!({"charge": "ch_1"})), 403, "GRANT_SCOPE_INSUFFICIENT");
    assert_eq!(error["available_scopes"], json!(["anything", "charges.create", "charges.read"]));
}

fn a_bare_scope_that_several_tools_have_is_refused_with_the_candidates(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({"scopes": ["charges.read"]}));
    let other = json!({
        "service": "books", "version": "1",
        "tools": {
            "charges.read": {"http": {"method": "GET", "path": "/v1/charges/{charge_id}"}},
            "charges.list": {"scope": "charges.read", "http": {"method": "GET", "path": "/v1/charges"}},
        }
    });
    shop.admin.post("/api/v1/services", &other).created();
    let books = credential(&shop.admin, "books", json!({"base_url": shop.upstream.url()}));
    let on_books = shop.admin.grants(&books, "billing", json!({}));

    let error = shop.denied(&shop.call("charges.read", json!({"charge_id": "ch_1"})), 400, "TOOL_AMBIGUOUS");
    assert_eq!(error["candidates"], json!(["books.charges.read", "payments.charges.read"]));
    assert_eq!(shop.upstream.count(), 0);
    let body = json!({"tool": "charges.read", "grant_id": on_books["id"], "parameters": {"charge_id": "ch_1"}});
    assert_eq!(shop.agent.invokes(body).ok()["tool_name"], "books.charges.read", "the grant tells them apart");
    for tool in ["books.charges.read", "payments.charges.read"] {
        assert_eq!(shop.call(tool, json!({"charge_id": "ch_1"})).ok()["tool_name"], tool);
    }
    // One scope, two tools, and neither is called like the scope.
    let tools = json!({
        "a.read": {"scope": "charges.create", "http": {"method": "GET", "path": "/v1/charges"}},
        "b.read": {"scope": "charges.create", "http": {"method": "GET", "path": "/v1/charges"}},
    });
    shop.admin.post("/api/v1/services", &json!({"service": "twins", "version": "1", "tools": tools})).created();
    let twins = credential(&shop.admin, "twins", json!({}));
    shop.admin.grants(&twins, "billing", json!({"scopes": ["charges.create"]}));
    let error = shop.denied(&shop.call("charges.create", json!({})), 400, "TOOL_AMBIGUOUS");
    assert_eq!(error["candidates"], json!(["twins.a.read", "twins.b.read"]));
}

fn what_the_agent_may_not_use_makes_nothing_ambiguous(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({"scopes": ["charges.read"]}));
    let mut books = payments("1");
    books["service"] = json!("books");
    shop.admin.post("/api/v1/services", &books).created();
    let foreign = credential(&shop.admin, "books", json!({"base_url": shop.upstream.url()}));
    shop.admin.grants(&foreign, "other", json!({"scopes": ["charges.read"]}));
    shop.admin.grants(&foreign, "billing", json!({"scopes": ["charges.create"]}));
    // `books.charges.read` is there, and not for this agent.
    let answer = shop.call("charges.read", json!({"charge_id": "ch_1"})).ok();
    assert_eq!(answer["tool_name"], "payments.charges.read");
}

fn a_bare_service_is_refused(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({"scopes": ["charges.read"]}));
    for more in [json!({}), json!({"grant_id": grant["id"]})] {
        let mut body = more;
        body["tool"] = json!("payments");
        let error = shop.denied(&shop.agent.invokes(body), 404, "TOOL_NOT_FOUND");
        assert!(error["message"].as_str().unwrap().contains("is a service"), "{error}");
    }
    // Of a service that it holds nothing of, not even that is said.
    let stranger = world.agent("stranger", &["tools.invoke"]);
    let error = stranger.invokes(json!({"tool": "payments"})).refused(404, "TOOL_NOT_FOUND");
    assert!(!error["message"].as_str().unwrap().contains("is a service"), "{error}");
}

fn an_unknown_name_is_not_found(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    for tool in ["nothing", "other.charges.read", "payment.charges.read", "Payments.charges.read", ".", "a..b"] {
        shop.denied(&shop.call(tool, json!({})), 404, "TOOL_NOT_FOUND");
    }
    for tool in ["payments.nothing", "payments.Charges.read", "payments.charges.read.", "payments..charges.read"] {
        let error = shop.denied(&shop.call(tool, json!({})), 403, "GRANT_SCOPE_INSUFFICIENT");
        assert_eq!(error["requested_scope"], tool.strip_prefix("payments.").unwrap());
    }
    shop.denied(&shop.call("payments.", json!({})), 404, "TOOL_NOT_FOUND");
    assert_eq!(shop.upstream.count(), 0);
}

/// The same service, whose tool is somewhere else.
fn newer() -> Value {
    json!({
        "service": "payments", "version": "2025-06",
        "tools": {"charges.read": {"http": {"method": "GET", "path": "/v2/charges/{charge_id}"}}}
    })
}

fn versions_of_a_service_coexist_and_a_call_can_name_one(world: &World) {
    let shop = Shop::answering(world, |request| toolgate_testkit::upstream::Reply::text(200, request.path()));
    shop.grant(json!({}));
    shop.admin.post("/api/v1/services", &newer()).created();
    let path = |more: Value| shop.read(more).ok()["result"]["raw"].clone();
    assert_eq!(path(json!({})), "/v2/charges/ch_7", "the one registered last");
    assert_eq!(path(json!({"version": "2024-01"})), "/v1/charges/ch_7");
    assert_eq!(path(json!({"version": "2025-06"})), "/v2/charges/ch_7");
    let version = shop.admin.get("/api/v1/invocations?limit=1").ok()["invocations"][0]["version"].clone();
    assert_eq!(version, "2025-06");
    let error = shop.denied(&shop.read(json!({"version": "1999"})), 404, "TOOL_NOT_FOUND");
    assert!(error["message"].as_str().unwrap().contains("1999"), "{error}");
    // What only the older one has is not found in the newer one, and the credential does not make up for it.
    let create = json!({
        "tool": "payments.charges.create", "version": "2025-06", "parameters": {"amount": 1, "currency": "usd"},
    });
    shop.denied(&shop.agent.invokes(create), 404, "TOOL_NOT_FOUND");
}

fn a_credential_can_be_pinned_to_a_version(world: &World) {
    let shop = Shop::answering(world, |request| toolgate_testkit::upstream::Reply::text(200, request.path()));
    shop.admin.post("/api/v1/services", &newer()).created();
    let metadata = json!({"base_url": shop.upstream.url(), "service_version": "2024-01"});
    let pinned = credential(&shop.admin, "payments", metadata);
    let old = shop.admin.grants(&pinned, "billing", json!({}));
    let new = shop.grant(json!({}));
    let path = |more: Value| shop.read(more).ok()["result"]["raw"].clone();
    assert_eq!(path(json!({"grant_id": id(&old)})), "/v1/charges/ch_7");
    assert_eq!(path(json!({"grant_id": id(&new)})), "/v2/charges/ch_7");
    assert_eq!(path(json!({"grant_id": id(&old), "version": "2025-06"})), "/v2/charges/ch_7", "the call decides");
}
