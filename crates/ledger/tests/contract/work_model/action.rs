//! What happens in a sequence, and within which caps.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;
use toolgate_model::constraint::Cost;
use toolgate_model::spending::Used;
use toolgate_model::work::TaskStatus;

/// One step. Tasks are picked by a number, counted from the newest; an agent is the worker or the helper.
#[derive(Debug, Clone)]
pub(super) enum Action {
    /// A task that requires access, with a timeout, perhaps assigned at once.
    Create {
        assigned: Option<bool>,
        timeout: Option<u64>,
    },
    Assign(usize, Option<bool>),
    Claim(usize, bool),
    Move(usize, TaskStatus, Actor),
    /// The coordinator delegates a grant for the task by hand, which its agent delegates to the other one.
    Delegate(usize, bool),
    /// The grant is revoked that everything was delegated from; another one takes its place.
    RevokeSource,
    /// A call decided on the present state, with what it may cost.
    Call(usize, bool, u64),
    /// The oldest call in flight has cost this share of what was reserved, or was never sent.
    Settle(Option<u64>),
    /// The gate dies: calls in flight are cut off.
    Die,
    EndIntent,
    /// A call that was decided on in an earlier step.
    Late(usize),
    Wait(u64),
    Sweep,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Actor {
    Coordinator,
    Worker(bool),
}

pub(super) fn action() -> impl Strategy<Value = Action> {
    let task = || prop_oneof![4 => Just(0_usize), 2 => Just(1), 1 => 2..5_usize];
    let actor = prop_oneof![2 => any::<bool>().prop_map(Actor::Worker), 1 => Just(Actor::Coordinator)];
    prop_oneof![
        5 => (any::<Option<bool>>(), select(vec![None, Some(30)]))
            .prop_map(|(assigned, timeout)| Action::Create { assigned, timeout }),
        4 => (task(), any::<Option<bool>>()).prop_map(|(task, agent)| Action::Assign(task, agent)),
        8 => (task(), any::<bool>()).prop_map(|(task, agent)| Action::Claim(task, agent)),
        14 => (task(), select(TaskStatus::ALL), actor).prop_map(|(task, status, actor)| Action::Move(task, status, actor)),
        8 => (task(), select(vec![TaskStatus::Running, TaskStatus::Running, TaskStatus::Completed]), any::<bool>())
            .prop_map(|(task, status, agent)| Action::Move(task, status, Actor::Worker(agent))),
        3 => (task(), any::<bool>()).prop_map(|(task, agent)| Action::Delegate(task, agent)),
        1 => Just(Action::RevokeSource),
        14 => (task(), any::<bool>(), 0..=10_u64).prop_map(|(task, agent, cost)| Action::Call(task, agent, cost)),
        4 => any::<Option<u64>>().prop_map(|share| Action::Settle(share.map(|share| share % 101))),
        1 => Just(Action::Die),
        1 => prop_oneof![3 => Just(Action::Sweep), 1 => Just(Action::EndIntent)],
        8 => (0..6_usize).prop_map(Action::Late),
        3 => select(vec![1_u64, 20, 40]).prop_map(Action::Wait),
        2 => Just(Action::Sweep),
    ]
}

/// The caps of the coordinator: calls, and their cost in millionths of a dollar.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caps {
    pub(super) calls: Option<u64>,
    pub(super) cost: Option<u64>,
}

pub(super) fn caps() -> impl Strategy<Value = Caps> {
    (prop::option::weighted(0.7, 0..6_u64), prop::option::weighted(0.7, 0..30_u64))
        .prop_map(|(calls, cost)| Caps { calls, cost })
}

impl Caps {
    pub(super) fn guardrails(self) -> serde_json::Value {
        let mut guardrails = json!({"auto_delegate": true});
        if let Some(calls) = self.calls {
            guardrails["max_tool_invocations"] = json!(calls);
        }
        if let Some(cost) = self.cost {
            guardrails["max_tool_cost_usd"] = json!(Cost::from_micros(cost).unwrap().dollars());
        }
        guardrails
    }

    pub(super) fn have_room(self, used: Used, cost: u64) -> bool {
        self.calls.is_none_or(|most| used.calls < most) && self.cost.is_none_or(|most| used.cost + cost <= most)
    }
}
