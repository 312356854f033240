//! The ledger: the ports of the gate on SQLite and on PostgreSQL, each beside the SQL of its noun.
//!
//! Each operation of the domain is written once, as an [`operation::Operation`] over the [`transaction::Transaction`]
//! trait, in the SQL that both engines share; an engine only knows how to run a transaction durably. This room refuses
//! to decide who may do what: it checks what must hold inside the transaction, and records it.

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
