//! When an approver is asked, about what, and what the decision means for the call.

use serde_json::json;
use toolgate_model::approval::AskSource;
use toolgate_model::id::{ApprovalId, StandingApprovalId};

use super::*;
use crate::call::testing::{Bench, SECRET, now};

/// The step that a call of a tool reaches with this decision of the approver.
async fn approve(bench: &Bench, tool: &str, parameters: Value, retry_state: &mut RetryState) -> Result<Step, Refusal> {
    let call = Arc::new(bench.call(tool, parameters));
    let guarded = bench.guard(&call).await?;
    bench.pipeline.approve(&call, guarded, true, retry_state, &mut StageTimes::default()).await
}

fn replies(bench: &Bench, reply: ApprovalOutcome) {
    *bench.approver.reply.lock().unwrap() = Some(reply);
}

#[tokio::test]
async fn nobody_is_asked_where_nothing_asks() {
    let bench = Bench::with_grant();
    let step = approve(&bench, "crm.read", json!({"id": "7"}), &mut RetryState::default()).await.ok().unwrap();
    assert!(matches!(step, Step::Approved(approved) if approved.consent == Consent::default()));
    assert!(bench.approver.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_approver_sees_why_and_everything_but_the_secret() {
    let bench = Bench::with_grant();
    let refused =
        approve(&bench, "crm.write", json!({"name": "Ann", "note": SECRET}), &mut RetryState::default()).await;
    assert_eq!(refused.err().unwrap().code(), Code::ApprovalDenied);
    let asked = bench.approver.asked.lock().unwrap();
    let approval = &asked[0].approval;
    assert_eq!(approval.reasons[0].source, AskSource::Tool);
    let arguments = approval.arguments.as_ref().unwrap();
    assert_eq!(arguments["name"], "Ann");
    assert!(!arguments.to_string().contains(SECRET));
    assert_eq!(asked[0].grants.len(), 1);
}

#[tokio::test]
async fn a_standing_approval_lets_the_call_go_on_at_once() {
    let bench = Bench::with_grant();
    let standing = vec![StandingApprovalId::new(now(), [1; 10])];
    replies(&bench, ApprovalOutcome::Consent(Consent { standing: standing.clone(), ..Consent::default() }));
    let step = approve(&bench, "crm.write", json!({}), &mut RetryState::default()).await.ok().unwrap();
    let Step::Approved(approved) = step else { panic!("it is approved") };
    assert_eq!(approved.consent.standing, standing);
    assert!(approved.covered.is_some(), "the consent is bound to the action");
}

#[tokio::test]
async fn after_a_decision_everything_is_decided_again_and_the_decision_is_used_for_the_same_call_only() {
    let bench = Bench::with_grant();
    let approval = ApprovalId::new(now(), [1; 10]);
    replies(&bench, ApprovalOutcome::Consent(Consent { approval: Some(approval), ..Consent::default() }));
    let mut retry_state = RetryState::default();
    let call = Arc::new(bench.call("crm.write", json!({"name": "Ann"})));
    let step = bench
        .pipeline
        .approve(&call, bench.guard(&call).await.ok().unwrap(), true, &mut retry_state, &mut StageTimes::default())
        .await;
    assert!(matches!(step, Ok(Step::Again)));
    let step = bench
        .pipeline
        .approve(&call, bench.guard(&call).await.ok().unwrap(), true, &mut retry_state, &mut StageTimes::default())
        .await;
    assert!(matches!(step, Ok(Step::Approved(approved)) if approved.consent.approval == Some(approval)));
    assert_eq!(bench.approver.asked.lock().unwrap().len(), 1, "it is asked once");

    let other = Arc::new(Call { parameters: json!({"name": "Bob"}), ..(*call).clone() });
    let changed = bench
        .pipeline
        .approve(&other, bench.guard(&other).await.ok().unwrap(), true, &mut retry_state, &mut StageTimes::default())
        .await;
    assert_eq!(changed.err().unwrap().code(), Code::ApprovalRequired);
}

#[tokio::test]
async fn a_guardrail_asks_before_each_call_and_nothing_covers_it() {
    let bench = Bench::with_grant();
    bench.govern(&json!({"require_approval_for": ["crm.read"]}));
    let refused = approve(&bench, "crm.read", json!({"id": "7"}), &mut RetryState::default()).await;
    assert_eq!(refused.err().unwrap().code(), Code::ApprovalDenied);
    let asked = bench.approver.asked.lock().unwrap();
    let approval = &asked[0].approval;
    assert_eq!(approval.reasons.iter().map(|reason| reason.source).collect::<Vec<_>>(), [AskSource::Guardrail]);
    assert!(!approval.coverable);
}
