//! The dialects of hooks: readers and writers between what is on the wire and the model's `HookEvent` and `Verdict`.
//! Pure: bytes and JSON in, typed values out, and back. Nothing here decides, stores, waits or opens a socket.

pub mod aos;
pub mod jsonrpc;
