//! Grants and delegation through HTTP (RFC-0014 §2, §5.1, §5.3, §7.2), with the agents' own keys.

mod delegating;
mod lifecycle;
mod making;
mod narrowing;
mod reading;
mod seeing;
