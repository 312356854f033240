//! Which messages guardians are asked about, and what calls of mounted servers come to before they are sent.

use serde_json::{Map, json};
use toolgate_model::connection::AuthPlacement;
use toolgate_model::constraint::Constraints;
use toolgate_model::credential::Credential;
use toolgate_model::guard::{Denial, DenialCause};

use super::*;
use crate::call::testing::{Bench, credential};

mod input;

const OUTBOUND: Hook = Hook::Mcp(Direction::Outbound);
const INBOUND: Hook = Hook::Mcp(Direction::Inbound);

/// With a mounted server over HTTP, one that is a process, and a grant on each.
fn mounted(change: impl Fn(&mut Credential)) -> Bench {
    let bench = Bench::new();
    for (number, (service, base_url)) in
        [("web", Some("https://mcp.example/mcp")), ("local", None)].into_iter().enumerate()
    {
        let tools = json!({
            "say": {"scope": "read", "mcp": {"method": "tools/call", "name": "say it"}},
            "pages": {"scope": "read", "mcp": {"method": "resources/list"}}
        });
        bench.memory.register(&json!({
            "service": service, "version": "1", "source": "mcp", "base_url": base_url, "tools": tools
        }));
        let mut credential = credential(service, u8::try_from(number).unwrap() + 10);
        change(&mut credential);
        bench.grant(&credential, |_| {});
    }
    bench
}

fn deny(bench: &Bench, hook: Hook) {
    let denial = Denial { cause: DenialCause::Policy, reason: "no".to_owned(), policy: None };
    *bench.guardian.verdict.lock().unwrap() = Some(Verdict::Deny(denial));
    *bench.guardian.only.lock().unwrap() = Some(hook);
}

#[tokio::test]
async fn a_call_of_a_mounted_server_is_a_request_with_its_arguments() {
    let bench = mounted(|_| {});
    let alternative = bench.preferred(&bench.call("web.say", json!({"text": "a"}))).await;
    let request = alternative.first.request.as_deref().unwrap();
    assert_eq!((request.method.as_str(), request.url.as_str()), ("POST", "https://mcp.example/mcp"));
    let body: Value = serde_json::from_slice(&request.body.as_ref().unwrap().bytes).unwrap();
    let params = json!({"name": "say it", "arguments": {"text": "a"}});
    assert_eq!(body, json!({"jsonrpc": "2.0", "method": "tools/call", "params": params}));
    assert!(alternative.first.credential.is_some());

    let alternative = bench.preferred(&bench.call("local.say", json!({"text": "a"}))).await;
    assert!(alternative.first.request.is_none() && alternative.first.credential.is_some());
}

#[tokio::test]
async fn parameters_of_the_protocol_cannot_be_set() {
    let bench = mounted(|_| {});
    for tool in ["web.pages", "local.pages"] {
        assert!(bench.constrain(&bench.call(tool, json!({"cursor": "a"}))).await.is_ok());
        let refusal = bench.constrain(&bench.call(tool, json!({"_meta": {}}))).await.err().unwrap();
        assert_eq!(refusal.code(), Code::ParametersInvalid);
    }
}

#[tokio::test]
async fn a_mounted_server_is_reached_where_it_was_mounted_and_nowhere_else() {
    let metadata = |metadata: Value| move |credential: &mut Credential| credential.metadata = object(&metadata);
    let elsewhere = mounted(metadata(json!({"base_url": "https://other.example/mcp"})));
    for tool in ["web.say", "local.say"] {
        let refusal = elsewhere.constrain(&elsewhere.call(tool, json!({}))).await.err().unwrap();
        assert_eq!(refusal.code(), Code::ToolNotExecutable, "{tool}");
    }
    let same = mounted(metadata(json!({"base_url": "https://mcp.example/mcp"})));
    assert!(same.constrain(&same.call("web.say", json!({}))).await.is_ok());
}

#[tokio::test]
async fn a_limit_on_hosts_is_kept_or_the_call_refused() {
    let bench = mounted(|_| {});
    bench.memory.held_grants.lock().unwrap().clear();
    let constraints = Constraints::from_json(&json!({"allowed_hosts": ["mcp.example"]})).unwrap();
    for (service, number) in [("web", 10), ("local", 11)] {
        bench.grant(&credential(service, number), |grant| grant.authority.constraints = constraints.clone());
    }
    assert!(bench.constrain(&bench.call("web.say", json!({}))).await.is_ok());
    let refusal = bench.constrain(&bench.call("local.say", json!({}))).await.err().unwrap();
    assert_eq!(refusal.code(), Code::GrantHostDenied);
}

#[tokio::test]
async fn a_server_that_needs_no_secret_is_called_without_material() {
    let bench = mounted(|credential| {
        credential.version = 0;
        credential.metadata = object(&json!({"auth": {"location": "none"}}));
    });
    let alternative = bench.preferred(&bench.call("web.say", json!({}))).await;
    assert_eq!(alternative.first.credential.as_ref().unwrap().placement, AuthPlacement::Nowhere);
    let without = mounted(|credential| credential.version = 0);
    let refusal = without.constrain(&without.call("web.say", json!({}))).await.err().unwrap();
    assert_eq!(refusal.code(), Code::ToolNotExecutable);
}

#[tokio::test]
async fn guardians_see_the_message_besides_the_call() {
    let bench = mounted(|_| {});
    assert!(bench.guard(&bench.call("web.say", json!({"text": "a"}))).await.is_ok());
    let seen = bench.guardian.seen.lock().unwrap().clone();
    assert_eq!(seen.iter().map(|(hook, _)| *hook).collect::<Vec<_>>(), [Hook::ToolCallRequest, OUTBOUND]);
    let params = json!({"name": "say it", "arguments": {"text": "a"}});
    assert_eq!(seen[1].1, json!({"jsonrpc": "2.0", "method": "tools/call", "params": params}));

    let other = Bench::with_grant();
    assert!(other.guard(&other.call("crm.read", json!({"id": "7"}))).await.is_ok());
    assert_eq!(other.guardian.seen.lock().unwrap().len(), 1, "no message of MCP");
}

#[tokio::test]
async fn a_message_that_is_denied_or_could_only_pass_changed_is_not_sent() {
    let bench = mounted(|_| {});
    deny(&bench, OUTBOUND);
    let refusal = bench.guard(&bench.call("web.say", json!({}))).await.err().unwrap();
    assert_eq!(refusal.code(), Code::PolicyDenied);
    let changed = Content::Message(Cow::Owned(json!({"method": "tools/call"})));
    let verdict = Verdict::Pass { content: Some(Box::new(changed)), asks: Vec::new() };
    *bench.guardian.verdict.lock().unwrap() = Some(verdict);
    let refusal = bench.guard(&bench.call("local.say", json!({}))).await.err().unwrap();
    assert_eq!(refusal.code(), Code::GuardianDenied);
}

#[tokio::test]
async fn a_response_that_is_denied_is_withheld() {
    let bench = mounted(|_| {});
    let call = bench.call("web.say", json!({}));
    let alternative = bench.preferred(&call).await;
    let candidate = &alternative.first.candidate;
    let result = json!({"content": []});
    let (passed, _) = bench.pipeline.inspect_message(&call, candidate, &result, Freshness::Newest).await;
    assert!(passed.is_ok());
    let seen = bench.guardian.seen.lock().unwrap().last().cloned().unwrap();
    assert_eq!(seen, (INBOUND, json!({"jsonrpc": "2.0", "result": result})));
    deny(&bench, INBOUND);
    let (passed, _) = bench.pipeline.inspect_message(&call, candidate, &result, Freshness::Newest).await;
    assert_eq!(passed.unwrap_err().code(), Code::PolicyDenied);
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}
