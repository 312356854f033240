//! What telemetry receives about calls.

use serde_json::{Value, json};
use toolgate_model::trace_context::TraceParent;

use super::*;
use crate::call::testing::Bench;
use crate::call::{RunOutcome, Wait};
use crate::refusal::Refusal;
use crate::request_context::{CallerTrace, RequestId};

async fn run(bench: &Bench, tool: &str, parameters: Value) -> RunOutcome {
    let call = bench.call(tool, parameters);
    bench.pipeline.run(call, Ok(())).await
}

fn stages(bench: &Bench) -> Vec<Stage> {
    bench.telemetry.0.lock().unwrap()[0].times.stages().map(|time| time.stage).collect()
}

#[tokio::test]
async fn an_executed_call_is_reported_once_with_the_times_of_all_its_stages() {
    let bench = Bench::with_grant();
    run(&bench, "crm.read", json!({"id": "7"})).await;
    assert_eq!(stages(&bench), Stage::ALL);
    let kept = bench.telemetry.0.lock().unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(
        (kept[0].tool.as_str(), kept[0].outcome, kept[0].code.as_deref()),
        ("crm.read", FinishedAs::Success, None)
    );
    let waits: Vec<_> = kept[0].times.waits().map(|(wait, _)| wait).collect();
    assert_eq!(waits, [Wait::AdmissionCommit, Wait::SettlementCommit]);
}

#[tokio::test]
async fn a_refused_call_is_reported_with_its_stage_and_its_code() {
    let bench = Bench::with_grant();
    run(&bench, "crm.read", json!({"id": 7})).await;
    run(&bench, "crm.nothing", json!({})).await;
    run(&bench, "crm.write", json!({})).await;
    let kept = bench.telemetry.0.lock().unwrap().clone();
    let told: Vec<_> =
        kept.iter().map(|kept| (kept.tool.as_str(), kept.stage, kept.code.as_deref().unwrap())).collect();
    let expected = [
        ("crm.read", Some(Stage::Constrain), "PARAMETERS_INVALID"),
        ("crm.nothing", Some(Stage::Resolve), "GRANT_SCOPE_INSUFFICIENT"),
        ("crm.write", Some(Stage::Approve), "APPROVAL_DENIED"),
    ];
    assert_eq!(told, expected);
    assert!(kept.iter().all(|kept| kept.outcome == FinishedAs::Denied && kept.is_recorded));
    let waits: Vec<_> = kept[2].times.waits().map(|(wait, _)| wait).collect();
    assert_eq!(waits, [Wait::Approval]);
}

#[tokio::test]
async fn a_call_is_reported_with_its_request_and_the_trace_of_its_caller() {
    let bench = Bench::with_grant();
    let parent = TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
    let trace = Some(CallerTrace { parent, state: None, is_trusted: false });
    let context = RequestContext { id: RequestId::parse("request-1").unwrap(), trace };
    context.scope(run(&bench, "crm.read", json!({"id": "7"}))).await;
    let kept = bench.telemetry.0.lock().unwrap()[0].clone();
    assert_eq!(kept.request.unwrap().as_str(), "request-1");
    assert_eq!(kept.traced.unwrap().context, TraceParent { sampled: false, ..parent });
    let settled = bench.memory.settled.lock().unwrap();
    assert_eq!(settled[0].invocation.trace.trace_id, Some(parent.trace), "its events say so");
}

#[tokio::test]
async fn refusals_that_are_only_counted_are_marked() {
    let bench = Bench::with_grant();
    for _ in 0..101 {
        run(&bench, "crm.nothing", json!({})).await;
    }
    let kept = bench.telemetry.0.lock().unwrap();
    assert_eq!(kept.len(), 101);
    assert!(kept[99].is_recorded && !kept[100].is_recorded);
}

#[test]
fn a_call_that_was_admitted_and_not_settled_is_of_unknown_outcome() {
    let id = InvocationId::new(crate::call::testing::now(), [1; 10]);
    let denial = Denial::unsettled(id, &Refusal::new(crate::refusal::Code::LedgerUnavailable, "gone"));
    let outcome = Err(denial);
    let end = End::of(&outcome);
    assert_eq!((end.outcome, end.code, end.stage), (FinishedAs::Unknown, Some("OUTCOME_UNKNOWN"), Some(Stage::Settle)));
}
