//! Approvals: the broker in which calls wait for a decision, what approvers are shown, and what a decision covers.
//!
//! [`ApprovalBroker`] implements the gate's `Approver` port; the rest (shell parser, standing approvals, risks, offers)
//! is pure. State is stored through the ledger ports, and time comes from the injected clock.

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

pub use self::broker::ApprovalBroker;
pub use self::links::{Links, NoLinks};
pub use toolgate_model::visible;
