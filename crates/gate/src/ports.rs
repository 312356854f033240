//! The dependencies of the gate, as traits. Other crates implement them.

pub mod approver;
pub mod client_link;
pub mod clock;
pub mod entropy;
pub mod event_stream;
pub mod guardian;
pub mod guardian_link;
pub mod ledger;
pub mod mount;
pub mod policy_book;
pub mod sealer;
pub mod source;
pub mod telemetry;
pub mod tokens;
