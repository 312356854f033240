//! Tools that lack something to be called: a clear refusal before anything is tried, never a made-up success.

use serde_json::{Value, json};

use super::shop::{Shop, credential};
use crate::world::{World, id, on_both_engines};

on_both_engines! {
    a_tool_without_an_address_cannot_be_called,
    a_scope_that_nothing_defines_cannot_be_called,
    a_credential_that_no_adapter_serves_cannot_be_used,
    a_credential_without_material_cannot_be_used,
    a_credential_that_lacks_its_field_is_refused_and_nothing_is_sent,
    a_host_that_the_credential_does_not_allow_is_not_called,
}

fn a_tool_without_an_address_cannot_be_called(world: &World) {
    let shop = Shop::open(world);
    let nowhere = credential(&shop.admin, "payments", json!({"environment": "test"}));
    let grant = shop.admin.grants(&nowhere, "billing", json!({}));
    let error = shop.denied(&shop.read(json!({})), 409, "TOOL_NOT_EXECUTABLE");
    assert_eq!((&error["grant_id"], &error["stage"]), (&grant["id"], &json!("constrain")));
    assert!(error["message"].as_str().unwrap().contains("base_url"), "{error}");
    // The definition can say where the service is.
    let mut definition = super::shop::payments("2025");
    definition["base_url"] = json!(shop.upstream.url());
    shop.admin.post("/api/v1/services", &definition).created();
    shop.read(json!({})).ok();
}

fn a_scope_that_nothing_defines_cannot_be_called(world: &World) {
    let shop = Shop::open(world);
    let unheard_of = credential(&shop.admin, "unheard-of", json!({}));
    let grant = shop.admin.grants(&unheard_of, "billing", json!({}));
    let error = shop.denied(&shop.call("unheard-of.charges.read", json!({})), 409, "TOOL_NOT_EXECUTABLE");
    assert_eq!(error["grant_id"], grant["id"]);
    assert!(error["message"].as_str().unwrap().contains("register its service"), "{error}");
    let error = shop.denied(&shop.call("unheard-of.charges.create", json!({})), 403, "GRANT_SCOPE_INSUFFICIENT");
    assert_eq!(error["available_scopes"], json!(["charges.read"]));
}

fn of_kind(shop: &Shop, auth_type: &str, material: Value, metadata: Value) -> Value {
    let mut metadata = metadata;
    metadata["base_url"] = json!(shop.upstream.url());
    let body = json!({
        "service": "payments", "label": "l", "auth_type": auth_type, "scopes_available": ["charges.read"],
        "metadata": metadata, "material": material,
    });
    let path = format!("/api/v1/vaults/{}/credentials", shop.admin.vault());
    let credential = id(&shop.admin.post(&path, &body).created());
    shop.admin.grants(&credential, "billing", json!({}))
}

fn a_credential_that_no_adapter_serves_cannot_be_used(world: &World) {
    let shop = Shop::open(world);
    for (auth_type, material) in [
        ("connection_string", json!({"connection_string": "postgres://host/db"})),
        ("custom", json!({"token": "t0ken-of-a-custom-kind"})),
    ] {
        let grant = of_kind(&shop, auth_type, material.clone(), json!({}));
        let error = shop.denied(&shop.read(json!({"grant_id": grant["id"]})), 409, "TOOL_NOT_EXECUTABLE");
        assert!(error["message"].as_str().unwrap().contains("metadata.adapter"), "{error}");
    }
    assert_eq!(shop.upstream.count(), 0);
    let named = of_kind(&shop, "custom", json!({"token": "Bearer t0ken-of-a-custom-kind"}), json!({"adapter": "rest"}));
    shop.read(json!({"grant_id": named["id"]})).ok();
    assert_eq!(shop.upstream.received()[0].bearer(), Some("t0ken-of-a-custom-kind"));
}

fn a_credential_without_material_cannot_be_used(world: &World) {
    let shop = Shop::open(world);
    let grant = of_kind(&shop, "bearer_token", Value::Null, json!({}));
    let error = shop.denied(&shop.read(json!({"grant_id": grant["id"]})), 409, "TOOL_NOT_EXECUTABLE");
    assert!(error["message"].as_str().unwrap().contains("no material"), "{error}");
    let path = format!("/api/v1/credentials/{}/rotate", grant["credential_id"].as_str().unwrap());
    shop.admin.patch(&path, &json!({"material": {"token": "t0ken-that-came-later"}})).ok();
    shop.read(json!({"grant_id": grant["id"]})).ok();
    assert_eq!(shop.upstream.received()[0].bearer(), Some("t0ken-that-came-later"));
}

fn a_credential_that_lacks_its_field_is_refused_and_nothing_is_sent(world: &World) {
    let shop = Shop::open(world);
    let grant = of_kind(&shop, "basic_auth", json!({"username": "u", "password": "pa55word"}), json!({}));
    shop.read(json!({"grant_id": grant["id"]})).expect(502);
    assert_eq!(shop.upstream.received()[0].header("authorization"), Some("Basic dTpwYTU1d29yZA=="));
    let named = json!({"adapter": "rest"});
    let wrong = of_kind(&shop, "custom", json!({"thing": "s0mething"}), named);
    let body = shop.failed(&shop.read(json!({"grant_id": wrong["id"]})), 409, "TOOL_NOT_EXECUTABLE");
    assert!(body["message"].as_str().unwrap().contains("the credential has no"), "{body}");
    assert_eq!(shop.upstream.count(), 1);
}

fn a_host_that_the_credential_does_not_allow_is_not_called(world: &World) {
    let shop = Shop::open(world);
    let material = json!({"token": "t0ken-for-one-host"});
    let grant = of_kind(&shop, "bearer_token", material.clone(), json!({"allowed_hosts": ["api.example.com"]}));
    let error = shop.denied(&shop.read(json!({"grant_id": grant["id"]})), 409, "TOOL_NOT_EXECUTABLE");
    assert!(error["message"].as_str().unwrap().contains("does not allow the host"), "{error}");
    let allowed = of_kind(&shop, "bearer_token", material, json!({"allowed_hosts": ["127.0.0.1"]}));
    shop.read(json!({"grant_id": allowed["id"]})).ok();
    assert_eq!(shop.upstream.count(), 1);
}
