//! What messages contain, what they never contain, and how long they are delivered.

use std::collections::BTreeSet;

use toolgate_model::approval::{ApprovalRule, ApprovalStatus, AskReason, AskSource, Category};
use toolgate_model::context::GrantContext;
use toolgate_model::id::{ApprovalId, EventId, InvocationId};
use toolgate_model::principal::{PrincipalId, TenantId};

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000).unwrap()
}

fn asked() -> Approval {
    Approval {
        id: ApprovalId::new(at(0), [1; 10]),
        tenant: TenantId::parse("acme").unwrap(),
        status: ApprovalStatus::Pending,
        invocation: InvocationId::new(at(0), [2; 10]),
        call: None,
        agent: PrincipalId::parse("billing").unwrap(),
        actor: PrincipalId::parse("billing").unwrap(),
        actor_is_person: false,
        tool: "stripe.charges.create".to_owned(),
        external: false,
        detached: false,
        category: Category::Mcp,
        description: "geheim: what it does".to_owned(),
        arguments: Some(json!({"card": "geheim"})),
        original_arguments: Some(json!({"card": "geheim before"})),
        action: None,
        digest: "geheim-digest".to_owned(),
        reasons: vec![AskReason { source: AskSource::Tool, text: "geheim reason".to_owned() }],
        rule: ApprovalRule::default(),
        coverable: true,
        session: None,
        votes: Vec::new(),
        answer: None,
        reason: None,
        notice: None,
        standing: None,
        created_at: at(0),
        expires_at: at(300),
        resolved_at: None,
    }
}

fn message(payload: EventPayload, approval: Approval, details: Details) -> Message {
    let event = Event {
        id: EventId::new(at(0), [3; 10]),
        tenant: approval.tenant.clone(),
        actor: approval.actor.clone(),
        agent: Some(approval.agent.clone()),
        context: GrantContext::default(),
        run: Some("geheim".to_owned()),
        time: at(0),
        payload,
    };
    Message::new(7, event, approval, RiskLevel::Medium, details)
}

fn read(message: &Message) -> Value {
    serde_json::from_str(&message.body()).unwrap()
}

fn names(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn tool_and_agent_are_told_and_neither_arguments_nor_description_nor_digest() {
    let mut message = message(EventPayload::approval_requested(&asked()), asked(), Details::None);
    let told = read(&message);
    assert_eq!((&told["type"], &told["sequence"]), (&json!("approval.requested"), &json!(7)));
    assert_eq!((&told["tenant_id"], &told["timestamp"]), (&json!("acme"), &json!(at(0))));
    assert_eq!(told["approval"]["tool"], "stripe.charges.create");
    assert_eq!((&told["approval"]["agent_id"], &told["approval"]["risk"]), (&json!("billing"), &json!("medium")));
    assert_eq!(told["data"]["approval_id"], json!(asked().id));
    assert!(!told.to_string().contains("geheim"), "{told}");
    assert!(!names(&told).contains("link"));
    message.link = Some("https://gate/approvals/open/1".to_owned());
    assert_eq!(read(&message)["link"], "https://gate/approvals/open/1");
}

#[test]
fn a_description_is_told_only_where_the_operator_wants_it_and_arguments_never() {
    let told = read(&message(EventPayload::approval_requested(&asked()), asked(), Details::Description));
    assert_eq!(told["approval"]["description"], "geheim: what it does");
    assert_eq!(told.to_string().matches("geheim").count(), 1, "{told}");
}

#[test]
fn words_of_people_are_told_only_with_the_description() {
    let ended = asked().ended(ApprovalStatus::Cancelled, "geheim: why", at(1)).unwrap();
    let payload = EventPayload::approval_ended(&ended);
    assert!(!read(&message(payload.clone(), ended.clone(), Details::None)).to_string().contains("geheim"));
    let told = read(&message(payload, ended, Details::Description));
    assert_eq!((&told["data"]["reason"], &told["type"]), (&json!("geheim: why"), &json!("approval.cancelled")));
}

#[test]
fn what_happened_is_told_for_a_day_and_that_somebody_was_asked_for_an_hour_after_the_end() {
    let requested = message(EventPayload::approval_requested(&asked()), asked(), Details::None);
    assert_eq!(requested.is_too_old(at(300 + 3599)), None);
    assert!(requested.is_too_old(at(300 + 3600)).is_some());
    let ended = asked().ended(ApprovalStatus::Cancelled, "gone", at(10)).unwrap();
    let answered = message(EventPayload::approval_requested(&asked()), ended.clone(), Details::None);
    assert!(answered.is_too_old(at(10 + 3600)).is_some());
    let end = message(EventPayload::approval_ended(&ended), ended, Details::None);
    assert_eq!(end.is_too_old(at(24 * 3600 - 1)), None);
    assert!(end.is_too_old(at(24 * 3600)).is_some());
}
