//! gate
pub mod ports;
