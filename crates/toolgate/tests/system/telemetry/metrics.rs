//! `/metrics`: what calls, the ledger and the process leave in it, and that nobody can fill it with names.

use serde_json::json;

use crate::approvals::office::Office;
use crate::calls::shop::{Shop, read};
use crate::world::{World, on_both_engines, until};

on_both_engines! {
    calls_and_the_ledger_are_measured,
}

/// The value of a sample, by the beginning of its line.
fn sample(text: &str, name: &str) -> f64 {
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

fn calls_and_the_ledger_are_measured(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let scrape = || shop.admin.get("/metrics").answer.text();
    for _ in 0..3 {
        shop.agent.invokes(read(json!({}))).ok();
    }
    shop.call("payments.nothing", json!({})).error();
    let text = scrape();
    assert_eq!(sample(&text, "toolgate_calls_total{outcome=\"success\",code=\"\"}"), 3.0);
    assert_eq!(sample(&text, "toolgate_call_duration_seconds_count{outcome=\"success\"}"), 3.0);
    assert_eq!(sample(&text, "toolgate_call_duration_seconds_count{outcome=\"denied\"}"), 1.0);
    for (stage, count) in [("identify", 4_u32), ("resolve", 4), ("admit", 3), ("execute", 3), ("settle", 3)] {
        let name = format!("toolgate_call_stage_duration_seconds_count{{stage=\"{stage}\"}}");
        assert_eq!(sample(&text, &name), f64::from(count), "{stage}");
    }
    for wait in ["admission_commit", "settlement_commit"] {
        assert_eq!(sample(&text, &format!("toolgate_call_wait_duration_seconds_count{{wait=\"{wait}\"}}")), 3.0);
    }
    assert!(sample(&text, "toolgate_call_duration_seconds_sum{outcome=\"success\"}") > 0.0);
    assert_eq!(sample(&text, "toolgate_calls_in_flight"), 0.0);
    assert!(sample(&text, "toolgate_connections") >= 1.0);
    assert!(sample(&text, "toolgate_audit_integration_lag_seconds") < 60.0);

    // Sampled by a background task.
    let text = until("a sample after the calls", || {
        let text = scrape();
        (sample(&text, "toolgate_ledger_batch_size_count") >= 2.0).then_some(text)
    });
    assert!(sample(&text, "toolgate_ledger_batch_size_sum") >= sample(&text, "toolgate_ledger_batch_size_count"));
    assert!(sample(&text, "toolgate_ledger_size_bytes") > 1_000.0);
    assert!(sample(&text, "toolgate_ledger_pool_connections") >= 1.0);
    assert!(sample(&text, "toolgate_ledger_queue_length") >= 0.0);
    assert_eq!(text.contains("\ntoolgate_ledger_wal_size_bytes "), world.database().is_none());
    assert_eq!(sample(&text, "toolgate_approvals_waiting"), 0.0);
    assert!(sample(&text, "process_resident_memory_bytes") > 1_000_000.0);
    assert!(sample(&text, "process_open_fds") >= 3.0 && sample(&text, "process_max_fds") >= 3.0);
    assert!(sample(&text, "process_start_time_seconds") > 1_700_000_000.0);
    assert!(text.contains("toolgate_build_info{version=\""), "{text}");
    assert!(!text.contains("payments") && !text.contains("billing") && !text.contains("default"), "{text}");
}

#[test]
fn an_approval_that_waits_has_an_age_and_its_call_is_not_in_flight_yet() {
    let world = World::sqlite();
    let office = Office::open(&world);
    let scrape = || office.admin.get("/metrics").answer.text();
    let waiting = office.asks("transfer", 10);
    let text = until("the approval is sampled", || {
        let text = scrape();
        (sample(&text, "toolgate_approvals_waiting") >= 1.0).then_some(text)
    });
    assert_eq!(sample(&text, "toolgate_calls_in_flight"), 0.0);
    until("it grows older", || (sample(&scrape(), "toolgate_approvals_oldest_age_seconds") > 0.0).then_some(()));
    office.bank.hold();
    office.clerk.decides(&waiting.approval, "approve", json!({})).ok();
    office.bank.wait_for(1);
    assert_eq!(sample(&scrape(), "toolgate_calls_in_flight"), 1.0);
    office.bank.release();
    waiting.answer().ok();
    let text = scrape();
    assert_eq!(sample(&text, "toolgate_call_wait_duration_seconds_count{wait=\"approval\"}"), 1.0);
    assert_eq!(sample(&text, "toolgate_calls_in_flight"), 0.0);
}
