//! Who may answer, what counts, and what whoever comes later is told.

use super::*;
use crate::event::{EventKind, EventPayload};

#[test]
fn one_yes_approves_and_keeps_who_said_it() {
    let approval = ended(yes(&pending(), "ann"));
    assert_eq!(approval.status, ApprovalStatus::Approved);
    assert_eq!(approval.resolved_at, Some(at(1_000)));
    assert_eq!(approval.votes.len(), 1);
    assert_eq!(approval.votes[0].by, principal("ann"));
}

#[test]
fn a_denial_keeps_its_reason() {
    let word = Vote { reason: Some("use the staging database".to_owned()), ..vote("ann", Decision::Deny) };
    let approval = ended(say(&pending(), word, &[]));
    assert_eq!(approval.status, ApprovalStatus::Denied);
    assert_eq!(approval.reason.as_deref(), Some("use the staging database"));
}

#[test]
fn the_first_decision_wins_and_whoever_is_later_is_told_who_was_first() {
    let first = Vote { channel: Channel::Terminal, ..vote("ann", Decision::Deny) };
    let approval = ended(say(&pending(), first, &[]));
    let error = yes(&approval, "ben").unwrap_err();
    assert_eq!(
        error,
        DecideError::Already { status: ApprovalStatus::Denied, by: principal("ann"), channel: "terminal" }
    );
    assert_eq!(error.to_string(), "the approval was already denied by ann over terminal");
}

#[test]
fn the_same_word_again_is_told_that_it_was_decided() {
    let approval = ended(yes(&pending(), "ann"));
    assert!(matches!(yes(&approval, "ann"), Err(DecideError::Already { status: ApprovalStatus::Approved, .. })));
    assert!(matches!(no(&approval, "ann"), Err(DecideError::Already { status: ApprovalStatus::Approved, .. })));
}

#[test]
fn an_answer_is_late_from_the_very_end_of_the_time_on() {
    let word = |millis| Vote { at: at(millis), ..vote("ann", Decision::Approve) };
    assert!(say(&pending(), word(END - 1), &[]).is_ok());
    for millis in [END, END + 1] {
        assert_eq!(say(&pending(), word(millis), &[]), Err(DecideError::TimedOut));
    }
}

#[test]
fn a_late_answer_is_told_how_it_ended() {
    let timed_out = pending().ended(ApprovalStatus::TimedOut, TIMED_OUT, at(END)).unwrap();
    assert_eq!(yes(&timed_out, "ann").unwrap_err().to_string(), TIMED_OUT);
    for status in [ApprovalStatus::Cancelled, ApprovalStatus::Orphaned] {
        let approval = pending().ended(status, "gone", at(5)).unwrap();
        assert_eq!(yes(&approval, "ann"), Err(DecideError::Ended(status)));
    }
}

#[test]
fn a_late_answer_to_a_call_that_lacked_a_word_names_no_winner() {
    let rule = ApprovalRule { approvers: 2, ..ApprovalRule::default() };
    let counted = counted(yes(&Approval { rule, ..pending() }, "ann"));
    let cancelled = counted.ended(ApprovalStatus::Cancelled, "the caller is gone", at(5)).unwrap();
    assert_eq!(yes(&cancelled, "ben"), Err(DecideError::Ended(ApprovalStatus::Cancelled)));
}

#[test]
fn the_requesting_agent_never_answers_its_own_call() {
    for decision in [Decision::Approve, Decision::Deny] {
        let answer = say(&pending(), vote("agent", decision), &["*"]);
        assert_eq!(answer, Err(DecideError::OwnRequest(principal("agent"))));
    }
}

#[test]
fn the_agent_that_a_host_calls_for_cannot_answer() {
    let approval = Approval { actor: principal("host"), ..pending() };
    assert_eq!(yes(&approval, "agent"), Err(DecideError::OwnCall(principal("agent"))));
    assert_eq!(yes(&approval, "host"), Err(DecideError::OwnRequest(principal("host"))));
}

#[test]
fn a_person_may_answer_the_call_that_it_made_for_an_agent() {
    let approval = Approval { actor: principal("ann"), actor_is_person: true, ..pending() };
    assert_eq!(ended(yes(&approval, "ann")).status, ApprovalStatus::Approved);
    assert_eq!(yes(&approval, "agent"), Err(DecideError::OwnCall(principal("agent"))));
}

#[test]
fn separation_of_duties_wants_another_person() {
    let rule = ApprovalRule { separation_of_duties: true, ..ApprovalRule::default() };
    let approval = Approval { actor: principal("ann"), actor_is_person: true, rule, ..pending() };
    assert_eq!(yes(&approval, "ann"), Err(DecideError::OwnRequest(principal("ann"))));
    assert_eq!(ended(yes(&approval, "ben")).status, ApprovalStatus::Approved);
}

#[test]
fn only_somebody_of_one_of_the_groups_answers() {
    let rule = ApprovalRule { groups: ["dba".to_owned(), "on-call".to_owned()].into(), ..ApprovalRule::default() };
    let approval = Approval { rule, ..pending() };
    for scopes in [&[][..], &["approver:web"], &["approver"], &["dba"]] {
        let refused = say(&approval, vote("ann", Decision::Approve), scopes).unwrap_err();
        assert_eq!(refused.to_string(), "only approvers of dba or on-call may decide this call", "{scopes:?}");
        assert!(say(&approval, vote("ann", Decision::Deny), scopes).is_err(), "{scopes:?}");
    }
    for scopes in [&["approver:dba"][..], &["approver:on-call"], &["approver:*"]] {
        assert!(say(&approval, vote("ann", Decision::Approve), scopes).is_ok(), "{scopes:?}");
    }
}

#[test]
fn a_quorum_needs_as_many_different_people() {
    let rule = ApprovalRule { approvers: 3, ..ApprovalRule::default() };
    let first = counted(yes(&Approval { rule, ..pending() }, "ann"));
    assert_eq!((first.status, first.given(), first.resolved_at), (ApprovalStatus::Pending, 1, None));
    assert_eq!(yes(&first, "ann"), Err(DecideError::AlreadyVoted(principal("ann"))));
    let second = counted(yes(&first, "ben"));
    let third = ended(yes(&second, "cleo"));
    assert_eq!((third.status, third.given()), (ApprovalStatus::Approved, 3));
}

#[test]
fn one_no_ends_a_quorum_also_from_somebody_who_said_yes() {
    let rule = ApprovalRule { approvers: 3, ..ApprovalRule::default() };
    let first = counted(yes(&Approval { rule, ..pending() }, "ann"));
    for by in ["ann", "ben"] {
        let denied = ended(no(&first, by));
        assert_eq!((denied.status, denied.given()), (ApprovalStatus::Denied, 1), "{by}");
    }
}

#[test]
fn a_question_is_approved_only_with_an_answer() {
    for answer in [None, Some(String::new()), Some(" \n".to_owned())] {
        let word = Vote { answer, ..vote("ann", Decision::Approve) };
        assert_eq!(say(&question(json!({"question": "which?"})), word, &[]), Err(DecideError::AnswerMissing));
    }
    let word = Vote { answer: Some("the left one".to_owned()), ..vote("ann", Decision::Approve) };
    let approval = ended(say(&question(json!({"question": "which?"})), word, &[]));
    assert_eq!(approval.answer.as_deref(), Some("the left one"));
}

#[test]
fn an_answer_is_one_of_those_that_were_offered() {
    let question = question(json!({"question": "which?", "options": ["left", "right"]}));
    let word = |answer: &str| Vote { answer: Some(answer.to_owned()), ..vote("ann", Decision::Approve) };
    assert_eq!(ended(say(&question, word("left"), &[])).answer.as_deref(), Some("left"));
    for answer in ["middle", "Left", "left "] {
        let refused = say(&question, word(answer), &[]).unwrap_err();
        assert_eq!(refused.to_string(), "the answer must be one of: left, right");
    }
}

#[test]
fn a_question_can_be_denied_without_an_answer() {
    let denied = ended(no(&question(json!({"options": ["left"]})), "ann"));
    assert_eq!((denied.status, denied.answer), (ApprovalStatus::Denied, None));
}

#[test]
fn an_answer_never_becomes_the_output_of_anything_but_a_question() {
    let word = Vote { answer: Some("forged output".to_owned()), ..vote("ann", Decision::Approve) };
    let approval = ended(say(&pending(), word, &[]));
    assert_eq!((approval.answer, approval.votes[0].answer.clone()), (None, None));
    let word = Vote { answer: Some("no, but this".to_owned()), ..vote("ann", Decision::Deny) };
    let denied = ended(say(&question(json!({})), word, &[]));
    assert_eq!((denied.answer, denied.votes[0].answer.clone()), (None, None));
}

#[test]
fn an_end_without_an_answer_comes_once_and_stays() {
    let cancelled = pending().ended(ApprovalStatus::Cancelled, HOST_CLOSED, at(7)).unwrap();
    assert_eq!(cancelled.status, ApprovalStatus::Cancelled);
    assert_eq!((cancelled.reason.as_deref(), cancelled.resolved_at), (Some(HOST_CLOSED), Some(at(7))));
    for &status in ApprovalStatus::ALL {
        assert_eq!(cancelled.ended(status, "again", at(8)), None);
        assert_eq!(ended(yes(&pending(), "ann")).ended(status, "too late", at(8)), None);
    }
}

#[test]
fn nobody_is_said_to_have_answered_by_an_end_without_an_answer() {
    for status in [ApprovalStatus::Requested, ApprovalStatus::Pending, ApprovalStatus::Approved, ApprovalStatus::Denied]
    {
        assert_eq!(pending().ended(status, "forged", at(7)), None, "{}", status.as_str());
    }
}

/// Two must agree, of the group finance; those of the group security may override.
fn overridable() -> Approval {
    let groups = |name: &str| [name.to_owned()].into();
    let rule = ApprovalRule {
        approvers: 2,
        groups: groups("finance"),
        override_groups: Some(groups("security")),
        ..ApprovalRule::default()
    };
    Approval { rule, ..pending() }
}

fn overriding(by: &str, reason: Option<&str>) -> Vote {
    Vote { reason: reason.map(str::to_owned), ..vote(by, Decision::Override) }
}

#[test]
fn an_override_approves_alone_and_says_why() {
    let approval = ended(say(&overridable(), overriding("ann", Some("the shop is down")), &["approver:security"]));
    assert_eq!((approval.status, approval.given()), (ApprovalStatus::Approved, 0));
    assert_eq!(approval.reason.as_deref(), Some("the shop is down"));
    let event = EventPayload::approval_ended(&approval);
    assert_eq!((event.name(), &json!(event)["reason"]), ("approval.overridden", &json!("the shop is down")));
    assert!(EventKind::about_approvals().any(|kind| event.kind() == Some(kind)));
    for reason in [None, Some(""), Some("  ")] {
        let refused = say(&overridable(), overriding("ann", reason), &["approver:security"]);
        assert_eq!(refused, Err(DecideError::ReasonMissing));
    }
}

#[test]
fn a_rule_is_overridden_only_by_those_whom_it_names() {
    let why = Some("because");
    for scopes in [&[][..], &["approver:finance"]] {
        let refused = say(&overridable(), overriding("ann", why), scopes);
        assert_eq!(refused, Err(DecideError::NotOverridable(principal("ann"))));
    }
    let refused = say(&pending(), overriding("ann", why), &["approver:security"]);
    assert_eq!(refused, Err(DecideError::NotOverridable(principal("ann"))), "a rule that says nothing of it");
    let everybody = ApprovalRule { override_groups: Some([].into()), ..overridable().rule };
    let approval = Approval { rule: everybody, ..overridable() };
    assert_eq!(ended(say(&approval, overriding("ann", why), &[])).status, ApprovalStatus::Approved);
    let own = say(&approval, overriding(approval.agent.as_str(), why), &["approver:security"]);
    assert!(matches!(own, Err(DecideError::OwnRequest(_) | DecideError::OwnCall(_))), "{own:?}");
}

#[test]
fn two_rules_are_overridden_by_those_whom_both_name() {
    let rule = |groups: Option<&[&str]>| ApprovalRule {
        approvers: 2,
        override_groups: groups.map(|groups| groups.iter().map(|&group| group.to_owned()).collect()),
        ..ApprovalRule::default()
    };
    for (left, right, both) in [
        (None, None, None),
        (Some(&["a", "b"][..]), None, None),
        (Some(&["a", "b"]), Some(&["b", "c"][..]), Some(&["b"][..])),
        (Some(&["a"]), Some(&["b"]), None),
        (Some(&[]), Some(&["b"]), Some(&["b"])),
        (Some(&[]), Some(&[]), Some(&[])),
    ] {
        for (left, right) in [(left, right), (right, left)] {
            assert_eq!(rule(left).stricter(&rule(right)), Some(rule(both)), "{left:?} {right:?}");
        }
        assert_eq!(rule(left).stricter(&ApprovalRule::default()), Some(rule(left)));
        assert_eq!(ApprovalRule::default().stricter(&rule(left)), Some(rule(left)));
    }
    assert!(rule(Some(&["not a name"])).check().is_err());
}
