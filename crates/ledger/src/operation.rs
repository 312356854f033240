//! The operations of the ledger, one file per noun. To add one: a command in the gate's port, a method in the port's
//! trait, and an [`Operation`] here.

use std::future::Future;

use crate::sql::Failure;
use crate::transaction::Transaction;

pub mod audit;
pub mod cascade;
pub mod credentials;
pub mod expiry;
pub mod grant_lists;
pub mod grant_rows;
pub mod grants;
pub mod listing;
pub mod master_keys;
pub mod principals;
pub mod record;
pub mod settings;
pub mod tenants;
pub mod vaults;

/// Something that happens in one transaction, entirely or not at all. It may be run again when another transaction was in
/// the way, so it must not change itself.
pub trait Operation: Send + Sync + 'static {
    /// What it answers.
    type Output: Send + 'static;

    /// Does it.
    fn run<T: Transaction>(&self, transaction: &mut T) -> impl Future<Output = Result<Self::Output, Failure>> + Send;
}
