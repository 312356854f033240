//! Hook dialects: codecs between wire formats and the model's `HookEvent` and `VerdictKind`.
//!
//! Pure functions over bytes and JSON, in both directions. No decisions, no storage, no IO.

pub mod aos;
pub mod jsonrpc;
