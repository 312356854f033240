//! For random constraints and random calls: narrowing, meet, and what is stored.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::*;

const NAMES: [&str; 5] = ["a", "a_max", "a.b", "b", "c"];
const PATTERNS: [&str; 3] = ["u.*", "[a-z]{3}", "usd|eur"];
const NETWORKS: [&str; 6] = ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.3", "192.0.2.0/24", "2001:db8::/32", "::/0"];
const ADDRESSES: [&str; 6] = ["10.1.2.3", "10.9.9.9", "192.0.2.9", "2001:db8::7", "::1", "::ffff:10.1.2.3"];
const HOSTS: [&str; 5] = ["example.com", "api.example.com", "a.api.example.com", "example.org", "192.0.2.7"];

/// Few enough values that rules and calls meet, odd enough to matter.
fn scalars() -> Vec<Value> {
    let large = 9_007_199_254_740_992_u64;
    vec![
        json!(0),
        json!(1),
        json!(1.0),
        json!(1.5),
        json!(-2),
        json!(large),
        json!(large + 1),
        json!("usd"),
        json!("gbp"),
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    select(scalars())
}

fn list() -> impl Strategy<Value = Value> {
    prop::collection::vec(scalar(), 0..3).prop_map(Value::from)
}

fn values() -> impl Strategy<Value = Value> {
    subsequence(scalars(), 0..6).prop_map(Value::from)
}

fn bound() -> impl Strategy<Value = Value> {
    select(vec![json!(-2), json!(0), json!(1), json!(1.5), json!(9_007_199_254_740_992_u64)])
}

fn patterns() -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(PATTERNS.to_vec(), 0..3)
}

fn rule() -> impl Strategy<Value = Value> {
    let parts = (option(values()), option(bound()), option(bound()), patterns(), any::<bool>());
    parts.prop_map(|(values, min, max, patterns, required)| {
        // Something must be said, so patterns are, even if there are none of them.
        let mut rule = json!({"patterns": patterns, "required": required || patterns.is_empty()});
        for (name, part) in [("values", values), ("min", min), ("max", max)] {
            if let Some(part) = part {
                rule[name] = part;
            }
        }
        rule
    })
}

fn denial() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => subsequence(scalars(), 1..4).prop_map(|values| json!(values)),
        2 => (subsequence(scalars(), 1..3), patterns())
            .prop_map(|(values, patterns)| json!({"values": values, "patterns": patterns})),
        1 => Just(json!({"any": true})),
    ]
}

fn option<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    prop::option::weighted(0.4, strategy)
}

fn parameters_of<T: Strategy<Value = Value>>(rule: T) -> impl Strategy<Value = Value> {
    prop::collection::btree_map(select(NAMES.to_vec()), rule, 0..4).prop_map(|rules| json!(rules))
}

fn some_constraints() -> impl Strategy<Value = Constraints> {
    let rules = prop_oneof![rule(), values(), bound().prop_map(|bound| json!({"max": bound}))];
    let parts = (
        option(0..4_u64),
        option(select(vec![0.0, 0.000001, 0.5])),
        parameters_of(rules),
        parameters_of(denial()),
        option(subsequence(NETWORKS.to_vec(), 0..4)),
        option(subsequence(HOSTS.to_vec(), 0..4)),
    );
    parts.prop_map(|(calls, cost, allowed, denied, networks, hosts)| {
        constraints(json!({
            "max_invocations_per_hour": calls, "max_cost_per_invocation": cost, "allowed_parameters": allowed,
            "denied_parameters": denied, "ip_allowlist": networks, "allowed_hosts": hosts
        }))
    })
}

/// Everything that a constraint can look at.
#[derive(Debug, Clone)]
struct Call {
    calls_this_hour: u64,
    cost: f64,
    parameters: Value,
    address: &'static str,
    host: &'static str,
}

fn call() -> impl Strategy<Value = Call> {
    let value = prop_oneof![4 => scalar(), 1 => list(), 1 => scalar().prop_map(|value| json!({"b": value}))];
    let parameters = prop::collection::btree_map(select(NAMES.to_vec()), value, 0..4).prop_map(|all| json!(all));
    let cost = select(vec![0.0, 0.000001, 0.3, 0.7]);
    (0..4_u64, cost, parameters, select(ADDRESSES.to_vec()), select(HOSTS.to_vec())).prop_map(
        |(calls_this_hour, cost, parameters, address, host)| Call { calls_this_hour, cost, parameters, address, host },
    )
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    prop::collection::vec(call(), 32)
}

impl Call {
    /// What the gate asks of the constraints in effect, one question per kind so that no refusal hides another.
    fn permitted_by(&self, constraints: &Constraints) -> [bool; 5] {
        let address = self.address.parse().unwrap();
        [
            constraints.max_invocations_per_hour.is_none_or(|most| self.calls_this_hour < most),
            constraints.max_cost_per_invocation.is_none_or(|most| Cost::from_dollars(self.cost).unwrap() <= most),
            permits(constraints, &self.parameters),
            constraints.ip_allowlist.as_ref().is_none_or(|networks| networks.contains(address)),
            constraints.allowed_hosts.as_ref().is_none_or(|hosts| hosts.contains(self.host)),
        ]
    }
}

fn implies(left: [bool; 5], right: [bool; 5]) -> bool {
    left.into_iter().zip(right).all(|(left, right)| !left || right)
}

/// Whether the child says something of everything that the source says something of, so that nothing is inherited.
fn states_all(child: &Constraints, source: &Constraints) -> bool {
    let rules = source.allowed_parameters.iter().all(|(path, above)| {
        child.allowed_parameters.get(path).is_some_and(|own| {
            let bounds = (own.min.is_some() || above.min.is_none()) && (own.max.is_some() || above.max.is_none());
            let shape = bounds && (!own.patterns.is_empty() || above.patterns.is_empty());
            (own.required || !above.required) && (own.values.is_some() || (above.values.is_none() && shape))
        })
    });
    rules
        && source.denied_parameters.keys().all(|path| child.denied_parameters.contains_key(path))
        && (child.max_invocations_per_hour.is_some() || source.max_invocations_per_hour.is_none())
        && (child.max_cost_per_invocation.is_some() || source.max_cost_per_invocation.is_none())
        && (child.ip_allowlist.is_some() || source.ip_allowlist.is_none())
        && (child.allowed_hosts.is_some() || source.allowed_hosts.is_none())
}

fn has_lists(value: &Value) -> bool {
    value.as_object().is_some_and(|members| members.values().any(|member| member.is_array() || has_lists(member)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_stored_is_what_was_said(one in some_constraints()) {
        let stored = one.to_json().to_string();
        prop_assert_eq!(constraints(parsed(&stored)), one);
    }

    #[test]
    fn what_the_meet_permits_both_permit(one in some_constraints(), other in some_constraints(), calls in calls()) {
        let meet = one.meet(&other);
        for call in calls {
            let permitted = call.permitted_by(&meet);
            prop_assert!(implies(permitted, call.permitted_by(&one)), "{call:?}");
            prop_assert!(implies(permitted, call.permitted_by(&other)), "{call:?}");
        }
    }

    #[test]
    fn what_both_permit_the_meet_permits(one in some_constraints(), other in some_constraints(), calls in calls()) {
        let meet = one.meet(&other);
        // A list may fit one rule as a whole and the other by its elements; the meet then refuses it.
        for call in calls.into_iter().filter(|call| !has_lists(&call.parameters)) {
            let [left, right] = [call.permitted_by(&one), call.permitted_by(&other)];
            let both = [0, 1, 2, 3, 4].map(|kind: usize| left[kind] && right[kind]);
            prop_assert_eq!(call.permitted_by(&meet), both, "{:?}", call);
        }
    }

    #[test]
    fn a_delegation_that_passes_permits_nothing_that_its_source_does_not(
        child in some_constraints(), source in some_constraints(), calls in calls()
    ) {
        prop_assume!(child.first_widening(&source).is_none());
        let effective = child.meet(&source);
        for call in &calls {
            prop_assert!(implies(call.permitted_by(&effective), call.permitted_by(&source)), "{call:?}");
            prop_assert!(implies(call.permitted_by(&effective), call.permitted_by(&child)), "{call:?}");
        }
    }

    #[test]
    fn a_delegation_that_passes_and_inherits_nothing_is_narrower_by_itself(
        source in some_constraints(), further in some_constraints(), calls in calls()
    ) {
        let child = source.meet(&further);
        prop_assume!(child.first_widening(&source).is_none() && states_all(&child, &source));
        for call in calls {
            prop_assert!(implies(call.permitted_by(&child), call.permitted_by(&source)), "{call:?}");
        }
    }

    #[test]
    fn the_order_of_meeting_makes_no_difference(
        one in some_constraints(), two in some_constraints(), three in some_constraints(), calls in calls()
    ) {
        let (left, right) = (one.meet(&two).meet(&three), one.meet(&two.meet(&three)));
        let reverse = three.meet(&two).meet(&one);
        for call in calls {
            let permitted = call.permitted_by(&left);
            prop_assert_eq!(permitted, call.permitted_by(&right), "{:?}", call);
            prop_assert_eq!(permitted, call.permitted_by(&reverse), "{:?}", call);
        }
    }

    #[test]
    fn meeting_oneself_changes_nothing(one in some_constraints()) {
        prop_assert_eq!(&one.meet(&one), &one);
        prop_assert_eq!(&one.meet(&Constraints::default()), &one);
        prop_assert_eq!(one.first_widening(&one), None);
    }

    #[test]
    fn along_a_lineage_every_step_permits_no_more_than_all_above_it(
        lineage in prop::collection::vec(some_constraints(), 2..6), calls in calls()
    ) {
        let mut steps: Vec<Constraints> = Vec::new();
        for stated in lineage {
            match steps.last() {
                Some(above) if stated.first_widening(above).is_some() => {}
                Some(above) => steps.push(stated.meet(above)),
                None => steps.push(stated),
            }
        }
        for call in calls {
            for step in steps.windows(2) {
                prop_assert!(implies(call.permitted_by(&step[1]), call.permitted_by(&step[0])), "{call:?}");
            }
        }
    }
}
