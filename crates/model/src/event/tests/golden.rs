//! The bytes of every event type are what they have always been: old logs verify, and old events still hash the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::constraint::Cost;
use crate::credential::ServiceName;
use crate::hook::{CallTrace, RunId};
use crate::id::{GrantId, InvocationId, KeyId};
use crate::invocation::{Invocation, InvocationStatus};
use crate::scope::{Scope, ScopeSet};
use crate::text::Line;

mod approvals;
mod authority;
mod budgets;
mod calls;
mod hooks;
mod mounts;
mod stores;
mod tokens;
mod work;
mod workflows;

/// One event on each line, in the order of [`samples`].
const GOLDEN: &str = include_str!("golden.jsonl");

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_770_544_800_000 + millis).unwrap()
}

fn principal(id: &str) -> PrincipalId {
    PrincipalId::parse(id).unwrap()
}

fn grant(number: u8) -> GrantId {
    GrantId::new(at(0), [number; 10])
}

fn scopes() -> ScopeSet {
    ["charges.read", "charges.create"].iter().map(|scope| Scope::parse(scope).unwrap()).collect()
}

fn invocation() -> Invocation {
    Invocation {
        id: InvocationId::new(at(1), [3; 10]),
        tenant: TenantId::default_tenant(),
        grant: Some(grant(2)),
        agent: principal("ab"),
        actor: principal("somebody"),
        service: Some(ServiceName::parse("stripe").unwrap()),
        tool: "charges.create".into(),
        version: None,
        status: InvocationStatus::Success,
        error: None,
        parameters: Arc::new(
            json!({"b": "\u{1f600} \" \n", "a": [1, 2.50], "\u{e9}": null, "\u{fb33}": -0.5, "10": 1e30})
                .as_object()
                .cloned()
                .unwrap(),
        ),
        arguments_hash: "ab".repeat(32).into(),
        fingerprint: Some("cd".repeat(32).into()),
        http_status: Some(200),
        cost: Cost::from_dollars(0.02),
        cost_basis: None,
        duration_ms: Some(342),
        idempotency_key: None,
        context: GrantContext::default(),
        trace: CallTrace { run: Some(RunId::parse("run-1").unwrap()), by_agent: true, ..CallTrace::default() },
        reported: false,
        created_at: at(1),
    }
}

/// Every event type, with and without what may be missing, in envelopes that are full and empty in turn.
fn samples() -> Vec<Event> {
    let all = [
        calls::calls(),
        authority::authority(),
        hooks::hooks(),
        approvals::approvals(),
        mounts::mounts(),
        tokens::tokens(),
        budgets::budgets(),
        work::work(),
        workflows::workflows(),
        stores::stores(),
    ]
    .concat();
    all.into_iter()
        .zip(0..)
        .map(|(payload, number)| {
            let full = number % 2 == 0;
            let context = json!({"intent_id": "i", "plan_id": "p", "task_id": "t"});
            Event {
                id: EventId::new(at(100), [number; 10]),
                tenant: TenantId::default_tenant(),
                actor: principal("admin"),
                agent: full.then(|| principal("billing")),
                context: if full { serde_json::from_value(context).unwrap() } else { GrantContext::default() },
                run: full.then(|| "run-1".to_owned()),
                time: at(i64::from(number)),
                payload,
            }
        })
        .collect()
}

#[test]
fn every_event_is_written_as_it_always_was() {
    let written: Vec<String> =
        samples().iter().map(|event| String::from_utf8(event.to_canonical().unwrap()).unwrap()).collect();
    assert_eq!(written, GOLDEN.lines().collect::<Vec<_>>());
}

#[test]
fn every_event_is_read_as_it_was_written() {
    for (event, canonical) in samples().into_iter().zip(GOLDEN.lines()) {
        let read = Event::read(canonical).unwrap();
        assert_eq!(read.payload.kind(), event.payload.kind(), "{canonical}");
        assert_eq!(String::from_utf8(read.to_canonical().unwrap()).unwrap(), canonical);
        let stored = StoredEvent::read(canonical, 7).unwrap();
        assert_eq!((&stored.event, &stored.whole["sequence"]), (&read, &json!(7)));
        assert_eq!(to_canonical(stored.data()), to_canonical(&json!(read.payload)));
    }
}

#[test]
fn every_event_that_names_a_call_is_about_that_call_and_its_tool() {
    for canonical in GOLDEN.lines() {
        let event = StoredEvent::read(canonical, 7).unwrap();
        let data = event.data();
        let call = data.get("invocation_id").or(data.get("callId")).and_then(Value::as_str);
        let payload = &event.event.payload;
        assert_eq!(payload.call().as_deref(), call, "{canonical}");
        if call.is_some() {
            let tool = data.get("tool").or(data.get("toolName")).and_then(Value::as_str).unwrap();
            assert!(payload.tool().unwrap().ends_with(tool), "{canonical}");
        }
    }
}

#[test]
fn every_event_type_has_a_sample_and_a_row_in_the_documentation() {
    let page = include_str!("../../../../../docs/audit.md");
    for kind in EventKind::ALL {
        assert!(samples().iter().any(|event| event.payload.kind() == Some(*kind)), "add a sample of {kind:?}");
        assert!(page.contains(&format!("`{}`", kind.as_str())), "docs/audit.md does not have {}", kind.as_str());
        assert_eq!(EventKind::parse(kind.as_str()), Some(*kind));
    }
    assert_eq!(EventKind::parse("approval.given"), None);
}
