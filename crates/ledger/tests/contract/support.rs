//! Shared helpers: refusals without side effects, and direct reads of rows.

use std::future::Future;

use serde_json::Value;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant};

pub mod approvals;
pub mod calls;
pub mod guarding;
pub mod replicas;
pub mod work;

/// Asserts that the attempt is refused with this code and writes no event; returns the refusal.
pub async fn refused<T>(tenant: &TestTenant, code: Code, attempt: impl Future<Output = Result<T, Refusal>>) -> Refusal {
    let before = tenant.events().await.len();
    let Err(refusal) = attempt.await else { panic!("expected {}, and it was done", code.as_str()) };
    assert_eq!(refusal.code(), code, "{refusal}");
    assert_eq!(tenant.events().await.len(), before, "a refusal leaves no event");
    refusal
}

/// A detail of a refusal.
pub fn detail(refusal: &Refusal, name: &str) -> Value {
    refusal.details().find(|(own, _)| *own == name).map_or(Value::Null, |(_, value)| value.clone())
}

/// The one number that this statement returns, read directly from the database.
pub async fn number(fixture: &LedgerFixture, sql: &str) -> i64 {
    if let Some(file) = fixture.home().file() {
        let connection = rusqlite::Connection::open(file).unwrap();
        return connection.query_row(sql, [], |row| row.get(0)).unwrap();
    }
    let url = fixture.home().url().unwrap();
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.query_one(sql, &[]).await.unwrap().get(0)
}

/// Runs this statement past the port.
pub async fn run(fixture: &LedgerFixture, sql: &str) {
    if let Some(file) = fixture.home().file() {
        rusqlite::Connection::open(file).unwrap().execute_batch(sql).unwrap();
        return;
    }
    let url = fixture.home().url().unwrap();
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(sql).await.unwrap();
}
