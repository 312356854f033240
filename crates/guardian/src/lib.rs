//! Guardians: the policy engine, detectors, external guardians, and the combination of their verdicts on a call before
//! it runs and on its result before it is returned.
//!
//! Stores nothing and opens no sockets: external guardians are reached through a port.

pub mod composition;
pub mod detector;
pub mod policy;
pub mod remote;
pub mod selector;
mod time;
