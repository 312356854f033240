//! What guardians do to a result.

use std::sync::atomic::Ordering;

use serde_json::json;
use toolgate_model::guard::{Ask, Denial, DenialCause};

use super::*;
use crate::call::testing::Bench;
use crate::ports::guardian::PolicyBasis;
use crate::ports::source::ServiceResponse;

/// A bench whose guardian gives this verdict on results.
fn with(verdict: Verdict) -> Bench {
    let bench = Bench::with_grant();
    *bench.guardian.only.lock().unwrap() = Some(Hook::ToolCallResult);
    *bench.guardian.verdict.lock().unwrap() = Some(verdict);
    bench
}

fn replacing(content: Content<'static>) -> Verdict {
    Verdict::Pass { content: Some(Box::new(content)), asks: Vec::new() }
}

fn result_of(value: Value) -> Verdict {
    replacing(Content::Result { value: Cow::Owned(value), is_error: false })
}

fn response() -> Execution {
    Ok(ServiceResponse::said(json!({"card": "4111"})))
}

fn code(result: &CallResult) -> Option<&str> {
    result.outcome.error.as_ref().map(|error| error.code.as_str())
}

#[tokio::test]
async fn a_guardian_sees_the_result_and_lets_it_pass() {
    let bench = with(Verdict::allow());
    let result = bench.execute_as(response()).await;
    assert_eq!(result.outcome.result, Some(json!({"card": "4111"})));
    let seen = bench.guardian.seen.lock().unwrap();
    let (_, content) = seen.iter().find(|(hook, _)| *hook == Hook::ToolCallResult).unwrap();
    assert!(content.to_string().contains("4111"), "{content}");
}

#[tokio::test]
async fn a_result_that_no_guardian_is_concerned_with_is_not_shown() {
    let bench = with(Verdict::allow());
    *bench.guardian.unconcerned.lock().unwrap() = Some(PolicyBasis::default());
    assert_eq!(code(&bench.execute_as(response()).await), None);
    assert_eq!(bench.guardian.asked.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_denied_result_is_withheld_from_the_caller_and_its_call_is_recorded_as_sent() {
    let denial = Denial { cause: DenialCause::Guardian("dlp".to_owned()), reason: "a card".to_owned(), policy: None };
    let bench = with(Verdict::Deny(denial));
    let result = bench.execute_as(response()).await;
    assert_eq!((code(&result), &result.outcome.result), (Some("GUARDIAN_DENIED"), &None));
    let settled = bench.memory.settled.lock().unwrap();
    assert_eq!(settled[0].invocation.status, InvocationStatus::Error);
    assert!(!settled[0].never_sent);
    assert_eq!(settled[0].invocation.cost, Cost::from_dollars(0.5));
}

#[tokio::test]
async fn a_modified_result_is_what_the_caller_gets() {
    let result = with(result_of(json!({"card": "[redacted]"}))).execute_as(response()).await;
    assert_eq!((code(&result), &result.outcome.result), (None, &Some(json!({"card": "[redacted]"}))));
}

#[tokio::test]
async fn an_ask_is_a_denial_because_the_call_was_made() {
    let ask = Ask { reason: "large".to_owned(), groups: Vec::new(), approvers: 1, ttl_seconds: None, policy: None };
    let bench = with(Verdict::Pass { content: None, asks: vec![ask] });
    let result = bench.execute_as(response()).await;
    assert_eq!((code(&result), &result.outcome.result), (Some("GUARDIAN_DENIED"), &None));
    assert!(bench.approver.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_guardian_cannot_replace_a_result_by_something_else() {
    let arguments = Content::Arguments(Cow::Owned(json!({"id": "8"}).as_object().unwrap().clone()));
    let result = with(replacing(arguments)).execute_as(response()).await;
    assert_eq!((code(&result), &result.outcome.result), (Some("INTERNAL_ERROR"), &None));
}

#[tokio::test]
async fn the_body_of_a_failed_call_is_inspected_and_its_error_stays() {
    let failure = SourceFailure {
        sent: true,
        http_status: Some(500),
        result: Some(json!({"card": "4111"})),
        ..SourceFailure::not_sent(FailureKind::Service, "the service failed")
    };
    let result = with(result_of(json!({}))).execute_as(Err(failure)).await;
    assert_eq!((code(&result), &result.outcome.result), (Some("SERVICE_ERROR"), &Some(json!({}))));
}
