//! A ledger only grows: a log that is behind a signed head, or is another log, is detected.

use std::sync::Arc;

use toolgate_gate::ports::ledger::{AuditContext, Freshness, LogHead, LogRollback, RecordRollback};
use toolgate_gate::refusal::Code;
use toolgate_model::checkpoint::TreeHead;
use toolgate_model::key::digest_of;
use toolgate_model::merkle::leaf_hash;
use toolgate_model::principal::TenantId;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant};

use super::support::calls::Caller;
use super::support::{number, run};

contract!(
    a_log_that_goes_on_from_what_is_known_is_the_right_one,
    a_log_that_is_shorter_or_another_one_or_missing_is_a_setback,
    a_ledger_that_goes_back_while_it_is_used_refuses_everything,
    a_second_history_is_not_signed,
    heads_that_another_replica_signed_are_learned,
    an_accepted_rollback_is_an_event_of_the_log,
);

async fn head(tenant: &TestTenant) -> LogHead {
    tenant.integrate().await;
    tenant.ledger.log_head(&tenant.id).await.unwrap().expect("a head")
}

/// Puts a head back, as a restored copy of the database would.
async fn put_back(fixture: &LedgerFixture, head: &LogHead) {
    let hex: String = head.head.root.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let root = if fixture.home().file().is_some() { format!("x'{hex}'") } else { format!("'\\x{hex}'::bytea") };
    let sql =
        format!("UPDATE heads SET size = {}, root = {root} WHERE tenant = '{}'", head.head.size, head.head.tenant);
    run(fixture, &sql).await;
}

fn with(head: &LogHead, change: impl FnOnce(&mut TreeHead)) -> LogHead {
    let mut changed = head.clone();
    change(&mut changed.head);
    changed
}

async fn a_log_that_goes_on_from_what_is_known_is_the_right_one(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let mut known = vec![head(&tenant).await];
    for _ in 0..5 {
        for _ in 0..61 {
            tenant.vault().await;
        }
        known.push(head(&tenant).await);
    }
    for earlier in &known {
        let log_rollbacks = fixture.replica().await.compare_heads(std::slice::from_ref(earlier)).await.unwrap();
        assert_eq!(log_rollbacks, [], "from {} events", earlier.head.size);
    }
    assert_eq!(fixture.ledger().compare_heads(&[]).await.unwrap(), [], "nothing is known at the first start");
}

async fn a_log_that_is_shorter_or_another_one_or_missing_is_a_setback(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let earlier = head(&tenant).await;
    tenant.vault().await;
    let newest = head(&tenant).await;
    let elsewhere = TenantId::parse("elsewhere").unwrap();
    let cases = [
        (with(&newest, |head| head.size += 1), "events expected, 4 found"),
        (with(&newest, |head| head.root = leaf_hash(b"other")), "do not begin with those"),
        (with(&earlier, |head| head.root = leaf_hash(b"other")), "do not begin with those"),
        (with(&newest, |head| head.tenant = elsewhere.clone()), "4 events expected, no log found"),
    ];
    for (known, said) in cases {
        let log_rollbacks = fixture.replica().await.compare_heads(std::slice::from_ref(&known)).await.unwrap();
        let [log_rollback] = log_rollbacks.as_slice() else { panic!("one setback: {log_rollbacks:?}") };
        assert_eq!(log_rollback.known, known.head);
        let shown = log_rollback.to_string();
        assert!(shown.contains(said) && shown.contains(known.head.tenant.as_str()), "{shown}");
    }
}

async fn a_ledger_that_goes_back_while_it_is_used_refuses_everything(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let admission = caller.call(&grant).await;
    let (tenant, ledger) = (&caller.tenant, fixture.ledger());
    let earlier = head(tenant).await;
    ledger.watch_heads().await.unwrap();
    tenant.vault().await;
    let newest = head(tenant).await;
    ledger.watch_heads().await.unwrap();
    let (_, known) = ledger.known_heads(0).unwrap();
    assert!(known.contains(&newest), "{known:?}");

    put_back(fixture, &earlier).await;

    let refusal = ledger.watch_heads().await.unwrap_err();
    assert_eq!(refusal.code(), Code::LedgerRolledBack);
    let sizes = format!("{} events expected, {} found", newest.head.size, earlier.head.size);
    assert!(refusal.reason().contains(&sizes), "{refusal}");
    let code = |refused: toolgate_gate::refusal::Refusal| refused.code();
    let digest = digest_of("some key");
    let refused = [
        ledger.check().await.map_err(code),
        ledger.admit(Arc::new(admission)).await.map(drop).map_err(code),
        ledger.identify(&digest, tenant.now(), Freshness::Newest).await.map(drop).map_err(code),
        ledger.integrate(Arc::clone(fixture.signer()), tenant.now()).await.map(drop).map_err(code),
        ledger.watch_heads().await.map(drop).map_err(code),
    ];
    assert_eq!(refused, [Err(Code::LedgerRolledBack); 5]);

    // Also once the newest is restored: it is unknown what was decided in the meantime.
    put_back(fixture, &newest).await;
    assert_eq!(ledger.watch_heads().await.unwrap_err().code(), Code::LedgerRolledBack);
    assert_eq!(fixture.replica().await.compare_heads(&known).await.unwrap(), []);
}

async fn a_second_history_is_not_signed(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let earlier = head(&tenant).await;
    tenant.vault().await;
    head(&tenant).await;
    put_back(fixture, &earlier).await;
    tenant.vault().await;

    let refused = fixture.ledger().integrate(Arc::clone(fixture.signer()), tenant.now()).await.unwrap_err();

    assert_eq!(refused.code(), Code::LedgerRolledBack, "{refused}");
    let size = number(fixture, &format!("SELECT size FROM heads WHERE tenant = '{}'", tenant.id)).await;
    assert_eq!(size, i64::try_from(earlier.head.size).unwrap());
    assert_eq!(fixture.ledger().check().await.unwrap_err().code(), Code::LedgerRolledBack);
}

async fn heads_that_another_replica_signed_are_learned(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    head(&tenant).await;
    let replica = fixture.replica().await;
    replica.watch_heads().await.unwrap();
    let (seen, _) = replica.known_heads(0).unwrap();
    assert_eq!(replica.known_heads(seen), None, "nothing new");
    for _ in 0..70 {
        tenant.vault().await;
    }
    let newest = head(&tenant).await;

    replica.watch_heads().await.unwrap();

    let (later, known) = replica.known_heads(seen).unwrap();
    assert!(later > seen && known == [newest], "{known:?}");
}

async fn an_accepted_rollback_is_an_event_of_the_log(fixture: &LedgerFixture) {
    let (platform, tenant) = (fixture.tenant().await, fixture.tenant().await);
    let found = head(&tenant).await.head;
    let known = TreeHead { size: found.size + 5, ..found.clone() };
    let lost = TreeHead { tenant: TenantId::parse("lost").unwrap(), ..known.clone() };
    let log_rollbacks = vec![
        LogRollback { known: known.clone(), found: Some(found.clone()) },
        LogRollback { known: lost, found: None },
    ];

    let audit: AuditContext = platform.audit();
    fixture.ledger().record_rollback(RecordRollback { audit: audit.clone(), log_rollbacks }).await.unwrap();
    fixture.ledger().record_rollback(RecordRollback { audit, log_rollbacks: Vec::new() }).await.unwrap();

    let own = tenant.events_of("ledger.rollback_accepted").await;
    let [own] = own.as_slice() else { panic!("one event: {own:?}") };
    assert_eq!(own["data"]["known_size"], known.size);
    assert_eq!(own["data"]["found_size"], found.size);
    assert_eq!(own["data"]["found_root"], found.root.to_string());
    let others = platform.events_of("ledger.rollback_accepted").await;
    let tenants: Vec<_> = others.iter().map(|event| event["data"]["tenant_id"].clone()).collect();
    assert_eq!(tenants, [serde_json::json!("lost"), serde_json::Value::Null]);
}
