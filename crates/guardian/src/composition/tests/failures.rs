//! Every way to fail, with every posture, in every mode.

use std::time::Duration;

use toolgate_gate::ports::guardian_link::{LinkFailure, LinkResponse};
use toolgate_model::guard::{OnFailure, Outcome};

use super::*;
use crate::remote::BreakerSettings;
use crate::remote::fixture::{Act, arguments_of, settings, some_day};

/// A guardian that fails in this way, however often it is asked.
fn act(class: FailureClass, question: &Value) -> Act {
    let answer = |status, content_type: &str| {
        let body = b"{}".to_vec();
        Act::Respond(LinkResponse { status, content_type: Some(content_type.to_owned()), body })
    };
    let envelope = |members: Value| {
        let mut envelope = json!({"jsonrpc": "2.0", "id": question["id"]});
        envelope.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        Act::body(envelope.to_string())
    };
    match class {
        FailureClass::Connect | FailureClass::CircuitOpen => Act::Fail(LinkFailure::Connect),
        FailureClass::Tls => Act::Fail(LinkFailure::Tls),
        FailureClass::Timeout => Act::Fail(LinkFailure::Timeout),
        FailureClass::Oversize => Act::Fail(LinkFailure::Oversize),
        FailureClass::Status => answer(503, "application/json"),
        FailureClass::ContentType => answer(200, "text/html"),
        FailureClass::Malformed => Act::body("<html>"),
        FailureClass::IdMismatch => envelope(json!({"id": "another", "result": {"decision": "allow"}})),
        FailureClass::GuardianError => envelope(json!({"error": {"code": -32603, "message": "oh"}})),
        FailureClass::Refused => envelope(json!({"error": {"code": -32001, "message": "who are you"}})),
        FailureClass::UnknownDecision => envelope(json!({"result": {"decision": "ALLOW"}})),
        FailureClass::IncompleteDecision => envelope(json!({"result": {"decision": "modify"}})),
        FailureClass::BadModify => envelope(
            json!({"result": {"decision": "modify", "modifiedRequest": {"inputs": [{"name": 1, "value": 2}]}}}),
        ),
        FailureClass::IdentityChange => {
            let mut whole = question.clone();
            whole["params"]["toolCallRequest"]["toolId"] = json!("mail.delete");
            envelope(json!({"result": {"decision": "modify", "modifiedRequest": whole}}))
        }
        FailureClass::ModifyNotAllowed => {
            let mut arguments = arguments_of(question);
            arguments.insert("to".to_owned(), json!("bob"));
            Act::modify(question, &arguments)
        }
        FailureClass::Busy => Act::allow(question).after(100),
    }
}

fn failing(class: FailureClass, on_failure: OnFailure, mode: GuardMode) -> RemoteGuardian {
    let link = FakeLink::new(move |question| act(class, question));
    let settings = RemoteSettings {
        on_failure,
        mode,
        may_modify: class != FailureClass::ModifyNotAllowed,
        breaker: BreakerSettings { failures: 1, ..BreakerSettings::default() },
        max_concurrency: 1,
        timeout: Duration::from_millis(50),
        ..settings("g")
    };
    guardian(settings, &link)
}

/// What comes of one call to a guardian that fails in this way, and what the alarm heard of it.
async fn outcome(class: FailureClass, on_failure: OnFailure, mode: GuardMode) -> (Ruling, FakeAlarm) {
    let world = World::of(json!({"to": "ann"}));
    let failing = failing(class, on_failure, mode);
    if class == FailureClass::CircuitOpen {
        failing.ask(&world.event, &[], some_day()).await.said.unwrap_err();
    }
    let alarm = Arc::new(FakeAlarm::default());
    let guardians = Guardians::new(FakePolicy::none(), vec![failing], Arc::clone(&alarm) as Arc<dyn Alarm>);
    let guardians = guardians.with_budget(Duration::from_millis(40));
    let hooked = world.hooked();
    let ruling = if class == FailureClass::Busy {
        let occupant = guardians.remote[0].ask(&world.event, &[], some_day());
        tokio::join!(biased; occupant, guardians.judge(&hooked)).1
    } else {
        guardians.judge(&hooked).await
    };
    drop(guardians);
    (ruling.unwrap(), Arc::try_unwrap(alarm).ok().unwrap())
}

#[tokio::test(start_paused = true)]
async fn each_failure_denies_or_passes_marked_by_one_table() {
    for class in FailureClass::ALL {
        for on_failure in [OnFailure::Deny, OnFailure::Allow] {
            let (ruling, alarm) = outcome(class, on_failure, GuardMode::Enforce).await;
            let passes = on_failure == OnFailure::Allow && !class.always_denies();
            let record = record(&ruling, "g");
            let case = format!("{class:?} {on_failure:?} {record:?}");
            assert_eq!(record.failure, Some(class), "{case}");
            assert_eq!(record.verdict, None, "{case}");
            assert_eq!(alarm.0.into_inner().unwrap(), [("g".to_owned(), class, passes)], "{case}");
            if passes {
                assert_eq!((&ruling.verdict, record.outcome), (&Verdict::allow(), Outcome::FailedOpen), "{case}");
            } else {
                let cause = DenialCause::Failure { guardian: "g".to_owned(), class };
                assert_eq!((&denial(&ruling).cause, record.outcome), (&cause, Outcome::FailedClosed), "{case}");
            }
            assert_eq!(decision(&ruling).failed_open(), passes, "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn in_shadow_no_failure_counts_and_each_is_written_down() {
    for class in FailureClass::ALL {
        for on_failure in [OnFailure::Deny, OnFailure::Allow] {
            let (ruling, alarm) = outcome(class, on_failure, GuardMode::Shadow).await;
            let record = record(&ruling, "g");
            assert_eq!(ruling.verdict, Verdict::allow(), "{class:?}");
            assert_eq!((record.failure, record.outcome), (Some(class), Outcome::Shadowed), "{class:?}");
            assert_eq!(alarm.0.into_inner().unwrap(), [("g".to_owned(), class, false)], "{class:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_guardian_that_is_off_is_not_asked() {
    for class in FailureClass::ALL {
        let guardians = guardians(&FakePolicy::none(), vec![failing(class, OnFailure::Deny, GuardMode::Off)]);
        let world = World::of(json!({}));
        let ruling = guardians.judge(&world.hooked()).await.unwrap();
        assert_eq!((ruling.verdict, ruling.decision), (Verdict::allow(), None));
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_told_a_timeout_from_a_no() {
    let (ruling, _) = outcome(FailureClass::Timeout, OnFailure::Deny, GuardMode::Enforce).await;
    let text = "guardian g did not respond within 40 ms; the call was not executed; try again";
    assert_eq!(denial(&ruling).reason, text);
    let no = FakeLink::new(|question| Act::deny(question, "not today"));
    let ruling = ruling_of(&no).await;
    assert_eq!(denial(&ruling).reason, "guardian g denied this: not today");
    assert_eq!(record(&ruling, "g").reason.as_deref(), Some("not today"));
}

async fn ruling_of(link: &Arc<FakeLink>) -> Ruling {
    super::ruling(vec![guardian(settings("g"), link)], json!({"to": "ann"})).await
}
