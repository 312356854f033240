//! What each master key wraps, and its retirement.

use std::sync::Arc;

use toolgate_gate::ports::ledger::{CreateCredential, Freshness, RecordRekey, Rewrap, RotateCredential, SealedVersion};
use toolgate_gate::ports::sealer::{MasterKeyId, SealSubject};
use toolgate_gate::refusal::Code;
use toolgate_model::credential::Credential;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, sealed_under};

use super::support::refused;

contract!(
    usage_counts_what_each_key_wraps,
    what_other_keys_wrap_is_listed_page_by_page,
    a_data_key_is_rewrapped_and_the_ciphertext_stays,
    a_rewrap_of_what_changed_meanwhile_does_nothing,
    a_rewrap_of_destroyed_material_does_nothing,
    a_key_that_wraps_something_is_not_retired,
    a_retired_key_takes_no_new_material,
    a_key_that_never_wrapped_anything_can_be_retired,
    a_registered_key_is_known_before_it_wraps_anything,
    a_key_is_retired_when_it_was_first_retired,
    a_rekey_is_recorded,
);

fn key(name: &str) -> MasterKeyId {
    MasterKeyId(name.to_owned())
}

async fn usage(fixture: &LedgerFixture) -> Vec<(String, u64, bool)> {
    let usage = fixture.ledger().key_usage().await.unwrap();
    usage.into_iter().map(|usage| (usage.key.0, usage.wraps, usage.retired_at.is_some())).collect()
}

async fn sealed(tenant: &TestTenant, credential: &Credential) -> Arc<SealedVersion> {
    stored(tenant, credential).await.unwrap()
}

async fn stored(tenant: &TestTenant, credential: &Credential) -> Option<Arc<SealedVersion>> {
    tenant.ledger.sealed_material(&tenant.id, credential.id, tenant.now(), Freshness::Newest).await.unwrap()
}

fn rewrap(version: &SealedVersion, name: &str) -> Rewrap {
    let mut sealed = sealed_under(name);
    sealed.ciphertext = b"never stored by a rewrap".to_vec();
    Rewrap { binding: version.binding.clone(), replaced: version.sealed.wrapped_key.clone(), sealed }
}

async fn usage_counts_what_each_key_wraps(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    assert!(usage(fixture).await.is_empty());
    let one = tenant.credential().await;
    let two = tenant.credential().await;
    let under_second = RotateCredential { sealed: sealed_under("second"), ..tenant.rotation(&one) };
    fixture.ledger().rotate_credential(under_second).await.unwrap();
    assert_eq!(usage(fixture).await, [("first".to_owned(), 2, false), ("second".to_owned(), 1, false)]);

    tenant.revoke_credential(two.id).await.unwrap();
    fixture.ledger().destroy_retired(tenant.later(60)).await.unwrap();

    assert_eq!(usage(fixture).await, [("first".to_owned(), 0, false), ("second".to_owned(), 1, false)]);
}

async fn what_other_keys_wrap_is_listed_page_by_page(fixture: &LedgerFixture) {
    let (one, other) = (fixture.tenant().await, fixture.tenant().await);
    let mut expected = Vec::new();
    for tenant in [&one, &other, &one] {
        let credential = tenant.credential().await;
        let kept = RotateCredential { sealed: sealed_under("second"), ..tenant.rotation(&credential) };
        fixture.ledger().rotate_credential(kept).await.unwrap();
        let again = RotateCredential { expected_version: 2, ..tenant.rotation(&credential) };
        fixture.ledger().rotate_credential(again).await.unwrap();
        expected.extend([(credential.id, 1), (credential.id, 3)]);
    }
    expected.sort_unstable();
    let expected: Vec<_> = expected.into_iter().map(|(id, version)| SealSubject::Credential { id, version }).collect();

    let mut found = Vec::new();
    loop {
        let page = fixture.ledger().sealed_under_other_keys(&key("second"), found.last().copied(), 2).await.unwrap();
        assert!(page.iter().all(|version| version.sealed.key == key("first")));
        found.extend(page.iter().map(|version| version.binding.subject));
        if page.is_empty() {
            break;
        }
    }

    assert_eq!(found, expected);
}

async fn a_data_key_is_rewrapped_and_the_ciphertext_stays(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    let before = sealed(&tenant, &credential).await;

    assert!(fixture.ledger().rewrap(rewrap(&before, "second")).await.unwrap());

    let after = sealed(&tenant, &credential).await;
    assert_eq!(after.binding, before.binding);
    assert_eq!(after.sealed.ciphertext, before.sealed.ciphertext);
    assert_eq!(after.sealed.wrapped_key, sealed_under("second").wrapped_key);
    assert_eq!(after.sealed.key, key("second"));
}

async fn a_rewrap_of_what_changed_meanwhile_does_nothing(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    let read = sealed(&tenant, &credential).await;
    assert!(fixture.ledger().rewrap(rewrap(&read, "second")).await.unwrap());

    assert!(!fixture.ledger().rewrap(rewrap(&read, "third")).await.unwrap());

    assert_eq!(sealed(&tenant, &credential).await.sealed.key, key("second"));
}

async fn a_rewrap_of_destroyed_material_does_nothing(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    let read = sealed(&tenant, &credential).await;
    tenant.revoke_credential(credential.id).await.unwrap();

    assert!(!fixture.ledger().rewrap(rewrap(&read, "second")).await.unwrap());

    assert!(stored(&tenant, &credential).await.is_none());
}

async fn a_key_that_wraps_something_is_not_retired(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    let first = key("first");
    let retire = || fixture.ledger().retire_key(&first, tenant.now());

    assert!(!retire().await.unwrap());
    let rotated = RotateCredential { sealed: sealed_under("second"), ..tenant.rotation(&credential) };
    fixture.ledger().rotate_credential(rotated).await.unwrap();
    assert!(!retire().await.unwrap(), "the replaced version is still there");
    fixture.ledger().destroy_retired(tenant.later(60)).await.unwrap();
    assert!(retire().await.unwrap());
}

async fn a_retired_key_takes_no_new_material(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    let read = sealed(&tenant, &credential).await;
    fixture.ledger().rewrap(rewrap(&read, "second")).await.unwrap();
    assert!(fixture.ledger().retire_key(&key("first"), tenant.now()).await.unwrap());

    let new = tenant.new_credential(credential.vault);
    let create =
        CreateCredential { audit: tenant.audit(), credential: new.clone(), sealed: Some(sealed_under("first")) };
    refused(&tenant, Code::MasterKeyRetired, fixture.ledger().create_credential(create)).await;
    assert_eq!(fixture.ledger().credential(&tenant.id, new.id).await.unwrap(), None);
    let rotate = fixture.ledger().rotate_credential(tenant.rotation(&credential));
    refused(&tenant, Code::MasterKeyRetired, rotate).await;
    let back = sealed(&tenant, &credential).await;
    refused(&tenant, Code::MasterKeyRetired, fixture.ledger().rewrap(rewrap(&back, "first"))).await;
    assert_eq!(usage(fixture).await, [("first".to_owned(), 0, true), ("second".to_owned(), 1, false)]);
}

async fn a_key_that_never_wrapped_anything_can_be_retired(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let vault = tenant.vault().await;

    assert!(fixture.ledger().retire_key(&key("first"), tenant.now()).await.unwrap());

    let late = CreateCredential {
        audit: tenant.audit(),
        credential: tenant.new_credential(vault.id),
        sealed: Some(sealed_under("first")),
    };
    refused(&tenant, Code::MasterKeyRetired, fixture.ledger().create_credential(late)).await;
}

async fn a_registered_key_is_known_before_it_wraps_anything(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    fixture.ledger().register_key(&key("first")).await.unwrap();
    assert_eq!(usage(fixture).await, [("first".to_owned(), 0, false)]);
    tenant.credential().await;
    fixture.ledger().register_key(&key("first")).await.unwrap();
    assert_eq!(usage(fixture).await, [("first".to_owned(), 1, false)], "registered once");

    fixture.ledger().register_key(&key("second")).await.unwrap();
    assert!(fixture.ledger().retire_key(&key("second"), tenant.now()).await.unwrap());
    fixture.ledger().register_key(&key("second")).await.unwrap();
    assert_eq!(usage(fixture).await[1], ("second".to_owned(), 0, true), "it stays retired");
}

async fn a_key_is_retired_when_it_was_first_retired(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    tenant.revoke_credential(credential.id).await.unwrap();
    let first = tenant.now();
    assert!(fixture.ledger().retire_key(&key("first"), first).await.unwrap());
    assert!(fixture.ledger().retire_key(&key("first"), tenant.later(60)).await.unwrap());
    assert_eq!(fixture.ledger().key_usage().await.unwrap()[0].retired_at, Some(first));
}

async fn a_rekey_is_recorded(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let command = RecordRekey { audit: tenant.audit(), key: key("second"), rewrapped: 7 };
    fixture.ledger().record_rekey(command).await.unwrap();
    let event = tenant.events().await.pop().unwrap();
    assert_eq!(event["type"], "vault.rekeyed");
    assert_eq!(event["data"], serde_json::json!({"key_id": "second", "rewrapped": 7}));
}
