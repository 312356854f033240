//! Credentials, through the whole of their lifecycle.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate_gate::ports::ledger::{
    CreateCredential, Freshness, NewExpiry, PageRequest, RotateCredential, SealedVersion,
};
use toolgate_gate::ports::sealer::SealBinding;
use toolgate_gate::refusal::Code;
use toolgate_model::credential::{AuthType, Credential, CredentialStatus, ServiceName};
use toolgate_model::grant::GrantStatus;
use toolgate_model::id::VaultId;
use toolgate_model::strict_json;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal, scopes, sealed_under};

use super::support::{number, refused};

contract!(
    a_credential_reads_back_with_its_material,
    a_credential_may_wait_for_its_material,
    metadata_is_kept_to_the_last_digit,
    a_credential_needs_a_vault,
    rotation_keeps_the_id_and_the_grants,
    rotation_changes_only_what_it_is_given,
    replaced_material_stays_until_its_last_calls_are_over,
    of_two_rotations_of_one_version_the_second_is_refused,
    an_expired_credential_is_active_again_with_fresh_material,
    a_renewal_keeps_the_end_to_the_millisecond_and_behind_it,
    fresh_material_may_bring_a_new_end,
    a_revoked_credential_loses_its_material_and_its_grants,
    a_revoked_credential_stays_revoked,
    credentials_are_listed_by_vault,
    credentials_are_found_by_the_names_that_they_may_govern,
);

async fn current(tenant: &TestTenant, credential: &Credential) -> Credential {
    tenant.ledger.credential(&tenant.id, credential.id).await.unwrap().unwrap()
}

async fn material(tenant: &TestTenant, credential: &Credential) -> Option<Arc<SealedVersion>> {
    tenant.ledger.sealed_material(&tenant.id, credential.id, tenant.now(), Freshness::Newest).await.unwrap()
}

async fn a_credential_reads_back_with_its_material(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let vault = tenant.vault().await;
    let mut credential = tenant.new_credential(vault.id);
    credential.auth_type = AuthType::OAuth2ClientCredentials;
    credential.expires_at = Some(tenant.later(60));
    let sealed = sealed_under("first");

    let command =
        CreateCredential { audit: tenant.audit(), credential: credential.clone(), sealed: Some(sealed.clone()) };
    fixture.ledger().create_credential(command).await.unwrap();

    assert_eq!(current(&tenant, &credential).await, credential);
    let stored = material(&tenant, &credential).await.unwrap();
    assert!(stored.sealed == sealed);
    assert_eq!(stored.binding, SealBinding::of_credential(&tenant.id, credential.id, 1));
    let event = tenant.events().await.pop().unwrap();
    assert_eq!(event["type"], "credential.created");
    let data = json!({
        "credential_id": credential.id, "vault_id": vault.id, "service": "stripe",
        "auth_type": "oauth2_client_credentials"
    });
    assert_eq!(event["data"], data);
}

async fn a_credential_may_wait_for_its_material(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let vault = tenant.vault().await;
    let empty = Credential { version: 0, material_fields: vec![], ..tenant.new_credential(vault.id) };
    let command = CreateCredential { audit: tenant.audit(), credential: empty.clone(), sealed: None };
    fixture.ledger().create_credential(command).await.unwrap();
    assert!(material(&tenant, &empty).await.is_none());

    let fields = vec!["api_key".to_owned()];
    let filled = RotateCredential { material_fields: fields.clone(), ..tenant.rotation(&empty) };
    let filled = fixture.ledger().rotate_credential(filled).await.unwrap();

    assert_eq!((filled.version, &filled.material_fields), (1, &fields));
    assert_eq!(material(&tenant, &empty).await.unwrap().binding.version(), 1);
}

async fn metadata_is_kept_to_the_last_digit(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let vault = tenant.vault().await;
    let mut credential = tenant.new_credential(vault.id);
    let text = br#"{"a": 333333333.33333325, "b": 9.999999999999997e22, "c": 9007199254740993, "d": "\u0000\u202e"}"#;
    let Value::Object(metadata) = strict_json::parse(text).unwrap() else { panic!("an object") };
    credential.metadata = metadata;

    let credential = tenant.store_credential(credential).await;

    assert_eq!(current(&tenant, &credential).await.metadata, credential.metadata);
}

async fn a_credential_needs_a_vault(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let nowhere = tenant.new_credential(VaultId::new(tenant.now(), [9; 10]));
    let command = CreateCredential { audit: tenant.audit(), credential: nowhere.clone(), sealed: None };
    refused(&tenant, Code::VaultNotFound, fixture.ledger().create_credential(command)).await;
    assert_eq!(fixture.ledger().credential(&tenant.id, nowhere.id).await.unwrap(), None);
}

async fn rotation_keeps_the_id_and_the_grants(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    let direct = tenant.store_grant(tenant.new_grant(&credential, &principal("billing"))).await.unwrap();
    let delegated = tenant.delegate(&direct, "worker").await.unwrap();
    tenant.wait(5);

    let rotated = fixture.ledger().rotate_credential(tenant.rotation(&credential)).await.unwrap();

    assert_eq!(rotated.id, credential.id);
    assert_eq!((rotated.version, rotated.rotated_at), (2, tenant.now()));
    assert_eq!(current(&tenant, &credential).await, rotated);
    assert_eq!(material(&tenant, &credential).await.unwrap().binding.version(), 2);
    for grant in [&direct, &delegated] {
        assert_eq!(tenant.standing(grant.id).await, GrantStatus::Active);
    }
    let event = tenant.events().await.pop().unwrap();
    assert_eq!(event["type"], "credential.rotated");
    assert_eq!(event["data"], json!({"credential_id": credential.id, "rotated_by": "admin"}));
}

async fn rotation_changes_only_what_it_is_given(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let vault = tenant.vault().await;
    let mut credential = tenant.new_credential(vault.id);
    credential.expires_at = Some(tenant.later(60));
    let credential = tenant.store_credential(credential).await;

    let kept = fixture.ledger().rotate_credential(tenant.rotation(&credential)).await.unwrap();
    assert_eq!((&kept.metadata, kept.expires_at), (&credential.metadata, credential.expires_at));

    let metadata = Map::from_iter([("environment".to_owned(), json!("test"))]);
    let fields = vec!["client_secret".to_owned(), "client_id".to_owned()];
    let changed = RotateCredential {
        metadata: Some(metadata.clone()),
        end: NewExpiry::At(None),
        material_fields: fields.clone(),
        ..tenant.rotation(&kept)
    };
    let changed = fixture.ledger().rotate_credential(changed).await.unwrap();
    assert_eq!((&changed.metadata, changed.expires_at), (&metadata, None));
    assert_eq!(changed.material_fields, fields);
    assert_eq!(current(&tenant, &credential).await, changed);
}

async fn replaced_material_stays_until_its_last_calls_are_over(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    fixture.ledger().rotate_credential(tenant.rotation(&credential)).await.unwrap();
    let stored = "SELECT COUNT(*) FROM credential_versions WHERE ciphertext IS NOT NULL";

    tenant.wait(59);
    assert_eq!(fixture.ledger().destroy_retired(tenant.now()).await.unwrap(), 0);
    assert_eq!(number(fixture, stored).await, 2);

    tenant.wait(1);
    assert_eq!(fixture.ledger().destroy_retired(tenant.now()).await.unwrap(), 1);
    assert_eq!(fixture.ledger().destroy_retired(tenant.later(3600)).await.unwrap(), 0, "the current version stays");
    let destroyed = "SELECT COUNT(*) FROM credential_versions WHERE version = 1 AND ciphertext IS NULL \
         AND wrapped_key IS NULL AND master_key IS NULL AND destroyed_at IS NOT NULL";
    assert_eq!((number(fixture, destroyed).await, number(fixture, stored).await), (1, 1));
    assert_eq!(material(&tenant, &credential).await.unwrap().binding.version(), 2);
}

async fn of_two_rotations_of_one_version_the_second_is_refused(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    let rotated = fixture.ledger().rotate_credential(tenant.rotation(&credential)).await.unwrap();

    let late = tenant.rotation(&credential);
    refused(&tenant, Code::VersionConflict, fixture.ledger().rotate_credential(late)).await;

    assert_eq!(current(&tenant, &credential).await, rotated);
    assert_eq!(number(fixture, "SELECT COUNT(*) FROM credential_versions").await, 2);
}

async fn an_expired_credential_is_active_again_with_fresh_material(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let vault = tenant.vault().await;
    let mut credential = tenant.new_credential(vault.id);
    credential.expires_at = Some(tenant.later(60));
    let credential = tenant.store_credential(credential).await;
    let grant = tenant.store_grant(tenant.new_grant(&credential, &principal("billing"))).await.unwrap();

    tenant.wait(60);
    assert_eq!(current(&tenant, &credential).await.status(tenant.now()), CredentialStatus::Expired);
    refused(&tenant, Code::CredentialExpired, tenant.delegate(&grant, "worker")).await;
    let late = tenant.new_grant(&credential, &principal("billing"));
    refused(&tenant, Code::CredentialExpired, tenant.store_grant(late)).await;

    let rotated = fixture.ledger().rotate_credential(tenant.rotation(&credential)).await.unwrap();
    assert_eq!((rotated.status(tenant.now()), rotated.expires_at), (CredentialStatus::Active, None));
    assert_eq!(tenant.standing(grant.id).await, GrantStatus::Active);
    tenant.delegate(&grant, "worker").await.unwrap();
}

async fn a_renewal_keeps_the_end_to_the_millisecond_and_behind_it(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let vault = tenant.vault().await;
    let end = tenant.later(60);
    let credential = Credential { expires_at: Some(end), ..tenant.new_credential(vault.id) };
    let mut credential = tenant.store_credential(credential).await;
    tenant.wait(59);
    for milliseconds in [999, 1, 1, 60_000] {
        tenant.clock.advance(Duration::from_millis(milliseconds));
        let renewal = RotateCredential { end: NewExpiry::Same, ..tenant.rotation(&credential) };
        credential = fixture.ledger().rotate_credential(renewal).await.unwrap();
        assert_eq!(credential.expires_at, Some(end), "a credential does not outlive its end by renewing itself");
    }
    assert_eq!(current(&tenant, &credential).await.expires_at, Some(end));
    assert_eq!(tenant.events_of("credential.expired").await.len(), 1, "it is announced once");
}

async fn fresh_material_may_bring_a_new_end(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    let end = tenant.later(60);

    let rotated = RotateCredential { end: NewExpiry::At(Some(end)), ..tenant.rotation(&credential) };
    let rotated = fixture.ledger().rotate_credential(rotated).await.unwrap();

    assert_eq!(rotated.expires_at, Some(end));
    assert_eq!(current(&tenant, &credential).await.status(end), CredentialStatus::Expired);
}

async fn a_revoked_credential_loses_its_material_and_its_grants(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    fixture.ledger().rotate_credential(tenant.rotation(&credential)).await.unwrap();
    let direct = tenant.store_grant(tenant.new_grant(&credential, &principal("billing"))).await.unwrap();
    let delegated = tenant.delegate(&direct, "worker").await.unwrap();
    tenant.suspend(delegated.id).await.unwrap();
    let other = tenant.grant("billing").await;

    let revoked = tenant.revoke_credential(credential.id).await.unwrap();

    assert_eq!(revoked.grants, 2);
    assert_eq!(current(&tenant, &credential).await.status(tenant.now()), CredentialStatus::Revoked);
    assert!(material(&tenant, &credential).await.is_none());
    let left = format!(
        "SELECT COUNT(*) FROM credential_versions WHERE credential = '{}' AND (ciphertext IS NOT NULL OR \
         wrapped_key IS NOT NULL OR master_key IS NOT NULL OR destroyed_at IS NULL)",
        credential.id
    );
    assert_eq!(number(fixture, &left).await, 0, "both versions are destroyed");
    for grant in [&direct, &delegated] {
        assert_eq!(tenant.lineage(grant.id).await.grant().status(tenant.now()), GrantStatus::Revoked);
    }
    assert_eq!(tenant.standing(other.id).await, GrantStatus::Active);
    let event = tenant.events().await.pop().unwrap();
    assert_eq!(event["type"], "credential.revoked");
    let data = json!({"credential_id": credential.id, "reason": "leaked", "affected_grants_count": 2});
    assert_eq!(event["data"], data);
    let revocations = tenant.events_of("grant.revoked").await;
    assert_eq!(revocations.len(), 2);
    let reason = format!("credential {} was revoked", credential.id);
    assert!(revocations.iter().all(|event| event["data"]["reason"] == reason), "{revocations:?}");
}

async fn a_revoked_credential_stays_revoked(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    let grant = tenant.store_grant(tenant.new_grant(&credential, &principal("billing"))).await.unwrap();
    tenant.revoke_credential(credential.id).await.unwrap();
    let before = tenant.events().await.len();

    let again = tenant.revoke_credential(credential.id).await.unwrap();
    assert_eq!((again.grants, tenant.events().await.len()), (0, before));
    let rotation = fixture.ledger().rotate_credential(tenant.rotation(&credential));
    refused(&tenant, Code::CredentialRevoked, rotation).await;
    let late = tenant.new_grant(&credential, &principal("billing"));
    refused(&tenant, Code::CredentialRevoked, tenant.store_grant(late)).await;
    refused(&tenant, Code::GrantRevoked, tenant.delegate(&grant, "worker")).await;
}

async fn credentials_are_listed_by_vault(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let one = tenant.credential().await;
    tenant.wait(1);
    let two = tenant.credential().await;
    let list =
        async |vault| fixture.ledger().credentials(&tenant.id, vault, PageRequest::first(10)).await.unwrap().items;

    assert_eq!(list(None).await, [one.clone(), two.clone()]);
    assert_eq!(list(Some(two.vault)).await, [two]);
    assert_eq!(list(Some(VaultId::new(tenant.now(), [9; 10]))).await, []);
}

async fn credentials_are_found_by_the_names_that_they_may_govern(fixture: &LedgerFixture) {
    let (tenant, elsewhere) = (fixture.tenant().await, fixture.tenant().await);
    let vault = tenant.vault().await;
    let stored = async |service: &str, metadata: Value| {
        let credential = Credential {
            service: ServiceName::parse(service).unwrap(),
            scopes_available: scopes(&["Refund"]),
            metadata: metadata.as_object().unwrap().clone(),
            ..tenant.new_credential(vault.id)
        };
        tenant.store_credential(credential).await.id
    };
    let pay = stored("Pay", json!({"base_url": "https://pay.example", "endpoints": {"Charge": {}}})).await;
    tenant.wait(1);
    let dotted = stored("pay.eu", json!({})).await;
    let found = async |tenant: &TestTenant, name: &str| -> Vec<_> {
        tenant.ledger.credentials_naming(&tenant.id, name).await.unwrap().iter().map(|found| found.id).collect()
    };
    assert_eq!(found(&tenant, "pay").await, [pay]);
    assert_eq!(found(&tenant, "pay.anything").await, [pay]);
    assert_eq!(found(&tenant, "pay.eu.anything").await, [pay, dotted]);
    assert_eq!(found(&tenant, "charge").await, [pay], "an endpoint");
    assert_eq!(found(&tenant, "refund").await, [pay, dotted], "a scope");
    for unknown in ["payments.pay", "pa", "xpay.charge", "%", "", "charg", "'; --"] {
        assert_eq!(found(&tenant, unknown).await, [], "{unknown}");
    }
    assert_eq!(found(&elsewhere, "pay").await, [], "of another tenant");
    tenant.revoke_credential(pay).await.unwrap();
    assert_eq!(found(&tenant, "pay.charge").await, [pay], "what is revoked does not become anybody's");
}
