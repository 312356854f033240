//! Mounted MCP servers through the real program: nothing is usable before a person has accepted it, and nothing stays usable
//! that is not what was accepted.

pub mod accepted;
mod commands;
mod deciding;
pub mod declared;
mod office;
mod servers;
mod strangers;
