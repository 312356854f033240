//! The ledger: the storage ports of the gate on SQLite and PostgreSQL.
//!
//! Each operation is written once, as an [`operation::Operation`] over the [`transaction::Transaction`] trait, in SQL
//! that both engines accept. It checks preconditions in its transaction and records the event; permissions are decided
//! in the gate.

mod batch_sizes;
pub mod cache;
mod known_heads;
pub mod ledger;
pub mod migration;
pub mod operation;
mod outage;
pub mod postgres;
mod renewed;
pub mod sql;
pub mod sqlite;
pub mod transaction;

pub use ledger::SqlLedger;
pub use postgres::PostgresEngine;
pub use sqlite::SqliteEngine;
