//! Freshness: after any change, the next read of the newest state includes it, on every replica; a recent read is at
//! most moments old.

use toolgate_gate::ports::ledger::{ApplyService, Freshness, NewExpiry, RemoveService, RevokeKey, RotateCredential};
use toolgate_model::credential::{Credential, ServiceName};
use toolgate_model::grant::GrantStatus;
use toolgate_model::id::GrantId;
use toolgate_model::key::digest_of;
use toolgate_model::principal::PrincipalId;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant};

use super::services::definition;

contract!(
    the_newest_tells_every_change_of_a_grant,
    the_newest_tells_every_change_of_a_credential,
    the_newest_tells_every_end_of_a_caller,
    the_newest_tells_every_change_of_the_registry,
    what_did_not_change_is_told_again,
    another_tenant_is_never_told,
);

/// A summary of the reads of the pipeline.
#[derive(Debug, Clone, PartialEq)]
struct View {
    /// The grants of the agent, each with its standing and the version of its credential.
    held: Vec<(GrantId, GrantStatus, u32)>,
    /// The revision of the registry and its number of versions.
    registry: (u64, usize),
    /// Whether the key is valid.
    key: bool,
    /// The version of the material.
    sealed: Option<u32>,
}

struct World {
    here: TestTenant,
    there: TestTenant,
    agent: PrincipalId,
    key: String,
    credential: Credential,
    /// Whether no read is ever older than the last change.
    always_newest: bool,
}

impl World {
    /// An agent with a key, a credential, and a registry; nothing granted yet.
    async fn new(fixture: &LedgerFixture) -> (Self, View) {
        let here = fixture.tenant().await;
        let there = here.through(fixture.replica().await);
        let agent = here.agent("billing").await;
        let key = format!("key in {}", here.id);
        here.key(&agent, &key).await;
        let credential = here.credential().await;
        let always_newest = fixture.home().file().is_some();
        let view = View { held: vec![], registry: (0, 0), key: true, sealed: Some(1) };
        let world = Self { here, there, agent, key, credential, always_newest };
        world.assert_told(&view).await;
        (world, view)
    }

    async fn view(&self, at: &TestTenant, freshness: Freshness) -> View {
        let (ledger, id, now) = (&at.ledger, &at.id, at.now());
        let held = ledger.held_grants(id, &self.agent, now, freshness).await.unwrap();
        let registry = ledger.registry(id, now, freshness).await.unwrap();
        let caller = ledger.identify(&digest_of(&self.key), now, freshness).await.unwrap();
        let sealed = ledger.sealed_material(id, self.credential.id, now, freshness).await.unwrap();
        let line = |one: &std::sync::Arc<toolgate_gate::ports::ledger::HeldGrant>| {
            (one.grant(), one.lineage.standing(now).status, one.credential.version)
        };
        View {
            held: held.held.iter().map(line).collect(),
            registry: (registry.revision, registry.services.len()),
            key: caller.is_some_and(|found| found.1.revoked_at.is_none() && found.0.removed_at.is_none()),
            sealed: sealed.map(|sealed| sealed.binding.version()),
        }
    }

    /// Asserts that all replicas see this after a change that was made here.
    async fn assert_told(&self, expected: &View) {
        // The replica that made the change sees it at once, even with recent reads.
        assert_eq!(self.view(&self.here, Freshness::Recent).await, *expected, "recent, here");
        for at in [&self.here, &self.there] {
            assert_eq!(self.view(at, Freshness::Newest).await, *expected);
            assert_eq!(self.view(at, Freshness::Newest).await, *expected, "again");
        }
        if self.always_newest {
            assert_eq!(self.view(&self.there, Freshness::Recent).await, *expected, "recent, on SQLite");
        }
    }

    /// Asserts that a change made elsewhere is seen within a second even with recent reads.
    async fn assert_told_soon(&self, expected: &View) {
        self.here.wait(1);
        assert_eq!(self.view(&self.there, Freshness::Recent).await, *expected, "a second later");
    }
}

async fn the_newest_tells_every_change_of_a_grant(fixture: &LedgerFixture) {
    let (world, mut view) = World::new(fixture).await;
    let tenant = &world.here;

    let grant = tenant.store_grant(tenant.new_grant(&world.credential, &world.agent)).await.unwrap();
    view.held = vec![(grant.id, GrantStatus::Active, 1)];
    world.assert_told(&view).await;
    world.assert_told_soon(&view).await;

    tenant.suspend(grant.id).await.unwrap();
    view.held[0].1 = GrantStatus::Suspended;
    world.assert_told(&view).await;

    tenant.resume(grant.id).await.unwrap();
    view.held[0].1 = GrantStatus::Active;
    world.assert_told(&view).await;

    tenant.revoke(grant.id).await.unwrap();
    view.held.clear();
    world.assert_told(&view).await;

    // Delegated to the agent, then ended far above it.
    let root = tenant.store_grant(tenant.new_grant(&world.credential, &tenant.administrator)).await.unwrap();
    let middle = tenant.delegate(&root, "middle").await.unwrap();
    let leaf = tenant.delegate(&middle, world.agent.as_str()).await.unwrap();
    view.held = vec![(leaf.id, GrantStatus::Active, 1)];
    world.assert_told(&view).await;
    tenant.suspend(root.id).await.unwrap();
    view.held[0].1 = GrantStatus::Suspended;
    world.assert_told(&view).await;
    tenant.revoke(root.id).await.unwrap();
    view.held.clear();
    world.assert_told(&view).await;
    world.assert_told_soon(&view).await;
}

async fn the_newest_tells_every_change_of_a_credential(fixture: &LedgerFixture) {
    let (mut world, mut view) = World::new(fixture).await;
    let tenant = world.here.clone();
    let grant = tenant.store_grant(tenant.new_grant(&world.credential, &world.agent)).await.unwrap();
    view.held = vec![(grant.id, GrantStatus::Active, 1)];
    world.assert_told(&view).await;

    for version in [2, 3, 4, 5] {
        // By a person, and by renewal.
        let end = if version % 2 == 0 { NewExpiry::Later } else { NewExpiry::Same };
        let rotation = RotateCredential { end, ..tenant.rotation(&world.credential) };
        let before = tenant.ledger.generation();
        world.credential = tenant.ledger.rotate_credential(rotation).await.unwrap();
        let moved = tenant.ledger.generation() != before;
        assert_eq!(moved, end == NewExpiry::Later, "a renewal leaves what is known of all others");
        (view.held[0].2, view.sealed) = (version, Some(version));
        world.assert_told(&view).await;
    }

    tenant.revoke_credential(world.credential.id).await.unwrap();
    view.held.clear();
    view.sealed = None;
    world.assert_told(&view).await;

    world.credential = tenant.credential().await;
    let grant = tenant.store_grant(tenant.new_grant(&world.credential, &world.agent)).await.unwrap();
    (view.held, view.sealed) = (vec![(grant.id, GrantStatus::Active, 1)], Some(1));
    world.assert_told(&view).await;
    tenant.delete_vault(world.credential.vault).await.unwrap();
    (view.held, view.sealed) = (vec![], None);
    world.assert_told(&view).await;
    world.assert_told_soon(&view).await;
}

async fn the_newest_tells_every_end_of_a_caller(fixture: &LedgerFixture) {
    let (mut world, mut view) = World::new(fixture).await;
    let tenant = world.here.clone();
    let grant = tenant.store_grant(tenant.new_grant(&world.credential, &world.agent)).await.unwrap();
    view.held = vec![(grant.id, GrantStatus::Active, 1)];
    world.assert_told(&view).await;
    let found = tenant.ledger.identify(&digest_of(&world.key), tenant.now(), Freshness::Newest).await.unwrap().unwrap();

    tenant.ledger.revoke_key(RevokeKey { audit: tenant.audit(), id: found.1.id }).await.unwrap();
    view.key = false;
    world.assert_told(&view).await;
    world.assert_told_soon(&view).await;

    world.key = format!("another key in {}", tenant.id);
    world.assert_told(&view).await;
    tenant.key(&world.agent, &world.key).await;
    view.key = true;
    world.assert_told(&view).await;

    tenant.remove(&world.agent).await.unwrap();
    (view.key, view.held) = (false, vec![]);
    world.assert_told(&view).await;
    world.assert_told_soon(&view).await;
}

async fn the_newest_tells_every_change_of_the_registry(fixture: &LedgerFixture) {
    let (world, mut view) = World::new(fixture).await;
    let tenant = &world.here;
    for (version, registry) in [("1", (1, 1)), ("2", (2, 2)), ("1", (3, 2))] {
        let definition = definition("stripe", version);
        tenant.ledger.apply_service(ApplyService { audit: tenant.audit(), definition, replace: true }).await.unwrap();
        view.registry = registry;
        world.assert_told(&view).await;
    }
    let service = ServiceName::parse("stripe").unwrap();
    tenant.ledger.remove_service(RemoveService { audit: tenant.audit(), service, version: None }).await.unwrap();
    view.registry = (4, 0);
    world.assert_told(&view).await;
    world.assert_told_soon(&view).await;
}

async fn what_did_not_change_is_told_again(fixture: &LedgerFixture) {
    let (world, mut view) = World::new(fixture).await;
    let tenant = &world.here;
    let grant = tenant.store_grant(tenant.new_grant(&world.credential, &world.agent)).await.unwrap();
    view.held = vec![(grant.id, GrantStatus::Active, 1)];
    world.assert_told(&view).await;
    // Unrelated changes, which invalidate cached reads or not.
    let other = fixture.tenant().await;
    other.grant("billing").await;
    tenant.agent("newcomer").await;
    tenant.integrate().await;
    world.assert_told(&view).await;
    tenant.wait(3600);
    world.assert_told(&view).await;
}

async fn another_tenant_is_never_told(fixture: &LedgerFixture) {
    let (world, _) = World::new(fixture).await;
    let tenant = &world.here;
    tenant.store_grant(tenant.new_grant(&world.credential, &world.agent)).await.unwrap();
    world.view(tenant, Freshness::Recent).await;
    let other = fixture.tenant().await;
    for freshness in [Freshness::Recent, Freshness::Newest] {
        let view = world.view(&other, freshness).await;
        assert_eq!((view.held, view.registry, view.sealed), (vec![], (0, 0), None));
    }
}
