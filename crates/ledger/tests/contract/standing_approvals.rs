//! Standing approvals: created by a decision that covers more than its call, found by agent and tool, and revoked.

use serde_json::json;
use toolgate_gate::ports::ledger::{PageRequest, StandingFilter};
use toolgate_gate::refusal::Code;
use toolgate_model::approval::{Approval, ApprovalRule, ApprovalStatus, Decision, StandingApproval};
use toolgate_model::id::StandingApprovalId;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal};

use super::support::approvals::{
    TOOL, always, ask, everywhere, now, question, revoke, say, standing, standing_now, under, word,
};
use super::support::refused;

contract!(
    an_answer_that_covers_later_calls_makes_a_standing_approval,
    a_standing_approval_is_of_the_agent_and_the_tool_that_were_shown,
    an_answer_that_may_not_cover_later_calls_stands_alone_and_says_so,
    a_notice_of_the_caller_is_kept,
    a_no_covers_nothing,
    what_covers_calls_is_found_by_agent_and_tool_while_it_is_active,
    standing_approvals_are_listed_newest_first_filtered_and_paged,
    a_standing_approval_is_taken_back_once,
    standing_approvals_of_another_tenant_are_answered_like_none,
);

async fn listed(tenant: &TestTenant, filter: StandingFilter) -> Vec<StandingApprovalId> {
    let page = tenant.ledger.standings(&tenant.id, filter, PageRequest::first(100)).await.unwrap();
    page.items.into_iter().map(|standing| standing.id).collect()
}

async fn covering(tenant: &TestTenant, agent: &str, tool: &str) -> Vec<StandingApproval> {
    tenant.ledger.standing_for(&tenant.id, &principal(agent), tool, tenant.now()).await.unwrap()
}

async fn an_answer_that_covers_later_calls_makes_a_standing_approval(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let asked = ask(&tenant, question(&tenant)).await;
    let mut wished = everywhere(&tenant, &asked);
    (wished.expires_at, wished.max_uses) = (Some(tenant.later(3600)), Some(7));

    let ended = say(&tenant, always(&tenant, &asked, wished.clone())).await.unwrap();

    assert_eq!((ended.standing, ended.notice.as_ref()), (Some(wished.id), None));
    assert_eq!(now(&tenant, &asked).await, ended);
    assert_eq!(standing_now(&tenant, &wished).await, wished);
    let events = tenant.events().await;
    let [granted, created] = &events[events.len() - 2..] else { panic!("two events") };
    assert_eq!((&granted["type"], &created["type"]), (&json!("approval.granted"), &json!("standing_approval.created")));
    assert_eq!(granted["data"]["standing_approval_id"], json!(wished.id));
    assert_eq!((&created["agent_id"], &created["actor"]), (&json!("billing"), &json!(tenant.administrator)));
    let data = &created["data"];
    assert_eq!((&data["standing_approval_id"], &data["approval_id"]), (&json!(wished.id), &json!(asked.id)));
    assert_eq!((&data["max_uses"], &data["tool"]), (&json!(7), &json!(TOOL)));
}

async fn a_standing_approval_is_of_the_agent_and_the_tool_that_were_shown(fixture: &LedgerFixture) {
    let (tenant, other) = (fixture.tenant().await, fixture.tenant().await);
    let made = standing(&tenant, |standing| {
        standing.agent = principal("shipping");
        standing.tool = "mail.send".to_owned();
        standing.tenant = other.id.clone();
    });
    let found = standing_now(&tenant, &made.await).await;
    assert_eq!((found.agent, found.tool.as_str(), found.tenant), (principal("billing"), TOOL, tenant.id.clone()));
}

async fn an_answer_that_may_not_cover_later_calls_stands_alone_and_says_so(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let rule = ApprovalRule::default;
    let ways = [
        Approval { coverable: false, ..question(&tenant) },
        under(ApprovalRule { standing: false, ..rule() }, question(&tenant)),
        under(ApprovalRule { approvers: 2, ..rule() }, question(&tenant)),
    ];
    for asked in ways {
        let asked = ask(&tenant, asked).await;
        if asked.rule.approvers > 1 {
            say(&tenant, word(&tenant, &asked, &principal("alice"), Decision::Approve)).await.unwrap();
        }
        let ended = say(&tenant, always(&tenant, &asked, everywhere(&tenant, &asked))).await.unwrap();
        assert_eq!((ended.status, ended.standing), (ApprovalStatus::Approved, None));
        assert!(ended.notice.unwrap().starts_with("only this call is approved: "));
    }
    assert_eq!(listed(&tenant, StandingFilter::default()).await, []);
    assert_eq!(tenant.events_of("standing_approval.created").await.len(), 0);
}

async fn a_notice_of_the_caller_is_kept(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let asked = ask(&tenant, question(&tenant)).await;
    let mut said = always(&tenant, &asked, everywhere(&tenant, &asked));
    (said.standing, said.notice) = (None, Some("`bash` can run anything".to_owned()));
    let ended = say(&tenant, said).await.unwrap();
    assert_eq!(ended.status, ApprovalStatus::Approved);
    assert_eq!(now(&tenant, &asked).await.notice.as_deref(), Some("`bash` can run anything"));
}

async fn a_no_covers_nothing(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let asked = ask(&tenant, question(&tenant)).await;
    let mut said = always(&tenant, &asked, everywhere(&tenant, &asked));
    said.vote.decision = Decision::Deny;
    let ended = say(&tenant, said).await.unwrap();
    assert_eq!((ended.status, ended.standing), (ApprovalStatus::Denied, None));
    assert_eq!(listed(&tenant, StandingFilter::default()).await, []);
}

async fn what_covers_calls_is_found_by_agent_and_tool_while_it_is_active(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let lasting = standing(&tenant, |_| ()).await;
    let brief = standing(&tenant, |standing| standing.expires_at = Some(standing.created_at)).await;
    let ending = tenant.later(10);
    let until = standing(&tenant, |standing| standing.expires_at = Some(ending)).await;
    let used_up = standing(&tenant, |standing| (standing.used, standing.max_uses) = (2, Some(2))).await;
    let revoked = standing(&tenant, |_| ()).await;
    revoke(&tenant, revoked.id).await.unwrap();

    let ids = async || {
        let found = covering(&tenant, "billing", TOOL).await;
        found.into_iter().map(|standing| standing.id).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(ids().await, [lasting.id, until.id].into());
    let active = StandingFilter { active_at: Some(tenant.now()), ..StandingFilter::default() };
    assert_eq!(listed(&tenant, active).await.len(), 2);
    tenant.wait(10);
    assert_eq!(ids().await, [lasting.id].into());
    assert_eq!(covering(&tenant, "shipping", TOOL).await, []);
    assert_eq!(covering(&tenant, "billing", "stripe.charges").await, []);
    let all = listed(&tenant, StandingFilter::default()).await;
    assert!([brief.id, used_up.id, revoked.id].iter().all(|id| all.contains(id)), "what has ended can be looked at");
}

async fn standing_approvals_are_listed_newest_first_filtered_and_paged(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let mut expected = Vec::new();
    for number in 0..5 {
        let asked = Approval { agent: principal(["billing", "shipping"][number % 2]), ..question(&tenant) };
        let asked = ask(&tenant, asked).await;
        let wished = everywhere(&tenant, &asked);
        say(&tenant, always(&tenant, &asked, wished.clone())).await.unwrap();
        expected.push(wished.id);
        tenant.wait(1);
    }
    expected.reverse();
    let (mut found, mut page) = (Vec::new(), PageRequest::first(2));
    loop {
        let read = tenant.ledger.standings(&tenant.id, StandingFilter::default(), page).await.unwrap();
        found.extend(read.items.into_iter().map(|standing| standing.id));
        let Some(next) = read.next else { break };
        page = PageRequest { after: Some(next), limit: 2 };
    }
    assert_eq!(found, expected);
    let of_agent = StandingFilter { agent: Some(principal("shipping")), ..StandingFilter::default() };
    assert_eq!(listed(&tenant, of_agent).await, [expected[1], expected[3]]);
    let of_tool = StandingFilter { tool: Some("mail.send".to_owned()), ..StandingFilter::default() };
    assert_eq!(listed(&tenant, of_tool).await, []);
}

async fn a_standing_approval_is_taken_back_once(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let made = standing(&tenant, |_| ()).await;
    tenant.wait(5);
    let revoked = revoke(&tenant, made.id).await.unwrap();
    assert_eq!(revoked.revoked_at, Some(tenant.now()));
    assert_eq!(revoked.revoked_by, Some(tenant.administrator.clone()));
    assert_eq!(standing_now(&tenant, &made).await, revoked);
    let event = tenant.events().await.pop().unwrap();
    assert_eq!((&event["type"], &event["agent_id"]), (&json!("standing_approval.revoked"), &json!("billing")));
    assert_eq!(event["data"]["standing_approval_id"], json!(made.id));

    tenant.wait(5);
    let events = tenant.events().await.len();
    assert_eq!(revoke(&tenant, made.id).await.unwrap(), revoked);
    assert_eq!(tenant.events().await.len(), events);
    let unknown = StandingApprovalId::new(tenant.now(), [1; 10]);
    refused(&tenant, Code::StandingApprovalNotFound, revoke(&tenant, unknown)).await;
}

async fn standing_approvals_of_another_tenant_are_answered_like_none(fixture: &LedgerFixture) {
    let (owner, intruder) = (fixture.tenant().await, fixture.tenant().await);
    let made = standing(&owner, |_| ()).await;
    assert_eq!(intruder.ledger.standing(&intruder.id, made.id).await.unwrap(), None);
    assert_eq!(listed(&intruder, StandingFilter::default()).await, []);
    assert_eq!(covering(&intruder, "billing", TOOL).await, []);
    refused(&intruder, Code::StandingApprovalNotFound, revoke(&intruder, made.id)).await;
    assert_eq!(standing_now(&owner, &made).await, made);
}
