//! Questions of other runtimes against the gate itself, on a real ledger and with the real policies: what a hook answers
//! is never more than what the same call through the gate would get.

mod office;
mod properties;
mod refusals;
mod results;
