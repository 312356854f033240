//! What is written is read back as the same.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::*;
use crate::grant::Authority;
use crate::permission::Permission;
use crate::principal::{Principal, TenantId};
use crate::scope::ScopeSet;
use crate::workflow::members::Problems;
use crate::workflow::tree::Node;

fn text() -> impl Strategy<Value = String> {
    let odd = select(vec![
        "",
        "yes",
        "null",
        "~",
        "1",
        "0x1",
        "1e3",
        "- a",
        "a: b",
        "a #b",
        "a\nb\n",
        "a\n\nb",
        " a\nb",
        "a\n b\n",
        "a \nb\n",
        "\n",
        "\n\n",
        "a\r\nb",
        "\t",
        "tools:mail:send",
        "a:",
        "&a",
        "*a",
        "!a",
        "%a",
        "@a",
        "`a`",
        "\"q\"",
        "'q'",
        "|",
        "a\u{85}b",
        "\u{2028}",
        "\u{feff}x",
        "\u{7f}",
        "ü",
        "😀",
        "[a]",
        "{a}",
        "a,b",
        "?",
        "<<",
        "...",
        "---",
        "a\n---\nb\n",
        "NaN",
        ".inf",
        "2024-01-01",
        "12:30",
        "on",
        "#",
        "a\\b",
        "\u{0}",
    ])
    .prop_map(str::to_owned);
    prop_oneof![odd, "[ -~\n]{0,20}", any::<String>()]
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<u64>().prop_map(serde_json::Value::from),
        (-1.0e15..1.0e15_f64).prop_map(|number| serde_json::Value::from((number * 100.0).round() / 100.0)),
        text().prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
            prop::collection::btree_map(text(), inner, 0..5)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn every_value_is_read_back_as_it_was_written(
        members in prop::collection::btree_map(text().prop_filter("merge key", |name| name != "<<"), value(), 1..4)
    ) {
        let has_merge_key = serde_json::to_string(&members).unwrap().contains("\"<<\":");
        prop_assume!(!has_merge_key);
        let listed: Vec<(&str, serde_json::Value)> =
            members.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let text = to_yaml(&listed);
        let mut found = Problems::default();
        let node = Node::parse(&text, &mut found.0);
        prop_assert_eq!(&found.0, &[], "{}", text);
        let expected = serde_json::Value::Object(members.into_iter().collect());
        prop_assert_eq!(node.unwrap().to_json(), expected, "{}", text);
    }

    #[test]
    fn exported_agents_and_grants_declare_what_they_are(
        permissions in subsequence(Permission::ALL.to_vec(), 0..4),
        scopes in subsequence(vec!["charges.read", "charges.create", "refunds.create"], 0..3),
        delegatable in any::<bool>(),
        depth in select(vec![DelegationDepth::Limited(0), DelegationDepth::Limited(1), DelegationDepth::Limited(3), DelegationDepth::Unlimited]),
        end in prop::option::of(0_i64..4_000_000_000_000),
        constraints in select(vec![
            json!({}),
            json!({"max_invocations_per_hour": 5, "allowed_parameters": {"amount_max": 10, "currency": ["usd", "yes"]}}),
            json!({"denied_parameters": {"note": {"pattern": ".*: #x"}}, "allowed_hosts": ["a.example"], "ip_allowlist": []}),
        ]),
    ) {
        let tenant = TenantId::default_tenant();
        let id = PrincipalId::parse("billing").unwrap();
        let created = Timestamp::EPOCH;
        let mut principal = Principal::new(tenant, id.clone(), PrincipalKind::Agent, permissions.into_iter().collect(), created);
        principal.name = Some(Line::parse("on: #1").unwrap());
        let authority = Authority {
            scopes: scopes.into_iter().map(|scope| Scope::parse(scope).unwrap()).collect(),
            constraints: Constraints::from_json(&constraints).unwrap(),
            context: GrantContext::default(),
            delegatable,
            delegation_depth: depth,
            expires_at: end.map(|end| Timestamp::from_millis(end).unwrap()),
        };
        let mut document = Document { vault: Some("main".to_owned()), ..Document::default() };
        document.add_agent(&principal, &[]);
        document.add_grant(&id, &authority, GrantPlace { service: "stripe".to_owned(), ..GrantPlace::default() });
        let (name, version) = (WorkflowName::parse("w").unwrap(), WorkflowVersion::parse("1").unwrap());
        let workflow = read(&document.to_text(&name, &version));
        let mut again = Principal::new(principal.tenant.clone(), id, PrincipalKind::Agent, [].into_iter().collect(), created);
        workflow.agents[0].attributes.apply(&mut again);
        again.revision = principal.revision;
        prop_assert_eq!(again, principal);
        let grant = &workflow.grants[0];
        let scopes: ScopeSet = grant.scopes.iter().map(|scope| scope.value.clone()).collect();
        let usual = DelegationDepth::Limited(u32::from(grant.delegatable));
        let read_back = Authority {
            scopes,
            constraints: grant.constraints.clone(),
            context: grant.context.clone(),
            delegatable: grant.delegatable,
            delegation_depth: grant.delegation_depth.unwrap_or(usual),
            expires_at: grant.expires_at.unwrap(),
        };
        prop_assert_eq!(read_back, authority);
    }
}

#[test]
fn the_plan_of_a_file_is_written_as_it_was_read() {
    let workflow = read(RFC);
    let plan = workflow.plan.clone().map(|plan| plan.value);
    let document = Document { plan, ..Document::default() };
    let again = read(&document.to_text(&workflow.name.value, &workflow.version.value));
    let json = |workflow: &Workflow| workflow.plan.as_ref().unwrap().value.to_json();
    assert_eq!(json(&again), json(&workflow));
}

#[test]
fn a_document_looks_as_if_a_person_had_written_it() {
    let members = [
        ("name", json!("w")),
        ("version", json!("1.0")),
        ("services", json!([{"service": "s", "tools": {"a.b": {"http": {"method": "GET", "path": "/x/{id}"}}}}])),
        ("policies", json!({"a.cedar": "forbid (x);\n// end\n"})),
        ("plan", json!([{"task": "a", "depends_on": ["b", "yes"], "outputs": []}])),
    ];
    let expected = "\
name: w
version: \"1.0\"

services:
  - service: s
    tools:
      a.b:
        http:
          method: GET
          path: \"/x/{id}\"

policies:
  a.cedar: |
    forbid (x);
    // end

plan:
  - task: a
    depends_on: [b, \"yes\"]
    outputs: []
";
    assert_eq!(to_yaml(&members), expected);
}
