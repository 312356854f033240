//! The ledger on PostgreSQL: any number of replicas, coordinated only by transactions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, QueueMode, RecyclingMethod, Runtime, Timeouts};
use thiserror::Error;
use tokio::time::Instant;
use tokio_postgres::{Config, IsolationLevel, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;
use toolgate_gate::ports::ledger::{Admission, Admit, EngineStatistics, Generation, Settle};
use toolgate_gate::refusal::{Code, Refusal};

use self::address::DatabaseAddress;
use self::batch::Batches;
use self::lease::Lease;
use self::transaction::{PostgresTransaction, sql_error};
use crate::ledger::Engine;
use crate::migration::{POSTGRES, TooNew, outstanding};
use crate::operation::admission::AdmitAll;
use crate::operation::settlement::SettleAll;
use crate::operation::{BatchOperation, Operation};
use crate::sql::{Failure, SqlError, unavailable};

mod address;
mod batch;
mod change;
mod lease;
mod tls;
mod transaction;

/// How often an operation is retried after a conflict with another transaction.
const ATTEMPTS: u32 = 8;
/// The number of connections reserved for calls, which are admitted and settled in batches: one batch of each at a
/// time. They are opened on the thread that sends the batches, so that their results wake no other thread.
const BATCHING: usize = 2;
/// The lock under which replicas migrate one at a time.
const MIGRATION_LOCK: i64 = 0x7467_6d69_6772;
/// The oldest server version whose behaviour the statements rely on.
const OLDEST_SERVER: i64 = 150_000;

/// The ledger cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The URL is no PostgreSQL URL.
    #[error("the database URL is not valid ({0}); write it as postgres://user@host:5432/name")]
    Url(String),
    #[error("PostgreSQL cannot be used as the ledger: {0}")]
    Server(String),
    /// TLS cannot be set up.
    #[error("TLS to PostgreSQL cannot be set up: {0}")]
    Tls(String),
    /// A newer program wrote it.
    #[error(transparent)]
    TooNew(#[from] TooNew),
    /// The server is too old.
    #[error("PostgreSQL 15 or later is required, and the server is {0}")]
    TooOld(String),
}

/// A ledger in a PostgreSQL database.
pub struct PostgresEngine {
    connections: Connections,
    admissions: Batches<Arc<Admit>, Admission>,
    settlements: Batches<Arc<Settle>, ()>,
}

/// The pool, and the known generation of authority.
#[derive(Clone)]
struct Connections {
    pool: Pool,
    tls: Option<MakeRustlsConnect>,
    address: Arc<DatabaseAddress>,
    timeout: Duration,
    generation: Arc<AtomicU64>,
}

impl PostgresEngine {
    /// Connects, checks the server and migrates if needed. The timeout covers one whole transaction: the wait for a
    /// connection, all statements and the commit. The server has its own timeouts, which do not help if it hangs or is
    /// unreachable.
    pub async fn open(url: &str, connections: usize, timeout: Duration) -> Result<Self, OpenError> {
        let mut config: Config =
            url.parse().map_err(|error: tokio_postgres::Error| OpenError::Url(error.to_string()))?;
        address::set_timeouts(&mut config);
        let address = Arc::new(DatabaseAddress::of(&config));
        let tls = tls::connector(&config)?;
        let of_calls = pool(config.clone(), tls.clone(), BATCHING, timeout)?;
        let pool = pool(config, tls.clone(), connections.saturating_sub(BATCHING).max(1), timeout)?;
        let connections = Connections { pool, tls, address, timeout, generation: Arc::new(AtomicU64::new(1)) };
        connections.check_server().await?;
        connections.migrate().await?;
        let admitting = Connections { pool: of_calls, ..connections.clone() };
        let settling = admitting.clone();
        Ok(Self {
            connections,
            admissions: Batches::start(move |commands| {
                let connections = admitting.clone();
                async move { connections.write(together::<AdmitAll>(commands)?).await }
            }),
            settlements: Batches::start(move |commands: Vec<Arc<Settle>>| {
                let connections = settling.clone();
                async move { connections.write(together::<SettleAll>(commands)?).await }
            }),
        })
    }
}

/// The server, database and role of a URL, without the password.
pub fn address(url: &str) -> Option<String> {
    url.parse().ok().map(|config| DatabaseAddress::of(&config).to_string())
}

impl Connections {
    async fn check_server(&self) -> Result<(), OpenError> {
        let client = self.client().await.map_err(|error| OpenError::Server(error.to_string()))?;
        let failed = |error: tokio_postgres::Error| OpenError::Server(sql_error(&error).to_string());
        let sql = "SELECT current_setting('server_version_num')::bigint, current_setting('server_version')";
        let row = client.query_one(sql, &[]).await.map_err(failed)?;
        if row.get::<_, i64>(0) < OLDEST_SERVER {
            return Err(OpenError::TooOld(row.get(1)));
        }
        Ok(())
    }

    async fn migrate(&self) -> Result<(), OpenError> {
        let mut client = self.client().await.map_err(|error| OpenError::Server(error.to_string()))?;
        let failed = |error: tokio_postgres::Error| OpenError::Server(sql_error(&error).to_string());
        let transaction = client.transaction().await.map_err(failed)?;
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK]).await.map_err(failed)?;
        let create = "CREATE TABLE IF NOT EXISTS schema_migrations (number BIGINT PRIMARY KEY)";
        transaction.batch_execute(create).await.map_err(failed)?;
        let sql = "SELECT COALESCE(MAX(number), 0) FROM schema_migrations";
        let found: i64 = transaction.query_one(sql, &[]).await.map_err(failed)?.get(0);
        for migration in outstanding(POSTGRES, found)? {
            transaction.batch_execute(migration.sql).await.map_err(failed)?;
            let note = "INSERT INTO schema_migrations (number) VALUES ($1)";
            transaction.execute(note, &[&migration.number]).await.map_err(failed)?;
        }
        transaction.commit().await.map_err(failed)
    }

    /// The size of the database in bytes.
    async fn size(&self) -> Result<u64, Refusal> {
        let failed = |error: SqlError| Failure::Sql(error).into_refusal();
        let client = self.client().await.map_err(failed)?;
        let row = client.query_one("SELECT pg_database_size(current_database())", &[]).await;
        let bytes: i64 = row.map_err(|error| failed(sql_error(&error)))?.get(0);
        Ok(u64::try_from(bytes).unwrap_or(0))
    }

    async fn vacuum(&self, tables: &[&str]) -> Result<(), SqlError> {
        let client = self.client().await?;
        let statement = format!("VACUUM {}", tables.join(", "));
        client.batch_execute(&statement).await.map_err(|error| sql_error(&error))
    }

    async fn client(&self) -> Result<deadpool_postgres::Object, SqlError> {
        self.pool.get().await.map_err(|error| SqlError::Unavailable(self.address.failure(&error)))
    }

    async fn write_once<O: Operation>(&self, operation: &O) -> Result<O::Output, Failure> {
        let deadline = Instant::now() + self.timeout;
        let mut lease = self.lease(deadline).await?;
        let committing = AtomicBool::new(false);
        let written = tokio::time::timeout_at(deadline, write_on(&mut lease, operation, &committing)).await;
        match written {
            Ok(outcome) => {
                lease.give_back();
                outcome
            }
            Err(_) => {
                self.close_silent(lease);
                Err(if committing.into_inner() { unconfirmed(&self.address.silent()) } else { self.silent() })
            }
        }
    }

    async fn read_once<O: Operation>(&self, operation: &O) -> Result<O::Output, Failure> {
        let deadline = Instant::now() + self.timeout;
        let mut lease = self.lease(deadline).await?;
        match tokio::time::timeout_at(deadline, read_on(&mut lease, operation)).await {
            Ok(outcome) => {
                lease.give_back();
                outcome
            }
            Err(_) => {
                self.close_silent(lease);
                Err(self.silent())
            }
        }
    }

    async fn lease(&self, deadline: Instant) -> Result<Lease, Failure> {
        let client = tokio::time::timeout_at(deadline, self.client()).await.map_err(|_| self.silent())?;
        Ok(Lease::new(client?, self.tls.clone()))
    }

    /// Closes a connection that fell silent. Those that wait in the pool may have fallen silent with it: each would cost its
    /// next user a timeout, and new ones may work.
    fn close_silent(&self, lease: Lease) {
        lease.close();
        self.pool.retain(|_, _| false);
    }

    fn silent(&self) -> Failure {
        SqlError::Unavailable(self.address.silent()).into()
    }
}

async fn write_on<O: Operation>(
    lease: &mut Lease,
    operation: &O,
    committing: &AtomicBool,
) -> Result<O::Output, Failure> {
    let client = lease.client().ok_or_else(unavailable)?;
    let transaction = client.transaction().await.map_err(|error| sql_error(&error))?;
    let mut transaction = PostgresTransaction::new(transaction);
    let output = operation.run(&mut transaction).await?;
    committing.store(true, Ordering::Release);
    transaction.commit().await.map_err(|error| match sql_error(&error) {
        // Refused by the server: certainly not committed.
        busy @ SqlError::Busy(_) if !error.is_closed() => Failure::Sql(busy),
        reason => unconfirmed(&reason.to_string()),
    })?;
    Ok(output)
}

async fn read_on<O: Operation>(lease: &mut Lease, operation: &O) -> Result<O::Output, Failure> {
    let client = lease.client().ok_or_else(unavailable)?;
    let snapshot = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
    let transaction = snapshot.start().await.map_err(|error| sql_error(&error))?;
    operation.run(&mut PostgresTransaction::new(transaction)).await
}

fn unconfirmed(reason: &str) -> Failure {
    tracing::error!(reason, "the ledger did not confirm a commit");
    let said = "the ledger did not confirm the change; check whether it was made before trying again";
    Failure::Refused(Refusal::new(Code::LedgerUnavailable, said))
}

impl Connections {
    async fn write<O: Operation>(&self, operation: O) -> Result<O::Output, Refusal> {
        let mut outcome = Err(unavailable());
        for _ in 0..ATTEMPTS {
            match self.write_once(&operation).await {
                Err(Failure::Sql(SqlError::Busy(reason))) => tracing::debug!(%reason, "retrying an operation"),
                other => {
                    outcome = other.map_err(Failure::into_refusal);
                    break;
                }
            }
        }
        if O::CHANGES_AUTHORITY {
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
        outcome
    }

    async fn read<O: Operation>(&self, operation: O) -> Result<O::Output, Refusal> {
        for _ in 0..ATTEMPTS {
            match self.read_once(&operation).await {
                Err(Failure::Sql(SqlError::Busy(reason))) => tracing::debug!(%reason, "retrying a read"),
                other => return other.map_err(Failure::into_refusal),
            }
        }
        Err(unavailable())
    }
}

impl Engine for PostgresEngine {
    // Other replicas change things too.
    const SEES_EVERY_CHANGE: bool = false;
    const IS_SHARED: bool = true;

    fn generation(&self) -> Generation {
        self.connections.generation.load(Ordering::Acquire)
    }

    async fn write<O: Operation>(&self, operation: O) -> Result<O::Output, Refusal> {
        self.connections.write(operation).await
    }

    async fn read<O: Operation>(&self, operation: O) -> Result<O::Output, Refusal> {
        self.connections.read(operation).await
    }

    async fn erase(&self, tables: &[&str]) -> Result<bool, Refusal> {
        self.connections.vacuum(tables).await.map_err(|error| Failure::Sql(error).into_refusal())?;
        Ok(true)
    }

    async fn statistics(&self) -> Result<EngineStatistics, Refusal> {
        let pool = self.connections.pool.status();
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        Ok(EngineStatistics {
            bytes: self.connections.size().await?,
            wal_bytes: None,
            queued: self.admissions.queued().saturating_add(self.settlements.queued()),
            batches: self.admissions.sizes().with(&self.settlements.sizes()),
            pool_connections: count(pool.max_size),
            pool_connections_in_use: count(pool.size.saturating_sub(pool.available)),
        })
    }

    async fn admit(&self, command: Arc<Admit>) -> Result<Admission, Refusal> {
        self.admissions.submit(command).await
    }

    async fn settle(&self, command: Arc<Settle>) -> Result<(), Refusal> {
        self.settlements.submit(command).await
    }
}

fn together<J: BatchOperation>(commands: Vec<J::Command>) -> Result<J, Refusal> {
    let parts = commands.into_iter().map(J::ready).collect::<Result<_, _>>().map_err(Failure::into_refusal)?;
    Ok(J::of(parts))
}

fn pool(
    config: Config,
    tls: Option<MakeRustlsConnect>,
    connections: usize,
    timeout: Duration,
) -> Result<Pool, OpenError> {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = match tls {
        Some(connector) => Manager::from_config(config, connector, recycling),
        None => Manager::from_config(config, NoTls, recycling),
    };
    let wait = Some(timeout.min(Duration::from_secs(5)));
    let statement_timeout = timeout.as_millis();
    Pool::builder(manager)
        .max_size(connections)
        // The connection that was used last has the statements prepared and the tables cached.
        .queue_mode(QueueMode::Lifo)
        .runtime(Runtime::Tokio1)
        .timeouts(Timeouts { wait, create: wait, recycle: wait })
        .post_create(Hook::async_fn(move |client, _| {
            Box::pin(async move {
                // A server configured to acknowledge before the disk write would break durability.
                let settings = format!(
                    "SET lock_timeout = '10s'; SET statement_timeout = {statement_timeout}; \
                     SET idle_in_transaction_session_timeout = '60s'; \
                     SET client_connection_check_interval = '2s'; \
                     SELECT set_config('synchronous_commit', 'on', false) \
                     WHERE current_setting('synchronous_commit') = 'off'"
                );
                client.batch_execute(&settings).await.map_err(HookError::Backend)
            })
        }))
        .build()
        .map_err(|error| OpenError::Server(error.to_string()))
}
