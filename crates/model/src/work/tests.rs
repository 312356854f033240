//! The rules of coordinated work.

mod rules;
