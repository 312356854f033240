//! What a source is given, and what the record says when it fails.

use toolgate_model::constraint::Cost;
use toolgate_model::invocation::InvocationStatus;

use super::*;
use crate::call::testing::{Bench, Executed, SECRET};

fn failure(sent: bool, timed_out: bool) -> Execution {
    let reason = "the service did not respond in time";
    Err(SourceFailure { sent, timed_out, ..SourceFailure::not_sent(FailureKind::Proxy, reason) })
}

#[tokio::test]
async fn the_source_gets_the_deadline_of_the_tool_and_the_one_secret() {
    let bench = Bench::with_grant();
    bench.execute_as(Ok(ServiceResponse::said(json!("ok")))).await;
    let executed = Executed { deadline: Duration::from_secs(30), secret: Some(SECRET.to_owned()) };
    assert_eq!(*bench.source.executed.lock().unwrap(), [executed]);
}

#[tokio::test]
async fn a_call_that_missed_its_deadline_says_so_and_is_charged() {
    let bench = Bench::with_grant();
    let result = bench.execute_as(failure(true, true)).await;
    let error = result.outcome.error.unwrap();
    assert_eq!((error.code.as_str(), error.details.get("timed_out")), ("PROXY_ERROR", Some(&json!(true))));
    let settled = bench.memory.settled.lock().unwrap();
    assert_eq!(settled[0].invocation.status, InvocationStatus::Error);
    assert!(!settled[0].never_sent, "the service may have executed it");
    assert_eq!(settled[0].invocation.cost, Cost::from_dollars(0.5));
}

#[tokio::test]
async fn a_call_that_was_not_sent_costs_nothing() {
    let bench = Bench::with_grant();
    let result = bench.execute_as(failure(false, false)).await;
    assert_eq!(result.outcome.error.unwrap().code, "PROXY_ERROR");
    let settled = bench.memory.settled.lock().unwrap();
    assert!(settled[0].never_sent);
    assert_eq!(settled[0].reserved, Cost::from_dollars(0.5));
    assert_eq!(settled[0].invocation.cost, Cost::from_micros(0));
}
