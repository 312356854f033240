//! Isolation of tenants: an object of another tenant is reported exactly like one that does not exist.

use std::fmt::Debug;

use toolgate_gate::ports::ledger::*;
use toolgate_gate::refusal::Refusal;
use toolgate_model::credential::Credential;
use toolgate_model::grant::{Grant, GrantStatus};
use toolgate_model::id::{CredentialId, KeyId, VaultId};
use toolgate_model::principal::PrincipalId;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal, sealed_under};

contract!(
    the_things_of_another_tenant_are_answered_like_things_that_do_not_exist,
    nothing_of_another_tenant_is_listed,
    grants_of_another_tenant_are_not_in_reach_of_a_filter,
);

struct Things {
    agent: PrincipalId,
    key: KeyId,
    credential: Credential,
    grant: Grant,
}

impl Things {
    async fn of(tenant: &TestTenant) -> Self {
        let agent = tenant.agent("coordinator").await;
        let key = tenant.key(&agent, &format!("key in {}", tenant.id)).await.id;
        let credential = tenant.credential().await;
        let grant = tenant.store_grant(tenant.new_grant(&credential, &agent)).await.unwrap();
        tenant.delegate(&grant, "worker").await.unwrap();
        Self { agent, key, credential, grant }
    }

    /// Ids that were never given out.
    fn unknown(like: &Self, tenant: &TestTenant) -> Self {
        let mut credential = like.credential.clone();
        credential.id = CredentialId::new(tenant.now(), [1; 10]);
        credential.vault = VaultId::new(tenant.now(), [2; 10]);
        let mut grant = like.grant.clone();
        (grant.id, grant.credential) = (tenant.grant_id(), credential.id);
        Self { agent: principal("stranger"), key: KeyId::new(tenant.now(), [3; 10]), credential, grant }
    }

    /// The text without the ids of these objects, so that only the message remains.
    fn anonymous(&self, text: &str) -> String {
        let ids = [
            self.agent.to_string(),
            self.key.to_string(),
            self.credential.id.to_string(),
            self.credential.vault.to_string(),
            self.grant.id.to_string(),
        ];
        ids.iter().fold(text.to_owned(), |text, id| text.replace(id, "ID"))
    }

    fn told<T: Debug>(&self, result: &Result<T, Refusal>) -> String {
        self.anonymous(&format!("{result:?}"))
    }
}

/// The results of every operation that takes an id, for a caller of this tenant.
async fn answers(caller: &TestTenant, things: &Things) -> Vec<(&'static str, String)> {
    let (ledger, id) = (&caller.ledger, &caller.id);
    let (credential, grant) = (&things.credential, &things.grant);
    let page = || PageRequest::first(10);
    let mut own_credential = caller.new_credential(credential.vault);
    own_credential.tenant = id.clone();
    let own_grant = caller.new_grant(credential, &principal("intruder"));
    let create =
        CreateCredential { audit: caller.audit(), credential: own_credential, sealed: Some(sealed_under("first")) };
    let key = CreateKey { audit: caller.audit(), key: caller.new_key(&things.agent, "stolen") };
    let on_credential = GrantFilter { credential: Some(credential.id), ..GrantFilter::all(caller.now()) };
    let below = GrantFilter { source_grant: Some(grant.id), ..GrantFilter::all(caller.now()) };
    let sealed =
        ledger.sealed_material(id, credential.id, caller.now(), Freshness::Newest).await.map(|sealed| sealed.is_some());
    vec![
        ("principal", things.told(&ledger.principal(id, &things.agent).await)),
        ("remove_principal", things.told(&caller.remove(&things.agent).await)),
        ("create_key", things.told(&ledger.create_key(key).await)),
        ("keys", things.told(&ledger.keys(id, &things.agent).await)),
        ("key", things.told(&ledger.key(id, things.key).await)),
        ("revoke_key", things.told(&ledger.revoke_key(RevokeKey { audit: caller.audit(), id: things.key }).await)),
        ("vault", things.told(&ledger.vault(id, credential.vault).await)),
        ("delete_vault", things.told(&caller.delete_vault(credential.vault).await)),
        ("create_credential", things.told(&ledger.create_credential(create).await)),
        ("credential", things.told(&ledger.credential(id, credential.id).await)),
        ("credentials", things.told(&ledger.credentials(id, Some(credential.vault), page()).await)),
        ("rotate_credential", things.told(&ledger.rotate_credential(caller.rotation(credential)).await)),
        ("revoke_credential", things.told(&caller.revoke_credential(credential.id).await)),
        ("sealed_material", things.told(&sealed)),
        ("create_grant", things.told(&caller.store_grant(own_grant).await)),
        ("delegate_grant", things.told(&caller.delegate(grant, "intruder").await)),
        ("lineage", things.told(&ledger.lineage(id, grant.id).await)),
        ("grants", things.told(&ledger.grants(id, on_credential, page()).await)),
        ("grants below", things.told(&ledger.grants(id, below, page()).await)),
        ("descendants", things.told(&ledger.descendants(id, grant.id, 10).await)),
        ("revoke_grant", things.told(&caller.revoke(grant.id).await)),
        ("suspend_grant", things.told(&caller.suspend(grant.id).await)),
        ("resume_grant", things.told(&caller.resume(grant.id).await)),
    ]
}

async fn the_things_of_another_tenant_are_answered_like_things_that_do_not_exist(fixture: &LedgerFixture) {
    let (owner, intruder) = (fixture.tenant().await, fixture.tenant().await);
    let things = Things::of(&owner).await;
    let unknown = Things::unknown(&things, &owner);
    let (events_of_owner, events_of_intruder) = (owner.events().await, intruder.events().await);

    let about_others = answers(&intruder, &things).await;
    let about_nothing = answers(&intruder, &unknown).await;

    for (about_other, about_none) in about_others.iter().zip(&about_nothing) {
        assert_eq!(about_other, about_none);
    }
    assert_eq!(owner.events().await, events_of_owner, "nothing happened");
    assert_eq!(intruder.events().await, events_of_intruder, "nothing was done");
    assert_eq!(owner.standing(things.grant.id).await, GrantStatus::Active);
    let credential = fixture.ledger().credential(&owner.id, things.credential.id).await.unwrap();
    assert_eq!(credential, Some(things.credential));
}

async fn nothing_of_another_tenant_is_listed(fixture: &LedgerFixture) {
    let (owner, other) = (fixture.tenant().await, fixture.tenant().await);
    Things::of(&owner).await;
    let ledger = fixture.ledger();
    let page = || PageRequest::first(100);

    let principals = ledger.principals(&other.id, page()).await.unwrap().items;
    assert_eq!(principals.len(), 1);
    assert_eq!(principals[0].id, other.administrator);
    assert!(ledger.vaults(&other.id, None, page()).await.unwrap().items.is_empty());
    assert!(ledger.vaults(&other.id, Some(&owner.administrator), page()).await.unwrap().items.is_empty());
    assert!(ledger.credentials(&other.id, None, page()).await.unwrap().items.is_empty());
    assert!(ledger.grants(&other.id, GrantFilter::all(other.now()), page()).await.unwrap().items.is_empty());
    assert_eq!(other.events().await.len(), 3, "its own beginning");
}

async fn grants_of_another_tenant_are_not_in_reach_of_a_filter(fixture: &LedgerFixture) {
    let (one, other) = (fixture.tenant().await, fixture.tenant().await);
    Things::of(&one).await;
    let things = Things::of(&other).await;
    // Both tenants have an administrator of the same name, who owns the vaults of each.
    let filter = GrantFilter { vault_owner: Some(one.administrator.clone()), ..GrantFilter::all(one.now()) };

    let found = fixture.ledger().grants(&other.id, filter, PageRequest::first(10)).await.unwrap().items;

    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|lineage| lineage.grant().credential == things.credential.id));
}
