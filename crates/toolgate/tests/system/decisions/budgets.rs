//! Budgets of policies hold however many calls come at once, and whatever run the agent says they are a part of.

use serde_json::json;

use super::office::{Payments, refund};
use crate::world::{World, on_both_engines};

on_both_engines! {
    forty_calls_at_once_spend_no_more_than_the_budget,
    an_agent_is_not_rid_of_the_counts_by_another_run,
    a_run_that_a_host_names_counts_by_itself,
}

fn counted(world: &World, rule: &str) -> Payments {
    let payments = Payments::open(world);
    payments.registers("1", json!({"estimated_cost_usd": 5}));
    payments.grant(&payments.credential("live key", json!({})), json!({}));
    payments.applies(&format!(
        "@id(\"budget\")\nforbid (principal, action in Action::\"call\", resource) when {{ {rule} }};"
    ));
    payments
}

fn forty_calls_at_once_spend_no_more_than_the_budget(world: &World) {
    let payments = counted(world, "context.spent.today.greaterThanOrEqual(decimal(\"20.0\"))");
    let replies: Vec<_> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..40).map(|_| scope.spawn(|| payments.refund(json!({})))).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    let made = replies.iter().filter(|reply| reply.status() == 200).count();
    assert_eq!((made, payments.service.count()), (4, 4));
    for reply in replies.iter().filter(|reply| reply.status() != 200) {
        reply.refused(403, "POLICY_DENIED");
    }
}

fn an_agent_is_not_rid_of_the_counts_by_another_run(world: &World) {
    let payments = counted(world, "context.calls.run >= 3");
    for number in 0..3 {
        payments.refund(json!({"context": {"run_id": format!("run-{number}")}})).ok();
    }
    for more in [json!({"context": {"run_id": "another"}}), json!({})] {
        payments.refund(more).refused(403, "POLICY_DENIED");
    }
    assert_eq!(payments.service.count(), 3);
}

fn a_run_that_a_host_names_counts_by_itself(world: &World) {
    let payments = counted(world, "context.calls.run >= 2");
    let host = json!({"id": "host", "kind": "service", "permissions": ["tools.invoke", "agents.act_as"]});
    let host = payments.admin.registers_as(&host);
    for run in ["report-1", "report-2"] {
        let call = refund(json!({"agent_id": "billing", "context": {"run_id": run}}));
        host.invokes(call.clone()).ok();
        host.invokes(call.clone()).ok();
        host.invokes(call).refused(403, "POLICY_DENIED");
    }
    assert_eq!(payments.service.count(), 4);
}
