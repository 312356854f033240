//! Guardians: what is said about a call before it runs and about its result before it is used. The policy engine, the
//! detectors that it redacts by, guardians of others, and how their verdicts become one. Stores nothing, opens no sockets.

pub mod composition;
pub mod detector;
pub mod policy;
pub mod remote;
pub mod selector;
mod time;
