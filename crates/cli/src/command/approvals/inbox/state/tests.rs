//! How news change what is shown.

use http::StatusCode;
use serde_json::json;

use super::super::testing::{at, described, inbox, seen};
use super::*;
use crate::client::Refused;

fn happened(status: &str, changes: Value) -> News {
    let mut approval = described(1, changes);
    approval["status"] = json!(status);
    News::Happened(json!({"type": "approval.x", "approval": approval}))
}

fn refused(code: &str, details: Value) -> ClientError {
    ClientError::Refused { status: StatusCode::CONFLICT, body: Box::new(Refused::sample(code, "said no", details)) }
}

fn ids(inbox: &Inbox) -> Vec<&str> {
    inbox.waiting.iter().map(|approval| approval.id.as_str()).collect()
}

#[test]
fn what_arrives_does_not_move_what_is_looked_at() {
    let mut inbox = inbox(vec![described(5, json!({}))]);
    inbox.receive(News::Happened(json!({"approval": described(2, json!({}))})), at(1_000));
    inbox.receive(News::Happened(json!({"approval": described(9, json!({}))})), at(1_000));
    assert_eq!(ids(&inbox), ["appr_2", "appr_5", "appr_9"]);
    assert_eq!((inbox.selected.as_deref(), inbox.deaf_until), (Some("appr_5"), at(500)));
}

#[test]
fn what_others_decide_is_told_and_leaves_the_list() {
    let mut inbox = inbox(vec![described(1, json!({})), described(2, json!({}))]);
    let votes = json!({"votes": [{"by": "ben", "decision": "approve", "channel": "web", "reason": null}]});
    inbox.receive(happened("approved", votes), at(3_000));
    assert_eq!((ids(&inbox), inbox.selected.as_deref()), (vec!["appr_2"], Some("appr_2")));
    assert!(seen(&inbox).contains("appr_1 is approved by ben (web)"));
    assert_eq!(inbox.deaf_until, at(3_500));
}

#[test]
fn whoever_was_first_is_named() {
    for (error, expected) in [
        (
            refused("APPROVAL_DECIDED", json!({"status": "denied", "decided_by": "ben", "channel": "web"})),
            "too late: appr_1 was denied by ben (web)",
        ),
        (refused("APPROVAL_ENDED", json!({"status": "timed_out"})), "too late: appr_1 is timed out"),
        (refused("APPROVAL_NOT_FOUND", json!({})), "appr_1 no longer exists"),
    ] {
        let mut inbox = inbox(vec![described(1, json!({})), described(2, json!({}))]);
        inbox.sending = Some("appr_1".to_owned());
        inbox.decided("appr_1", Err(error), at(2_000));
        assert!(seen(&inbox).contains(expected), "{expected}: {}", seen(&inbox));
        assert_eq!((ids(&inbox), inbox.sending.as_ref(), inbox.deaf_until), (vec!["appr_2"], None, at(2_500)));
    }
}

#[test]
fn an_answer_that_was_not_taken_leaves_the_call_waiting() {
    let lost = ClientError::BrokenOff { url: "http://gate".to_owned(), reason: "gone".to_owned() };
    for error in [lost, refused("PERMISSION_DENIED", json!({}))] {
        let mut inbox = inbox(vec![described(1, json!({}))]);
        inbox.decided("appr_1", Err(error), at(2_000));
        assert_eq!(ids(&inbox), ["appr_1"]);
        assert!(inbox.message.is_some());
    }
}

#[test]
fn a_rule_that_stands_now_is_named_whichever_news_came_first() {
    let votes = json!([{"by": "admin", "decision": "approve", "channel": "terminal"}]);
    let changes = json!({"status": "approved", "votes": votes, "standing_approval_id": "standing_9"});
    for event_is_first in [true, false] {
        let mut inbox = inbox(vec![described(1, json!({}))]);
        inbox.sending = Some("appr_1".to_owned());
        let event = || News::Happened(json!({"approval": described(1, changes.clone())}));
        if event_is_first {
            inbox.receive(event(), at(2_000));
        }
        inbox.decided("appr_1", Ok(described(1, changes.clone())), at(2_000));
        inbox.receive(event(), at(2_000));
        let expected = "appr_1 is approved by admin (terminal); later calls are covered by standing_9";
        assert!(seen(&inbox).contains(expected), "{}", seen(&inbox));
    }
}

#[test]
fn one_yes_of_several_is_counted() {
    let mut inbox = inbox(vec![described(1, json!({}))]);
    let value =
        described(1, json!({"approvers": {"needed": 2, "given": 1}, "notice": "a rule of these words is refused"}));
    inbox.decided("appr_1", Ok(value), at(2_000));
    let text = seen(&inbox);
    assert!(text.contains("1 of 2 approvals; a rule of these words is refused"), "{text}");
    assert_eq!(ids(&inbox), ["appr_1"]);
}

#[test]
fn a_gate_that_is_lost_is_shown_and_what_waited_is_kept() {
    let mut inbox = inbox(vec![described(1, json!({}))]);
    inbox.receive(News::Lost("connection refused".to_owned()), at(1_000));
    assert!(seen(&inbox).contains("! NOT LIVE, retrying: connection refused"));
    assert_eq!(ids(&inbox), ["appr_1"]);
    inbox.receive(News::Open, at(2_000));
    inbox.receive(News::Waiting(vec![described(7, json!({}))]), at(2_000));
    assert_eq!(ids(&inbox), ["appr_7"]);
    assert!(seen(&inbox).contains("live"));
}

#[test]
fn what_cannot_be_read_is_not_passed_over_in_silence() {
    let mut inbox = inbox(vec![json!({"id": 1}), described(1, json!({}))]);
    assert!(seen(&inbox).contains("could not parse 1 approvals"));
    inbox.receive(News::Happened(json!({"approval": {"id": "appr_8"}})), at(1_000));
    assert!(seen(&inbox).contains("could not parse an approval of the gate: missing field"));
    inbox.receive(News::Happened(json!({"type": "standing_approval.revoked", "approval": null})), at(1_000));
    assert_eq!(ids(&inbox), ["appr_1"]);
}

#[test]
fn arguments_that_change_under_the_same_id_are_a_new_card() {
    let mut inbox = inbox(vec![described(1, json!({}))]);
    inbox.receive(happened("pending", json!({"digest": "another"})), at(4_000));
    assert_eq!(inbox.deaf_until, at(4_500));
}
