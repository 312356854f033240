//! The operations of the ledger, one file per noun, each with the port that it implements. To add one: a command and a
//! method in the gate's port, and here the method and an [`Operation`]; an administrative change is an
//! [`administration::Administration`].

use std::future::Future;

use crate::sql::Failure;
use crate::transaction::Transaction;

pub mod administration;
pub mod admission;
mod agent_tasks;
pub mod approval_decisions;
pub mod approval_links;
pub mod approval_sessions;
pub mod approval_webhooks;
pub mod approvals;
pub mod audit;
mod audit_log;
pub mod buckets;
mod calls;
pub mod cascade;
pub mod closing;
pub mod consents;
pub mod credentials;
pub mod denial_counts;
pub mod detached;
mod detached_calls;
pub mod detached_lists;
pub mod event_batches;
pub mod event_lists;
pub mod event_news;
pub mod event_pages;
pub mod event_times;
pub mod expiry;
pub mod grant_lists;
pub mod grant_rows;
pub mod grants;
pub mod heads;
pub mod held_grants;
pub mod in_flight;
pub mod invocations;
pub mod keys;
pub mod listing;
pub mod marks;
pub mod master_keys;
mod mount_decisions;
mod mount_rows;
pub mod mounts;
pub mod newest;
pub mod policies;
pub mod principals;
pub mod processes;
pub mod rates;
pub mod reaping;
pub mod record;
pub mod services;
pub mod sessions;
pub mod settings;
pub mod settlement;
pub mod spending;
pub mod standing_approvals;
pub mod stores;
pub mod sweeping;
pub mod tenants;
pub mod tool_names;
pub mod vaults;
mod work;
pub mod workflow_rows;
pub mod workflows;

/// Something that happens in one transaction, entirely or not at all. It may be run again when another transaction was in
/// the way, so it must not change itself.
pub trait Operation: Send + Sync + 'static {
    type Output: Send + 'static;

    /// Whether it may change principals, grants or registrations: cached data about them is then read again.
    const CHANGES_AUTHORITY: bool = true;

    /// Whether it is not urgent: concurrent operations are then run and acknowledged before it.
    const CAN_WAIT: bool = false;

    fn run<T: Transaction>(&self, transaction: &mut T) -> impl Future<Output = Result<Self::Output, Failure>> + Send;
}

/// An operation on many commands of one kind with a reply for each. If it fails as a whole, each command can be run on
/// its own.
pub trait BatchOperation: Operation<Output = Vec<Self::Reply>> + Sized {
    type Command: Send + 'static;
    /// One command, with everything that could be prepared for it.
    type Part: Send + 'static;
    /// The reply to one command.
    type Reply: Send + 'static;

    /// Prepares what needs no transaction.
    fn ready(command: Self::Command) -> Result<Self::Part, Failure>;

    /// All of these together, with replies in this order.
    fn of(parts: Vec<Self::Part>) -> Self;

    /// The parts that it was made from.
    fn into_parts(self) -> Vec<Self::Part>;
}
