//! The gate: who is calling, what they may administer, and (from the first call on) the one path that every tool call
//! walks, together with the ports through which the gate reaches the world.
//!
//! This room refuses protocols, SQL and sockets. A transport decodes, calls in here and encodes; the ledger, the vault and
//! the clock are traits.

pub mod authority;
pub mod builtin;
pub mod call;
pub mod catalog;
mod debts;
pub mod followers;
pub mod gate;
pub mod identify;
mod ids;
pub mod ports;
pub mod refusal;

pub use gate::{ApprovalSettings, DetachedSettings, Gate, MachineTools, Ports, Settings};
pub use identify::Caller;
pub use refusal::{Code, Refusal};
