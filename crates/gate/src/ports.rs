//! What the gate needs from the world, as traits. The rooms around it implement them; the gate never learns how.

pub mod approver;
pub mod clock;
pub mod entropy;
pub mod guardian;
pub mod guardian_link;
pub mod ledger;
pub mod mount;
pub mod policy_book;
pub mod sealer;
pub mod source;
pub mod telemetry;
