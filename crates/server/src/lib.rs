//! The transports, one module per protocol: each decodes a request, calls the gate and encodes the response.
//!
//! No authorization is decided here, and no transport depends on a stage of the pipeline.

mod a2a;
mod accepted;
pub mod aos;
pub mod approvals;
pub mod body;
pub mod caller;
mod challenge;
mod event_stream;
mod held_body;
pub mod limiter;
pub mod listener;
pub mod llm;
pub mod mcp;
pub mod mount;
pub mod openapi;
pub mod openintent;
pub mod openwop;
pub mod operations;
pub mod parameters;
pub mod policies;
pub mod protected_resource;
mod request_context;
pub mod router;
pub mod shutdown;
pub mod workers;

pub use limiter::Limiter;
pub use listener::{Endpoint, Limits, Serving, serve};
pub use router::{App, router};
pub use workers::WorkerRuntimes;
