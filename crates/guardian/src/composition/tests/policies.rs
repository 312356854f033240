//! The gate's own policies together with guardians of others.

use std::borrow::Cow;

use toolgate_model::guard::{Ask, Outcome};

use super::*;
use crate::remote::fixture::{Act, arguments_of, settings};
use crate::selector::{NamePattern, Selector};

fn content(json: Value) -> Content<'static> {
    let Value::Object(arguments) = json else { panic!("arguments are an object") };
    Content::Arguments(Cow::Owned(arguments))
}

fn no(reason: &str) -> Verdict {
    Verdict::Deny(Denial { cause: DenialCause::Policy, reason: reason.to_owned(), policy: None })
}

fn ask(reason: &str) -> Ask {
    Ask { reason: reason.to_owned(), groups: Vec::new(), approvers: 1, ttl_seconds: None, policy: None }
}

/// A guardian that sets `b` to 2 and is content with that.
fn sets_b() -> (Arc<FakeLink>, RemoteGuardian) {
    let link = FakeLink::new(|question| {
        let mut arguments = arguments_of(question);
        arguments.insert("b".to_owned(), json!(2));
        Act::modify(question, &arguments)
    });
    let guardian = guardian(RemoteSettings { may_modify: true, ..settings("b") }, &link);
    (link, guardian)
}

async fn judged(policy: &Arc<FakePolicy>, remote: Vec<RemoteGuardian>, arguments: Value) -> Ruling {
    guardians(policy, remote).judge(&World::of(arguments).hooked()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn where_nobody_has_anything_to_look_at_nothing_is_written() {
    let ruling = judged(&FakePolicy::none(), Vec::new(), json!({})).await;
    assert_eq!((ruling.verdict, ruling.decision), (Verdict::allow(), None));
    assert_eq!(ruling.basis, PolicyBasis { revision: 3, generation: 4, counts: None });
}

#[tokio::test(start_paused = true)]
async fn nobody_has_a_say_only_where_neither_a_rule_nor_a_guardian_concerns_the_call() {
    let world = World::of(json!({}));
    let unconcerned = async |policy: &Arc<FakePolicy>, remote| {
        let (guardians, hooked) = (guardians(policy, remote), world.hooked());
        guardians.unconcerned(hooked.tenant, &hooked.subject(), hooked.freshness).await.unwrap()
    };
    let of_tool = |tool: &str| {
        let selector = Selector { tools: vec![NamePattern::parse(tool).unwrap()], ..Selector::default() };
        vec![guardian(RemoteSettings { selector, ..settings("b") }, &FakeLink::new(Act::allow))]
    };
    let basis = PolicyBasis { revision: 3, generation: 4, counts: None };
    assert_eq!(unconcerned(&FakePolicy::none(), Vec::new()).await, Some(basis));
    assert_eq!(unconcerned(&FakePolicy::none(), of_tool("mail.list")).await, Some(basis));
    assert_eq!(unconcerned(&FakePolicy::none(), of_tool("mail.*")).await, None);
    assert_eq!(unconcerned(&FakePolicy::new(|_| Verdict::allow()), Vec::new()).await, None);
}

#[tokio::test(start_paused = true)]
async fn what_another_runtime_asks_is_written_down_where_nobody_has_anything_to_look_at() {
    let world = World::of(json!({"a": 1}));
    let asked = |secrets| Hooked { dialect: Dialect::Joch, secrets, ..world.hooked() };
    let guardians = guardians(&FakePolicy::none(), Vec::new());
    let ruling = guardians.judge(&asked(Some(&[]))).await.unwrap();
    assert_eq!(ruling.verdict, Verdict::allow());
    let decision = decision(&ruling);
    assert_eq!((decision.effective, decision.guardians.len()), (VerdictKind::Allow, 0));
    assert_eq!((decision.dialect, decision.tool.as_deref()), (Dialect::Joch, Some("mail.send")));
    assert!(guardians.judge(&asked(None)).await.unwrap().lacks_secrets, "no hash is made of what may be a secret");
}

#[tokio::test(start_paused = true)]
async fn policies_alone_are_written_down_as_a_guardian() {
    let policy = FakePolicy::new(|_| no("never"));
    let ruling = judged(&policy, Vec::new(), json!({})).await;
    let record = record(&ruling, "policy");
    assert_eq!((record.verdict, record.outcome), (Some(VerdictKind::Deny), Outcome::Enforced));
    assert_eq!((record.reason.as_deref(), record.policies.len()), (Some("never"), 1));
    assert_eq!((decision(&ruling).policy_version, decision(&ruling).effective), (Some(7), VerdictKind::Deny));
}

#[tokio::test(start_paused = true)]
async fn after_a_no_of_the_policies_nobody_else_is_asked() {
    let (link, guardian) = sets_b();
    let ruling = judged(&FakePolicy::new(|_| no("never")), vec![guardian], json!({})).await;
    assert_eq!(denial(&ruling).cause, DenialCause::Policy);
    assert_eq!((link.questions().len(), decision(&ruling).guardians.len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn what_the_policies_take_out_no_guardian_sees() {
    let policy = FakePolicy::new(|seen| match seen["a"].as_str() {
        Some("secret") => Verdict::modify(content(json!({"a": "[REDACTED]"}))),
        _ => Verdict::allow(),
    });
    let (link, guardian) = sets_b();
    let ruling = judged(&policy, vec![guardian], json!({"a": "secret"})).await;
    assert_eq!(changed(&ruling), Some(json!({"a": "[REDACTED]", "b": 2})));
    let seen: Vec<_> = link.questions().iter().map(|question| Value::Object(arguments_of(question))).collect();
    assert_eq!(seen, [json!({"a": "[REDACTED]"})]);
    assert_eq!(policy.seen(), [json!({"a": "secret"}), json!({"a": "[REDACTED]", "b": 2})]);
    assert_eq!(record(&ruling, "policy").verdict, Some(VerdictKind::Modify));
}

#[tokio::test(start_paused = true)]
async fn what_others_made_of_it_is_judged_by_the_policies_again() {
    let policy = FakePolicy::new(|seen| if seen["b"] == json!(2) { no("no two") } else { Verdict::allow() });
    let ruling = judged(&policy, vec![sets_b().1], json!({"a": 1})).await;
    assert_eq!(denial(&ruling).reason, "no two");
    assert_eq!(record(&ruling, "policy").verdict, Some(VerdictKind::Deny));
    assert_eq!(record(&ruling, "b").verdict, Some(VerdictKind::Modify));
}

#[tokio::test(start_paused = true)]
async fn what_the_policies_take_out_of_a_change_is_shown_to_all_again() {
    let policy = FakePolicy::new(|seen| match seen["b"] {
        ref b if *b == json!(2) => Verdict::modify(content(json!({"a": 1}))),
        _ => Verdict::allow(),
    });
    let ruling = judged(&policy, vec![sets_b().1], json!({"a": 1})).await;
    // It insists on its change, and the policies on theirs.
    let cause = DenialCause::Failure { guardian: "b".to_owned(), class: FailureClass::BadModify };
    assert_eq!(denial(&ruling).cause, cause);
}

#[tokio::test(start_paused = true)]
async fn asks_of_before_and_after_are_collected_once_each() {
    let policy = FakePolicy::new(|seen| {
        let asks = match seen["b"].is_null() {
            true => vec![ask("always")],
            false => vec![ask("always"), ask("two")],
        };
        Verdict::Pass { content: None, asks }
    });
    let ruling = judged(&policy, vec![sets_b().1], json!({"a": 1})).await;
    let expected = Some(Box::new(content(json!({"a": 1, "b": 2}))));
    assert_eq!(ruling.verdict, Verdict::Pass { content: expected, asks: vec![ask("always"), ask("two")] });
    assert_eq!(decision(&ruling).effective, VerdictKind::Ask);
}

#[tokio::test(start_paused = true)]
async fn only_those_that_are_concerned_are_asked() {
    let (link, _) = sets_b();
    let selector = crate::selector::Selector {
        tools: vec![crate::selector::NamePattern::parse("files.*").unwrap()],
        ..crate::selector::Selector::default()
    };
    let elsewhere = guardian(RemoteSettings { selector, ..settings("files") }, &link);
    let guardians = guardians(&FakePolicy::none(), vec![elsewhere]);
    let world = World::of(json!({}));
    assert_eq!(guardians.judge(&world.hooked()).await.unwrap().decision, None);
    assert!(link.questions().is_empty());
}
