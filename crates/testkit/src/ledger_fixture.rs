//! A ledger for one test, on either engine, and tenants in it with an administrator, vaults, credentials and grants
//! with sensible contents, so that a test states only what it is about.

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
    // INVARIANT: dropped before `home`, which removes its files.
    ledger: Arc<dyn Ledger>,
    clock: TestClock,
    signer: Arc<SigningKey>,
    home: Home,
}

/// The place of a ledger.
pub enum Home {
    /// In a file of a temporary directory.
    Sqlite(tempfile::TempDir),
    /// In a database of the tests' PostgreSQL.
    Postgres(TestDatabase),
}

impl LedgerFixture {
    /// A ledger on SQLite.
    pub async fn sqlite() -> Self {
        Self::open(Home::Sqlite(tempfile::tempdir().expect("a temporary directory"))).await
    }

    /// A ledger on PostgreSQL.
    pub async fn postgres() -> Self {
        Self::open(Home::Postgres(TestDatabase::migrated().await)).await
    }

    /// Opens the ledger in this place, or a new one.
    pub async fn open(home: Home) -> Self {
        let ledger = match &home {
            Home::Sqlite(directory) => open_sqlite(directory),
            Home::Postgres(database) => open_postgres(database.url()).await,
        };
        let signer = SigningKey::from_seed(&[7; 32]).expect("a signing key");
        Self { ledger, clock: TestClock::new(), signer: Arc::new(signer), home }
    }

    /// Closes the ledger, unless something else holds it; its data stays.
    pub fn close(self) -> Home {
        self.home
    }

    pub fn ledger(&self) -> &Arc<dyn Ledger> {
        &self.ledger
    }

    pub fn clock(&self) -> &TestClock {
        &self.clock
    }

    /// The key that signs the heads of the logs.
    pub fn signer(&self) -> &Arc<SigningKey> {
        &self.signer
    }

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

fn open_sqlite(directory: &tempfile::TempDir) -> Arc<dyn Ledger> {
    let engine = SqliteEngine::open(&file_in(directory)).expect("a ledger on SQLite");
    Arc::new(SqlLedger::new(engine))
}

async fn open_postgres(url: &str) -> Arc<dyn Ledger> {
    let engine = PostgresEngine::open(url, CONNECTIONS, std::time::Duration::from_secs(60))
        .await
        .expect("a ledger on PostgreSQL");
    Arc::new(SqlLedger::new(engine))
}
