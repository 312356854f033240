//! The gate: authentication, administration, and the pipeline that every tool call runs through. [`Gate`] assembles the
//! parts.
//!
//! No protocols, SQL or sockets: transports call the gate, and the ledger, the vault, the tool sources and the clock
//! are traits in [`ports`].

pub mod action;
pub mod authority;
pub mod builtin;
pub mod call;
pub mod catalog;
pub mod distribution;
pub mod followers;
pub mod gate;
pub mod identify;
mod ids;
pub mod maintenance;
mod penalties;
pub mod ports;
pub mod refusal;
pub mod request_context;
pub mod settings;

pub use action::Action;
pub use gate::{Gate, Ports};
pub use identify::Caller;
pub use refusal::{Code, Refusal};
pub use settings::{ApprovalSettings, DetachedSettings, MachineTools, SampleRatio, Settings};
