//! The path of a call through the real binary (RFC-0014 §2.3, §3, §6, §8, §11): what is admitted, what is refused and why,
//! what stays of it, and what agents can find out.

mod calling;
mod discovery;
mod failures;
mod grant_choice;
mod guesses;
mod history;
mod idempotency;
mod identity;
mod implicit_tools;
mod interruption;
mod limits;
mod naming;
mod not_executable;
mod parameters;
mod rate;
mod records;
mod reports;
mod sent;
mod services;
pub mod shop;
mod standing;
mod upstream_answers;
mod why;
