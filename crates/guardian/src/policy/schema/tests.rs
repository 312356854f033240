//! Schemas of catalogs, and rules that are right or wrong by them.

use std::sync::Arc;

use cedar_policy::{PolicySet, ValidationMode, ValidationWarning, Validator};
use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_model::scope::Scope;
use toolgate_model::service::ToolDefinition;

use super::*;

fn tool(name: &str, parameters: Option<Value>) -> PolicyTool {
    let mut definition = ToolDefinition::of_scope(Scope::parse("some.scope").unwrap());
    definition.parameters = parameters;
    let service = name.split('.').next().unwrap().to_owned();
    PolicyTool { name: name.to_owned(), service, definition: Arc::new(definition) }
}

fn catalog() -> Vec<PolicyTool> {
    let charge = json!({
        "type": "object",
        "properties": {
            "amount": {"type": "integer"}, "currency": {"type": "string"}, "fee": {"type": "number"},
            "customer": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}},
            "address": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            "metadata": {"type": "object", "additionalProperties": {"type": "string"}}
        },
        "required": ["amount", "currency"]
    });
    let read = json!({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]});
    vec![
        tool("payments.charges.create", Some(charge)),
        tool("payments.charges.read", Some(read.clone())),
        tool("payments.refunds.read", Some(read)),
        tool("shop.search", Some(json!({"type": "object", "properties": {"title": {"type": "string"}}}))),
        tool("shop.count", Some(json!({"type": "object", "properties": {"title": {"type": "integer"}}}))),
        tool("shop.anything", None),
    ]
}

/// What is wrong with some rules: nothing, that they never apply, or an error.
fn judged(validator: &Validator, rules: &str) -> &'static str {
    let rules: PolicySet = rules.parse().unwrap_or_else(|error| panic!("{rules}: {error}"));
    let result = validator.validate(&rules, ValidationMode::Strict);
    result.validation_errors().for_each(|error| println!("{error}"));
    let never = result.validation_warnings().any(|warning| matches!(warning, ValidationWarning::ImpossiblePolicy(_)));
    match (result.validation_passed(), never) {
        (false, _) => "error",
        (true, true) => "never",
        (true, false) => "right",
    }
}

#[test]
fn rules_about_what_does_not_exist_are_wrong_and_the_small_schema_agrees() {
    let create = r#"action == Action::"call:payments.charges.create""#;
    let table = [
        (format!("forbid(principal, {create}, resource) when {{ context.arguments.amount > 50000 }};"), "right"),
        (format!("forbid(principal, {create}, resource) when {{ context.arguments.amuont > 50000 }};"), "error"),
        (format!("forbid(principal, {create}, resource) when {{ context.arguments has amuont }};"), "never"),
        (format!("forbid(principal, {create}, resource) when {{ context.arguments.amount like \"5*\" }};"), "error"),
        (format!("forbid(principal, {create}, resource) when {{ context.arguments.customer == \"c\" }};"), "error"),
        (
            format!(
                "forbid(principal, {create}, resource) when {{ context.arguments has fee && \
                 context.arguments.fee.greaterThan(decimal(\"1.5\")) }};"
            ),
            "right",
        ),
        (
            format!(
                "forbid(principal, {create}, resource) when {{ context.arguments has metadata && \
                 context.arguments.metadata like \"*secret*\" }};"
            ),
            "right",
        ),
        (
            format!(
                "forbid(principal, {create}, resource) when {{ context.arguments has address.city && \
                 context.arguments.address.city == \"Bern\" }};"
            ),
            "right",
        ),
        (format!("forbid(principal, {create}, resource) when {{ context.arguments == {{\"amount\": 1}} }};"), "error"),
        (r#"forbid(principal, action == Action::"call:payments.charges.crate", resource);"#.to_owned(), "error"),
        (r#"forbid(principal, action == Action::"hook:a2a_sent", resource);"#.to_owned(), "error"),
        (r#"forbid(principal, action in Action::"call", resource is Service);"#.to_owned(), "never"),
        (r#"forbid(principal, action in Action::"call", resource) when { resource.risk == "x" };"#.to_owned(), "error"),
        (
            r#"forbid(principal, action in Action::"call", resource) when { context.result.isError };"#.to_owned(),
            "error",
        ),
        (
            r#"forbid(principal, action in Action::"call", resource)
               when { context.arguments has id && context.arguments.id == "x" };"#
                .to_owned(),
            "right",
        ),
        // One tool has a number of that name.
        (
            r#"forbid(principal, action in Action::"call", resource)
               when { context.arguments has title && context.arguments.title like "*x*" };"#
                .to_owned(),
            "error",
        ),
        (
            r#"forbid(principal, action in [Action::"call:shop.search", Action::"call:external"], resource)
               when { context.arguments has title && context.arguments.title like "*x*" };"#
                .to_owned(),
            "right",
        ),
    ];
    let whole = Validator::new(schema(&catalog()).unwrap());
    for (rules, expected) in &table {
        assert_eq!(judged(&whole, rules), *expected, "{rules}");
        let small = Validator::new(schema_about(&catalog(), &rules.parse().unwrap()).unwrap());
        assert_eq!(judged(&small, rules), *expected, "by the small schema: {rules}");
    }
}

#[test]
fn everything_that_rules_are_promised_to_see_is_there() {
    let everywhere = r#"
        context has reasoning && context.reasoning like "*" && context has session && context.session == "s" &&
        context has run && context.run == "r" && context has user && context.user == "u" &&
        context.actor.kind == "agent" && context.dialect == "aos" && context.marks.contains("untrusted") &&
        context.detected.contains("email") && context.spent.today.lessThan(decimal("5.0")) &&
        context.spent.run.lessThan(decimal("5.0")) && context.calls.today < 5 && context.calls.run < 5 &&
        context.time.now < datetime("2030-01-01") && context.time.hour >= 8 && context.time.minute > 0 &&
        context.time.weekday == "monday" && context.time.date == "2026-01-01" &&
        context.address.isInRange(ip("10.0.0.0/8")) && principal.id == "a" && principal.kind == "agent" &&
        principal.labels.contains("l") && principal.scopes.contains("s") && principal in Label::"trusted""#;
    let of_tools = r#"context.argumentsText like "*x*" && resource in Service::"shop" && resource in Label::"private" &&
        resource.name == "shop.search" && resource.service == "shop" && resource.tier == "write" &&
        resource.egress == "none" && resource.labels.contains("l") && resource.idempotent && !resource.external"#;
    let of_results = r#"context.result.text like "*x*" && !context.result.isError"#;
    let of_hooks = r#"context.text like "*x*" && context has method && context.method == "tools/list" &&
        context has tool && context.tool == "t""#;
    let validator = Validator::new(schema(&catalog()).unwrap());
    for rules in [
        format!("forbid(principal, action in Action::\"call\", resource) when {{ {everywhere} && {of_tools} }};"),
        format!(
            "forbid(principal, action in Action::\"result\", resource) \
             when {{ {everywhere} && {of_tools} && {of_results} }};"
        ),
        format!("forbid(principal, action in Action::\"hook\", resource) when {{ {everywhere} && {of_hooks} }};"),
        "forbid(principal, action == Action::\"hook:user_message\", resource == Hook::\"user_message\");".to_owned(),
        "forbid(principal, action == Action::\"result:external\", resource) when { resource.external };".to_owned(),
    ] {
        assert_eq!(judged(&validator, &rules), "right", "{rules}");
    }
}

#[test]
fn names_that_cedar_reserves_or_cannot_write_are_quoted() {
    let names = [
        "true",
        "if",
        "in",
        "is",
        "has",
        "like",
        "__cedar",
        "__cedar::x",
        "type",
        "Set",
        "Long",
        "context",
        "action",
        "order id",
        "a-b",
        "1st",
        "",
        "\"",
        "\\",
        "a\nb",
        "//",
        "é",
        "\u{2028}",
        "principal",
        "entity",
        "ünd",
    ];
    let properties: serde_json::Map<String, Value> =
        names.iter().map(|&name| (name.to_owned(), json!({"type": "string"}))).collect();
    let parameters = json!({"type": "object", "properties": properties, "required": names});
    let tools = [tool("a.b-c", Some(parameters)), tool("a.b.c", None), tool("a.b:c", None), tool("a@b.c_2", None)];
    let validator = Validator::new(schema(&tools).unwrap_or_else(|error| panic!("{error}")));
    for name in names {
        let rules = format!(
            "forbid(principal, action == Action::\"call:a.b-c\", resource) \
             when {{ context.arguments[{name:?}] == \"\" }};"
        );
        assert_eq!(judged(&validator, &rules), "right", "{name:?}");
    }
}

#[test]
fn tools_that_rules_could_not_tell_apart_are_refused() {
    let twice = [tool("a.b", None), tool("a.b", None)];
    assert_eq!(schema(&twice).err(), Some(SchemaProblem::Twice("a.b".to_owned())));
    assert_eq!(schema(&[tool("external", None)]).err(), Some(SchemaProblem::Reserved));
    assert_eq!(schema_about(&twice, &PolicySet::new()).err(), Some(SchemaProblem::Twice("a.b".to_owned())));
}

#[test]
fn an_empty_catalog_has_a_schema() {
    let rules = "forbid(principal, action in Action::\"call\", resource) when { context.argumentsText like \"*x*\" };";
    assert_eq!(judged(&Validator::new(schema(&[]).unwrap()), rules), "right");
}

#[test]
fn the_small_schema_keeps_one_of_the_tools_that_look_alike() {
    let rules: PolicySet =
        "forbid(principal, action in Action::\"call\", resource) when { context.arguments has id };".parse().unwrap();
    let kept = relevance::relevant(&catalog(), &rules).into_iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
    assert_eq!(kept, ["payments.charges.create", "payments.charges.read"]);
    let whole: PolicySet =
        "forbid(principal, action in Action::\"call\", resource) when { [context.arguments].isEmpty() };"
            .parse()
            .unwrap();
    assert_eq!(relevance::relevant(&catalog(), &whole).len(), catalog().len());
}

/// Schemas of all kinds, some of which make no sense.
fn any_schema() -> impl Strategy<Value = Value> {
    let name = prop_oneof!["[a-z]{1,3}", "\\PC{0,4}", Just("in".to_owned())];
    let kind = prop::sample::select(vec!["string", "integer", "number", "boolean", "null", "array", "object"]);
    let leaf = prop_oneof![
        kind.clone().prop_map(|kind| json!({"type": kind})),
        prop::collection::vec(kind, 0..3).prop_map(|kinds| json!({"type": kinds})),
        any::<bool>().prop_map(Value::from),
        prop::sample::select(vec!["#", "#/properties/a", "#/nowhere"]).prop_map(|to| json!({"$ref": to})),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let members = prop::collection::btree_map(name.clone(), inner.clone(), 1..4);
        let several = prop::collection::vec(inner.clone(), 1..4);
        let keyword = prop::sample::select(vec!["allOf", "anyOf", "oneOf"]);
        prop_oneof![
            members.prop_map(|members| {
                let required: Vec<&String> = members.keys().take(1).collect();
                json!({"type": "object", "required": required, "properties": members})
            }),
            inner.prop_map(|items| json!({"type": "array", "items": items})),
            (keyword, several).prop_map(|(keyword, schemas)| json!({keyword: schemas})),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn whatever_tools_take_cedar_has_a_schema_of_it(schemas in prop::collection::vec(any_schema(), 1..12)) {
        let of = |(position, parameters)| tool(&format!("service.tool{position}"), Some(parameters));
        let tools: Vec<PolicyTool> = schemas.into_iter().enumerate().map(of).collect();
        prop_assert_eq!(schema(&tools).map(drop), Ok(()), "{}", schema_text(&tools));
    }
}
