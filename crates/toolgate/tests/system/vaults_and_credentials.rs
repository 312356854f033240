//! Vaults and credentials through HTTP (RFC-0014 §1, §10.1): every endpoint, in the RFC's shape and in the SDK's.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{Actor, World, id, ids, merged, names, on_both_engines, stripe, text, until};

on_both_engines! {
    a_vault_is_made_listed_shown_and_deleted,
    a_credential_has_the_fields_of_the_rfc_at_either_path,
    every_auth_type_takes_its_material_and_says_what_it_lacks,
    a_rotation_with_the_secret_in_the_metadata_keeps_the_rest_of_it,
    secrets_in_metadata_are_lifted_and_gone,
    rotation_keeps_the_id_and_the_grants,
    a_credential_expires_and_is_provisioned_again,
    a_revoked_credential_stays_so_and_ends_its_grants,
    a_deleted_vault_ends_its_credentials_and_their_grants,
    lists_are_paged_without_loss_and_without_repetition,
    metadata_comes_back_as_it_went_in,
}

/// The names under which the protocol's clients put secrets into metadata.
const SECRET_NAMES: [&str; 9] = [
    "access_token",
    "api_key",
    "client_id",
    "client_secret",
    "password",
    "refresh_token",
    "signing_secret",
    "token",
    "username",
];

fn a_vault_is_made_listed_shown_and_deleted(world: &World) {
    let admin = world.admin();
    let vault =
        admin.post("/api/v1/vaults", &json!({"owner_id": "user_01HABC", "name": "acme-corp-production"})).created();
    assert_eq!(names(&vault), ["created_at", "credentials", "id", "name", "owner_id"]);
    assert_eq!(vault["owner_id"], "user_01HABC");
    assert_eq!(vault["name"], "acme-corp-production");
    assert_eq!(vault["credentials"], json!([]));
    assert!(text(&vault, "/id").starts_with("vault_"));
    assert_python_reads(&vault, &["created_at"]);
    let path = format!("/api/v1/vaults/{}", id(&vault));
    assert_eq!(admin.get(&path).ok(), vault);

    let own = admin.post("/api/v1/vaults", &json!({"name": "mine"})).created();
    assert_eq!(own["owner_id"], "admin", "the owner is the caller unless another is named");
    let listed = admin.get("/api/v1/vaults").ok();
    assert_eq!(listed, json!({"vaults": by_id([vault.clone(), own.clone()]), "next_cursor": null}));

    let deleted = admin.delete(&path).ok();
    assert_eq!(names(&deleted), ["revision", "revoked_credentials", "revoked_grants", "status", "vault_id"]);
    assert_eq!(deleted["status"], "deleted");
    assert_eq!(deleted["vault_id"], vault["id"]);
    admin.get(&path).refused(404, "VAULT_NOT_FOUND");
    admin.delete(&path).refused(404, "VAULT_NOT_FOUND");
    admin.get(&format!("{path}/credentials")).refused(404, "VAULT_NOT_FOUND");
    admin.post(&format!("{path}/credentials"), &stripe()).refused(404, "VAULT_NOT_FOUND");
    assert_eq!(ids(&admin.get("/api/v1/vaults").ok()["vaults"]), [id(&own)]);
}

fn a_credential_has_the_fields_of_the_rfc_at_either_path(world: &World) {
    let admin = world.admin();
    let vault = admin.vault();
    let nested = format!("/api/v1/vaults/{vault}/credentials");
    let by_rfc = admin.post(&nested, &stripe()).created();
    let by_sdk = admin.post("/api/v1/credentials", &merged(stripe(), json!({"vault_id": vault}))).created();
    let both = admin.post(&nested, &merged(stripe(), json!({"vault_id": vault}))).created();
    for credential in [&by_rfc, &by_sdk, &both] {
        let fields = [
            "auth_type",
            "created_at",
            "credential_metadata",
            "expires_at",
            "id",
            "label",
            "material_fields",
            "metadata",
            "revoked_at",
            "rotated_at",
            "scopes_available",
            "service",
            "status",
            "vault_id",
            "version",
        ];
        assert_eq!(names(credential), fields, "encrypted_material is never among them");
        assert!(text(credential, "/id").starts_with("cred_"));
        assert_eq!(credential["vault_id"], vault);
        assert_eq!(credential["service"], "stripe");
        assert_eq!(credential["label"], "stripe-production");
        assert_eq!(credential["auth_type"], "api_key");
        let scopes = ["charges.create", "charges.read", "customers.read", "customers.write", "refunds.create"];
        assert_eq!(credential["scopes_available"], json!(scopes));
        assert_eq!(credential["metadata"], json!({"environment": "production", "account_id": "acct_1234"}));
        assert_eq!(credential["credential_metadata"], credential["metadata"]);
        assert_eq!((&credential["status"], &credential["version"]), (&json!("active"), &json!(1)));
        assert_eq!(credential["rotated_at"], credential["created_at"]);
        assert_eq!(credential["expires_at"], Value::Null);
        assert_python_reads(credential, &["created_at", "rotated_at"]);
        assert_eq!(admin.get(&format!("/api/v1/credentials/{}", id(credential))).ok(), *credential);
    }
    let listed = admin.get(&nested).ok();
    assert_eq!(listed, json!({"credentials": by_id([by_rfc.clone(), by_sdk, both]), "next_cursor": null}));
    let shown = admin.get(&format!("/api/v1/vaults/{vault}")).ok();
    assert_eq!(shown["credentials"], json!(ids(&listed["credentials"])));

    let least = admin.post(&nested, &json!({"service": "github", "label": "token to come"})).created();
    assert_eq!(least["auth_type"], "api_key");
    assert_eq!((&least["version"], &least["material_fields"]), (&json!(0), &json!([])));
    assert_eq!((&least["scopes_available"], &least["metadata"]), (&json!([]), &json!({})));

    let other = admin.vault();
    let error = admin.post(&nested, &merged(stripe(), json!({"vault_id": other}))).refused(400, "INVALID_FIELD");
    assert_eq!(error["path"], "vault_id");
    let error = admin.post("/api/v1/credentials", &stripe()).refused(400, "INVALID_FIELD");
    assert_eq!(error["path"], "vault_id");
    let error =
        admin.post(&nested, &merged(stripe(), json!({"encrypted_material": "AAAA"}))).refused(400, "UNKNOWN_FIELD");
    assert_eq!(error["path"], "encrypted_material");
    let path = format!("/api/v1/credentials/{}/rotate", id(&by_rfc));
    admin.patch(&path, &json!({"encrypted_material": "AAAA"})).refused(400, "UNKNOWN_FIELD");
    let past = json!({"expires_at": "2020-01-01T00:00:00Z"});
    assert_eq!(admin.post(&nested, &merged(stripe(), past)).refused(400, "INVALID_FIELD")["path"], "expires_at");
}

fn every_auth_type_takes_its_material_and_says_what_it_lacks(world: &World) {
    let admin = world.admin();
    let nested = format!("/api/v1/vaults/{}/credentials", admin.vault());
    let types = [
        ("api_key", json!({"api_key": "secret-1"}), "`api_key`"),
        ("basic_auth", json!({"username": "ann", "password": "secret-2"}), "`username` and `password`"),
        ("bearer_token", json!({"token": "secret-3"}), "`token`"),
        ("connection_string", json!({"connection_string": "postgres://secret-4"}), "`connection_string`"),
        ("custom", json!({"anything": "secret-5"}), ""),
        (
            "oauth2_client_credentials",
            json!({"client_id": "client", "client_secret": "secret-6"}),
            "`client_id` and `client_secret`",
        ),
        ("oauth2_token", json!({"access_token": "secret-7"}), "`access_token` or `refresh_token`"),
        ("webhook", json!({"signing_secret": "secret-8"}), "`signing_secret`"),
    ];
    for (auth_type, material, needs) in types {
        let body = |more: Value| merged(json!({"service": "any", "label": "any", "auth_type": auth_type}), more);
        let made = admin.post(&nested, &body(json!({"material": material}))).created();
        assert_eq!(made["auth_type"], auth_type);
        assert_eq!(made["material_fields"], json!(names(&material)));
        let verified = admin.ask("POST", &format!("/api/v1/credentials/{}/verify", id(&made)), None).ok();
        assert_eq!(verified["material"], "intact", "{auth_type}");

        let later = admin.post(&nested, &body(json!({}))).created();
        let path = format!("/api/v1/credentials/{}", id(&later));
        assert_eq!(admin.ask("POST", &format!("{path}/verify"), None).ok()["material"], "none");
        let rotated = admin.patch(&format!("{path}/rotate"), &json!({"material": material})).ok();
        assert_eq!((&rotated["version"], &rotated["material_fields"]), (&json!(1), &json!(names(&material))));

        if auth_type != "custom" {
            let lacking = body(json!({"material": {"unheard_of": "secret-9"}}));
            let error = admin.post(&nested, &lacking).refused(400, "INVALID_FIELD");
            assert!(text(&error, "/message").contains(needs), "{error}");
            let rotation = json!({"material": {"unheard_of": "secret-9"}});
            admin.patch(&format!("{path}/rotate"), &rotation).refused(400, "INVALID_FIELD");
        }
    }
    admin.post(&nested, &json!({"service": "a", "label": "b", "auth_type": "password"})).refused(400, "INVALID_FIELD");
}

fn a_rotation_with_the_secret_in_the_metadata_keeps_the_rest_of_it(world: &World) {
    let admin = world.admin();
    let metadata = json!({
        "base_url": "https://api.example.com", "timeout_ms": 500, "auth": {"location": "header", "header_name": "X-Key"}
    });
    let body = json!({
        "vault_id": admin.vault(), "service": "crm", "label": "crm", "metadata": metadata, "material": {"api_key": "one"}
    });
    let path = format!("/api/v1/credentials/{}/rotate", id(&admin.post("/api/v1/credentials", &body).created()));
    let rotated = |body: Value| admin.patch(&path, &body).ok()["metadata"].clone();
    assert_eq!(rotated(json!({"metadata": {"api_key": "two-zebra"}})), metadata);
    assert_eq!(rotated(json!({"metadata": {"auth": {"api_key": "three-zebra"}}})), metadata);
    // Whatever else is said is new metadata.
    let new = json!({"base_url": "https://api.example.org"});
    assert_eq!(rotated(json!({"metadata": merged(json!({"api_key": "four"}), new.clone())})), new);
    assert_eq!(rotated(json!({"metadata": new, "material": {"api_key": "five"}})), new);
    // What is kept must not contain the new secret either.
    admin.patch(&path, &json!({"metadata": {"api_key": "https://api.example.org"}})).refused(400, "INVALID_FIELD");
}

fn secrets_in_metadata_are_lifted_and_gone(world: &World) {
    let admin = world.admin();
    let vault = admin.vault();
    let secret = |name: &str| format!("lifted-{name}-zebra");
    let mut metadata =
        json!({"base_url": "https://api.example.com", "auth": {"location": "header"}, "timeout_ms": 500});
    for name in SECRET_NAMES {
        // Half of them where some clients nest them.
        let place = if name.len() % 2 == 0 { &mut metadata["auth"] } else { &mut metadata };
        place[name] = json!(secret(name));
    }
    let body =
        json!({"vault_id": vault, "service": "crm", "label": "crm", "auth_type": "custom", "metadata": metadata});
    let made = admin.post("/api/v1/credentials", &body);
    let credential = made.created();
    assert_eq!(credential["material_fields"], json!(SECRET_NAMES));
    let left = json!({"base_url": "https://api.example.com", "auth": {"location": "header"}, "timeout_ms": 500});
    assert_eq!(credential["metadata"], left);
    assert_eq!(credential["credential_metadata"], left);
    let path = format!("/api/v1/credentials/{}", id(&credential));
    let rotated = admin.patch(&format!("{path}/rotate"), &json!({"metadata": metadata}));
    assert_eq!((&rotated.ok()["version"], &rotated.ok()["metadata"]), (&json!(2), &left));
    let verified = admin.ask("POST", &format!("{path}/verify"), None);
    let listed = admin.get(&format!("/api/v1/vaults/{vault}/credentials"));
    let events = admin.get("/api/v1/audit/events");
    for reply in [made, rotated, verified, listed, admin.get(&path), events] {
        assert!(!reply.answer.text().contains("zebra"), "{}", reply.asked);
    }

    let twice = json!({"service": "a", "label": "a", "metadata": {"api_key": "one"}, "material": {"api_key": "two"}});
    let nested = format!("/api/v1/vaults/{vault}/credentials");
    admin.post(&nested, &twice).refused(400, "INVALID_FIELD");
    let hidden = json!({
        "service": "a", "label": "a", "material": {"api_key": "lifted-zebra"},
        "metadata": {"headers": {"Authorization": "Bearer lifted-zebra"}}
    });
    let reply = admin.post(&nested, &hidden);
    assert!(text(&reply.refused(400, "INVALID_FIELD"), "/message").contains("`metadata.headers.Authorization`"));
    assert!(!reply.answer.text().contains("zebra"));
    let deeper = json!({"service": "a", "label": "a", "metadata": {"oauth": {"client_secret": "lifted-zebra"}}});
    let reply = admin.post(&nested, &deeper);
    assert!(text(&reply.refused(400, "INVALID_FIELD"), "/message").contains("`metadata.oauth.client_secret`"));
    assert!(!reply.answer.text().contains("zebra"));
}

fn rotation_keeps_the_id_and_the_grants(world: &World) {
    let admin = world.admin();
    let credential = admin.credential();
    let path = format!("/api/v1/credentials/{credential}");
    let before = admin.get(&path).ok();
    let grant = admin.grants(&credential, "agent_billing_01", json!({}));

    let rotated = admin.patch(&format!("{path}/rotate"), &json!({"material": {"api_key": "sk_live_next"}})).ok();
    let mut expected = before.clone();
    expected["version"] = json!(2);
    expected["rotated_at"] = rotated["rotated_at"].clone();
    assert_eq!(rotated, expected, "only the version and the time of rotation are new");
    assert!(text(&rotated, "/rotated_at") >= text(&before, "/rotated_at"));
    assert_eq!(admin.get(&path).ok(), rotated);
    let after = admin.grant(&grant);
    assert_eq!((&after["status"], &after["effective_status"]), (&json!("active"), &json!("active")));

    let soon = admin.time().plus(Duration::from_secs(3600)).to_string();
    let change = json!({"metadata": {"environment": "test", "token": "sk_live_third"}, "expires_at": soon});
    let third = admin.patch(&format!("{path}/rotate"), &change).ok();
    assert_eq!((&third["version"], &third["material_fields"]), (&json!(3), &json!(["token"])));
    assert_eq!((&third["metadata"], &third["expires_at"]), (&json!({"environment": "test"}), &json!(soon)));
    let endless =
        admin.patch(&format!("{path}/rotate"), &json!({"material": {"api_key": "k"}, "expires_at": null})).ok();
    assert_eq!(endless["expires_at"], Value::Null);

    for nothing in [json!({}), json!({"material": {}}), json!({"material": null}), json!({"metadata": {"a": 1}})] {
        let error = admin.patch(&format!("{path}/rotate"), &nothing).refused(400, "INVALID_FIELD");
        assert_eq!(error["path"], "material", "{nothing}");
    }
    let past = json!({"material": {"api_key": "k"}, "expires_at": "2020-01-01T00:00:00Z"});
    admin.patch(&format!("{path}/rotate"), &past).refused(400, "INVALID_FIELD");
    assert_eq!(admin.get(&path).ok()["version"], 4, "a refused rotation changes nothing");
}

fn a_credential_expires_and_is_provisioned_again(world: &World) {
    let admin = world.admin();
    let nested = format!("/api/v1/vaults/{}/credentials", admin.vault());
    let end = admin.soon().to_string();
    let credential = admin.post(&nested, &merged(stripe(), json!({"expires_at": end}))).created();
    assert_eq!((&credential["status"], &credential["expires_at"]), (&json!("active"), &json!(end)));
    let grant = admin.grants(&id(&credential), "agent_billing_01", json!({"delegatable": true}));
    let path = format!("/api/v1/credentials/{}", id(&credential));
    until("the credential expires", || (admin.get(&path).ok()["status"] == "expired").then_some(()));

    let wanted = json!({"credential_id": credential["id"], "agent_id": "late", "scopes": ["charges.read"]});
    let error = admin.post("/api/v1/grants", &wanted).refused(403, "CREDENTIAL_EXPIRED");
    assert_eq!(error["credential_id"], credential["id"]);
    admin.tries_to_delegate(&grant, "late", json!({})).refused(403, "CREDENTIAL_EXPIRED");
    let announced = format!("&type=credential.expired&until={}", far());
    until("its expiry is announced", || (!admin.events(&announced).is_empty()).then_some(()));

    let fresh = admin.patch(&format!("{path}/rotate"), &json!({"material": {"api_key": "fresh"}})).ok();
    assert_eq!((&fresh["status"], &fresh["expires_at"]), (&json!("active"), &Value::Null));
    assert_eq!(fresh["id"], credential["id"]);
    admin.post("/api/v1/grants", &wanted).created();
    admin.delegates(&grant, "late", json!({}));
    let events = admin.events(&announced);
    assert_eq!(events.len(), 1, "it is announced once: {events:?}");
    assert_eq!(events[0]["data"], json!({"credential_id": credential["id"]}));
}

fn a_revoked_credential_stays_so_and_ends_its_grants(world: &World) {
    let admin = world.admin();
    let credential = admin.credential();
    let path = format!("/api/v1/credentials/{credential}");
    let coordinator = admin.grants(&credential, "coordinator", json!({"delegatable": true}));
    let worker = admin.delegates(&coordinator, "worker", json!({}));
    let other = admin.grants(&credential, "other", json!({}));
    let gone = admin.grants(&credential, "gone", json!({}));
    admin.delete(&format!("/api/v1/grants/{}", id(&gone))).ok();

    let revoked = admin.ask("DELETE", &path, Some(&json!({"reason": "leaked"}))).ok();
    assert_eq!(names(&revoked), ["affected_grants_count", "credential_id", "revision", "status"]);
    assert_eq!((&revoked["status"], &revoked["affected_grants_count"]), (&json!("revoked"), &json!(3)));
    for grant in [&coordinator, &worker, &other] {
        let after = admin.grant(grant);
        assert_eq!((&after["status"], &after["effective_status"]), (&json!("revoked"), &json!("revoked")));
    }
    let after = admin.get(&path).ok();
    assert_eq!(after["status"], "revoked");
    assert!(after["revoked_at"].is_string());
    let verified = admin.ask("POST", &format!("{path}/verify"), None).ok();
    assert_eq!((&verified["status"], &verified["material"]), (&json!("revoked"), &json!("destroyed")));

    let rotation = json!({"material": {"api_key": "again"}});
    admin.patch(&format!("{path}/rotate"), &rotation).refused(403, "CREDENTIAL_REVOKED");
    let wanted = json!({"credential_id": credential, "agent_id": "late", "scopes": ["charges.read"]});
    admin.post("/api/v1/grants", &wanted).refused(403, "CREDENTIAL_REVOKED");
    assert_eq!(admin.delete(&path).ok()["affected_grants_count"], 0, "a second time nothing is left to end");
    assert_eq!(admin.get(&path).ok(), after);
}

fn a_deleted_vault_ends_its_credentials_and_their_grants(world: &World) {
    let admin = world.admin();
    let vault = admin.vault();
    let nested = format!("/api/v1/vaults/{vault}/credentials");
    let one = id(&admin.post(&nested, &stripe()).created());
    let two = id(&admin.post(&nested, &stripe()).created());
    let elsewhere = admin.credential();
    let first = admin.grants(&one, "coordinator", json!({"delegatable": true}));
    let below = admin.delegates(&first, "worker", json!({}));
    let second = admin.grants(&two, "coordinator", json!({}));
    let spared = admin.grants(&elsewhere, "coordinator", json!({}));

    let deleted = admin.delete(&format!("/api/v1/vaults/{vault}")).ok();
    assert_eq!((&deleted["revoked_credentials"], &deleted["revoked_grants"]), (&json!(2), &json!(3)));
    for grant in [&first, &below, &second] {
        let after = admin.grant(grant);
        assert_eq!(after["status"], "revoked");
        assert!(after["revision"].as_u64() >= deleted["revision"].as_u64());
    }
    assert_eq!(admin.grant(&spared)["status"], "active");
    for credential in [&one, &two] {
        let rotation = json!({"material": {"api_key": "again"}});
        let path = format!("/api/v1/credentials/{credential}");
        assert_eq!(admin.get(&path).ok()["status"], "revoked");
        admin.patch(&format!("{path}/rotate"), &rotation).refused(403, "CREDENTIAL_REVOKED");
    }
}

fn lists_are_paged_without_loss_and_without_repetition(world: &World) {
    let admin = world.admin();
    let vaults: Vec<String> = (0..7).map(|_| admin.vault()).collect();
    assert_eq!(pages(&admin, "/api/v1/vaults?limit=2", "vaults"), in_order(&vaults));
    let nested = format!("/api/v1/vaults/{}/credentials", vaults[3]);
    let credentials: Vec<String> = (0..5).map(|_| id(&admin.post(&nested, &stripe()).created())).collect();
    assert_eq!(pages(&admin, &format!("{nested}?limit=2"), "credentials"), in_order(&credentials));
    assert_eq!(pages(&admin, &format!("{nested}?limit=5"), "credentials"), in_order(&credentials));
    assert_eq!(pages(&admin, &format!("{nested}?limit=1000"), "credentials"), in_order(&credentials));
    let empty = format!("/api/v1/vaults/{}/credentials", vaults[0]);
    assert_eq!(admin.get(&empty).ok(), json!({"credentials": [], "next_cursor": null}));
}

fn metadata_comes_back_as_it_went_in(world: &World) {
    let admin = world.admin();
    let nested = format!("/api/v1/vaults/{}/credentials", admin.vault());
    let metadata = json!({
        "text": "ünï¢ødé \u{1F600} \"quoted\" \\ \u{0000} \u{2028}",
        "numbers": [0, -1, 1.5, 5e-324, 1.797_693_134_862_315_7e308, 9_007_199_254_740_993_u64, u64::MAX, i64::MIN, 0.1, 1e21],
        "nested": {"empty": {}, "list": [[], [null, true, false]]},
        "": "a name may be empty",
    });
    let made = admin.post(&nested, &merged(stripe(), json!({"metadata": metadata}))).created();
    assert_eq!(made["metadata"], metadata);
    assert_eq!(admin.get(&format!("/api/v1/credentials/{}", id(&made))).ok()["metadata"], metadata);
}

/// All ids of a list, a page at a time.
fn pages(actor: &Actor, path: &str, name: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = actor.get(&format!("{path}{cursor}")).ok();
        all.extend(ids(&page[name]));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

/// Lists are in the order of their ids, which is that of their making only from one millisecond to the next.
fn in_order(ids: &[String]) -> Vec<String> {
    let mut sorted = ids.to_vec();
    sorted.sort();
    sorted
}

fn by_id<const COUNT: usize>(mut things: [Value; COUNT]) -> Vec<Value> {
    things.sort_by_key(id);
    things.to_vec()
}

/// The oldest Python of the SDK reads an offset and exactly three digits.
fn assert_python_reads(value: &Value, names: &[&str]) {
    for name in names {
        let time = value[*name].as_str().unwrap();
        assert!(time.len() == "2026-02-08T10:00:00.000+00:00".len() && time.ends_with("+00:00"), "{name}: {time}");
    }
}

fn far() -> &'static str {
    "9999-01-01T00:00:00Z"
}
