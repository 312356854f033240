//! Test fixtures: a manual clock, databases on a private PostgreSQL, upstream services, the real binary as a process.
//!
//! Not part of the product. A fixture that cannot be set up panics with a message.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a fixture that cannot be made ends its test"
)]

pub mod clock;
pub mod cluster;
pub mod collector;
pub mod gate_process;
pub mod http;
pub mod key_proxy;
pub mod ledger_fixture;
pub mod mcp_conformance;
pub mod mcp_server;
pub mod nginx;
pub mod postgres;
pub mod token_signer;
pub mod trail;
pub mod upstream;
