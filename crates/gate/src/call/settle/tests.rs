//! What is recorded before a result is returned.

use std::sync::atomic::Ordering;

use serde_json::json;

use super::*;
use crate::call::admit::Outcome;
use crate::call::approve::Step;
use crate::call::testing::Bench;
use crate::call::{Denial, RetryState, RunOutcome, Stage};
use crate::ports::ledger::Admission;

async fn run(bench: &Bench) -> Result<CallResult, Denial> {
    match bench.pipeline.run(bench.call("crm.read", json!({"id": "7"})), Ok(())).await {
        RunOutcome::Done(outcome) => *outcome,
        RunOutcome::Parked(_) => panic!("it does not wait"),
    }
}

#[tokio::test]
async fn a_result_leaves_with_its_record() {
    let bench = Bench::with_grant();
    let answer = run(&bench).await.unwrap();
    assert_eq!(answer.outcome.result, Some(json!({"done": true})));
    let settled = bench.memory.settled.lock().unwrap();
    assert_eq!(settled.len(), 1);
    assert_eq!(settled[0].invocation.id, answer.invocation);
    assert_eq!(settled[0].invocation.status, InvocationStatus::Success);
    assert_eq!(settled[0].stored_result, None, "it has no idempotency key");
}

#[tokio::test]
async fn a_call_that_is_not_admitted_is_not_settled() {
    let bench = Bench::with_grant();
    let refusal = Refusal::new(Code::ToolRateLimited, "the tool is used too often");
    bench.memory.admissions.lock().unwrap().push_back(Admission::Refused(refusal));
    let denial = run(&bench).await.unwrap_err();
    assert_eq!(denial.refusal.stage(), Some(Stage::Admit));
    assert!(bench.memory.settled.lock().unwrap().is_empty());
    assert_eq!(bench.memory.denied.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_result_that_cannot_be_recorded_is_withheld() {
    let bench = Bench::with_grant();
    let call = Arc::new(bench.call("crm.read", json!({"id": "7"})));
    let guarded = bench.guard(&call).await.ok().unwrap();
    let (mut kept, mut times) = (RetryState::default(), StageTimes::default());
    let Ok(Step::Approved(approved)) = bench.pipeline.approve(&call, guarded, true, &mut kept, &mut times).await else {
        panic!("nothing asks for an approver")
    };
    let Ok(Outcome::Admitted(admitted, opened)) = bench.pipeline.admit(&call, *approved, &mut times).await else {
        panic!("it is admitted")
    };
    bench.memory.down.store(true, Ordering::SeqCst);
    let denial = bench.pipeline.carry_out(*admitted, opened, &mut times).await.unwrap_err();
    assert_eq!(denial.refusal.code(), Code::OutcomeUnknown);
    assert!(denial.admitted);
}
