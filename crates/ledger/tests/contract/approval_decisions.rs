//! Decisions: of all votes on an approval the first one ends it, whoever casts it and wherever, and a vote that does
//! not count says why.

use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use toolgate_gate::ports::ledger::{DecideApproval, RevokeKey};
use toolgate_gate::refusal::Code;
use toolgate_model::approval::{Approval, ApprovalRule, ApprovalStatus, AskReason, AskSource, Decision, TIMED_OUT};
use toolgate_model::permission::PermissionSet;
use toolgate_model::principal::PrincipalChanges;
use toolgate_testkit::ledger_fixture::{LedgerFixture, principal};

use super::support::approvals::{
    approve, ask, by_groups, change, deny, end, holds, key_of, named, now, question, say, shortly_before_the_end,
    under, word,
};
use super::support::{detail, refused};

contract!(
    a_yes_and_a_no_end_an_approval_and_are_recorded,
    the_first_word_wins_and_the_later_ones_are_told_of_it,
    of_32_people_at_two_replicas_one_wins,
    a_word_of_somebody_from_whom_it_was_taken_or_whose_key_has_ended_is_not_counted,
    an_answer_and_an_end_at_the_same_moment_leave_one_of_them,
    the_same_word_under_its_key_gets_the_same_answer_without_an_event,
    another_word_under_the_same_key_is_refused,
    a_key_belongs_to_one_person_and_one_approval,
    as_many_as_the_rule_says_must_agree,
    the_vote_of_an_approver_who_is_none_any_more_does_not_count,
    a_count_that_is_repeated_under_its_key_is_one_word,
    one_no_ends_it_where_several_must_agree,
    an_override_ends_it_alone_where_the_rule_says_so_and_is_recorded_with_its_reason,
    the_agent_that_asks_and_whoever_calls_for_it_cannot_answer,
    a_person_may_answer_its_own_call_unless_the_rule_says_no,
    only_the_groups_of_the_rule_can_answer,
    a_question_wants_one_of_the_answers_that_it_offers,
    an_answer_is_the_output_of_a_question_only,
    an_approval_can_be_answered_until_its_end_to_the_millisecond,
    what_was_ended_cannot_be_answered,
);

async fn a_yes_and_a_no_end_an_approval_and_are_recorded(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let ways = [
        (Decision::Approve, ApprovalStatus::Approved, "approval.granted"),
        (Decision::Deny, ApprovalStatus::Denied, "approval.rejected"),
    ];
    for (decision, status, kind) in ways {
        let asked = ask(&tenant, question(&tenant)).await;
        tenant.wait(1);
        let mut said = word(&tenant, &asked, &principal("alice"), decision);
        said.vote.reason = Some("as agreed".to_owned());
        let ended = say(&tenant, said.clone()).await.unwrap();
        let expected = Approval {
            status,
            votes: vec![said.vote],
            reason: Some("as agreed".to_owned()),
            resolved_at: Some(tenant.now()),
            ..asked.clone()
        };
        assert_eq!(ended, expected);
        assert_eq!(now(&tenant, &asked).await, expected);
        let event = tenant.events().await.pop().unwrap();
        assert_eq!((&event["type"], &event["actor"]), (&json!(kind), &json!("alice")));
        assert_eq!((&event["agent_id"], &event["run_id"]), (&json!("billing"), &json!(asked.invocation)));
        let data = &event["data"];
        assert_eq!((&data["principal"], &data["channel"]), (&json!("alice"), &json!("http")));
        assert_eq!((&data["decision"], &data["reason"]), (&json!(decision), &json!("as agreed")));
    }
}

async fn the_first_word_wins_and_the_later_ones_are_told_of_it(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let asked = ask(&tenant, question(&tenant)).await;
    let ended = deny(&tenant, &asked, "alice").await.unwrap();
    for by in ["bob", "alice"] {
        let refusal = refused(&tenant, Code::ApprovalDecided, approve(&tenant, &asked, by)).await;
        assert_eq!(detail(&refusal, "status"), "denied");
        assert_eq!((detail(&refusal, "decided_by"), detail(&refusal, "channel")), (json!("alice"), json!("http")));
        assert_eq!(detail(&refusal, "approval_id"), json!(asked.id));
    }
    assert_eq!(now(&tenant, &asked).await, ended);
}

async fn of_32_people_at_two_replicas_one_wins(fixture: &LedgerFixture) {
    let here = fixture.tenant().await;
    let replicas = [here.clone(), here.through(fixture.replica().await)];
    for round in 0..4 {
        let asked = ask(&here, question(&here)).await;
        let mut attempts = JoinSet::new();
        for number in 0..32 {
            let tenant = replicas[number % 2].clone();
            let decision = [Decision::Approve, Decision::Deny][number / 2 % 2];
            let said = word(&tenant, &asked, &principal(&format!("person-{number}")), decision);
            attempts.spawn(async move { say(&tenant, said).await });
        }
        let (won, lost): (Vec<_>, Vec<_>) = attempts.join_all().await.into_iter().partition(Result::is_ok);

        let [Ok(winner)] = &won[..] else { panic!("{} winners in round {round}", won.len()) };
        assert_eq!(now(&here, &asked).await, *winner);
        assert!(lost.iter().all(|attempt| attempt.as_ref().unwrap_err().code() == Code::ApprovalDecided));
    }
    let events = here.events().await.into_iter();
    let ends = events.filter(|event| event["type"] == "approval.granted" || event["type"] == "approval.rejected");
    assert_eq!(ends.count(), 4);
}

async fn a_word_of_somebody_from_whom_it_was_taken_or_whose_key_has_ended_is_not_counted(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let asked = ask(&tenant, question(&tenant)).await;
    let alice = principal("alice");
    let key = key_of(&tenant, &alice).await;
    let audit = tenant.mandate(&alice, key).await;
    let said = DecideApproval { audit, ..word(&tenant, &asked, &alice, Decision::Approve) };
    let nobody_s = tenant.mandate(&alice, key_of(&tenant, &principal("bob")).await).await;
    let nobody_s = DecideApproval { audit: nobody_s, ..said.clone() };
    refused(&tenant, Code::KeyRevoked, tenant.ledger.decide_approval(nobody_s)).await;

    let permissions = Some(PermissionSet::of_an_agent());
    change(&tenant, &alice, PrincipalChanges { permissions, ..PrincipalChanges::default() }).await;
    refused(&tenant, Code::PermissionDenied, tenant.ledger.decide_approval(said.clone())).await;
    // Also if the gate did not check it.
    refused(&tenant, Code::PermissionDenied, say(&tenant, said.clone())).await;

    tenant.ledger.revoke_key(RevokeKey { audit: tenant.audit(), id: key }).await.unwrap();
    refused(&tenant, Code::KeyRevoked, tenant.ledger.decide_approval(said.clone())).await;
    tenant.remove(&alice).await.unwrap();
    refused(&tenant, Code::KeyRevoked, tenant.ledger.decide_approval(said)).await;
    assert_eq!(now(&tenant, &asked).await, asked, "nothing was counted");
}

async fn an_answer_and_an_end_at_the_same_moment_leave_one_of_them(fixture: &LedgerFixture) {
    let here = fixture.tenant().await;
    let there = here.through(fixture.replica().await);
    for _ in 0..16 {
        let asked = ask(&here, question(&here)).await;
        let (answered, ended) =
            tokio::join!(approve(&there, &asked, "alice"), end(&here, &asked, ApprovalStatus::Cancelled));
        let stands = now(&here, &asked).await;
        assert_eq!(ended.unwrap(), stands);
        match answered {
            Ok(answered) => assert_eq!(answered, stands),
            Err(refusal) => {
                assert_eq!((refusal.code(), stands.status), (Code::ApprovalEnded, ApprovalStatus::Cancelled));
            }
        }
    }
    let events = here.events().await.into_iter();
    let ends = events.filter(|event| event["type"] == "approval.granted" || event["type"] == "approval.cancelled");
    assert_eq!(ends.count(), 16);
}

async fn the_same_word_under_its_key_gets_the_same_answer_without_an_event(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let asked = ask(&tenant, question(&tenant)).await;
    let said = named(word(&tenant, &asked, &principal("alice"), Decision::Approve), "key-1");
    let first = say(&tenant, said.clone()).await.unwrap();
    let events = tenant.events().await.len();
    tenant.wait(3600);
    assert_eq!(say(&tenant, said).await.unwrap(), first, "however late");
    assert_eq!(tenant.events().await.len(), events);
}

async fn another_word_under_the_same_key_is_refused(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let asked = ask(&tenant, question(&tenant)).await;
    let first = say(&tenant, named(word(&tenant, &asked, &principal("alice"), Decision::Approve), "key-1")).await;
    let other = named(word(&tenant, &asked, &principal("alice"), Decision::Deny), "key-1");
    refused(&tenant, Code::IdempotencyConflict, say(&tenant, other)).await;
    assert_eq!(now(&tenant, &asked).await, first.unwrap());
}

async fn a_key_belongs_to_one_person_and_one_approval(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let (one, other) = (ask(&tenant, question(&tenant)).await, ask(&tenant, question(&tenant)).await);
    for asked in [&one, &other] {
        say(&tenant, named(word(&tenant, asked, &principal("alice"), Decision::Approve), "key-1")).await.unwrap();
    }
    let of_another = named(word(&tenant, &one, &principal("bob"), Decision::Approve), "key-1");
    refused(&tenant, Code::ApprovalDecided, say(&tenant, of_another)).await;
}

/// The rule that so many must agree.
fn quorum(approvers: u32) -> ApprovalRule {
    ApprovalRule { approvers, ..ApprovalRule::default() }
}

async fn as_many_as_the_rule_says_must_agree(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let asked = ask(&tenant, under(quorum(2), question(&tenant))).await;
    let counted = approve(&tenant, &asked, "alice").await.unwrap();
    assert_eq!((counted.status, counted.given()), (ApprovalStatus::Pending, 1));
    assert_eq!(now(&tenant, &asked).await, counted);
    let event = tenant.events().await.pop().unwrap();
    assert_eq!((&event["type"], &event["actor"]), (&json!("approval.counted"), &json!("alice")));
    assert_eq!(event["data"]["quorumProgress"], json!({"given": 1, "needed": 2}));

    refused(&tenant, Code::ApprovalDecided, approve(&tenant, &asked, "alice")).await;
    let ended = approve(&tenant, &asked, "bob").await.unwrap();
    assert_eq!((ended.status, ended.given()), (ApprovalStatus::Approved, 2));
    refused(&tenant, Code::ApprovalDecided, approve(&tenant, &asked, "carol")).await;
    assert_eq!(tenant.events_of("approval.granted").await.len(), 1);
}

async fn the_vote_of_an_approver_who_is_none_any_more_does_not_count(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let rule = ApprovalRule { approvers: 2, ..by_groups(&["finance"]) };
    for (number, way) in ["removed", "permission", "group"].into_iter().enumerate() {
        let [first, second, third] = ["first", "second", "third"].map(|name| principal(&format!("{name}-{number}")));
        for person in [&first, &second, &third] {
            key_of(&tenant, person).await;
            holds(&tenant, person, &["approver:finance"]).await;
        }
        let asked = ask(&tenant, under(rule.clone(), question(&tenant))).await;
        assert_eq!(approve(&tenant, &asked, first.as_str()).await.unwrap().given(), 1);
        match way {
            "removed" => drop(tenant.remove(&first).await.unwrap()),
            "permission" => {
                let permissions = Some(PermissionSet::of_an_agent());
                change(&tenant, &first, PrincipalChanges { permissions, ..PrincipalChanges::default() }).await;
            }
            _ => holds(&tenant, &first, &["approver:sales"]).await,
        }

        let counted = approve(&tenant, &asked, second.as_str()).await.unwrap();
        assert_eq!((counted.status, counted.given()), (ApprovalStatus::Pending, 1), "{way}");
        let ended = approve(&tenant, &asked, third.as_str()).await.unwrap();
        let voters: Vec<_> = ended.votes.iter().map(|vote| vote.by.clone()).collect();
        assert_eq!((ended.status, voters), (ApprovalStatus::Approved, vec![second, third]), "{way}");
        // An ended approval stays as it ended.
        refused(&tenant, Code::ApprovalDecided, approve(&tenant, &asked, "alice")).await;
    }
}

async fn a_count_that_is_repeated_under_its_key_is_one_word(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let asked = ask(&tenant, under(quorum(2), question(&tenant))).await;
    let said = named(word(&tenant, &asked, &principal("alice"), Decision::Approve), "key-1");
    for _ in 0..3 {
        assert_eq!(say(&tenant, said.clone()).await.unwrap().given(), 1);
    }
    assert_eq!(tenant.events_of("approval.counted").await.len(), 1);
}

async fn one_no_ends_it_where_several_must_agree(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    for by in ["bob", "alice"] {
        let asked = ask(&tenant, under(quorum(3), question(&tenant))).await;
        approve(&tenant, &asked, "alice").await.unwrap();
        let ended = deny(&tenant, &asked, by).await.unwrap();
        assert_eq!(ended.status, ApprovalStatus::Denied, "{by} may say no");
        refused(&tenant, Code::ApprovalDecided, approve(&tenant, &asked, "carol")).await;
    }
}

async fn an_override_ends_it_alone_where_the_rule_says_so_and_is_recorded_with_its_reason(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let rule = ApprovalRule { override_groups: Some(["security".to_owned()].into()), ..quorum(2) };
    let asked = ask(&tenant, under(rule, question(&tenant))).await;
    let overriding = |by: &str, reason: Option<&str>| {
        let mut said = word(&tenant, &asked, &principal(by), Decision::Override);
        said.vote.reason = reason.map(str::to_owned);
        said
    };
    refused(&tenant, Code::PermissionDenied, say(&tenant, overriding("alice", Some("in a hurry")))).await;
    holds(&tenant, &principal("bob"), &["approver:security"]).await;
    refused(&tenant, Code::InvalidField, say(&tenant, overriding("bob", None))).await;
    let ended = say(&tenant, overriding("bob", Some("the shop is down"))).await.unwrap();
    assert_eq!((ended.status, ended.given()), (ApprovalStatus::Approved, 0));
    assert_eq!(now(&tenant, &asked).await, ended, "restored as it was stored");
    let event = tenant.events().await.pop().unwrap();
    assert_eq!((&event["type"], &event["actor"]), (&json!("approval.overridden"), &json!("bob")));
    assert_eq!((&event["data"]["principal"], &event["data"]["reason"]), (&json!("bob"), &json!("the shop is down")));
    let other = ask(&tenant, under(quorum(2), question(&tenant))).await;
    let mut said = word(&tenant, &other, &principal("bob"), Decision::Override);
    said.vote.reason = Some("again".to_owned());
    refused(&tenant, Code::PermissionDenied, say(&tenant, said)).await;
}

async fn the_agent_that_asks_and_whoever_calls_for_it_cannot_answer(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let asked = ask(&tenant, Approval { actor: principal("scheduler"), ..question(&tenant) }).await;
    for by in ["billing", "scheduler"] {
        refused(&tenant, Code::PermissionDenied, approve(&tenant, &asked, by)).await;
        refused(&tenant, Code::PermissionDenied, deny(&tenant, &asked, by)).await;
    }
    assert_eq!(now(&tenant, &asked).await, asked);
}

async fn a_person_may_answer_its_own_call_unless_the_rule_says_no(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let of_alice = || Approval { actor: principal("alice"), actor_is_person: true, ..question(&tenant) };
    let asked = ask(&tenant, of_alice()).await;
    approve(&tenant, &asked, "alice").await.unwrap();

    let apart = ApprovalRule { separation_of_duties: true, ..ApprovalRule::default() };
    let asked = ask(&tenant, under(apart, of_alice())).await;
    refused(&tenant, Code::PermissionDenied, approve(&tenant, &asked, "alice")).await;
    approve(&tenant, &asked, "bob").await.unwrap();
}

async fn only_the_groups_of_the_rule_can_answer(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let asked = ask(&tenant, under(by_groups(&["finance", "board"]), question(&tenant))).await;
    let said = word(&tenant, &asked, &principal("alice"), Decision::Approve);
    for scopes in [&[][..], &["approver:sales"], &["finance"]] {
        holds(&tenant, &principal("alice"), scopes).await;
        refused(&tenant, Code::PermissionDenied, say(&tenant, said.clone())).await;
    }
    let no = word(&tenant, &asked, &principal("alice"), Decision::Deny);
    refused(&tenant, Code::PermissionDenied, say(&tenant, no)).await;
    holds(&tenant, &principal("alice"), &["approver:sales", "approver:board"]).await;
    say(&tenant, said).await.unwrap();
}

async fn a_question_wants_one_of_the_answers_that_it_offers(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let reason = AskReason { source: AskSource::Question, text: "the tool asks a person".to_owned() };
    let arguments = Some(json!({"question": "Which colour?", "options": ["red", "blue"]}));
    let asked = ask(&tenant, Approval { reasons: vec![reason], arguments, ..question(&tenant) }).await;
    let mut said = word(&tenant, &asked, &principal("alice"), Decision::Approve);
    for answer in [None, Some(" "), Some("green")] {
        said.vote.answer = answer.map(str::to_owned);
        let refusal = refused(&tenant, Code::InvalidField, say(&tenant, said.clone())).await;
        assert_eq!(detail(&refusal, "path"), "answer");
    }
    said.vote.answer = Some("blue".to_owned());
    assert_eq!(say(&tenant, said).await.unwrap().answer.as_deref(), Some("blue"));
}

async fn an_answer_is_the_output_of_a_question_only(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let asked = ask(&tenant, question(&tenant)).await;
    let mut said = word(&tenant, &asked, &principal("alice"), Decision::Approve);
    said.vote.answer = Some("paid".to_owned());
    say(&tenant, said).await.unwrap();
    let ended = now(&tenant, &asked).await;
    assert_eq!((&ended.answer, &ended.votes[0].answer), (&None, &None));
}

async fn an_approval_can_be_answered_until_its_end_to_the_millisecond(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let (in_time, too_late) = (ask(&tenant, question(&tenant)).await, ask(&tenant, question(&tenant)).await);
    shortly_before_the_end(&tenant, Duration::from_millis(1));
    approve(&tenant, &in_time, "alice").await.unwrap();

    tenant.clock.advance(Duration::from_millis(1));

    for _ in 0..2 {
        let refusal = refused(&tenant, Code::ApprovalEnded, approve(&tenant, &too_late, "alice")).await;
        assert_eq!((refusal.reason(), detail(&refusal, "status")), (TIMED_OUT, json!("timed_out")));
        // The same once it was ended.
        end(&tenant, &too_late, ApprovalStatus::TimedOut).await.unwrap();
    }
}

async fn what_was_ended_cannot_be_answered(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    for (status, shown) in [(ApprovalStatus::Cancelled, "cancelled"), (ApprovalStatus::Orphaned, "orphaned")] {
        let asked = ask(&tenant, question(&tenant)).await;
        let ended = end(&tenant, &asked, status).await.unwrap();
        let refusal = refused(&tenant, Code::ApprovalEnded, approve(&tenant, &asked, "alice")).await;
        assert_eq!((detail(&refusal, "status"), detail(&refusal, "approval_id")), (json!(shown), json!(asked.id)));
        assert_eq!(now(&tenant, &asked).await, ended);
    }
}
