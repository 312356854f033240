//! Tasks of peers: an id belongs to one agent, and is forgotten with the grant that it was begun under.

use toolgate_gate::ports::ledger::{OwnTasks, OwnedTasks};
use toolgate_gate::refusal::Code;
use toolgate_model::a2a::Named;
use toolgate_model::credential::ServiceName;
use toolgate_model::id::GrantId;
use toolgate_model::principal::PrincipalId;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant};

use super::support::refused;

contract!(
    an_id_belongs_to_the_agent_that_had_it_first,
    peers_and_tenants_have_ids_of_their_own,
    beyond_the_limit_the_oldest_ids_are_forgotten,
    ids_are_forgotten_with_their_grant,
);

fn peer(name: &str) -> ServiceName {
    ServiceName::parse(name).unwrap()
}

fn named(tasks: &[&str], contexts: &[&str]) -> Named {
    let owned = |ids: &[&str]| ids.iter().map(|&id| id.to_owned()).collect();
    Named { tasks: owned(tasks), contexts: owned(contexts) }
}

fn own(tenant: &TestTenant, agent: &str, grant: GrantId, named: Named) -> OwnTasks {
    let (tenant_id, agent, time) = (tenant.id.clone(), PrincipalId::parse(agent).unwrap(), tenant.now());
    OwnTasks { tenant: tenant_id, peer: peer("travel"), agent, grant, named, time, limit: None }
}

async fn owned(tenant: &TestTenant, service: &str, agent: &str, named: Named) -> Named {
    let agent = PrincipalId::parse(agent).unwrap();
    let query = OwnedTasks { tenant: tenant.id.clone(), peer: peer(service), agent, named };
    tenant.ledger.owned_tasks(query).await.unwrap()
}

fn grant(tenant: &TestTenant, number: u8) -> GrantId {
    GrantId::new(tenant.now(), [number; 10])
}

async fn an_id_belongs_to_the_agent_that_had_it_first(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let one = named(&["t1"], &["c1"]);
    tenant.ledger.own_tasks(own(&tenant, "clerk", grant(&tenant, 1), one.clone())).await.unwrap();
    tenant.ledger.own_tasks(own(&tenant, "clerk", grant(&tenant, 2), one.clone())).await.unwrap();
    let taking = own(&tenant, "other", grant(&tenant, 3), named(&["t2", "t1"], &[]));
    refused(&tenant, Code::PeerResponseInvalid, tenant.ledger.own_tasks(taking)).await;
    assert_eq!(owned(&tenant, "travel", "clerk", named(&["t1", "t2"], &["c1"])).await, one);
    // A refused command changes nothing, and a context is no task.
    assert!(owned(&tenant, "travel", "other", named(&["t2", "c1"], &["t1"])).await.is_empty());
}

async fn peers_and_tenants_have_ids_of_their_own(fixture: &LedgerFixture) {
    let (tenant, elsewhere) = (fixture.tenant().await, fixture.tenant().await);
    let one = named(&["t1"], &[]);
    tenant.ledger.own_tasks(own(&tenant, "clerk", grant(&tenant, 1), one.clone())).await.unwrap();
    assert!(owned(&tenant, "finance", "clerk", one.clone()).await.is_empty());
    assert!(owned(&elsewhere, "travel", "clerk", one.clone()).await.is_empty());
    elsewhere.ledger.own_tasks(own(&elsewhere, "other", grant(&elsewhere, 1), one)).await.unwrap();
}

async fn beyond_the_limit_the_oldest_ids_are_forgotten(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    for number in 1..=4u8 {
        let id = format!("t{number}");
        let time = tenant.now().plus(std::time::Duration::from_secs(u64::from(number)));
        let command = own(&tenant, "clerk", grant(&tenant, number), named(&[&id], &[]));
        tenant.ledger.own_tasks(OwnTasks { time, limit: Some(2), ..command }).await.unwrap();
    }
    let known = owned(&tenant, "travel", "clerk", named(&["t1", "t2", "t3", "t4"], &[])).await;
    assert_eq!(known, named(&["t3", "t4"], &[]));
}

async fn ids_are_forgotten_with_their_grant(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let given = tenant.grant("clerk").await;
    tenant.ledger.own_tasks(own(&tenant, "clerk", given.id, named(&["t1"], &[]))).await.unwrap();
    let kept = grant(&tenant, 9);
    tenant.ledger.own_tasks(own(&tenant, "clerk", kept, named(&["t2"], &[]))).await.unwrap();
    tenant.revoke(given.id).await.unwrap();
    assert_eq!(owned(&tenant, "travel", "clerk", named(&["t1", "t2"], &[])).await, named(&["t2"], &[]));
}
