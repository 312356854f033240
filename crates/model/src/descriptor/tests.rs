//! The rules of RFC 0078 §C on what is made here, and that what breaks them cannot be made.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::*;
use crate::schema::Schema;
use crate::service::ServiceDefinition;

/// Members that no descriptor has, as they would carry what they are named after.
const SECRETS: [&str; 6] = ["apiKey", "credential", "credentials", "password", "secret", "token"];

fn service(name: &str) -> ServiceName {
    ServiceName::parse(name).unwrap()
}

fn tool(name: &str) -> ToolName {
    ToolName::parse(name).unwrap()
}

/// The descriptors of all tools of a definition.
fn described(definition: &Value) -> Vec<ToolDescriptor> {
    let definition = ServiceDefinition::from_json(definition).unwrap();
    let (service, source) = (&definition.service, definition.source);
    let describe = |(name, tool)| ToolDescriptor::of_connector(service, source, name, tool).unwrap();
    definition.tools.iter().map(describe).collect()
}

fn with_tool(tool: Value) -> Value {
    json!({"service": "stripe", "version": "1", "tools": {"charges.create": tool}})
}

fn described_tool(tool: Value) -> Value {
    json!(described(&with_tool(tool))[0])
}

fn fields(id: &str, source: SourceKind, safety_tier: SafetyTier) -> DescriptorFields {
    DescriptorFields {
        tool_id: ToolId::parse(id).unwrap(),
        source,
        title: None,
        description: None,
        input_schema: None,
        output_schema: None,
        auth: None,
        egress: None,
        approval: None,
        replay_policy: None,
        safety_tier,
        cost_hint: None,
        latency_hint: None,
    }
}

fn conforms(descriptor: &Value) -> bool {
    let schema = Schema::compile(&ToolDescriptor::schema()).unwrap();
    let has_secret = descriptor.as_object().unwrap().keys().any(|name| SECRETS.contains(&name.as_str()));
    schema.check(descriptor).is_ok() && !has_secret
}

#[test]
fn a_tool_that_declares_everything_is_described_in_full() {
    let declared = described_tool(json!({
        "title": "Charge", "description": "Charge a card", "safety_tier": "write",
        "required_scopes": ["tools:pay", "billing:write"], "approval": "conditional", "egress": "host-mediated",
        "replay_policy": "non-deterministic", "cost_hint": "high", "latency_hint": "low",
        "rate_limit": {"requests": 5, "per_seconds": 60},
        "parameters": {"amount": {"type": "integer", "required": true}}, "returns": {"id": "string"},
        "estimated_cost_usd": 0.02
    }));
    let expected = json!({
        "toolId": "connector:stripe.charges.create", "source": "connector", "title": "Charge",
        "description": "Charge a card",
        "inputSchema": {
            "type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"],
            "additionalProperties": false
        },
        "outputSchema": {"type": "object", "properties": {"id": {"type": "string"}}},
        "auth": {"scopes": ["billing:write", "tools:pay"], "credentialRef": true},
        "egress": "host-mediated", "approval": "conditional", "replayPolicy": "non-deterministic",
        "safetyTier": "write", "costHint": "high", "latencyHint": "low"
    });
    assert_eq!(declared, expected);
    assert!(conforms(&declared));
}

#[test]
fn what_is_not_declared_is_never_taken_to_be_harmless() {
    let expected = json!({
        "toolId": "connector:stripe.charges.create", "source": "connector", "auth": {"credentialRef": true},
        "egress": "host-mediated", "safetyTier": "write"
    });
    assert_eq!(described_tool(json!({})), expected);
    let idempotent = described_tool(json!({"idempotent": true}));
    assert_eq!((&idempotent["replayPolicy"], &idempotent["safetyTier"]), (&json!("idempotent"), &json!("write")));
    let stated = described_tool(json!({"idempotent": true, "replay_policy": "non-deterministic"}));
    assert_eq!(stated["replayPolicy"], "non-deterministic");
}

#[test]
fn the_members_always_stand_in_the_same_order() {
    let full = json!({
        "title": "a", "description": "b", "parameters": {}, "returns": {}, "approval": "never", "cost_hint": "low",
        "replay_policy": "deterministic", "latency_hint": "low"
    });
    let text = serde_json::to_string(&described(&with_tool(full))[0]).unwrap();
    let order = [
        "toolId",
        "source",
        "title",
        "description",
        "inputSchema",
        "outputSchema",
        "auth",
        "egress",
        "approval",
        "replayPolicy",
        "safetyTier",
        "costHint",
        "latencyHint",
    ];
    let places: Vec<usize> = order.iter().map(|name| text.find(&format!("\"{name}\":")).unwrap()).collect();
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn only_a_host_extension_may_run_commands() {
    let shell = json!({
        "service": "acme", "version": "1", "source": "host-extension",
        "tools": {"shell": {"safety_tier": "exec", "approval": "always", "egress": "host-owned"}}
    });
    let expected = json!({
        "toolId": "x-host-acme:shell", "source": "host-extension", "auth": {"credentialRef": true},
        "egress": "host-owned", "approval": "always", "safetyTier": "exec"
    });
    let descriptor = json!(described(&shell)[0]);
    assert_eq!(descriptor, expected);
    assert!(conforms(&descriptor));

    for (id, source) in [
        ("openwop:run-shell", SourceKind::NodePack),
        ("openwop:run-shell", SourceKind::Workflow),
        ("mcp:acme.shell", SourceKind::Mcp),
        ("connector:acme.shell", SourceKind::Connector),
    ] {
        let error = ToolDescriptor::new(fields(id, source, SafetyTier::Exec)).unwrap_err();
        assert!(matches!(error, DescriptorError::Exec { .. }), "{error}");
        assert!(!conforms(&json!(fields(id, source, SafetyTier::Exec))), "the schema says so too");
        assert!(ToolDescriptor::new(fields(id, source, SafetyTier::Write)).is_ok());
    }
    // The same by the way that the registry takes.
    let mut by_hand = ToolDefinition::of_scope(crate::scope::Scope::parse("shell").unwrap());
    by_hand.safety_tier = Some(SafetyTier::Exec);
    let made = |source| ToolDescriptor::of_connector(&service("acme"), source, &tool("shell"), &by_hand);
    assert!(made(SourceKind::HostExtension).is_ok());
    for &(_, source) in SourceKind::WORDS.iter().filter(|(_, source)| *source != SourceKind::HostExtension) {
        assert!(made(source).is_err(), "{source}");
    }
}

#[test]
fn an_id_belongs_to_its_source() {
    for (id, source) in [
        ("openwop:run-shell", SourceKind::HostExtension),
        ("openwop:http.fetch", SourceKind::Connector),
        ("connector:a.b", SourceKind::Mcp),
        ("mcp:a.b", SourceKind::Connector),
        ("x-host-a:b", SourceKind::Connector),
    ] {
        let error = ToolDescriptor::new(fields(id, source, SafetyTier::Read)).unwrap_err();
        assert!(matches!(error, DescriptorError::Id { .. }), "{error}");
    }
}

#[test]
fn a_tool_that_is_built_in_needs_no_credential() {
    let scopes = BTreeSet::from([RequiredScope::parse("http:fetch").unwrap()]);
    let fetch = ToolDescriptor::new(DescriptorFields {
        auth: Some(ToolAuth { scopes, credential_ref: false }),
        egress: Some(Egress::SafeFetch),
        ..fields("openwop:http.fetch", SourceKind::NodePack, SafetyTier::Write)
    });
    let expected = json!({
        "toolId": "openwop:http.fetch", "source": "node-pack",
        "auth": {"scopes": ["http:fetch"], "credentialRef": false}, "egress": "safe-fetch", "safetyTier": "write"
    });
    assert_eq!(json!(fetch.unwrap()), expected);
    assert!(conforms(&expected));
}

#[test]
fn a_schema_that_is_no_object_is_refused() {
    let wrong = DescriptorFields {
        input_schema: Some(json!(true)),
        ..fields("openwop:http.fetch", SourceKind::NodePack, SafetyTier::Write)
    };
    let error = ToolDescriptor::new(wrong).unwrap_err();
    assert_eq!(error.to_string(), "the inputSchema of `openwop:http.fetch` must be an object");
}

#[test]
fn the_schema_of_descriptors_is_closed() {
    let good = json!({"toolId": "mcp:fs.read", "source": "mcp", "safetyTier": "read"});
    assert!(conforms(&good));
    let with = |name: &str, value: Value| {
        let mut changed = good.clone();
        changed[name] = value;
        changed
    };
    for required in ["toolId", "source", "safetyTier"] {
        let mut missing = good.clone();
        missing.as_object_mut().unwrap().remove(required);
        assert!(!conforms(&missing), "{required}");
    }
    let cases = [
        ("toolId", json!("")),
        ("source", json!("shell")),
        ("safetyTier", json!("admin")),
        ("safetyTier", json!("exec")),
        ("egress", json!("direct")),
        ("approval", json!(true)),
        ("replayPolicy", json!("cached")),
        ("costHint", json!("free")),
        ("latencyHint", json!(3)),
        ("inputSchema", json!(true)),
        ("outputSchema", json!([])),
        ("auth", json!({"scopes": ["a", "a"]})),
        ("auth", json!({"credentialRef": "sk_live"})),
        ("auth", json!({"token": "x"})),
        ("version", json!("1")),
    ];
    for (name, value) in cases {
        assert!(!conforms(&with(name, value.clone())), "{name}: {value}");
    }
    for secret in SECRETS {
        assert!(!conforms(&with(secret, json!("x"))), "{secret}");
    }
}

#[test]
fn every_word_is_read_back_as_itself() {
    macro_rules! check {
        ($($vocabulary:ident)+) => {$(
            for &(word, meaning) in $vocabulary::WORDS {
                assert_eq!((meaning.as_str(), $vocabulary::parse(word)), (word, Some(meaning)));
                assert_eq!(serde_json::from_value::<$vocabulary>(json!(meaning)).unwrap(), meaning);
                assert_eq!(json!(meaning), json!(word));
            }
            assert_eq!($vocabulary::parse("other"), None);
        )+};
    }
    check! { SourceKind SafetyTier Egress ApprovalNeed ReplayPolicy Hint }
    assert!(SafetyTier::Pure < SafetyTier::Read && SafetyTier::Write < SafetyTier::Exec);
}

#[test]
fn ids_say_where_a_tool_is_found() {
    let cases = [
        ("connector:stripe.charges.create", SourceKind::Connector, "stripe", "charges.create"),
        ("connector:a~b.c", SourceKind::Connector, "a.b", "c"),
        ("connector:a:b.c:d", SourceKind::Connector, "a:b", "c:d"),
        ("mcp:fs.read", SourceKind::Mcp, "fs", "read"),
        ("x-host-acme:shell.run", SourceKind::HostExtension, "acme", "shell.run"),
        ("x-host-a.b~c:d:e", SourceKind::HostExtension, "a.b:c", "d:e"),
    ];
    for (id, source, of, name) in cases {
        let parts = Some((source, service(of), tool(name)));
        assert_eq!(ToolId::of_service(source, &service(of), &tool(name)).unwrap().as_str(), id);
        assert_eq!(ToolId::parse(id).unwrap().service_and_tool(), parts, "{id}");
    }
    assert_eq!(ToolId::core(&tool("http.fetch")).as_str(), "openwop:http.fetch");
    assert_eq!(ToolId::parse("openwop:http.fetch").unwrap().service_and_tool(), None);
    for bad in [
        "",
        "stripe",
        "stripe.charges.create",
        "other:a.b",
        "connector:",
        "connector:a",
        "connector:.a",
        "connector:a.",
        "connector:a.b~c",
        "connector:a/b.c",
        "mcp:a",
        "x-host-:a",
        "x-host-a",
        "openwop:",
        "openwop:a b",
        "Connector:a.b",
    ] {
        assert_eq!(ToolId::parse(bad), Err(ToolIdError), "{bad}");
    }
}

fn name() -> impl Strategy<Value = String> {
    "[ab.:@_-]{1,6}"
}

proptest! {
    #[test]
    fn different_tools_have_different_ids(first in (name(), name()), second in (name(), name())) {
        for source in [SourceKind::Connector, SourceKind::Mcp, SourceKind::HostExtension] {
            let id = |(of, name): &(String, String)| ToolId::of_service(source, &service(of), &tool(name)).unwrap();
            prop_assert_eq!(first == second, id(&first) == id(&second));
            prop_assert_eq!(ToolId::parse(id(&first).as_str()), Ok(id(&first)));
            let parts = Some((source, service(&first.0), tool(&first.1)));
            prop_assert_eq!(id(&first).service_and_tool(), parts);
        }
    }

    #[test]
    fn whatever_can_be_made_conforms(
        source in select(SourceKind::WORDS), tier in select(SafetyTier::WORDS), egress in select(Egress::WORDS),
        id in select(vec!["openwop:a", "mcp:a.b", "connector:a.b", "x-host-a:b"]),
    ) {
        let members = DescriptorFields { egress: Some(egress.1), ..fields(id, source.1, tier.1) };
        if let Ok(descriptor) = ToolDescriptor::new(members) {
            prop_assert!(conforms(&json!(descriptor)));
            prop_assert!(tier.1 != SafetyTier::Exec || source.1 == SourceKind::HostExtension);
        }
    }
}
