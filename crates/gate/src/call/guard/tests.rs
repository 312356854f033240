//! What the verdict of the guardians means for a call.

use super::*;
use crate::call::testing::Bench;

fn says(bench: &Bench, verdict: Verdict) {
    *bench.guardian.verdict.lock().unwrap() = Some(verdict);
}

fn with_arguments(arguments: &Value) -> Verdict {
    let content = Content::Arguments(Cow::Owned(arguments.as_object().unwrap().clone()));
    Verdict::Pass { content: Some(Box::new(content)), asks: Vec::new() }
}

#[tokio::test]
async fn a_denial_refuses_with_its_reason_and_its_cause() {
    let cases = [
        (DenialCause::Policy, Code::PolicyDenied),
        (DenialCause::Unevaluable, Code::PolicyUnevaluable),
        (DenialCause::Guardian("dlp".to_owned()), Code::GuardianDenied),
        (DenialCause::Failure { guardian: "dlp".to_owned(), class: FailureClass::Timeout }, Code::GuardianTimedOut),
    ];
    for (cause, code) in cases {
        let bench = Bench::with_grant();
        says(&bench, Verdict::Deny(Denial { cause, reason: "not on sundays".to_owned(), policy: None }));
        let refusal = bench.guard(&bench.call("crm.read", json!({"id": "7"}))).await.err().unwrap();
        assert_eq!((refusal.code(), refusal.reason()), (code, "not on sundays"));
    }
}

#[tokio::test]
async fn changed_arguments_are_what_is_sent() {
    let bench = Bench::with_grant();
    says(&bench, with_arguments(&json!({"id": "8"})));
    let guarded = bench.guard(&bench.call("crm.read", json!({"id": "7"}))).await.ok().unwrap();
    assert_eq!(guarded.modified(), Some(&json!({"id": "8"})));
    assert_eq!(guarded.eligible().request.as_ref().unwrap().url.path(), "/contacts/8");
}

#[tokio::test]
async fn changed_arguments_must_keep_the_limits_too() {
    let bench = Bench::with_grant();
    says(&bench, with_arguments(&json!({"other": true})));
    let refusal = bench.guard(&bench.call("crm.read", json!({"id": "7"}))).await.err().unwrap();
    assert_eq!(refusal.code(), Code::ParametersInvalid);
}

#[tokio::test]
async fn a_caller_that_cannot_change_its_arguments_is_refused() {
    let bench = Bench::with_grant();
    says(&bench, with_arguments(&json!({"id": "8"})));
    let call = Call { takes_changes: false, ..bench.call("crm.read", json!({"id": "7"})) };
    assert_eq!(bench.guard(&call).await.err().unwrap().code(), Code::GuardianDenied);
}

#[tokio::test]
async fn asks_go_on_to_the_approver() {
    let bench = Bench::with_grant();
    let ask = Ask { reason: "large".to_owned(), groups: Vec::new(), approvers: 1, ttl_seconds: None, policy: None };
    says(&bench, Verdict::Pass { content: None, asks: vec![ask.clone()] });
    let guarded = bench.guard(&bench.call("crm.read", json!({"id": "7"}))).await.ok().unwrap();
    assert_eq!(guarded.asks(), [ask]);
}

#[tokio::test]
async fn where_nobody_has_a_say_no_verdict_is_asked_for_and_the_policies_are_carried_on() {
    let bench = Bench::with_grant();
    let basis = PolicyBasis { revision: 7, ..PolicyBasis::default() };
    *bench.guardian.unconcerned.lock().unwrap() = Some(basis);
    let guarded = bench.guard(&bench.call("crm.read", json!({"id": "7"}))).await.ok().unwrap();
    assert_eq!(bench.guardian.asked.load(std::sync::atomic::Ordering::Relaxed), 0);
    let (_, modified, judged) = guarded.into_parts();
    assert_eq!((modified, judged.basis), (None, basis));
    assert!(judged.decision.is_none());
}
