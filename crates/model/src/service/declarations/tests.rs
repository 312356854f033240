//! What a definition declares is read as typed values, written back as it was, and refused where it cannot be meant.

use serde_json::json;

use super::*;
use crate::descriptor::{ApprovalNeed, Egress, Hint, ReplayPolicy};

fn with_tool(tool: Value) -> Value {
    json!({"service": "shop", "version": "1", "tools": {"orders.make": tool}})
}

fn read(definition: &Value) -> ToolDefinition {
    ServiceDefinition::from_json(definition).unwrap().tools.pop_first().unwrap().1
}

fn refusal(definition: &Value) -> String {
    ServiceDefinition::from_json(definition).unwrap_err().to_string()
}

#[test]
fn declarations_are_read_and_written_back_as_they_were() {
    let declared = json!({
        "title": "Order", "scope": "orders.make", "safety_tier": "read", "required_scopes": ["shop:buy", "tools:shop"],
        "approval": "always", "egress": "safe-fetch", "replay_policy": "deterministic", "cost_hint": "low",
        "latency_hint": "high", "rate_limit": {"requests": 10, "per_seconds": 60, "burst": 3}, "idempotent": false
    });
    let tool = read(&with_tool(declared.clone()));
    assert_eq!((tool.title.as_ref().map(|title| title.as_str()), tool.tier()), (Some("Order"), SafetyTier::Read));
    let scopes: Vec<_> = tool.required_scopes.iter().flatten().map(RequiredScope::as_str).collect();
    assert_eq!(scopes, ["shop:buy", "tools:shop"]);
    assert_eq!((tool.approval, tool.egress), (Some(ApprovalNeed::Always), Some(Egress::SafeFetch)));
    assert_eq!(tool.replay_policy, Some(ReplayPolicy::Deterministic));
    assert_eq!((tool.cost_hint, tool.latency_hint), (Some(Hint::Low), Some(Hint::High)));
    assert_eq!(tool.rate_limit, Some(RateLimit::new(10, 60, Some(3)).unwrap()));
    assert_eq!(tool.to_json(), declared);
}

#[test]
fn what_is_not_declared_stays_undeclared_and_unwritten() {
    let definition = ServiceDefinition::from_json(&with_tool(json!({"safety_tier": null}))).unwrap();
    assert_eq!(definition.source, SourceKind::Connector);
    let expected = with_tool(json!({"scope": "orders.make", "idempotent": false}));
    assert_eq!(definition.to_json(), expected);
    let tool = read(&expected);
    assert_eq!(tool, ToolDefinition::of_scope(tool.scope.clone()));
    assert_eq!((tool.safety_tier, tool.tier()), (None, SafetyTier::Write));
    // To need no scope is something that can be declared.
    assert_eq!(read(&with_tool(json!({"required_scopes": []}))).required_scopes, Some(BTreeSet::new()));
}

#[test]
fn the_burst_of_a_limit_is_all_of_its_requests_where_it_is_not_given() {
    let limit = |limit: Value| read(&with_tool(json!({"rate_limit": limit}))).rate_limit.unwrap();
    assert_eq!(limit(json!({"requests": 5, "per_seconds": 1})), RateLimit::new(5, 1, Some(5)).unwrap());
    assert_eq!(limit(json!({"requests": 5, "per_seconds": 1, "burst": 9})).burst(), 9);
}

#[test]
fn exec_is_for_host_extensions() {
    let exec = with_tool(json!({"safety_tier": "exec"}));
    let expected = "`tools.orders.make.safety_tier` must not be exec unless the service has `source: host-extension`";
    let error = refusal(&exec);
    assert!(error.starts_with(expected), "{error}");
    let mut declared = exec.clone();
    declared["source"] = json!("connector");
    assert!(refusal(&declared).starts_with(expected));
    declared["source"] = json!("host-extension");
    let definition = ServiceDefinition::from_json(&declared).unwrap();
    assert_eq!(definition.source, SourceKind::HostExtension);
    assert_eq!(ServiceDefinition::from_json(&definition.to_json()), Ok(definition));
}

#[test]
fn a_definition_describes_connectors_host_extensions_and_mounted_servers_only() {
    for other in ["node-pack", "workflow"] {
        let definition = json!({"service": "a", "version": "1", "tools": {}, "source": other});
        let expected =
            format!("`source` must be connector, host-extension or mcp: tools of source {other} have no definition");
        assert_eq!(refusal(&definition), expected);
    }
    let definition = json!({"service": "a", "version": "1", "tools": {}, "source": "shell"});
    assert_eq!(refusal(&definition), "`source` must be one of connector, host-extension, mcp");
}

#[test]
fn a_declaration_that_cannot_be_meant_is_refused_with_its_place() {
    let limit = |limit: Value| json!({"rate_limit": limit});
    let many: Vec<String> = (0..65).map(|number| format!("scope{number}")).collect();
    let cases = [
        (json!({"title": "a\nb"}), "title` must not contain"),
        (json!({"safety_tier": "admin"}), "safety_tier` must be one of pure, read, write, exec"),
        (json!({"approval": true}), "approval` must be one of never, conditional, always"),
        (json!({"egress": "direct"}), "egress` must be one of none, safe-fetch, host-mediated, host-owned"),
        (json!({"egress": "none"}), "egress` must not be none"),
        (
            json!({"replay_policy": "safe"}),
            "replay_policy` must be one of deterministic, idempotent, non-deterministic",
        ),
        (json!({"cost_hint": "free"}), "cost_hint` must be one of low, medium, high"),
        (json!({"latency_hint": 3}), "latency_hint` must be one of low, medium, high"),
        (json!({"required_scopes": "a"}), "required_scopes` must be a list"),
        (json!({"required_scopes": ["a", "b:*"]}), "required_scopes.1` must not contain *"),
        (json!({"required_scopes": ["a b"]}), "required_scopes.0` must consist of segments"),
        (json!({"required_scopes": many}), "required_scopes` has more than 64"),
        (limit(json!(5)), "rate_limit` must be an object"),
        (limit(json!({"requests": 5})), "rate_limit.per_seconds` is missing"),
        (limit(json!({"per_seconds": 5})), "rate_limit.requests` is missing"),
        (limit(json!({"requests": 5, "per_second": 1})), "rate_limit.per_second` is unknown"),
        (limit(json!({"requests": 0, "per_seconds": 1})), "rate_limit.requests` must be an integer"),
        (limit(json!({"requests": 1.5, "per_seconds": 1})), "rate_limit.requests` must be an integer"),
        (limit(json!({"requests": 5, "per_seconds": 1, "burst": 0})), "rate_limit.burst` must be an integer"),
        (limit(json!({"requests": 5, "per_seconds": 86_401})), "rate_limit.per_seconds` must be at most 86400"),
        (limit(json!({"requests": 5, "per_seconds": 1, "burst": u64::MAX})), "rate_limit` is invalid: burst must be"),
    ];
    for (tool, expected) in cases {
        let error = refusal(&with_tool(tool));
        assert!(error.starts_with(&format!("`tools.orders.make.{expected}")), "{error}");
    }
}
