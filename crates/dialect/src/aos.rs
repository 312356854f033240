//! OWASP AOS 0.1.0, and AOS as Joch speaks it. In one role others ask us ([`read`], [`write()`]); in the other we ask a
//! guardian ([`ask`], [`read_response`]). Every form on which AOS's text, schema and examples disagree is read; one of
//! them is written.

pub use self::ask::ask;
pub use self::guardian_response::read_response;
pub use self::request::{HookQuestion, Incoming, Message, Ping, read};
pub use self::response::{ModifiedForm, Response, write, write_error, write_pong};

mod a2a;
mod ask;
mod change;
mod context;
mod fields;
mod guardian_response;
mod inputs;
mod mcp;
mod outputs;
mod parts;
mod payload;
mod request;
mod response;
mod shape;

#[cfg(test)]
mod tests;

/// The version of AOS.
pub const VERSION: &str = "0.1.0";
