//! One guardian, asked by itself: what it is shown, what becomes of its answers, and when it is not waited for.

use std::borrow::Cow;

use serde_json::{Value, json};
use toolgate_model::key::ApiKey;

use super::fixture::{Act, FakeLink, World, arguments_of, guardian, settings, some_day};
use super::*;
use crate::detector::{DetectorKind, Detectors, FieldSelector};

async fn said(settings: RemoteSettings, link: &Arc<FakeLink>, world: &World) -> Result<RemoteDecision, Failed> {
    guardian(settings, link).ask(&world.event, &[], some_day()).await.said
}

fn arguments(said: Result<RemoteDecision, Failed>) -> Value {
    match said {
        Ok(RemoteDecision::Modify(content)) => content.to_json(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn each_decision_is_heard_with_its_reason_and_rule() {
    let world = World::of(json!({"to": "ann"}));
    let link = FakeLink::new(|question| {
        let result = json!({"decision": "deny", "reason": "no mail", "policyId": "p", "policyVersion": "3"});
        Act::result(question, result)
    });
    let asked = guardian(settings("g"), &link).ask(&world.event, &[], some_day()).await;
    assert_eq!((asked.said, asked.reason.as_deref()), (Ok(RemoteDecision::Deny), Some("no mail")));
    assert_eq!(asked.policy, Some(PolicyRef { id: "p".to_owned(), version: "3".to_owned() }));
    assert_eq!(said(settings("g"), &FakeLink::new(Act::allow), &world).await, Ok(RemoteDecision::Allow));
    let changes = FakeLink::new(|question| Act::modify(question, json!({"to": "bob"}).as_object().unwrap()));
    assert_eq!(arguments(said(settings("g"), &changes, &world).await), json!({"to": "bob"}));
}

#[tokio::test(start_paused = true)]
async fn a_change_that_changes_nothing_agrees() {
    let world = World::of(json!({"to": "ann"}));
    let link = FakeLink::new(|question| Act::modify(question, &arguments_of(question)));
    assert_eq!(said(settings("g"), &link, &world).await, Ok(RemoteDecision::Allow));
}

#[tokio::test(start_paused = true)]
async fn neither_a_secret_nor_a_key_nor_what_is_redacted_is_sent() {
    let key = ApiKey::from_entropy(&[7; 96]).unwrap();
    let mut world = World::of(json!({
        "to": "ann@example.org", "card": {"number": "4111 1111 1111 1111", "holder": "Ann"},
        "text": format!("my key is {}", key.expose()), "password": "hunter2hunter2", "hunter2hunter2": 1, "kept": 5,
    }));
    world.event.reasoning = Some(Cow::Owned(format!("ann@example.org, {}, hunter2hunter2", key.expose())));
    world.event.session = Some(Cow::Borrowed("hunter2hunter2"));
    let redaction = Redaction {
        fields: Some(FieldSelector::parse("card.holder").unwrap()),
        detectors: Some(Detectors::new(&[DetectorKind::Email, DetectorKind::Card]).unwrap()),
    };
    let link = FakeLink::new(Act::allow);
    let asked = guardian(RemoteSettings { redaction, ..settings("g") }, &link);
    asked.ask(&world.event, &[b"hunter2hunter2"], some_day()).await.said.unwrap();
    let question = link.questions().remove(0);
    let sent = question.to_string();
    for hidden in ["ann@example.org", "4111", "Ann", key.expose(), "hunter2"] {
        assert!(!sent.contains(hidden), "{hidden} in {sent}");
    }
    assert_eq!(arguments_of(&question)["kept"], json!(5));
}

#[tokio::test(start_paused = true)]
async fn a_change_leaves_alone_what_the_guardian_was_not_shown() {
    let world = World::of(json!({"to": "ann@example.org", "secret": "hunter2hunter2", "note": "long"}));
    let link = FakeLink::new(|question| {
        let mut arguments = arguments_of(question);
        assert_eq!(arguments["to"], json!("[REDACTED-EMAIL]"));
        arguments.insert("note".to_owned(), json!("short"));
        Act::modify(question, &arguments)
    });
    let detectors = Some(Detectors::new(&[DetectorKind::Email]).unwrap());
    let settings = RemoteSettings { redaction: Redaction { fields: None, detectors }, ..settings("g") };
    let said = guardian(settings, &link).ask(&world.event, &[b"hunter2hunter2"], some_day()).await.said;
    assert_eq!(arguments(said), json!({"to": "ann@example.org", "secret": "hunter2hunter2", "note": "short"}));
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_is_never_read() {
    let world = World::of(json!({}));
    let link = FakeLink::new(|question| Act::allow(question).after(5));
    let slow = guardian(RemoteSettings { timeout: Duration::from_secs(3), ..settings("g") }, &link);
    let started = now();
    let asked = slow.ask(&world.event, &[], some_day()).await;
    assert_eq!(asked.said, Err(FailureClass::Timeout.into()));
    assert_eq!((started.elapsed(), asked.timeout), (Duration::from_secs(3), Duration::from_secs(3)));
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!((link.questions().len(), link.answered()), (1, 0));
    // What is left of the time for the whole event counts where it is less.
    let asked = slow.ask(&world.event, &[], now() + Duration::from_secs(1)).await;
    assert_eq!((asked.said, asked.timeout), (Err(FailureClass::Timeout.into()), Duration::from_secs(1)));
}

#[tokio::test(start_paused = true)]
async fn the_clock_of_a_guardian_starts_when_it_is_asked() {
    let (world, link) = (World::of(json!({})), FakeLink::new(|question| Act::allow(question).after(2)));
    let guardian = guardian(RemoteSettings { timeout: Duration::from_secs(3), ..settings("g") }, &link);
    let prepared = guardian.prepare(&world.event, &[]);
    tokio::time::advance(Duration::from_secs(60)).await;
    let asked = prepared.ask(some_day()).await;
    assert_eq!((asked.said, asked.timeout), (Ok(RemoteDecision::Allow), Duration::from_secs(3)));
}

#[tokio::test(start_paused = true)]
async fn no_time_left_is_a_timeout_and_nobody_is_asked() {
    let (world, link) = (World::of(json!({})), FakeLink::new(Act::allow));
    let asked = guardian(settings("g"), &link).ask(&world.event, &[], now()).await;
    assert_eq!((asked.said, link.questions().len()), (Err(FailureClass::Timeout.into()), 0));
}

#[tokio::test(start_paused = true)]
async fn a_question_waits_for_its_place_and_no_longer_than_its_time() {
    let world = World::of(json!({}));
    let link = FakeLink::new(|question| Act::allow(question).after(2));
    let timeout = Duration::from_secs(3);
    let narrow = guardian(RemoteSettings { max_concurrency: 1, timeout, ..settings("g") }, &link);
    let ask = || narrow.ask(&world.event, &[], some_day());
    let (first, second) = tokio::join!(ask(), ask());
    assert_eq!(first.said, Ok(RemoteDecision::Allow));
    assert_eq!(second.said, Err(FailureClass::Timeout.into()), "it had one second left");
    let impatient = narrow.ask(&world.event, &[], now() + Duration::from_secs(1));
    let (_, second) = tokio::join!(ask(), impatient);
    assert_eq!(second.said, Err(FailureClass::Busy.into()));
}

#[tokio::test(start_paused = true)]
async fn only_a_failed_connection_is_tried_again_and_only_once() {
    let world = World::of(json!({}));
    for (failure, retries, expected) in [
        (LinkFailure::Connect, true, 2),
        (LinkFailure::Connect, false, 1),
        (LinkFailure::Tls, true, 1),
        (LinkFailure::Timeout, true, 1),
        (LinkFailure::Broken, true, 1),
    ] {
        let link = FakeLink::new(move |_| Act::Fail(failure));
        said(RemoteSettings { retries_connecting: retries, ..settings("g") }, &link, &world).await.unwrap_err();
        assert_eq!(link.questions().len(), expected, "{failure:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_too_large_is_not_sent_and_never_passes() {
    let (world, link) = (World::of(json!({"text": "x".repeat(2000)})), FakeLink::new(Act::allow));
    let settings = RemoteSettings { max_request_bytes: 2000, on_failure: OnFailure::Allow, ..settings("g") };
    let guardian = guardian(settings, &link);
    let failed = guardian.ask(&world.event, &[], some_day()).await.said.unwrap_err();
    assert_eq!(failed, Failed { class: FailureClass::Oversize, by_question: true });
    assert!(!guardian.passes(failed) && guardian.passes(FailureClass::Oversize.into()));
    assert!(link.questions().is_empty());
}

#[tokio::test(start_paused = true)]
async fn after_some_failures_it_is_left_alone_and_then_asked_once() {
    let world = World::of(json!({}));
    let link = FakeLink::new(|_| Act::Fail(LinkFailure::Connect));
    let breaker = BreakerSettings { failures: 2, rest: Duration::from_secs(10) };
    let guardian = guardian(RemoteSettings { breaker, ..settings("g") }, &link);
    let ask = async || guardian.ask(&world.event, &[], some_day()).await.said;
    for expected in [FailureClass::Connect, FailureClass::Connect, FailureClass::CircuitOpen] {
        assert_eq!(ask().await, Err(expected.into()));
    }
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(ask().await, Err(FailureClass::Connect.into()));
    assert_eq!(ask().await, Err(FailureClass::CircuitOpen.into()));
    assert_eq!(link.questions().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn answers_that_deny_in_any_case_never_open_the_circuit() {
    let world = World::of(json!({}));
    let link = FakeLink::new(|question| Act::result(question, json!({"decision": "perhaps"})));
    let breaker = BreakerSettings { failures: 1, rest: Duration::from_secs(10) };
    let guardian = guardian(RemoteSettings { breaker, on_failure: OnFailure::Allow, ..settings("g") }, &link);
    for _ in 0..5 {
        let failed = guardian.ask(&world.event, &[], some_day()).await.said.unwrap_err();
        assert_eq!((failed.class, guardian.passes(failed)), (FailureClass::UnknownDecision, false));
    }
}

#[test]
fn json_is_told_by_its_type() {
    for said in ["application/json", "Application/JSON; charset=utf-8", "application/problem+json"] {
        assert!(is_json(said), "{said}");
    }
    for said in ["text/html", "text/json", "application/jsonp", "", "json"] {
        assert!(!is_json(said), "{said}");
    }
}
