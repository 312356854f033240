//! The possible steps, and their frequencies.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::CREDENTIALS;
use super::terms::{Terms, terms};

/// One step. Grants are picked by a number, counted from the newest.
#[derive(Debug, Clone)]
pub enum Action {
    Grant {
        credential: usize,
        agent: &'static str,
        terms: Terms,
    },
    Delegate {
        source: usize,
        agent: &'static str,
        terms: Terms,
    },
    /// A grant is paused.
    Suspend(usize),
    Resume(usize),
    Revoke(usize),
    /// A credential gets fresh material.
    Rotate(usize),
    RevokeCredential(usize),
    /// Time passes, and expiry is announced.
    Wait(u64),
}

/// Sequences of 20 to 60 steps.
pub fn actions() -> impl Strategy<Value = Vec<Action>> {
    prop::collection::vec(action(), 20..=60)
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        12 => (0..CREDENTIALS, agent(), terms())
            .prop_map(|(credential, agent, terms)| Action::Grant { credential, agent, terms }),
        45 => (number(), agent(), terms())
            .prop_map(|(source, agent, terms)| Action::Delegate { source, agent, terms }),
        8 => number().prop_map(Action::Suspend),
        12 => number().prop_map(Action::Resume),
        4 => number().prop_map(Action::Revoke),
        5 => (0..CREDENTIALS).prop_map(Action::Rotate),
        1 => (0..CREDENTIALS).prop_map(Action::RevokeCredential),
        10 => select(vec![1_u64, 20, 60, 200]).prop_map(Action::Wait),
    ]
}

fn agent() -> impl Strategy<Value = &'static str> {
    select(vec!["coordinator", "worker", "helper"])
}

fn number() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 0..4_usize, 2 => any::<Index>().prop_map(|index| index.index(1 << 16))]
}
