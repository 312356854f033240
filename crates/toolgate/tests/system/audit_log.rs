//! The audit log through HTTP (RFC-0014 §6, §10.4): what is in it, what it proves, and that nobody can change a copy of it
//! unseen.

mod events;
mod export;
mod proofs;
