//! Fixtures of the tests: a clock that stands still, databases on a private PostgreSQL, the real binary in a process. A
//! fixture that cannot be made ends its test with a sentence, so this crate may panic. Nothing here is part of the product.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a fixture that cannot be made ends its test"
)]

pub mod clock;
pub mod cluster;
pub mod gate_process;
pub mod http;
pub mod ledger_fixture;
pub mod nginx;
pub mod postgres;
pub mod trail;
pub mod upstream;
