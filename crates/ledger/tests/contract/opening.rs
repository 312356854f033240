//! Opening a ledger: stored data is there again, and what this program does not understand is left alone.

use toolgate_ledger::{PostgresEngine, SqliteEngine, postgres, sqlite};
use toolgate_model::grant::GrantStatus;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant};

#[tokio::test]
async fn a_ledger_on_sqlite_is_all_there_when_it_is_opened_again() {
    assert_kept(LedgerFixture::sqlite().await).await;
}

#[tokio::test]
async fn a_ledger_on_postgres_is_all_there_when_it_is_opened_again() {
    assert_kept(LedgerFixture::postgres().await).await;
}

async fn assert_kept(fixture: LedgerFixture) {
    let tenant = fixture.tenant().await;
    let grant = tenant.grant("billing").await;
    tenant.suspend(grant.id).await.unwrap();
    let events = tenant.events().await;
    let id = tenant.id.clone();
    drop(tenant);

    let again = LedgerFixture::open(fixture.close()).await;

    let tenant = TestTenant::existing(&again, id);
    assert_eq!(tenant.standing(grant.id).await, GrantStatus::Suspended);
    assert_eq!(tenant.events().await, events);
    tenant.resume(grant.id).await.unwrap();
    assert_eq!(tenant.events().await.len(), events.len() + 1);
}

#[tokio::test]
async fn a_file_that_another_process_owns_is_refused() {
    let fixture = LedgerFixture::sqlite().await;
    let refused = SqliteEngine::open(&fixture.home().file().unwrap()).err().unwrap();
    assert!(matches!(refused, sqlite::OpenError::InUse { .. }), "{refused}");
}

#[tokio::test]
async fn a_file_of_a_newer_toolgate_is_refused() {
    let home = LedgerFixture::sqlite().await.close();
    let file = home.file().unwrap();
    rusqlite::Connection::open(&file).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let refused = SqliteEngine::open(&file).err().unwrap();
    assert!(matches!(refused, sqlite::OpenError::TooNew(_)), "{refused}");
}

#[tokio::test]
async fn a_database_of_a_newer_toolgate_is_refused() {
    let home = LedgerFixture::postgres().await.close();
    let url = home.url().unwrap();
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("INSERT INTO schema_migrations (number) VALUES (99)").await.unwrap();
    let refused = PostgresEngine::open(url, 1, std::time::Duration::from_secs(60)).await.err().unwrap();
    assert!(matches!(refused, postgres::OpenError::TooNew(_)), "{refused}");
}

#[tokio::test]
async fn replicas_that_start_at_the_same_moment_migrate_once() {
    let database = toolgate_testkit::postgres::TestDatabase::create().await;
    let opening = (0..8).map(|_| PostgresEngine::open(database.url(), 2, std::time::Duration::from_secs(60)));
    for opened in futures_util::future::join_all(opening).await {
        opened.unwrap();
    }
}
