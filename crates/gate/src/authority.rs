//! Administration of authority: tenants, principals, keys, vaults, credentials, grants, the audit log. Each function takes
//! the [`crate::Caller`], checks what it may see and do, and hands one command to the ledger.
//!
//! What a caller may not see is answered like what does not exist.

pub mod access;
mod allowlists;
mod approval_links;
pub mod approvals;
pub mod audit;
pub mod bootstrap;
pub mod credentials;
pub mod descriptors;
pub mod discovery;
pub mod grants;
mod history;
pub mod invocations;
pub mod master_keys;
pub mod policies;
pub mod principals;
pub mod services;
pub mod tenants;
pub mod vaults;
