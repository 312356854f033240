//! Accounts, limits and budgets.

use serde_json::{Value, json};

use super::*;

fn principal(name: &str) -> PrincipalId {
    PrincipalId::parse(name).unwrap()
}

fn limit(max_calls: Option<u64>, max_cost: Option<f64>) -> Limit {
    Limit { max_calls, max_cost: max_cost.map(|cost| Cost::from_dollars(cost).unwrap()), warn_at_percent: 80 }
}

#[test]
fn every_account_is_read_as_it_was_written() {
    let accounts = [
        Account::Agent(principal("total")),
        Account::AgentTotal(principal("tenant")),
        Account::Tenant,
        Account::TenantTotal,
        Account::Run { owner: principal("host"), run: RunId::parse("run-1").unwrap() },
        Account::Coordinator("coord_1".to_owned()),
    ];
    for account in accounts {
        assert_eq!(Account::parse(&account.to_string()), Some(account));
    }
    for unknown in ["", "agent", "agent/", "total", "total/x", "run/a", "other/x", "total/agent/"] {
        assert_eq!(Account::parse(unknown), None, "{unknown}");
    }
}

#[test]
fn the_last_call_that_fits_is_allowed_and_the_next_is_not() {
    let used = |calls, cost| Used { calls, cost };
    let cost = Cost::from_dollars(0.5);
    assert_eq!(limit(Some(3), None).excess(used(2, 0), None), None);
    assert_eq!(limit(Some(3), None).excess(used(3, 0), None), Some(Excess::Calls { max: 3 }));
    assert_eq!(limit(None, Some(1.0)).excess(used(9, 500_000), cost), None);
    let max = Cost::from_dollars(1.0).unwrap();
    assert_eq!(limit(None, Some(1.0)).excess(used(9, 500_001), cost), Some(Excess::Cost { max }));
    assert_eq!(limit(None, Some(1.0)).excess(used(0, 0), None), Some(Excess::UnknownCost));
    assert_eq!(limit(Some(0), None).excess(used(0, 0), cost), Some(Excess::Calls { max: 0 }));
}

#[test]
fn a_warning_is_due_at_its_share_of_either_limit() {
    let used = |calls, cost| Used { calls, cost };
    let limit = limit(Some(10), Some(1.0));
    assert!(!limit.is_warning(used(7, 799_999)));
    assert!(limit.is_warning(used(8, 0)));
    assert!(limit.is_warning(used(1, 800_000)));
    assert!(!limit.is_warning(used(0, 0)));
}

#[test]
fn a_budget_is_read_strictly_and_written_in_full() {
    let read = |value: Value| serde_json::from_value::<Budget>(value);
    let budget = read(json!({"calls_per_day": 100, "cost_total_usd": 12.5})).unwrap();
    assert_eq!(json!(budget), json!({"calls_per_day": 100, "cost_total_usd": 12.5, "warn_at_percent": 80}));
    assert_eq!(read(json!(budget)).unwrap(), budget);
    for wrong in [
        json!({}),
        json!({"warn_at_percent": 50}),
        json!({"calls_per_day": -1}),
        json!({"calls_per_day": 1.5}),
        json!({"cost_per_day_usd": -0.1}),
        json!({"cost_per_day_usd": 0.000_000_1}),
        json!({"calls_total": 1, "warn_at_percent": 0}),
        json!({"calls_total": 1, "warn_at_percent": 101}),
        json!({"calls_total": 1, "calls_per_hour": 1}),
        json!({"calls_total": u64::MAX}),
    ] {
        assert!(read(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn a_budget_reserves_in_the_accounts_that_it_limits() {
    let budget: Budget = serde_json::from_value(json!({"calls_per_day": 1, "cost_total_usd": 2})).unwrap();
    let accounts = |reservations: Vec<Reservation>| -> Vec<String> {
        reservations.iter().map(|reservation| reservation.account.to_string()).collect()
    };
    assert_eq!(accounts(budget.of_agent(&principal("a"))), ["agent/a", "total/agent/a"]);
    assert_eq!(accounts(budget.of_tenant()), ["tenant", "total/tenant"]);
}
