//! Approvals through the real binary: nothing runs before the answer, the answer covers exactly what was shown, and nobody
//! answering means no.

mod answering;
mod coverage;
mod crash;
mod detached;
mod endings;
mod links;
mod modes;
pub mod office;
mod quorum;
mod race;
mod replicas;
mod stream;
mod webhooks;
