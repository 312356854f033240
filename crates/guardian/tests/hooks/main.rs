//! Questions of other runtimes against the gate itself, on a real ledger and with the real policies: what a hook answers
//! is never more than what the same call through the gate would get.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "this is a test, and its helpers too"
)]

mod executed;
mod office;
mod person;
mod properties;
mod refusals;
mod results;
