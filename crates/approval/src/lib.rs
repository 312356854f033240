//! Approvals: where calls wait for an approver, what the approver is shown, and what a decision covers.
//!
//! This crate owns the broker, which is the gate's `Approver` and the only part that waits, and the pure rules around it: the
//! shell recogniser, standing approvals, risks, offers. It refuses IO: what is kept is kept by the ledger, and the time
//! comes from the clock that it is given.

mod arguments;
mod broker;
pub mod coverage;
#[cfg(test)]
mod fixture;
mod glance;
mod links;
pub mod offers;
pub mod parts;
mod place;
pub mod risk;
pub mod shell;
pub mod visible;

pub use self::broker::ApprovalBroker;
pub use self::links::{Links, NoLinks};
