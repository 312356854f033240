//! Who exists and with which key: tenants and the walls between them, keys, permissions, changes, and attempts to get more.

mod changing;
mod escalation;
mod guessing;
mod held_back;
mod keys;
mod permissions;
mod tenants;
