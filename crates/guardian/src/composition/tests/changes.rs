//! Changes by several guardians: their order, what each sees, and who must agree to what came out.

use toolgate_gate::ports::guardian_link::LinkFailure;
use toolgate_model::arguments::arguments_hash;
use toolgate_model::guard::{OnFailure, Outcome};

use super::*;
use crate::remote::fixture::{Act, arguments_of, settings};

fn modifier(name: &str) -> RemoteSettings {
    RemoteSettings { may_modify: true, ..settings(name) }
}

/// A link that appends a letter to `text` unless it is there.
fn appends(letter: &'static str) -> Arc<FakeLink> {
    FakeLink::new(move |question| {
        let mut arguments = arguments_of(question);
        let text = arguments["text"].as_str().unwrap().to_owned();
        if text.contains(letter) {
            return Act::allow(question);
        }
        arguments.insert("text".to_owned(), json!(text + letter));
        Act::modify(question, &arguments)
    })
}

fn texts(link: &FakeLink) -> Vec<String> {
    link.questions().iter().map(|question| arguments_of(question)["text"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn changes_are_made_in_the_declared_order_and_each_sees_the_last_ones_result() {
    let links = [appends("a"), appends("b"), appends("c")];
    let orders = [2, 1, 1];
    let remote = links.iter().zip(orders).zip(["a", "b", "c"]);
    let remote = remote.map(|((link, order), name)| guardian(RemoteSettings { order, ..modifier(name) }, link));
    let ruling = ruling(remote.collect(), json!({"text": "-"})).await;
    assert_eq!(changed(&ruling), Some(json!({"text": "-bca"})));
    assert_eq!(texts(&links[1]), ["-", "-bca"], "its own change stands, and then all of it");
    assert_eq!(texts(&links[2]), ["-b", "-bca"]);
    assert_eq!(texts(&links[0]), ["-bc"], "it made the last change itself");
    let names: Vec<_> = decision(&ruling).guardians.iter().map(|record| record.guardian.as_str()).collect();
    assert_eq!(names, ["b", "c", "a"]);
    assert!(decision(&ruling).guardians.iter().all(|record| record.verdict == Some(VerdictKind::Modify)));
}

#[tokio::test(start_paused = true)]
async fn a_modifier_keeps_the_original_from_all_that_come_after_it() {
    let hides = FakeLink::new(|question| Act::modify(question, json!({"text": "[REDACTED]"}).as_object().unwrap()));
    let (before, after, shadow) = (FakeLink::new(Act::allow), FakeLink::new(Act::allow), FakeLink::new(Act::allow));
    let in_shadow = RemoteSettings { mode: GuardMode::Shadow, ..settings("shadow") };
    let remote = vec![
        guardian(settings("before"), &before),
        guardian(modifier("hides"), &hides),
        guardian(settings("after"), &after),
        guardian(in_shadow, &shadow),
    ];
    let ruling = ruling(remote, json!({"text": "ann@example.org"})).await;
    assert_eq!(changed(&ruling), Some(json!({"text": "[REDACTED]"})));
    assert_eq!(texts(&before), ["ann@example.org", "[REDACTED]"], "it agrees to what came out too");
    assert_eq!((texts(&after), texts(&shadow)), (vec!["[REDACTED]".to_owned()], vec!["[REDACTED]".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn one_in_shadow_keeps_nothing_from_those_after_it() {
    let in_shadow = RemoteSettings { mode: GuardMode::Shadow, ..modifier("shadow") };
    let after = FakeLink::new(Act::allow);
    let remote = vec![guardian(in_shadow, &appends("a")), guardian(settings("after"), &after)];
    let ruling = ruling(remote, json!({"text": "-"})).await;
    assert_eq!((changed(&ruling), texts(&after)), (None, vec!["-".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn the_record_has_the_hashes_of_what_came_and_what_became_of_it() {
    let ruling = ruling(vec![guardian(modifier("a"), &appends("a"))], json!({"text": "-"})).await;
    let decision = decision(&ruling);
    assert_eq!(decision.hash_before, arguments_hash(&json!({"text": "-"}), &[]));
    assert_eq!(decision.hash_after, Some(arguments_hash(&json!({"text": "-a"}), &[])));
    assert_eq!((decision.effective, decision.policy_version), (VerdictKind::Modify, None));
}

#[tokio::test(start_paused = true)]
async fn whoever_cannot_change_anything_is_asked_about_what_came_out() {
    let strict = FakeLink::new(|question| match arguments_of(question)["text"].as_str() {
        Some("-a") => Act::deny(question, "no a"),
        _ => Act::allow(question),
    });
    let remote = vec![guardian(settings("strict"), &strict), guardian(modifier("a"), &appends("a"))];
    let ruling = ruling(remote, json!({"text": "-"})).await;
    assert_eq!(denial(&ruling).cause, DenialCause::Guardian("strict".to_owned()));
    assert_eq!(texts(&strict), ["-", "-a"]);
    assert_eq!(decision(&ruling).hash_after, None);
    assert_eq!(record(&ruling, "strict").verdict, Some(VerdictKind::Deny));
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_a_no() {
    let sets = |value: &'static str| {
        FakeLink::new(move |question| Act::modify(question, json!({"text": value}).as_object().unwrap()))
    };
    let remote = vec![guardian(modifier("a"), &sets("a")), guardian(modifier("b"), &sets("b"))];
    let ruling = ruling(remote, json!({"text": "-"})).await;
    let cause = DenialCause::Failure { guardian: "a".to_owned(), class: FailureClass::BadModify };
    assert_eq!(denial(&ruling).cause, cause);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_would_be_lost_by_a_failure_is_a_no_whatever_the_posture() {
    let forgetful = FakeLink::new(|question| {
        let arguments = arguments_of(question);
        if arguments["text"] != json!("-") {
            return Act::Fail(LinkFailure::Connect);
        }
        Act::modify(question, json!({"text": "-z"}).as_object().unwrap())
    });
    let forgetful = guardian(RemoteSettings { on_failure: OnFailure::Allow, ..modifier("z") }, &forgetful);
    let ruling = ruling(vec![forgetful, guardian(modifier("a"), &appends("a"))], json!({"text": "-"})).await;
    let cause = DenialCause::Failure { guardian: "z".to_owned(), class: FailureClass::Connect };
    assert_eq!((&denial(&ruling).cause, record(&ruling, "z").outcome), (&cause, Outcome::FailedClosed));
}

#[tokio::test(start_paused = true)]
async fn one_that_may_fail_and_does_at_the_end_is_marked() {
    let flaky = FakeLink::new(|question| match arguments_of(question)["text"].as_str() {
        Some("-") => Act::allow(question),
        _ => Act::Fail(LinkFailure::Connect),
    });
    let flaky = guardian(RemoteSettings { on_failure: OnFailure::Allow, ..settings("flaky") }, &flaky);
    let ruling = ruling(vec![flaky, guardian(modifier("a"), &appends("a"))], json!({"text": "-"})).await;
    assert_eq!(changed(&ruling), Some(json!({"text": "-a"})));
    let record = record(&ruling, "flaky");
    assert_eq!((record.outcome, record.failure), (Outcome::FailedOpen, Some(FailureClass::Connect)));
}

#[tokio::test(start_paused = true)]
async fn a_change_that_another_takes_back_is_not_lost_without_a_word() {
    let first = FakeLink::new(|question| match arguments_of(question)["text"].as_str() {
        Some("-") => Act::modify(question, json!({"text": "x"}).as_object().unwrap()),
        _ => Act::allow(question),
    });
    let second = FakeLink::new(|question| Act::modify(question, json!({"text": "-"}).as_object().unwrap()));
    let remote = vec![guardian(modifier("first"), &first), guardian(modifier("second"), &second)];
    let ruling = ruling(remote, json!({"text": "-"})).await;
    let cause = DenialCause::Failure { guardian: "first".to_owned(), class: FailureClass::BadModify };
    assert_eq!(denial(&ruling).cause, cause);
}

#[tokio::test(start_paused = true)]
async fn one_that_would_agree_to_what_came_may_change_what_those_before_it_made_of_it() {
    let cleans = FakeLink::new(|question| match arguments_of(question)["text"].as_str() {
        Some("-a") => Act::modify(question, json!({"text": "-a!"}).as_object().unwrap()),
        _ => Act::allow(question),
    });
    let remote = vec![guardian(modifier("a"), &appends("a")), guardian(modifier("cleans"), &cleans)];
    let ruling = ruling(remote, json!({"text": "-"})).await;
    assert_eq!(changed(&ruling), Some(json!({"text": "-a!"})));
    assert_eq!(texts(&cleans), ["-a"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_that_says_what_it_is_about_can_be_changed() {
    for path in ["/id", "/method", "/params/toolCallRequest/toolId", "/params/toolCallRequest/executionId"] {
        let link = FakeLink::new(move |question| {
            let mut whole = question.clone();
            *whole.pointer_mut(path).unwrap() = json!("another");
            Act::result(question, json!({"decision": "modify", "modifiedRequest": whole}))
        });
        let ruling = ruling(vec![guardian(modifier("a"), &link)], json!({"text": "-"})).await;
        let cause = DenialCause::Failure { guardian: "a".to_owned(), class: FailureClass::IdentityChange };
        assert_eq!(denial(&ruling).cause, cause, "{path}");
    }
}
