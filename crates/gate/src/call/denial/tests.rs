//! The record of a refusal: written before the response, or counted if there are too many.

use std::sync::atomic::Ordering;

use serde_json::json;

use super::*;
use crate::call::testing::Bench;
use crate::settings::Settings;

fn refusal() -> Refusal {
    Refusal::new(Code::ParametersInvalid, "parameter `id` is missing").at(Stage::Constrain)
}

#[tokio::test]
async fn a_refusal_is_recorded_with_its_stage_and_its_code() {
    let bench = Bench::with_grant();
    let call = bench.call("crm.read", json!({}));
    let denial = bench.pipeline.record_denial(&call, &mut RunState::default(), refusal()).await;
    assert_eq!(denial, Denial::refused(Some(call.id), refusal()));
    let denied = bench.memory.denied.lock().unwrap();
    let [record] = denied.as_slice() else { panic!("one record") };
    assert_eq!((record.stage, record.error.code.as_str()), ("constrain", "PARAMETERS_INVALID"));
    assert_eq!(record.invocation.status, InvocationStatus::Denied);
    assert_eq!(
        record.invocation.service.as_ref().map(ServiceName::as_str),
        Some("crm"),
        "the agent holds a grant on it"
    );
    assert!(!record.about_authority);
}

#[tokio::test]
async fn a_service_that_the_agent_holds_no_grant_on_is_not_named() {
    let bench = Bench::new();
    let call = bench.call("crm.read", json!({}));
    bench.pipeline.record_denial(&call, &mut RunState::default(), refusal()).await;
    let denied = bench.memory.denied.lock().unwrap();
    assert_eq!((&denied[0].invocation.service, denied[0].invocation.tool.as_str()), (&None, "crm.read"));
}

#[tokio::test]
async fn without_a_record_the_reason_is_not_told() {
    let bench = Bench::with_grant();
    bench.memory.down.store(true, Ordering::SeqCst);
    let call = bench.call("crm.read", json!({}));
    let denial = bench.pipeline.record_denial(&call, &mut RunState::default(), refusal()).await;
    assert_eq!((denial.invocation, denial.refusal.code()), (None, Code::LedgerUnavailable));
}

#[tokio::test]
async fn a_flood_of_refusals_is_counted_instead_of_recorded() {
    let bench = Bench::with_grant();
    let most = Settings::default().refusals_per_second * 10;
    for _ in 0..most {
        let call = bench.call("crm.read", json!({}));
        bench.pipeline.record_denial(&call, &mut RunState::default(), refusal()).await;
    }
    assert!(bench.memory.counted.lock().unwrap().is_empty());
    let call = bench.call("crm.read", json!({}));
    let denial = bench.pipeline.record_denial(&call, &mut RunState::default(), refusal()).await;
    assert_eq!(denial, Denial::unrecorded(refusal()), "what is counted is refused all the same");
    assert_eq!(bench.memory.counted.lock().unwrap()[0].count, 1);
    assert_eq!(bench.memory.denied.lock().unwrap().len(), usize::try_from(most).unwrap());
}

#[tokio::test]
async fn a_detached_call_is_always_recorded_and_none_is_accepted_while_refusals_are_counted() {
    let bench = Bench::with_grant();
    let most = Settings::default().refusals_per_second * 10;
    let call = || Call { detached: true, ..bench.call("crm.read", json!({})) };
    for _ in 0..most {
        let accepted = bench.pipeline.refused_calls.check_recorded(&call().caller, call().arrived);
        assert_eq!(accepted, Ok(()));
        bench.pipeline.record_denial(&call(), &mut RunState::default(), refusal()).await;
    }
    let refused = bench.pipeline.refused_calls.check_recorded(&call().caller, call().arrived).unwrap_err();
    assert_eq!(refused.code(), Code::TooManyAttempts);
    bench.pipeline.record_denial(&call(), &mut RunState::default(), refusal()).await;
    assert!(bench.memory.counted.lock().unwrap().is_empty());
}
