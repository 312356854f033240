//! Deadlines, cancellation, and who waits for whom.

use toolgate_model::guard::{OnFailure, Outcome};

use super::*;
use crate::remote::fixture::{Act, settings};

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn patient(name: &str) -> RemoteSettings {
    RemoteSettings { timeout: seconds(30), ..settings(name) }
}

fn slow(name: &str, after: u64) -> (Arc<FakeLink>, RemoteGuardian) {
    let link = FakeLink::new(move |question| Act::allow(question).after(after));
    let guardian = guardian(patient(name), &link);
    (link, guardian)
}

async fn judged(remote: Vec<RemoteGuardian>) -> (Ruling, Duration) {
    let guardians = guardians(&FakePolicy::none(), remote).with_budget(seconds(60));
    let started = now();
    let ruling = guardians.judge(&World::of(json!({"to": "ann"})).hooked()).await.unwrap();
    (ruling, started.elapsed())
}

#[tokio::test(start_paused = true)]
async fn three_slow_ones_take_as_long_as_the_slowest() {
    let (ruling, time) = judged(vec![slow("a", 3).1, slow("b", 5).1, slow("c", 4).1]).await;
    assert_eq!((ruling.verdict, time), (Verdict::allow(), seconds(5)));
}

#[tokio::test(start_paused = true)]
async fn the_first_no_cancels_the_rest() {
    let (slow_link, slow) = slow("slow", 20);
    let no = FakeLink::new(|question| Act::deny(question, "no").after(1));
    let (ruling, time) = judged(vec![slow, guardian(patient("no"), &no)]).await;
    assert_eq!((&denial(&ruling).cause, time), (&DenialCause::Guardian("no".to_owned()), seconds(1)));
    assert_eq!((slow_link.questions().len(), slow_link.answered()), (1, 0));
    let cancelled = record(&ruling, "slow");
    assert_eq!((cancelled.outcome, cancelled.verdict, cancelled.failure), (Outcome::Cancelled, None, None));
    assert_eq!(record(&ruling, "no").outcome, Outcome::Enforced);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_guardian_is_given_up_and_its_late_answer_never_counts() {
    for (on_failure, expected) in [(OnFailure::Deny, VerdictKind::Deny), (OnFailure::Allow, VerdictKind::Allow)] {
        let link = FakeLink::new(|question| Act::deny(question, "late").after(10));
        let hanging = guardian(RemoteSettings { timeout: seconds(2), on_failure, ..settings("g") }, &link);
        let (ruling, time) = judged(vec![hanging]).await;
        assert_eq!((ruling.verdict.kind(), time), (expected, seconds(2)));
        tokio::time::advance(seconds(60)).await;
        assert_eq!(link.answered(), 0);
        assert_eq!(record(&ruling, "g").failure, Some(FailureClass::Timeout));
    }
}

#[tokio::test(start_paused = true)]
async fn the_budget_of_an_event_ends_every_question() {
    let remote = vec![slow("a", 20).1, slow("b", 20).1];
    let guardians = guardians(&FakePolicy::none(), remote).with_budget(seconds(2));
    let started = now();
    let ruling = guardians.judge(&World::of(json!({})).hooked()).await.unwrap();
    assert_eq!(started.elapsed(), seconds(2));
    assert!(denial(&ruling).reason.contains("within 2000 ms"), "{}", denial(&ruling).reason);
}

#[tokio::test(start_paused = true)]
async fn one_in_shadow_has_its_own_timeout_and_takes_nothing_of_the_others() {
    let shadow = |after, timeout| {
        let link = FakeLink::new(move |question| Act::deny(question, "no").after(after));
        guardian(RemoteSettings { mode: GuardMode::Shadow, timeout: seconds(timeout), ..patient("shadow") }, &link)
    };
    // It is waited for as long as it may take, whoever else is asked.
    for (remote, expected) in [(vec![shadow(20, 4)], 4), (vec![shadow(20, 4), slow("a", 3).1], 4)] {
        let (ruling, time) = judged(remote).await;
        assert_eq!((&ruling.verdict, time), (&Verdict::allow(), seconds(expected)));
        let silent = record(&ruling, "shadow");
        assert_eq!((silent.failure, silent.outcome), (Some(FailureClass::Timeout), Outcome::Shadowed));
    }
    let (ruling, time) = judged(vec![shadow(2, 4), slow("a", 3).1]).await;
    assert_eq!((&ruling.verdict, time), (&Verdict::allow(), seconds(3)));
    let heard = record(&ruling, "shadow");
    assert_eq!((heard.verdict, heard.outcome), (Some(VerdictKind::Deny), Outcome::Shadowed));
    // What it takes is not taken from the time of those behind it.
    let modifier = guardian(RemoteSettings { may_modify: true, ..patient("m") }, &FakeLink::new(Act::allow));
    let guardians = guardians(&FakePolicy::none(), vec![shadow(9, 9), modifier, slow("a", 9).1]);
    let ruling = guardians.with_budget(seconds(10)).judge(&World::of(json!({})).hooked()).await.unwrap();
    assert_eq!(ruling.verdict, Verdict::allow());
}

#[tokio::test]
async fn what_the_gate_takes_out_of_a_large_question_is_not_the_guardians_time() {
    // Long enough that looking through it takes longer than the guardian has.
    let text = "a b@c d 4111 1111 1111 111 ".repeat(30_000);
    let detectors =
        crate::detector::Detectors::new(&[crate::detector::DetectorKind::Email, crate::detector::DetectorKind::Card]);
    let redaction = crate::remote::Redaction { fields: None, detectors: Some(detectors.unwrap()) };
    let strict = |name: &str| {
        let link = FakeLink::new(|question| Act::deny(question, "no"));
        let settings = RemoteSettings {
            timeout: Duration::from_millis(200),
            on_failure: OnFailure::Allow,
            redaction: redaction.clone(),
            max_request_bytes: usize::MAX,
            ..settings(name)
        };
        guardian(settings, &link)
    };
    let guardians = guardians(&FakePolicy::none(), vec![strict("one"), strict("two")]);
    let guardians = guardians.with_budget(Duration::from_millis(200));
    let ruling = guardians.judge(&World::of(json!({"text": text})).hooked()).await.unwrap();
    assert!(matches!(denial(&ruling).cause, DenialCause::Guardian(_)), "{:?}", denial(&ruling));
}
