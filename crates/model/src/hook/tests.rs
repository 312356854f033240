//! Whatever a call was and however it ended, its pair fits what is published, and a return never looks like another one.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::context::GrantContext;
use crate::credential::ServiceName;
use crate::event::{Event, EventPayload, StoredEvent, ToolDenied};
use crate::invocation::InvocationStatus;
use crate::openwop_event::RunEvent;
use crate::principal::TenantId;
use crate::schema::Schema;
use crate::time::Timestamp;

const TIME: i64 = 1_770_544_800_123;

fn invocation(agent: &str, tool: &str, service: Option<&str>, trace: CallTrace) -> Invocation {
    let time = Timestamp::from_millis(TIME).unwrap();
    Invocation {
        id: InvocationId::new(time, [7; 10]),
        tenant: TenantId::parse("default").unwrap(),
        grant: None,
        agent: PrincipalId::parse(agent).unwrap(),
        actor: PrincipalId::parse("somebody").unwrap(),
        service: service.map(|service| ServiceName::parse(service).unwrap()),
        tool: tool.into(),
        version: None,
        status: InvocationStatus::Running,
        error: None,
        parameters: Arc::default(),
        arguments_hash: "ab".repeat(32).into(),
        fingerprint: None,
        http_status: None,
        cost: None,
        cost_basis: None,
        duration_ms: None,
        idempotency_key: None,
        context: GrantContext::default(),
        trace,
        reported: false,
        created_at: time,
    }
}

/// The event as it is stored and then shown.
fn shown(invocation: &Invocation, id: EventId, payload: EventPayload) -> Value {
    let event = Event {
        id,
        tenant: invocation.tenant.clone(),
        actor: invocation.actor.clone(),
        agent: Some(invocation.agent.clone()),
        context: invocation.context.clone(),
        run: Some(invocation.run_id()),
        time: invocation.created_at,
        payload,
    };
    let canonical = String::from_utf8(event.to_canonical().unwrap()).unwrap();
    let stored = StoredEvent::read(&canonical, 0).unwrap();
    assert_eq!(stored.event, event);
    serde_json::to_value(RunEvent::of(&stored, 0).unwrap()).unwrap()
}

fn shown_call(invocation: &Invocation, inputs: Option<Value>) -> Value {
    let called = ToolCalled::of(invocation, inputs);
    shown(invocation, EventId::of_call(invocation.id), EventPayload::AgentToolCalled(Box::new(called)))
}

fn shown_return(invocation: &Invocation, returned: ToolReturned) -> Value {
    let denied = EventPayload::ToolDenied(Box::new(ToolDenied {
        invocation_id: invocation.id,
        grant_id: invocation.grant,
        service: invocation.service.clone(),
        tool: invocation.tool.clone(),
        arguments_hash: invocation.arguments_hash.clone(),
        stage: "admit".into(),
        error_code: "A_CODE".to_owned(),
        reason: "a sentence that is not shown".to_owned(),
        returned: Some(returned),
        trace_id: None,
    }));
    shown(invocation, EventId::new(invocation.created_at, [8; 10]), denied)
}

fn names() -> impl Strategy<Value = String> {
    "[A-Za-z0-9._:@-]{1,128}"
}

fn traces() -> impl Strategy<Value = CallTrace> {
    let transports = prop_oneof![Just(Transport::Http), Just(Transport::Mcp), Just(Transport::Native)];
    (proptest::option::of(names()), any::<bool>(), transports).prop_map(|(run, by_agent, transport)| CallTrace {
        run: run.map(|run| RunId::parse(&run).unwrap()),
        by_agent,
        transport,
        ..CallTrace::default()
    })
}

fn invocations() -> impl Strategy<Value = Invocation> {
    // The tool of a refused call is whatever the caller wrote.
    let tools = prop_oneof!["[a-z.]{1,20}", "\\PC{1,40}", Just("\u{0}\u{202e}\"".to_owned())];
    (names(), tools, proptest::option::of(Just("stripe")), traces())
        .prop_map(|(agent, tool, service, trace)| invocation(&agent, &tool, service, trace))
}

fn returns(invocation: &Invocation) -> impl Strategy<Value = ToolReturned> + use<> {
    let (one, two, three, four) = (invocation.clone(), invocation.clone(), invocation.clone(), invocation.clone());
    // What a JSON number holds exactly.
    let durations = 0..(1_u64 << 53);
    prop_oneof![
        durations.clone().prop_map(move |duration| ToolReturned::ok(&one, duration)),
        ("[A-Z_]{1,30}", ".{0,60}", proptest::option::of(durations))
            .prop_map(move |(code, message, duration)| ToolReturned::error(&two, &code, message, duration)),
        Just(()).prop_map(move |()| ToolReturned::forbidden(&three)),
        Just(()).prop_map(move |()| ToolReturned::rate_limited(&four)),
    ]
}

fn pairs() -> impl Strategy<Value = (Invocation, Option<Value>, ToolReturned)> {
    let inputs = proptest::option::of(("\\PC{0,20}", any::<i32>()).prop_map(|(name, number)| {
        let mut inputs = Map::new();
        inputs.insert(name, json!(number));
        Value::Object(inputs)
    }));
    (invocations(), inputs).prop_flat_map(|(invocation, inputs)| {
        let returned = returns(&invocation);
        (Just(invocation), Just(inputs), returned)
    })
}

proptest! {
    #[test]
    fn every_pair_fits_the_schema_and_belongs_together((invocation, inputs, returned) in pairs()) {
        let schema = Schema::compile(&RunEvent::schema()).unwrap();
        let (call, back) = (shown_call(&invocation, inputs.clone()), shown_return(&invocation, returned));
        for event in [&call, &back] {
            let checked = schema.check(event);
            prop_assert!(checked.is_ok(), "{event}: {checked:?}");
        }
        prop_assert_eq!(&call["eventId"], &back["causationId"]);
        prop_assert_eq!(&call["runId"], &back["runId"]);
        for member in ["agentId", "callId", "toolName"] {
            prop_assert_eq!(&call["payload"][member], &back["payload"][member]);
        }
        prop_assert_eq!(call["payload"].get("inputs"), inputs.as_ref());
    }

    #[test]
    fn only_an_error_says_why_and_only_what_ran_took_time((invocation, _, returned) in pairs()) {
        let payload = &shown_return(&invocation, returned)["payload"];
        let status = payload["status"].as_str().unwrap();
        prop_assert_eq!(payload.get("error").is_some(), status == "error");
        match status {
            "ok" => prop_assert!(payload["durationMs"].is_u64()),
            "error" => {}
            _ => prop_assert_eq!(payload.get("durationMs"), None),
        }
    }
}

#[test]
fn who_is_no_agent_is_the_system_and_short_names_are_made_longer() {
    let called = |agent: &str, by_agent: bool| {
        let trace = CallTrace { by_agent, ..CallTrace::default() };
        shown_call(&invocation(agent, "charges.create", Some("stripe"), trace), None)["payload"].clone()
    };
    assert_eq!(called("billing", true)["agentId"], "billing");
    assert_eq!(called("ab", true)["agentId"], "agent:ab");
    assert_eq!(called("billing", false)["agentId"], "core.system");
    assert_eq!(called("billing", false)["principal"], "billing", "under whose authority, not by whose hand");
    assert_eq!(called("billing", true)["toolName"], "stripe.charges.create");
}

#[test]
fn a_call_that_names_no_run_is_one_of_its_own() {
    let alone = invocation("billing", "a", None, CallTrace::default());
    assert_eq!(shown_call(&alone, None)["runId"], json!(alone.id));
    let run = Some(RunId::parse("run-1").unwrap());
    let part = invocation("billing", "a", None, CallTrace { run, ..CallTrace::default() });
    assert_eq!(shown_call(&part, None)["runId"], "run-1");
}

#[test]
fn a_transport_is_read_as_it_is_written() {
    for transport in [Transport::Http, Transport::Mcp, Transport::Native] {
        assert_eq!(Transport::parse(transport.as_str()), Some(transport));
    }
    assert_eq!(Transport::parse("HTTP"), None);
}
