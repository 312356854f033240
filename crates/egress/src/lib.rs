//! Egress: the only room that opens sockets to the outside on behalf of a call. It owns the guarded client, the
//! redaction of answers and the connector adapters; it refuses to decide who may call what.

mod adapter;
pub mod address;
pub mod body;
pub mod client;
mod connector;
pub mod connectors;
pub mod destination;
pub mod error;
mod fetch;
pub mod guardian_link;
pub mod notice;
mod offload;
pub mod pool;
pub mod resolver;
pub mod standard_webhooks;
pub mod time;
mod tls;
