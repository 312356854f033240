//! The hooks of steps: which are raised, in which order, and what becomes of a call when guardians decide about them.

use serde_json::json;
use toolgate_model::guard::{Denial, DenialCause};

use super::*;
use crate::call::testing::{Bench, credential};

/// With a memory, whose tool `put` stores a text.
fn memory() -> Bench {
    let bench = Bench::new();
    bench.memory.register(&json!({
        "service": "notes", "version": "1", "base_url": "https://notes.example",
        "tools": {
            "put": {"scope": "write", "http": {"method": "POST", "path": "/notes"},
                "parameters": {"type": "object", "properties": {"text": {"type": "string", "maxLength": 20}}},
                "step": {"kind": "memory", "operation": "store", "entries": "/text"}},
            "get": {"scope": "read", "http": {"method": "GET", "path": "/notes"},
                "step": {"kind": "memory", "operation": "retrieve", "entries": "/done"}}
        }
    }));
    bench.grant(&credential("notes", 9), |_| {});
    bench
}

fn on(bench: &Bench, hook: Hook, verdict: Verdict) {
    *bench.guardian.verdict.lock().unwrap() = Some(verdict);
    *bench.guardian.only.lock().unwrap() = Some(hook);
}

fn denial() -> Verdict {
    Verdict::Deny(Denial { cause: DenialCause::Policy, reason: "no".to_owned(), policy: None })
}

fn rewritten(text: &str) -> Verdict {
    Verdict::Pass { content: Some(Box::new(Content::Memory(vec![text.to_owned()]))), asks: Vec::new() }
}

fn asking() -> Verdict {
    let ask = Ask { reason: "look".to_owned(), groups: Vec::new(), approvers: 1, ttl_seconds: None, policy: None };
    Verdict::Pass { content: None, asks: vec![ask] }
}

#[tokio::test]
async fn what_is_stored_is_shown_to_guardians_besides_the_call() {
    let bench = memory();
    assert!(bench.guard(&bench.call("notes.put", json!({"text": "a"}))).await.is_ok());
    let seen = bench.guardian.seen.lock().unwrap().clone();
    assert_eq!(seen, [(Hook::ToolCallRequest, json!({"text": "a"})), (Hook::MemoryStore, json!(["a"]))]);
}

#[tokio::test]
async fn a_denied_step_is_not_executed() {
    let bench = memory();
    on(&bench, Hook::MemoryStore, denial());
    let refusal = bench.guard(&bench.call("notes.put", json!({"text": "a"}))).await.err().unwrap();
    assert_eq!(refusal.code(), Code::PolicyDenied);
}

#[tokio::test]
async fn a_modified_step_is_sent_as_it_was_modified_and_within_all_limits() {
    let bench = memory();
    on(&bench, Hook::MemoryStore, rewritten("b"));
    let guarded = bench.guard(&bench.call("notes.put", json!({"text": "a"}))).await.ok().unwrap();
    assert_eq!(guarded.modified(), Some(&json!({"text": "b"})));
    let request = guarded.eligible().request.as_deref().unwrap();
    assert_eq!(request.body.as_ref().unwrap().bytes, br#"{"text":"b"}"#);

    on(&bench, Hook::MemoryStore, rewritten("longer than the schema allows"));
    let refusal = bench.guard(&bench.call("notes.put", json!({"text": "a"}))).await.err().unwrap();
    assert_eq!(refusal.code(), Code::ParametersInvalid);
}

#[tokio::test]
async fn an_ask_about_a_step_demands_an_approval_of_the_call() {
    let bench = memory();
    on(&bench, Hook::MemoryStore, asking());
    let guarded = bench.guard(&bench.call("notes.put", json!({"text": "a"}))).await.ok().unwrap();
    assert_eq!(guarded.asks().len(), 1);
}

#[tokio::test]
async fn a_client_that_cannot_take_changes_is_refused() {
    let bench = memory();
    on(&bench, Hook::MemoryStore, rewritten("b"));
    let call = Call { takes_changes: false, ..bench.call("notes.put", json!({"text": "a"})) };
    assert_eq!(bench.guard(&call).await.err().unwrap().code(), Code::GuardianDenied);
}

#[tokio::test]
async fn what_cannot_be_read_is_denied_where_somebody_must_decide_and_only_there() {
    let bench = memory();
    let call = bench.call("notes.get", json!({}));
    let candidate = bench.preferred(&call).await.first.candidate;
    let unreadable = json!({"done": [{}, null]});
    let inspect =
        || bench.pipeline.inspect_step(&call, &candidate, &call.parameters, unreadable.clone(), Freshness::Newest);
    assert_eq!(inspect().await.unwrap_err().code(), Code::GuardianDenied);
    *bench.guardian.unconcerned.lock().unwrap() = Some(PolicyBasis::default());
    assert_eq!(inspect().await.unwrap(), unreadable);
}

#[tokio::test]
async fn what_is_retrieved_is_modified_or_withheld_and_an_ask_is_too_late() {
    let bench = memory();
    let call = bench.call("notes.get", json!({}));
    let candidate = bench.preferred(&call).await.first.candidate;
    let inspect =
        || bench.pipeline.inspect_step(&call, &candidate, &call.parameters, json!({"done": ["a"]}), Freshness::Newest);
    assert_eq!(inspect().await.unwrap(), json!({"done": ["a"]}));
    on(&bench, Hook::MemoryContextRetrieval, rewritten("b"));
    assert_eq!(inspect().await.unwrap(), json!({"done": ["b"]}));
    on(&bench, Hook::MemoryContextRetrieval, denial());
    assert_eq!(inspect().await.unwrap_err().code(), Code::PolicyDenied);
    on(&bench, Hook::MemoryContextRetrieval, asking());
    assert_eq!(inspect().await.unwrap_err().code(), Code::GuardianDenied);
}
