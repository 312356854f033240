//! Concurrent operations: the invariants hold in any order, and no caller is told to retry.

use std::future::Future;

use tokio::task::JoinSet;
use toolgate_gate::ports::ledger::{CreateCredential, GrantFilter, PageRequest, RotateCredential};
use toolgate_gate::ports::sealer::MasterKeyId;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::credential::Credential;
use toolgate_model::grant::{Grant, GrantStatus};
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal, sealed_under};

contract!(
    a_revocation_racing_delegations_leaves_no_live_descendant,
    the_revocation_of_a_credential_racing_delegations_leaves_no_live_grant,
    the_deletion_of_a_vault_racing_delegations_leaves_no_live_grant,
    the_removal_of_an_agent_racing_delegations_leaves_no_live_grant,
    the_removal_of_an_agent_racing_grants_to_it_leaves_it_none,
    the_deletion_of_a_vault_racing_new_credentials_leaves_none_alive,
    of_many_rotations_of_one_version_one_succeeds,
    a_key_retired_while_material_is_stored_wraps_nothing,
    everything_at_once_ends_without_anybody_being_turned_away,
);

const ROUNDS: usize = 20;
const DELEGATIONS: usize = 64;

/// The tenant through two replicas, which take turns.
struct Replicas([TestTenant; 2]);

impl Replicas {
    async fn of(fixture: &LedgerFixture) -> Self {
        let tenant = fixture.tenant().await;
        let there = tenant.through(fixture.replica().await);
        Self([tenant, there])
    }

    fn here(&self) -> &TestTenant {
        &self.0[0]
    }

    fn turn(&self, number: usize) -> TestTenant {
        self.0[number % 2].clone()
    }
}

/// A direct grant on a credential, with one delegated from it.
async fn pair(tenant: &TestTenant, credential: &Credential) -> [Grant; 2] {
    let root = tenant.store_grant(tenant.new_grant(credential, &principal("coordinator"))).await.unwrap();
    let child = tenant.delegate(&root, "worker").await.unwrap();
    [root, child]
}

/// Runs 64 delegations, half from each grant of the pair, with `ending` somewhere among them. Returns how many were
/// made, and the result of the ending.
async fn race<T: Send + 'static>(
    replicas: &Replicas,
    sources: &[Grant; 2],
    round: usize,
    ending: impl Future<Output = Result<T, Refusal>> + Send + 'static,
) -> (usize, T) {
    let mut delegations = JoinSet::new();
    let mut ending = Some(ending);
    let mut ended = None;
    for number in 0..DELEGATIONS {
        // Another position in every round.
        if number == round * 3 % DELEGATIONS {
            ended = ending.take().map(tokio::spawn);
        }
        let tenant = replicas.turn(number);
        let source = sources[number / 2 % 2].clone();
        delegations.spawn(async move { tenant.delegate(&source, "late").await });
    }
    let answer = ended.unwrap().await.unwrap().expect("the ending succeeds");
    let mut made = 0;
    while let Some(outcome) = delegations.join_next().await {
        match outcome.unwrap() {
            Ok(_) => made += 1,
            Err(refusal) => {
                let expected = [Code::GrantRevoked, Code::CredentialRevoked];
                assert!(expected.contains(&refusal.code()), "{}: {refusal}", refusal.code().as_str());
            }
        }
    }
    (made, answer)
}

async fn assert_all_revoked(replicas: &Replicas, root: &Grant, made: usize, counted: u64) {
    for tenant in &replicas.0 {
        assert_eq!(tenant.standing(root.id).await, GrantStatus::Revoked);
        let below = tenant.ledger.descendants(&tenant.id, root.id, 1000).await.unwrap();
        assert_eq!(below.len(), made + 1, "what was acknowledged is there, and nothing else");
        for grant in below {
            assert!(grant.revoked_at.is_some(), "{} is alive below {}", grant.id, root.id);
        }
    }
    // Everything that was made before the ending was counted by it, and nothing was made after it.
    assert_eq!(counted, u64::try_from(made + 2).unwrap());
}

async fn a_revocation_racing_delegations_leaves_no_live_descendant(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let credential = replicas.here().credential().await;
    for round in 0..ROUNDS {
        let sources = pair(replicas.here(), &credential).await;
        let (tenant, root) = (replicas.turn(round), sources[0].id);
        let (made, revoked) = race(&replicas, &sources, round, async move { tenant.revoke(root).await }).await;
        assert_all_revoked(&replicas, &sources[0], made, revoked.grants).await;
    }
}

async fn the_revocation_of_a_credential_racing_delegations_leaves_no_live_grant(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    for round in 0..ROUNDS / 2 {
        let credential = replicas.here().credential().await;
        let sources = pair(replicas.here(), &credential).await;
        let tenant = replicas.turn(round);
        let ending = async move { tenant.revoke_credential(credential.id).await };
        let (made, revoked) = race(&replicas, &sources, round, ending).await;
        assert_all_revoked(&replicas, &sources[0], made, revoked.grants).await;
    }
}

async fn the_deletion_of_a_vault_racing_delegations_leaves_no_live_grant(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    for round in 0..ROUNDS / 2 {
        let credential = replicas.here().credential().await;
        let sources = pair(replicas.here(), &credential).await;
        let tenant = replicas.turn(round);
        let ending = async move { tenant.delete_vault(credential.vault).await };
        let (made, deleted) = race(&replicas, &sources, round, ending).await;
        assert_all_revoked(&replicas, &sources[0], made, deleted.grants).await;
    }
}

async fn the_removal_of_an_agent_racing_delegations_leaves_no_live_grant(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    for round in 0..ROUNDS / 2 {
        let credential = replicas.here().credential().await;
        let agent = replicas.here().agent(&format!("coordinator-{round}")).await;
        let root = replicas.here().store_grant(replicas.here().new_grant(&credential, &agent)).await.unwrap();
        let child = replicas.here().delegate(&root, "worker").await.unwrap();
        let tenant = replicas.turn(round);
        let ending = async move { tenant.remove(&agent).await };
        let (made, removed) = race(&replicas, &[root.clone(), child], round, ending).await;
        assert_all_revoked(&replicas, &root, made, removed.grants).await;
    }
}

async fn the_removal_of_an_agent_racing_grants_to_it_leaves_it_none(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let credential = replicas.here().credential().await;
    let root = replicas.here().store_grant(replicas.here().new_grant(&credential, &principal("boss"))).await.unwrap();
    for round in 0..ROUNDS / 2 {
        let name = format!("agent-{round}");
        let agent = replicas.here().agent(&name).await;
        let mut attempts = JoinSet::new();
        for number in 0..32 {
            let (tenant, root, name) = (replicas.turn(number), root.clone(), name.clone());
            let grant = tenant.new_grant(&credential, &agent);
            attempts.spawn(async move {
                match number {
                    n if n == round * 3 => tenant.remove(&principal(&name)).await.map(drop),
                    n if n % 2 == 0 => tenant.delegate(&root, &name).await.map(drop),
                    _ => tenant.store_grant(grant).await.map(drop),
                }
            });
        }
        while let Some(outcome) = attempts.join_next().await {
            if let Err(refusal) = outcome.unwrap() {
                assert_eq!(refusal.code(), Code::AgentNotFound, "{refusal}");
            }
        }
        let active = GrantFilter {
            agent: Some(agent),
            status: Some(GrantStatus::Active),
            ..GrantFilter::all(replicas.here().now())
        };
        let page = PageRequest::first(100);
        let tenant = replicas.turn(round);
        assert!(tenant.ledger.grants(&tenant.id, active, page).await.unwrap().items.is_empty());
    }
}

async fn the_deletion_of_a_vault_racing_new_credentials_leaves_none_alive(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    for round in 0..ROUNDS / 2 {
        let vault = replicas.here().vault().await;
        let mut attempts = JoinSet::new();
        for number in 0..32 {
            let tenant = replicas.turn(number);
            let create = CreateCredential {
                audit: tenant.audit(),
                credential: tenant.new_credential(vault.id),
                sealed: Some(sealed_under("first")),
            };
            attempts.spawn(async move {
                if number == round * 3 {
                    return tenant.delete_vault(vault.id).await.map(drop);
                }
                tenant.ledger.create_credential(create).await
            });
        }
        while let Some(outcome) = attempts.join_next().await {
            if let Err(refusal) = outcome.unwrap() {
                assert_eq!(refusal.code(), Code::VaultNotFound, "{refusal}");
            }
        }
        let tenant = replicas.turn(round);
        let page = PageRequest::first(100);
        for credential in tenant.ledger.credentials(&tenant.id, Some(vault.id), page).await.unwrap().items {
            assert!(credential.revoked_at.is_some(), "{} is alive in a deleted vault", credential.id);
        }
    }
}

async fn of_many_rotations_of_one_version_one_succeeds(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let mut credential = replicas.here().credential().await;
    for _ in 0..5 {
        let mut attempts = JoinSet::new();
        for number in 0..16 {
            let tenant = replicas.turn(number);
            let rotation = tenant.rotation(&credential);
            attempts.spawn(async move { tenant.ledger.rotate_credential(rotation).await });
        }
        let mut rotated = Vec::new();
        while let Some(outcome) = attempts.join_next().await {
            match outcome.unwrap() {
                Ok(credential) => rotated.push(credential),
                Err(refusal) => assert_eq!(refusal.code(), Code::VersionConflict, "{refusal}"),
            }
        }
        assert_eq!(rotated.len(), 1);
        assert_eq!(rotated[0].version, credential.version + 1);
        credential = rotated.remove(0);
    }
}

async fn a_key_retired_while_material_is_stored_wraps_nothing(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let vault = replicas.here().vault().await;
    for round in 0..ROUNDS {
        let key = format!("key-{round}");
        // Registered in advance, so that the first writer does not make the others wait.
        replicas.here().ledger.register_key(&MasterKeyId(key.clone())).await.unwrap();
        let mut attempts = JoinSet::new();
        for number in 0..8 {
            let tenant = replicas.turn(number);
            let create = CreateCredential {
                audit: tenant.audit(),
                credential: tenant.new_credential(vault.id),
                sealed: Some(sealed_under(&key)),
            };
            let key = MasterKeyId(key.clone());
            attempts.spawn(async move {
                if number == round % 8 {
                    return tenant.ledger.retire_key(&key, tenant.now()).await.map(drop);
                }
                tenant.ledger.create_credential(create).await
            });
        }
        while let Some(outcome) = attempts.join_next().await {
            if let Err(refusal) = outcome.unwrap() {
                assert_eq!(refusal.code(), Code::MasterKeyRetired, "{refusal}");
            }
        }
        let usage = replicas.turn(round).ledger.key_usage().await.unwrap();
        let usage = usage.into_iter().find(|usage| usage.key.0 == key).unwrap();
        assert!(usage.retired_at.is_none() || usage.wraps == 0, "{usage:?}");
    }
}

async fn everything_at_once_ends_without_anybody_being_turned_away(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    for round in 0..5 {
        let here = replicas.here();
        let credential = here.credential().await;
        let agent = here.agent(&format!("coordinator-{round}")).await;
        let mut root = here.new_grant(&credential, &agent);
        root.authority.expires_at = Some(here.later(3600));
        let root = here.store_grant(root).await.unwrap();
        let child = here.delegate(&root, "worker").await.unwrap();
        let leaf = here.delegate(&child, "sub-worker").await.unwrap();
        let mut attempts = JoinSet::new();
        for number in 0..200 {
            let (tenant, credential, agent) = (replicas.turn(number), credential.clone(), agent.clone());
            let grants = [root.clone(), child.clone(), leaf.clone()];
            attempts.spawn(async move {
                let grant = &grants[number / 11 % 3];
                match number % 11 {
                    0 => tenant.suspend(grant.id).await.map(drop),
                    1 => tenant.resume(grant.id).await.map(drop),
                    2 => {
                        let rotation = RotateCredential { expected_version: 1, ..tenant.rotation(&credential) };
                        tenant.ledger.rotate_credential(rotation).await.map(drop)
                    }
                    3 => tenant.ledger.announce_expired(tenant.later(3600)).await.map(drop),
                    4 => tenant.ledger.destroy_retired(tenant.later(3600)).await.map(drop),
                    5 if number > 100 => tenant.revoke(grant.id).await.map(drop),
                    6 if number > 170 => tenant.revoke_credential(credential.id).await.map(drop),
                    7 if number > 150 => tenant.remove(&agent).await.map(drop),
                    8 => {
                        tenant.integrate().await;
                        Ok(())
                    }
                    _ => tenant.delegate(grant, "late").await.map(drop),
                }
            });
        }
        while let Some(outcome) = attempts.join_next().await {
            if let Err(refusal) = outcome.unwrap() {
                assert_ne!(refusal.code(), Code::LedgerUnavailable, "{refusal}");
                assert_ne!(refusal.code(), Code::Internal, "{refusal}");
            }
        }
    }
}
