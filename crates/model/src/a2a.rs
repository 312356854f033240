//! The protocol between agents (A2A 1.0 and 0.3), as far as the gate has to understand it: which operation a message is,
//! which tasks and contexts it names, what its errors look like, and what a card says. Messages are read where they stand
//! and changed in place: members that nobody here knows survive.

pub use self::card::{CARD_LIMIT, check as check_card, pinned as pinned_card, rewrite as rewrite_card};
pub use self::error::{A2aError, ErrorKind};
pub use self::identity::{Named, named_in_request, named_in_result, same_identity};
pub use self::interface::{Binding, Interface, Offered, Version};
pub use self::operation::Operation;
pub use self::service::service_definition;

mod card;
mod error;
mod identity;
mod interface;
pub mod member;
mod operation;
mod service;

#[cfg(test)]
mod tests;
