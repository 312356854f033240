//! The operations of the ledger, one file per noun. To add one: a command in the gate's port, a method in the port's
//! trait, and an [`Operation`] here.

use std::future::Future;

use crate::sql::Failure;
use crate::transaction::Transaction;

pub mod admission;
pub mod audit;
pub mod cascade;
pub mod closing;
pub mod credentials;
pub mod expiry;
pub mod grant_lists;
pub mod grant_rows;
pub mod grants;
pub mod holdings;
pub mod invocations;
pub mod listing;
pub mod master_keys;
pub mod principals;
pub mod rates;
pub mod record;
pub mod services;
pub mod settings;
pub mod settlement;
pub mod tenants;
pub mod vaults;

/// Something that happens in one transaction, entirely or not at all. It may be run again when another transaction was in
/// the way, so it must not change itself.
pub trait Operation: Send + Sync + 'static {
    /// What it answers.
    type Output: Send + 'static;

    /// Whether it may change who exists, what is granted or what is registered: what is remembered of that is then read
    /// anew.
    const CHANGES_AUTHORITY: bool = true;

    /// Whether it may refuse after it has written something, so that it must be undone by itself. One that refuses before
    /// goes without that; only a fault of the database in it then ends the transaction that it shares with others.
    const IS_UNDONE_ALONE: bool = true;

    /// Does it.
    fn run<T: Transaction>(&self, transaction: &mut T) -> impl Future<Output = Result<Self::Output, Failure>> + Send;
}
