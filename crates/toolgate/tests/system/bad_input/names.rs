//! Names and texts that are too long, invisible, misleading or no names at all, and ids that try to climb.

use serde_json::json;

use crate::world::{World, merged, on_both_engines, stripe};

on_both_engines! {
    names_have_a_length,
    texts_for_people_are_printable_and_honest,
    ids_are_plain_and_compared_exactly,
    ids_in_paths_lead_nowhere_else,
}

fn names_have_a_length(world: &World) {
    let admin = world.admin();
    let nested = format!("/api/v1/vaults/{}/credentials", admin.vault());
    let long = |length: usize| "n".repeat(length);
    for (limit, path, field, body) in [
        (256, "/api/v1/vaults", "name", json!({"name": ""})),
        (128, "/api/v1/vaults", "owner_id", json!({"name": "a", "owner_id": ""})),
        (256, &nested, "label", stripe()),
        (128, &nested, "service", stripe()),
        (128, "/api/v1/agents", "id", json!({"id": ""})),
        (256, "/api/v1/agents", "name", json!({"id": "named", "name": ""})),
        (128, "/api/v1/tenants", "id", json!({"id": ""})),
        (256, "/api/v1/tenants", "name", json!({"id": "named", "name": ""})),
        (256, "/api/v1/agents/admin/keys", "label", json!({"label": ""})),
    ] {
        let with = |text: String| merged(body.clone(), json!({field: text}));
        let error = admin.post(path, &with(long(limit + 1))).refused(400, "INVALID_FIELD");
        assert_eq!(error["path"], field);
        assert!(error["message"].as_str().unwrap().contains(&limit.to_string()), "{error}");
        admin.post(path, &with(long(limit))).created();
        admin.post(path, &with(String::new())).refused(400, "INVALID_FIELD");
    }
    let scopes: Vec<String> = (0..1025).map(|number| format!("scope.{number}")).collect();
    let error =
        admin.post(&nested, &merged(stripe(), json!({"scopes_available": scopes}))).refused(400, "INVALID_FIELD");
    assert_eq!(error["path"], "scopes_available");
    let error =
        admin.post(&nested, &merged(stripe(), json!({"scopes_available": [long(129)]}))).refused(400, "INVALID_FIELD");
    assert_eq!(error["path"], "scopes_available[0]");
    let grant = admin.grants(&admin.credential(), "a", json!({}));
    let path = format!("/api/v1/grants/{}", grant["id"].as_str().unwrap());
    let error = admin.patch(&format!("{path}/suspend"), &json!({"reason": long(257)})).refused(400, "INVALID_FIELD");
    assert_eq!(error["path"], "reason");
    admin.patch(&format!("{path}/suspend"), &json!({"reason": long(256)})).ok();
}

fn texts_for_people_are_printable_and_honest(world: &World) {
    let admin = world.admin();
    for tricky in [
        "a\u{0}b",
        "a\nb",
        "a\tb",
        "\u{1b}[31mred",
        "\u{7f}",
        "right\u{202e}left",
        "zero\u{200b}width",
        "\u{feff}marked",
        "line\u{2028}break",
        "\u{2066}isolated\u{2069}",
        "tag\u{e0041}ged",
        "\u{85}",
    ] {
        let error = admin.post("/api/v1/vaults", &json!({"name": tricky})).refused(400, "INVALID_FIELD");
        assert_eq!(error["path"], "name", "{tricky:?}");
        let message = error["message"].as_str().unwrap();
        assert!(message.chars().all(|letter| !letter.is_control()), "what cannot be shown is not shown: {message:?}");
        assert!(!message.contains('\u{202e}') && !message.contains('\u{200b}'), "{message:?}");
    }
    for good in ["Überweisung 1. März", "名前", "🔑 keys", "a 'quoted' \"name\" \\ <b>", "e\u{301}"] {
        assert_eq!(admin.post("/api/v1/vaults", &json!({"name": good})).created()["name"], good);
    }
}

fn ids_are_plain_and_compared_exactly(world: &World) {
    let admin = world.admin();
    for odd in
        ["a b", " a", "a ", "a/b", "a\u{430}", "ａ", "a\0", "a\n", "a%2fb", "é", "a,b", "a'--", "a\"", "<a>", "*"]
    {
        let error = admin.post("/api/v1/agents", &json!({"id": odd})).refused(400, "INVALID_FIELD");
        assert_eq!(error["path"], "id", "{odd:?}");
    }
    for id in ["Case", "case", "CASE", "..", ".", "a.b", "-", "@", "user:ann@example.org"] {
        admin.post("/api/v1/agents", &json!({"id": id})).created();
    }
    admin.get("/api/v1/agents/cAsE").refused(404, "AGENT_NOT_FOUND");
    assert_eq!(admin.get("/api/v1/agents/CASE").ok()["id"], "CASE");
}

fn ids_in_paths_lead_nowhere_else(world: &World) {
    let admin = world.admin();
    let vault = admin.vault();
    for id in [
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e",
        "%00",
        "a%00b",
        "%ff%fe",
        "%",
        "%zz",
        "vault_",
        "vault_01HXYZ",
        "'%20OR%201=1--",
        "%F0%9F%94%91",
        "null",
        "cred_01K9ZZZZZZ0000000000000000",
        &vault.to_lowercase(),
        &format!("{vault}%20"),
        &format!("{vault}%0a"),
        &format!("{vault}A"),
    ] {
        for path in [format!("/api/v1/vaults/{id}"), format!("/api/v1/vaults/{id}/credentials")] {
            admin.get(&path).refused(404, "VAULT_NOT_FOUND");
        }
    }
    for (path, code) in [
        ("/api/v1/agents/..%2fvaults", "AGENT_NOT_FOUND"),
        ("/api/v1/agents/%00", "AGENT_NOT_FOUND"),
        ("/api/v1/tenants/..%2f", "TENANT_NOT_FOUND"),
        ("/api/v1/credentials/x", "CREDENTIAL_NOT_FOUND"),
        ("/api/v1/grants/x", "GRANT_NOT_FOUND"),
        ("/api/v1/grants/x/tree", "GRANT_NOT_FOUND"),
    ] {
        admin.get(path).refused(404, code);
    }
    // Escapes of plain letters are those letters.
    let escaped: String = vault.bytes().map(|byte| format!("%{byte:02x}")).collect();
    assert_eq!(admin.get(&format!("/api/v1/vaults/{escaped}")).ok()["id"], json!(vault));
}
