//! Approvals: what a person's answer covers.
//!
//! This room owns the shell recogniser, which tells whether a command line is covered by the prefixes that a person has
//! granted. It refuses IO, async and the clock: everything here is a value or a function of its arguments.

pub mod shell;
