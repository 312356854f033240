//! The gate: who is calling, what they may administer, and the pipeline that every tool call runs through, together with
//! the ports through which the gate reaches the world. [`Gate`] assembles the parts.
//!
//! This room refuses protocols, SQL and sockets. A transport decodes, calls in here and encodes; the ledger, the vault and
//! the clock are traits.

pub mod authority;
pub mod builtin;
pub mod call;
pub mod catalog;
pub mod followers;
pub mod gate;
pub mod identify;
mod ids;
pub mod maintenance;
mod penalties;
pub mod ports;
pub mod refusal;
pub mod settings;

pub use gate::{Gate, Ports};
pub use identify::Caller;
pub use refusal::{Code, Refusal};
pub use settings::{ApprovalSettings, DetachedSettings, MachineTools, Settings};
