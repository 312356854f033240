//! The terms of a grant or a delegation: as plain data for the model, and as the real types.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};
use toolgate_model::constraint::Constraints;
use toolgate_model::context::{ContextId, GrantContext};
use toolgate_model::grant::{Authority, DelegationDepth, DelegationRequest};
use toolgate_model::scope::ScopeSet;
use toolgate_model::time::Timestamp;
use toolgate_testkit::ledger_fixture::scopes;

use super::Sample;

/// The credential has the first three.
pub const SCOPES: [&str; 4] = ["charges.create", "charges.read", "refunds.create", "payouts.create"];
const PARAMETERS: [&str; 2] = ["amount", "metadata.level"];

/// The terms of a new grant. `None` in a delegation is unspecified; the scopes are then those of the source.
#[derive(Debug, Clone)]
pub struct Terms {
    pub scopes: Option<BTreeSet<&'static str>>,
    pub calls_per_hour: Option<u64>,
    pub rules: BTreeMap<&'static str, Rule>,
    /// Intent and task.
    pub context: [Option<&'static str>; 2],
    pub delegatable: Option<bool>,
    /// `Some(None)` is unlimited.
    pub depth: Option<Option<u32>>,
    /// In seconds from now; `Some(None)` is no end.
    pub lifetime: Option<Option<u64>>,
}

#[derive(Debug, Clone, Default)]
pub struct Rule {
    pub values: Option<BTreeSet<i64>>,
    pub max: Option<i64>,
    pub denied: BTreeSet<i64>,
}

/// Terms of which a delegation is refused about as often as not.
pub fn terms() -> impl Strategy<Value = Terms> {
    let scopes = prop_oneof![
        20 => Just(None),
        10 => subsequence(SCOPES[..3].to_vec(), 1..=3).prop_map(Some),
        1 => subsequence(SCOPES.to_vec(), 0..=4).prop_map(Some),
    ];
    let depth = prop_oneof![
        20 => Just(None),
        2 => Just(Some(None)),
        1 => Just(Some(Some(0))),
        5 => (1..5_u32).prop_map(|depth| Some(Some(depth))),
    ];
    let lifetime = prop_oneof![
        20 => Just(None), 1 => Just(Some(None)), 6 => select(vec![60_u64, 120, 600]).prop_map(|end| Some(Some(end)))
    ];
    let parts = (
        scopes,
        rarely(select(vec![5_u64, 10, 20])),
        prop_oneof![
            2 => Just(BTreeMap::new()),
            1 => prop::collection::btree_map(select(PARAMETERS.to_vec()), rule(), 1..=2)
        ],
        [rarely(select(vec!["intent_1", "intent_2"])), rarely(select(vec!["task_1", "task_2"]))],
        prop_oneof![12 => Just(None), 3 => Just(Some(true)), 1 => Just(Some(false))],
        depth,
        lifetime,
    );
    parts.prop_map(|(scopes, calls_per_hour, rules, context, delegatable, depth, lifetime)| Terms {
        scopes: scopes.map(|scopes| scopes.into_iter().collect()),
        calls_per_hour,
        rules,
        context,
        delegatable,
        depth,
        lifetime,
    })
}

fn rule() -> impl Strategy<Value = Rule> {
    let values = || prop::collection::btree_set(0..6_i64, 0..6);
    let sometimes = |values| prop::option::weighted(0.4, values);
    (sometimes(values()), prop::option::weighted(0.4, 0..6_i64), prop_oneof![2 => Just(BTreeSet::new()), 1 => values()])
        .prop_map(|(values, max, denied)| Rule { values, max, denied })
}

fn rarely<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    prop::option::weighted(0.1, strategy)
}

/// Sample calls: no parameter, one, or both.
pub fn samples() -> Vec<Sample> {
    let mut samples = vec![(json!({}), BTreeMap::new())];
    for amount in 0..6 {
        samples.push((json!({"amount": amount}), BTreeMap::from([("amount", amount)])));
        samples.push((json!({"metadata": {"level": amount}}), BTreeMap::from([("metadata.level", amount)])));
        let level = 5 - amount;
        let both = BTreeMap::from([("amount", amount), ("metadata.level", level)]);
        samples.push((json!({"amount": amount, "metadata.level": level}), both));
    }
    samples
}

impl Terms {
    /// As a direct grant: unspecified terms are generous, so that there is something to delegate.
    pub fn authority(&self, now: Timestamp) -> Authority {
        Authority {
            scopes: named(&self.scopes_below(&SCOPES[..3].iter().copied().collect())),
            constraints: self.constraints(),
            context: self.context(),
            delegatable: self.delegatable_directly(),
            delegation_depth: DelegationDepth::from_option(self.depth_directly()),
            expires_at: self.end_directly(now.as_millis()).map(|end| Timestamp::from_millis(end).unwrap()),
        }
    }

    /// As a delegation of a grant with these scopes.
    pub fn request(&self, source: &ScopeSet, now: Timestamp) -> DelegationRequest {
        let after = |seconds| now.plus(std::time::Duration::from_secs(seconds));
        DelegationRequest {
            scopes: self.scopes.as_ref().map_or_else(|| source.clone(), named),
            constraints: self.constraints(),
            context: self.context(),
            delegatable: self.delegatable,
            delegation_depth: self.depth.map(DelegationDepth::from_option),
            expires_at: self.lifetime.map(|lifetime| lifetime.map(after)),
        }
    }

    /// The requested scopes if the source has these.
    pub fn scopes_below(&self, source: &BTreeSet<&'static str>) -> BTreeSet<&'static str> {
        self.scopes.clone().unwrap_or_else(|| source.clone())
    }

    pub fn delegatable_directly(&self) -> bool {
        self.delegatable.unwrap_or(true)
    }

    pub fn depth_directly(&self) -> Option<u32> {
        self.depth.unwrap_or(None)
    }

    pub fn end_directly(&self, now: i64) -> Option<i64> {
        self.lifetime.unwrap_or(Some(1200)).map(|seconds| now + i64::try_from(seconds).unwrap() * 1000)
    }

    fn context(&self) -> GrantContext {
        let [intent_id, task_id] = self.context.map(|id| id.map(|id| ContextId::parse(id).unwrap()));
        GrantContext { intent_id, plan_id: None, task_id }
    }

    fn constraints(&self) -> Constraints {
        let (mut allowed, mut denied) = (Map::new(), Map::new());
        for (name, rule) in &self.rules {
            if let Some(values) = &rule.values {
                allowed.insert((*name).to_owned(), json!(values));
            }
            if let Some(max) = rule.max {
                allowed.insert(format!("{name}_max"), json!(max));
            }
            if !rule.denied.is_empty() {
                denied.insert((*name).to_owned(), json!(rule.denied));
            }
        }
        let parts: Value = json!({
            "max_invocations_per_hour": self.calls_per_hour, "allowed_parameters": allowed, "denied_parameters": denied
        });
        Constraints::from_json(&parts).unwrap()
    }
}

fn named(names: &BTreeSet<&'static str>) -> ScopeSet {
    scopes(&Vec::from_iter(names.iter().copied()))
}
