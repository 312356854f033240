//! What an admission records, and through which grant.

use toolgate_model::arguments::{arguments_hash, without};

use super::*;
use crate::call::approve::Step;
use crate::call::testing::{Bench, SECRET, credential};
use crate::call::{RetryState, StageTimes};
use crate::catalog::Tool;
use crate::ports::source::Sources;

async fn approved(bench: &Bench, call: &Arc<Call>) -> Approved {
    let guarded = bench.guard(call).await.ok().unwrap();
    match bench.pipeline.approve(call, guarded, true, &mut RetryState::default(), &mut StageTimes::default()).await {
        Ok(Step::Approved(approved)) => *approved,
        _ => panic!("nothing asks for an approver"),
    }
}

async fn admit(bench: &Bench, parameters: Value) -> Result<Outcome, Refusal> {
    let call = Arc::new(bench.call("crm.read", parameters));
    let approved = approved(bench, &call).await;
    bench.pipeline.admit(&call, approved, &mut StageTimes::default()).await
}

fn no_room() -> Admission {
    Admission::Refused(Refusal::new(Code::GrantRateLimited, "the rate of the grant is used up"))
}

#[tokio::test]
async fn an_admitted_call_is_on_record_as_running_without_its_secret() {
    let bench = Bench::with_grant();
    let outcome = admit(&bench, json!({"id": "7", "note": SECRET})).await;
    let Ok(Outcome::Admitted(admitted, opened)) = outcome else { panic!("it is admitted") };
    assert!(matches!(opened, Some(Ok(_))), "with its credential open");
    let commands = bench.memory.admitted.lock().unwrap();
    let command = &commands[0];
    assert_eq!(command.invocation.status, InvocationStatus::Running);
    assert_eq!(command.invocation.id, admitted.invocation().id);
    assert_eq!(command.credential.map(|(_, version)| version), Some(1));
    let shown = without(&json!({"id": "7", "note": SECRET}), &[SECRET.as_bytes()]).into_owned();
    assert_eq!(*command.invocation.arguments_hash, arguments_hash(&shown, &[]));
}

#[tokio::test]
async fn a_grant_without_room_leaves_the_call_to_the_next_one() {
    let bench = Bench::new();
    let credential = credential("crm", 1);
    let (first, second) = (bench.grant(&credential, |_| {}), bench.grant(&credential, |_| {}));
    bench.memory.admissions.lock().unwrap().push_back(no_room());
    assert!(matches!(admit(&bench, json!({"id": "7"})).await, Ok(Outcome::Admitted(..))));
    let tried: Vec<_> = bench.memory.admitted.lock().unwrap().iter().map(|admit| admit.invocation.grant).collect();
    assert_eq!(tried, [Some(first), Some(second)]);
}

#[tokio::test]
async fn where_no_grant_has_room_the_call_is_refused() {
    let bench = Bench::with_grant();
    bench.memory.admissions.lock().unwrap().push_back(no_room());
    assert_eq!(admit(&bench, json!({"id": "7"})).await.err().unwrap().code(), Code::GrantRateLimited);
}

#[tokio::test]
async fn a_refusal_that_is_not_about_the_grant_is_final() {
    let bench = Bench::new();
    let credential = credential("crm", 1);
    bench.grant(&credential, |_| {});
    bench.grant(&credential, |_| {});
    let refusal = Refusal::new(Code::ToolRateLimited, "the tool is used too often");
    bench.memory.admissions.lock().unwrap().push_back(Admission::Refused(refusal));
    assert_eq!(admit(&bench, json!({"id": "7"})).await.err().unwrap().code(), Code::ToolRateLimited);
    assert_eq!(bench.memory.admitted.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_call_whose_basis_has_changed_is_not_admitted() {
    let bench = Bench::with_grant();
    bench.memory.admissions.lock().unwrap().push_back(Admission::Stale);
    assert!(matches!(admit(&bench, json!({"id": "7"})).await, Ok(Outcome::Stale)));
}

#[tokio::test]
async fn without_a_ledger_nothing_is_admitted() {
    let bench = Bench::with_grant();
    bench.memory.down.store(true, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(admit(&bench, json!({"id": "7"})).await.err().unwrap().code(), Code::LedgerUnavailable);
}

#[tokio::test]
async fn arguments_of_which_nothing_could_be_shown_are_refused() {
    let bench = Bench::with_grant();
    let call = bench.call("crm.read", json!({"id": "7", "note": format!("delete everything{}", "\\".repeat(1000))}));
    let mut state = crate::call::RunState::default();
    let outcome = bench.pipeline.run_stages(&Arc::new(call), &mut state).await;
    assert_eq!(outcome.err().map(|refusal| refusal.code()), Some(Code::ParametersInvalid));
}

#[tokio::test]
async fn a_call_that_no_source_executes_is_not_admitted() {
    let bench = Bench::with_grant();
    let mut call = bench.call("crm.read", json!({}));
    let scope = toolgate_model::scope::Scope::parse("conformance").unwrap();
    let definition = toolgate_model::service::ToolDefinition::of_scope(scope);
    let service = toolgate_model::credential::ServiceName::parse("conformance").unwrap();
    let name = ToolName::parse("echo").unwrap();
    let action = Action::Conformance { fails: false };
    call.uncataloged_tool = Some(Arc::new(Tool::built_in(service, name, Arc::new(definition), action)));
    let call = Arc::new(call);
    let approved = approved(&bench, &call).await;
    let refusal = bench.pipeline.admit(&call, approved, &mut StageTimes::default()).await.err().unwrap();
    assert_eq!(refusal.code(), Code::ToolNotExecutable);
    assert!(refusal.reason().contains("conformance.echo"), "{refusal}");
    assert!(bench.memory.admitted.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_question_and_a_client_executed_tool_need_no_source_but_the_gate() {
    let sources = Sources::default();
    for action in [Action::Question, Action::ClientExecuted] {
        assert!(sources.of(action).is_some(), "{action:?}");
    }
    for action in [Action::Http, Action::Fetch, Action::Workspace, Action::Conformance { fails: true }] {
        assert!(sources.of(action).is_none(), "{action:?}");
    }
}
