//! Mounted MCP servers.

pub mod lint;
