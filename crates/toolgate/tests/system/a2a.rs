//! Peer agents through the real binary: the official SDK of A2A as the client and as the peer, with the gate between them.
//!
//! The test kit of the protocol is no package and is not part of these tests.

mod guarding;
pub mod network;
mod owning;
mod passing;
mod peers;
