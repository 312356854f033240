//! The policy engine: Cedar rules about calls, results and the other hooks, typed by the catalog.

pub use self::book::CedarBook;
pub use self::engine::{MARKS_LAST, PolicyEngine};
pub use self::facts::Facts;
pub use self::judge::{Evaluation, judge};
pub use self::known::{Missing, Replayed, judge_known};
pub use self::problem::Problem;
pub use self::reads::{Members, Reads};
pub use self::remedy::{Asking, Redaction, Remedy};
pub use self::rule::Rule;
pub use self::set::CompiledSet;
pub use self::slice::{Needs, Slice};

mod annotation;
mod beside;
mod book;
mod cache;
mod check;
mod engine;
mod entities;
mod facts;
mod index;
mod judge;
mod known;
mod policy_input;
mod problem;
mod reads;
mod remedy;
mod rule;
pub mod schema;
mod set;
pub mod shape;
mod slice;
pub mod value;
mod warning;

#[cfg(test)]
mod tests;
