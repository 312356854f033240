//! Approvals: stored before they can be decided, found within their tenant, and ended once.

use serde_json::json;
use toolgate_gate::ports::ledger::{ApprovalFilter, GrantRates, PageRequest, RequestApproval};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::approval::{Approval, ApprovalSession, ApprovalStatus, CallLabel, SessionName};
use toolgate_model::id::ApprovalId;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal};

use super::support::approvals::{approve, ask, deny, end, key_of, now, people, process, question, requesting};
use super::support::{refused, run};

contract!(
    a_question_is_read_back_as_it_was_asked,
    a_question_leaves_an_event_without_its_arguments,
    approvals_are_listed_newest_first_and_paged,
    approvals_are_filtered_by_status_agent_tool_and_call,
    a_question_is_ended_once_and_says_why,
    an_approval_that_was_answered_is_not_ended_any_more,
    an_approval_that_does_not_exist_is_not_found,
    an_agent_that_waits_too_often_is_refused,
    questions_of_one_agent_at_the_same_moment_do_not_pass_the_limit,
    calls_that_wait_count_against_the_rate_of_their_grant,
    an_answer_makes_room_for_the_next_question_of_a_grant,
    a_tenant_that_waits_too_often_is_refused,
    approvals_of_another_tenant_are_answered_like_none,
);

/// The maximum number of open approvals per agent here.
const MAX_OF_AGENT: u32 = 30;

async fn listed(tenant: &TestTenant, filter: ApprovalFilter) -> Vec<ApprovalId> {
    let page = tenant.ledger.approvals(&tenant.id, filter, PageRequest::first(100)).await.unwrap();
    page.items.into_iter().map(|approval| approval.id).collect()
}

async fn request(tenant: &TestTenant, approval: Approval) -> Result<(), Refusal> {
    let request = requesting(tenant, process(tenant), approval);
    tenant.ledger.request_approval(RequestApproval { most_of_agent: MAX_OF_AGENT, ..request }).await
}

async fn a_question_is_read_back_as_it_was_asked(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let mut asked = question(&tenant);
    asked.original_arguments = Some(json!({"amount": 1200, "note": "\u{0}\u{202e} \u{1f980}"}));
    asked.call = Some(CallLabel::parse("call-7").unwrap());
    let name = SessionName::parse("s-1").unwrap();
    asked.session = Some(ApprovalSession { owner: principal("host"), name, workspace: None });
    ask(&tenant, asked.clone()).await;
    assert_eq!(now(&tenant, &asked).await, asked);
}

async fn a_question_leaves_an_event_without_its_arguments(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let asked = ask(&tenant, question(&tenant)).await;
    let event = tenant.events().await.pop().unwrap();
    assert_eq!(event["type"], "approval.requested");
    assert_eq!((&event["actor"], &event["agent_id"]), (&json!("billing"), &json!("billing")));
    assert_eq!(event["run_id"], json!(asked.invocation));
    let data = &event["data"];
    assert_eq!((&data["approval_id"], &data["status"]), (&json!(asked.id), &json!("pending")));
    assert_eq!(data["digest"], json!(asked.digest));
    assert!(!event.to_string().contains("1200"), "{event}");
}

async fn approvals_are_listed_newest_first_and_paged(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let mut expected = Vec::new();
    for _ in 0..5 {
        expected.push(ask(&tenant, question(&tenant)).await.id);
        tenant.wait(1);
    }
    expected.reverse();
    assert_eq!(listed(&tenant, ApprovalFilter::default()).await, expected);

    let mut found = Vec::new();
    let mut page = PageRequest::first(2);
    loop {
        let read = tenant.ledger.approvals(&tenant.id, ApprovalFilter::default(), page).await.unwrap();
        found.extend(read.items.into_iter().map(|approval| approval.id));
        // Approvals requested in the meantime are newer than any cursor.
        ask(&tenant, question(&tenant)).await;
        let Some(next) = read.next else { break };
        page = PageRequest { after: Some(next), limit: 2 };
    }
    assert_eq!(found, expected);
}

async fn approvals_are_filtered_by_status_agent_tool_and_call(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let waiting = ask(&tenant, question(&tenant)).await;
    let approved = ask(&tenant, question(&tenant)).await;
    approve(&tenant, &approved, "alice").await.unwrap();
    let denied = ask(&tenant, Approval { tool: "mail.send".to_owned(), ..question(&tenant) }).await;
    deny(&tenant, &denied, "alice").await.unwrap();
    let other = ask(&tenant, Approval { agent: principal("shipping"), ..question(&tenant) }).await;

    let all = ApprovalFilter::default;
    let of_agent = |name: &str| ApprovalFilter { agent: Some(principal(name)), ..all() };
    let in_status = |status| ApprovalFilter { status: Some(status), ..all() };
    let mut pending = listed(&tenant, in_status(ApprovalStatus::Pending)).await;
    pending.sort_unstable();
    let mut expected = vec![waiting.id, other.id];
    expected.sort_unstable();
    assert_eq!(pending, expected);
    assert_eq!(listed(&tenant, in_status(ApprovalStatus::Approved)).await, [approved.id]);
    assert_eq!(listed(&tenant, in_status(ApprovalStatus::Denied)).await, [denied.id]);
    assert_eq!(listed(&tenant, in_status(ApprovalStatus::TimedOut)).await, []);
    assert_eq!(listed(&tenant, of_agent("shipping")).await, [other.id]);
    assert_eq!(listed(&tenant, of_agent("billing")).await.len(), 3);
    assert_eq!(listed(&tenant, of_agent("nobody")).await, []);
    let of_tool = ApprovalFilter { tool: Some("mail.send".to_owned()), ..all() };
    assert_eq!(listed(&tenant, of_tool).await, [denied.id]);
    let of_call = ApprovalFilter { invocation: Some(waiting.invocation), ..all() };
    assert_eq!(listed(&tenant, of_call).await, [waiting.id]);
    let both = ApprovalFilter { status: Some(ApprovalStatus::Pending), ..of_agent("billing") };
    assert_eq!(listed(&tenant, both).await, [waiting.id]);
}

async fn a_question_is_ended_once_and_says_why(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let ways = [
        (ApprovalStatus::Cancelled, "approval.cancelled"),
        (ApprovalStatus::TimedOut, "approval.timed_out"),
        (ApprovalStatus::Orphaned, "approval.orphaned"),
    ];
    for (status, kind) in ways {
        let asked = ask(&tenant, question(&tenant)).await;
        tenant.wait(1);
        let ended = end(&tenant, &asked, status).await.unwrap();
        assert_eq!((ended.status, ended.resolved_at), (status, Some(tenant.now())));
        assert_eq!(ended.reason.as_deref(), Some("whoever waited is gone"));
        let event = tenant.events().await.pop().unwrap();
        assert_eq!((&event["type"], &event["data"]["approval_id"]), (&json!(kind), &json!(asked.id)));

        tenant.wait(1);
        let events = tenant.events().await.len();
        assert_eq!(end(&tenant, &asked, ApprovalStatus::Cancelled).await.unwrap(), ended, "the first ending stays");
        assert_eq!(now(&tenant, &asked).await, ended);
        assert_eq!(tenant.events().await.len(), events);
    }
}

async fn an_approval_that_was_answered_is_not_ended_any_more(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let asked = ask(&tenant, question(&tenant)).await;
    let approved = approve(&tenant, &asked, "alice").await.unwrap();
    let events = tenant.events().await.len();
    assert_eq!(end(&tenant, &asked, ApprovalStatus::Cancelled).await.unwrap(), approved);
    assert_eq!(tenant.events().await.len(), events);
}

async fn an_approval_that_does_not_exist_is_not_found(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let never_asked = question(&tenant);
    key_of(&tenant, &principal("alice")).await;
    assert_eq!(tenant.ledger.approval(&tenant.id, never_asked.id).await.unwrap(), None);
    refused(&tenant, Code::ApprovalNotFound, approve(&tenant, &never_asked, "alice")).await;
    refused(&tenant, Code::ApprovalNotFound, end(&tenant, &never_asked, ApprovalStatus::Cancelled)).await;
}

/// Puts so many copies of the only approval of a tenant beside it, each for an agent called so, with the number behind.
async fn copies(fixture: &LedgerFixture, tenant: &TestTenant, count: u32, agent: &str) {
    let sql = format!(
        "INSERT INTO approvals (tenant, id, status, agent, tool, invocation, process, created_at, expires_at, body) \
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count}) \
         SELECT tenant, id || n, status, {agent}, tool, invocation, process, created_at, expires_at, body \
         FROM approvals, numbers WHERE tenant = '{}'",
        tenant.id
    );
    run(fixture, &sql).await;
}

async fn an_agent_that_waits_too_often_is_refused(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let first = ask(&tenant, question(&tenant)).await;
    copies(fixture, &tenant, MAX_OF_AGENT - 2, "agent").await;

    request(&tenant, question(&tenant)).await.unwrap();
    refused(&tenant, Code::TooManyApprovals, request(&tenant, question(&tenant))).await;
    let of_another = Approval { agent: principal("shipping"), ..question(&tenant) };
    request(&tenant, of_another).await.unwrap();
    approve(&tenant, &first, "alice").await.unwrap();
    request(&tenant, question(&tenant)).await.expect("one was answered, so there is room again");
}

async fn questions_of_one_agent_at_the_same_moment_do_not_pass_the_limit(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    ask(&tenant, question(&tenant)).await;
    key_of(&tenant, &question(&tenant).agent).await;
    copies(fixture, &tenant, MAX_OF_AGENT - 3, "agent").await;
    let questions: Vec<_> = (0..8).map(|_| request(&tenant, question(&tenant))).collect();
    let asked = futures_util::future::join_all(questions).await;
    assert_eq!(asked.iter().filter(|asked| asked.is_ok()).count(), 2, "{asked:?}");
}

async fn calls_that_wait_count_against_the_rate_of_their_grant(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let (tight, wide) = (rates(&tenant, Some(2)), rates(&tenant, Some(3)));
    let ask_through = |grants: Vec<GrantRates>| {
        let request = requesting(&tenant, process(&tenant), question(&tenant));
        tenant.ledger.request_approval(RequestApproval { grants, ..request })
    };
    ask_through(vec![tight.clone()]).await.unwrap();
    ask_through(vec![tight.clone()]).await.unwrap();
    refused(&tenant, Code::GrantRateLimited, ask_through(vec![tight.clone()])).await;
    for _ in 0..3 {
        ask_through(vec![tight.clone(), wide.clone()]).await.expect("another grant has room");
    }
    refused(&tenant, Code::GrantRateLimited, ask_through(vec![tight.clone(), wide.clone()])).await;
    ask_through(vec![rates(&tenant, None)]).await.expect("a grant without a rate");
    ask_through(Vec::new()).await.expect("a tool without a grant");
    tenant.wait(4_000);
    refused(&tenant, Code::GrantRateLimited, ask_through(vec![tight])).await;
}

async fn an_answer_makes_room_for_the_next_question_of_a_grant(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let tight = rates(&tenant, Some(1));
    let asked = question(&tenant);
    people(&tenant).await;
    let through = |approval: Approval| RequestApproval {
        grants: vec![tight.clone()],
        ..requesting(&tenant, process(&tenant), approval)
    };
    tenant.ledger.request_approval(through(asked.clone())).await.unwrap();
    refused(&tenant, Code::GrantRateLimited, tenant.ledger.request_approval(through(question(&tenant)))).await;
    approve(&tenant, &asked, "alice").await.unwrap();
    tenant.ledger.request_approval(through(question(&tenant))).await.unwrap();
}

/// A grant of this rate, below one without any.
fn rates(tenant: &TestTenant, limit: Option<u64>) -> GrantRates {
    let grant = tenant.grant_id();
    GrantRates { grant, lineage: vec![(tenant.grant_id(), None), (grant, limit)] }
}

async fn a_tenant_that_waits_too_often_is_refused(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let first = ask(&tenant, question(&tenant)).await;
    copies(fixture, &tenant, 19_998, "agent || '-' || n").await;

    request(&tenant, question(&tenant)).await.unwrap();
    refused(&tenant, Code::TooManyApprovals, request(&tenant, question(&tenant))).await;
    let elsewhere = fixture.tenant().await;
    request(&elsewhere, question(&elsewhere)).await.expect("another tenant has room of its own");
    approve(&tenant, &first, "alice").await.unwrap();
    request(&tenant, question(&tenant)).await.unwrap();
}

async fn approvals_of_another_tenant_are_answered_like_none(fixture: &LedgerFixture) {
    let (owner, intruder) = (fixture.tenant().await, fixture.tenant().await);
    let asked = ask(&owner, question(&owner)).await;
    key_of(&intruder, &principal("alice")).await;

    assert_eq!(intruder.ledger.approval(&intruder.id, asked.id).await.unwrap(), None);
    assert_eq!(listed(&intruder, ApprovalFilter::default()).await, []);
    let of_call = ApprovalFilter { invocation: Some(asked.invocation), ..ApprovalFilter::default() };
    assert_eq!(listed(&intruder, of_call).await, []);
    refused(&intruder, Code::ApprovalNotFound, approve(&intruder, &asked, "alice")).await;
    refused(&intruder, Code::ApprovalNotFound, end(&intruder, &asked, ApprovalStatus::Cancelled)).await;
    assert_eq!(now(&owner, &asked).await, asked, "nothing happened to it");
}
