//! Requests whose callers disconnect in the middle of a query, on PostgreSQL.

use std::pin::pin;
use std::time::Duration;

use tokio_postgres::{Client, NoTls};
use toolgate_gate::ports::ledger::{AuditLog, LedgerState};
use toolgate_ledger::{PostgresEngine, SqlLedger};
use toolgate_testkit::ledger_fixture::LedgerFixture;

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// How many queries wait for a lock in this database.
async fn waiting(client: &Client) -> i64 {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn an_abandoned_query_is_cancelled_and_holds_up_nobody_on_its_connection() {
    let fixture = LedgerFixture::postgres().await;
    let tenant = fixture.tenant().await;
    let url = fixture.home().url().unwrap();
    // One connection for everything but admissions and settlements.
    let ledger = SqlLedger::new(PostgresEngine::open(url, 3, Duration::from_secs(60)).await.unwrap());
    let (mut owner, watcher) = (connect(url).await, connect(url).await);
    let lock = owner.transaction().await.unwrap();
    lock.batch_execute("LOCK TABLE heads IN ACCESS EXCLUSIVE MODE").await.unwrap();
    {
        let mut reading = pin!(ledger.log_head(&tenant.id));
        loop {
            tokio::select! {
                biased;
                _ = &mut reading => panic!("it waits for the lock"),
                count = waiting(&watcher) => if count == 1 { break },
            }
        }
    }

    // Half of the time that the server itself would wait for the lock.
    let next = tokio::time::timeout(Duration::from_secs(5), ledger.setting("nothing")).await;

    assert_eq!(next.expect("it does not wait for what was abandoned"), Ok(None));
    assert_eq!(waiting(&watcher).await, 0, "and nothing goes on waiting at the server");
    lock.rollback().await.unwrap();
    assert_eq!(ledger.log_head(&tenant.id).await, Ok(None));
}
