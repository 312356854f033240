//! Vaults, and what is revoked with them.

use serde_json::json;
use toolgate_gate::ports::ledger::{CreateCredential, CreateVault, Freshness, PageRequest};
use toolgate_gate::refusal::Code;
use toolgate_model::credential::{CredentialStatus, Vault};
use toolgate_model::grant::GrantStatus;
use toolgate_model::id::{CredentialId, VaultId};
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal, sealed_under};

use super::support::{number, refused};

contract!(
    a_vault_reads_back_with_the_credentials_in_it,
    vaults_are_listed_by_owner,
    a_deleted_vault_ends_its_credentials_and_their_grants,
    deleting_a_vault_leaves_the_others_alone,
    a_deleted_vault_is_as_if_it_had_never_been,
);

async fn has_material(tenant: &TestTenant, credential: CredentialId) -> bool {
    tenant.ledger.sealed_material(&tenant.id, credential, tenant.now(), Freshness::Newest).await.unwrap().is_some()
}

async fn a_vault_reads_back_with_the_credentials_in_it(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let vault = tenant.vault().await;
    let event = tenant.events().await.pop().unwrap();
    assert_eq!(event["type"], "vault.created");
    assert_eq!(event["data"], json!({"vault_id": vault.id, "owner_id": "admin"}));
    assert_eq!(fixture.ledger().vault(&tenant.id, vault.id).await.unwrap(), Some((vault.clone(), vec![])));

    let one = tenant.store_credential(tenant.new_credential(vault.id)).await;
    tenant.wait(1);
    let two = tenant.store_credential(tenant.new_credential(vault.id)).await;

    let (_, held) = fixture.ledger().vault(&tenant.id, vault.id).await.unwrap().unwrap();
    assert_eq!(held, [one.id, two.id]);
    let listed = fixture.ledger().vaults(&tenant.id, None, PageRequest::first(10)).await.unwrap();
    assert_eq!((listed.items, listed.next), (vec![(vault, held)], None));
}

async fn vaults_are_listed_by_owner(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let of_administrator = tenant.vault().await;
    let owner = principal("ann");
    let of_ann = Vault { id: VaultId::new(tenant.later(1), [1; 10]), owner: owner.clone(), ..of_administrator.clone() };
    fixture.ledger().create_vault(CreateVault { audit: tenant.audit(), vault: of_ann.clone() }).await.unwrap();

    let list = async |owner| {
        let page = fixture.ledger().vaults(&tenant.id, owner, PageRequest::first(10)).await.unwrap();
        page.items.into_iter().map(|(vault, _)| vault.id).collect::<Vec<_>>()
    };

    assert_eq!(list(Some(&owner)).await, [of_ann.id]);
    assert_eq!(list(Some(&tenant.administrator)).await, [of_administrator.id]);
    assert_eq!(list(None).await, [of_administrator.id, of_ann.id]);
    assert!(list(Some(&principal("nobody"))).await.is_empty());
}

async fn a_deleted_vault_ends_its_credentials_and_their_grants(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let vault = tenant.vault().await;
    let one = tenant.store_credential(tenant.new_credential(vault.id)).await;
    let two = tenant.store_credential(tenant.new_credential(vault.id)).await;
    let revoked_before = tenant.store_credential(tenant.new_credential(vault.id)).await;
    tenant.revoke_credential(revoked_before.id).await.unwrap();
    let direct = tenant.store_grant(tenant.new_grant(&one, &principal("billing"))).await.unwrap();
    let delegated = tenant.delegate(&direct, "worker").await.unwrap();
    let on_two = tenant.store_grant(tenant.new_grant(&two, &principal("billing"))).await.unwrap();
    let before = tenant.events().await.len();

    let deleted = tenant.delete_vault(vault.id).await.unwrap();

    assert_eq!((deleted.credentials, deleted.grants), (2, 3));
    for credential in [&one, &two] {
        let read = fixture.ledger().credential(&tenant.id, credential.id).await.unwrap().unwrap();
        assert_eq!(read.status(tenant.now()), CredentialStatus::Revoked);
        assert!(!has_material(&tenant, credential.id).await);
    }
    for grant in [&direct, &delegated, &on_two] {
        assert_eq!(tenant.standing(grant.id).await, GrantStatus::Revoked);
    }
    let left = "SELECT COUNT(*) FROM credential_versions WHERE ciphertext IS NOT NULL OR wrapped_key IS NOT NULL";
    assert_eq!(number(fixture, left).await, 0, "the material is destroyed");
    let events = tenant.events().await.split_off(before);
    let of_kind = |kind: &str| events.iter().filter(|event| event["type"] == kind).collect::<Vec<_>>();
    assert_eq!((of_kind("grant.revoked").len(), of_kind("credential.revoked").len(), events.len()), (3, 2, 6));
    let reason = format!("vault {} was deleted", vault.id);
    let revoked = of_kind("credential.revoked");
    let of_one = revoked.iter().find(|event| event["data"]["credential_id"] == json!(one.id)).unwrap();
    assert_eq!(of_one["data"], json!({"credential_id": one.id, "reason": reason, "affected_grants_count": 2}));
    let last = events.last().unwrap();
    assert_eq!(last["type"], "vault.deleted");
    assert_eq!(last["data"], json!({"vault_id": vault.id, "revoked_credentials": 2, "revoked_grants": 3}));
}

async fn deleting_a_vault_leaves_the_others_alone(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let kept = tenant.grant("billing").await;
    let empty = tenant.vault().await;

    let deleted = tenant.delete_vault(empty.id).await.unwrap();

    assert_eq!((deleted.credentials, deleted.grants), (0, 0));
    assert_eq!(tenant.standing(kept.id).await, GrantStatus::Active);
    assert!(has_material(&tenant, kept.credential).await);
}

async fn a_deleted_vault_is_as_if_it_had_never_been(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let vault = tenant.vault().await;
    tenant.delete_vault(vault.id).await.unwrap();

    assert_eq!(fixture.ledger().vault(&tenant.id, vault.id).await.unwrap(), None);
    assert!(fixture.ledger().vaults(&tenant.id, None, PageRequest::first(10)).await.unwrap().items.is_empty());
    refused(&tenant, Code::VaultNotFound, tenant.delete_vault(vault.id)).await;
    let late = CreateCredential {
        audit: tenant.audit(),
        credential: tenant.new_credential(vault.id),
        sealed: Some(sealed_under("first")),
    };
    refused(&tenant, Code::VaultNotFound, fixture.ledger().create_credential(late)).await;
}
