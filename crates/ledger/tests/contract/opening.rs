//! Opening a ledger: what was stored is there again, and what this program does not understand is left alone.

use toolgate_ledger::{PostgresEngine, SqlLedger, SqliteEngine};
use toolgate_model::grant::GrantStatus;
use toolgate_testkit::ledger_fixture::LedgerFixture;
use toolgate_testkit::postgres::TestDatabase;

#[tokio::test]
async fn a_ledger_on_sqlite_is_there_again_when_it_is_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ledger.db");
    let first = LedgerFixture::sqlite().await;
    let tenant = first.tenant().await;
    let open = || std::sync::Arc::new(SqlLedger::new(SqliteEngine::open(&file).unwrap()));
    let ledger = open();
    let tenant = tenant.through(ledger);
    tenant.ledger.create_tenant(tenant.creation()).await.unwrap();
    let grant = tenant.grant("billing").await;
    tenant.suspend(grant.id).await.unwrap();
    let (clock, events) = (tenant.clock.clone(), tenant.events().await);

    let parts = first.tenant().await;
    let mut again = parts.through(reopened(tenant.clone(), open).await);
    again.id = tenant.id;
    drop(clock);

    assert_eq!(again.standing(grant.id).await, GrantStatus::Suspended);
    assert_eq!(again.events().await, events);
}
