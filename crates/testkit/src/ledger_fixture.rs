//! A ledger for one test, on either engine, and tenants in it with an administrator, vaults, credentials and grants that
//! have sensible contents, so that a test states only what it is about.

use std::path::PathBuf;
use std::sync::Arc;

use toolgate_gate::ports::ledger::Ledger;
use toolgate_ledger::{PostgresEngine, SqlLedger, SqliteEngine};
use toolgate_model::checkpoint::SigningKey;

use crate::clock::TestClock;
use crate::postgres::TestDatabase;

pub use self::tenant::{SCOPES, TestTenant, principal, request, scopes, sealed_under};

mod tenant;

/// Connections of one replica to PostgreSQL.
const CONNECTIONS: usize = 16;

/// An empty ledger of one's own, with the clock that its tenants read.
pub struct LedgerFixture {
    // INVARIANT: dropped before `home`, which removes what it is stored in.
    ledger: Arc<dyn Ledger>,
    clock: TestClock,
    signer: Arc<SigningKey>,
    home: Home,
}

/// Where a ledger is kept.
pub enum Home {
    /// In a file of a temporary directory.
    Sqlite(tempfile::TempDir),
    /// In a database of the tests' PostgreSQL.
    Postgres(TestDatabase),
}

impl LedgerFixture {
    /// A ledger on SQLite.
    pub async fn sqlite() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let engine = SqliteEngine::open(&file_in(&directory)).expect("a ledger on SQLite");
        Self::new(Arc::new(SqlLedger::new(engine)), Home::Sqlite(directory))
    }

    /// A ledger on PostgreSQL.
    pub async fn postgres() -> Self {
        let database = TestDatabase::create().await;
        let ledger = open_postgres(database.url()).await;
        Self::new(ledger, Home::Postgres(database))
    }

    fn new(ledger: Arc<dyn Ledger>, home: Home) -> Self {
        let signer = SigningKey::from_seed(&[7; 32]).expect("a signing key");
        Self { ledger, clock: TestClock::new(), signer: Arc::new(signer), home }
    }

    /// The ledger.
    pub fn ledger(&self) -> &Arc<dyn Ledger> {
        &self.ledger
    }

    /// The clock.
    pub fn clock(&self) -> &TestClock {
        &self.clock
    }

    /// The key that signs the heads of the logs.
    pub fn signer(&self) -> &Arc<SigningKey> {
        &self.signer
    }

    /// Where it is kept.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Another way in, as another process has one: on PostgreSQL a second engine on the same database. Only one process
    /// at a time owns a ledger on SQLite, so there it is the same ledger.
    pub async fn replica(&self) -> Arc<dyn Ledger> {
        match &self.home {
            Home::Sqlite(_) => Arc::clone(&self.ledger),
            Home::Postgres(database) => open_postgres(database.url()).await,
        }
    }

    /// A new tenant with its administrator.
    pub async fn tenant(&self) -> TestTenant {
        TestTenant::create(self).await
    }
}

impl Home {
    /// The file of a ledger on SQLite.
    pub fn file(&self) -> Option<PathBuf> {
        match self {
            Self::Sqlite(directory) => Some(file_in(directory)),
            Self::Postgres(_) => None,
        }
    }

    /// The URL of a ledger on PostgreSQL.
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(database) => Some(database.url()),
        }
    }
}

fn file_in(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("ledger.db")
}

async fn open_postgres(url: &str) -> Arc<dyn Ledger> {
    let engine = PostgresEngine::open(url, CONNECTIONS).await.expect("a ledger on PostgreSQL");
    Arc::new(SqlLedger::new(engine))
}
