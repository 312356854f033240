//! Egress: the guarded HTTP client, the redaction of responses, and the adapters that execute calls to services.
//!
//! The only crate that opens outbound connections on behalf of a call. Authorization is decided in the gate.

mod adapter;
pub mod address;
pub mod body;
pub mod client;
pub mod collector;
mod connector;
pub mod connectors;
pub mod destination;
pub mod error;
mod events;
mod fetch;
pub mod guardian_link;
pub mod issuer_link;
pub mod mcp;
pub mod notice;
mod offload;
pub mod pool;
pub mod resolver;
pub mod standard_webhooks;
pub mod time;
mod tls;
