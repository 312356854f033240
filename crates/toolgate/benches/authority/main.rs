//! What authority costs: look-up and delegation in small and large ledgers, cascades, durable events, the catalog, calls
//! beside calls that wait, an idle gate. Every figure stands beside a baseline of the same run, since absolute times say more about the machine than about Toolgate.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    missing_docs,
    reason = "a benchmark may stop at the first surprise"
)]

mod approvals;
mod cascade;
mod catalog;
mod events;
mod idle;
mod lookup;
mod seed;
mod table;

use std::sync::Arc;

use tempfile::TempDir;
use toolgate_gate::ports::ledger::Ledger;
use toolgate_ledger::{PostgresEngine, SqlLedger, SqliteEngine};
use toolgate_testkit::postgres::TestDatabase;

use self::seed::Seeder;

/// A ledger on one engine, with a way to fill it past its front door.
pub struct Subject {
    pub name: &'static str,
    pub ledger: Arc<dyn Ledger>,
    pub seeder: Seeder,
    _directory: Option<TempDir>,
    _database: Option<TestDatabase>,
}

pub async fn sqlite() -> Subject {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("ledger.sqlite3");
    let ledger = Arc::new(SqlLedger::new(SqliteEngine::open(&path).unwrap()));
    let seeder = Seeder::sqlite(&path);
    Subject { name: "SQLite", ledger, seeder, _directory: Some(directory), _database: None }
}

pub async fn postgres() -> Subject {
    let database = TestDatabase::create().await;
    let engine = PostgresEngine::open(database.url(), 64, std::time::Duration::from_secs(60)).await.unwrap();
    let seeder = Seeder::postgres(database.url()).await;
    let ledger = Arc::new(SqlLedger::new(engine));
    Subject { name: "PostgreSQL", ledger, seeder, _directory: None, _database: Some(database) }
}

/// Runs the parts that are named, or all.
#[tokio::main]
async fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let run = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    if run("lookup") {
        lookup::run().await;
    }
    if run("cascade") {
        cascade::run().await;
    }
    if run("events") {
        events::run().await;
    }
    if run("catalog") {
        catalog::run();
    }
    if run("approvals") {
        approvals::run();
    }
    if run("idle") {
        idle::run();
    }
}
