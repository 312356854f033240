//! The transports: one folder per protocol. Each decodes a request, calls the gate and encodes the answer.
//!
//! This room refuses decisions: whatever is allowed or not is decided in the gate. No protocol knows a stage of it.

pub mod body;
pub mod caller;
pub mod listener;
pub mod openintent;
pub mod operations;
pub mod parameters;
pub mod router;

pub use listener::{Limits, serve};
pub use router::{App, router};
