//! What holds for all rules and all events.

use cedar_policy::{Authorizer, PolicySet, Request};
use proptest::prelude::*;
use proptest::sample::select;

use super::super::reads::Reads;
use super::*;
use crate::detector::{DetectorKind, Detectors};

const PRINCIPALS: &[&str] = &[
    "principal",
    "principal == Principal::\"bot\"",
    "principal == Principal::\"other\"",
    "principal in Label::\"a\"",
    "principal in Label::\"b\"",
    "principal is Principal",
    "principal is Principal in Label::\"a\"",
    "principal is Tool",
    "principal in Principal::\"bot\"",
];
const ACTIONS: &[&str] = &[
    "action",
    "action in Action::\"call\"",
    "action == Action::\"call:mail.send\"",
    "action in Action::\"result\"",
    "action in [Action::\"result\", Action::\"call:mail.send\"]",
    "action == Action::\"call\"",
    "action in []",
    "action == Action::\"call:mail.list\"",
    "action in Action::\"hook\"",
];
const RESOURCES: &[&str] = &[
    "resource",
    "resource == Tool::\"mail.send\"",
    "resource == Tool::\"mail.list\"",
    "resource in Service::\"mail\"",
    "resource in Service::\"bank\"",
    "resource in Label::\"a\"",
    "resource is Tool in Label::\"b\"",
    "resource is Hook",
    "resource in Tool::\"mail.send\"",
];
const CONDITIONS: &[&str] = &[
    "true",
    "false",
    "context.arguments has amount && context.arguments.amount > 5",
    "principal in Label::\"b\"",
    "context.argumentsText like \"*x*\"",
    "resource.labels.contains(\"a\")",
    "context.detected.contains(\"email\")",
    "context.time.weekday == \"sunday\"",
    "context.arguments has body && context.arguments.body like \"*x*\"",
];
const REMEDIES: &[&str] = &[
    "",
    "@remedy(\"ask\")",
    "@remedy(\"redact\") @detectors(\"email\")",
    "@remedy(\"redact\") @fields(\"body\")",
    "@remedy(\"redact\") @detectors(\"regex:x+\")",
];
/// One that cannot always be evaluated.
const ERRING: &str = "context.arguments.amount > 3";

fn rule(remedies: &'static [&'static str], conditions: Vec<&'static str>) -> impl Strategy<Value = String> {
    (select(remedies), select(PRINCIPALS), select(ACTIONS), select(RESOURCES), select(conditions)).prop_map(
        |(remedy, principal, action, resource, condition)| {
            // Nobody is asked about results alone.
            let action =
                if remedy.contains("ask") && action.contains("[Action::\"result\"") { "action" } else { action };
            let action =
                if remedy.contains("ask") && action == "action in Action::\"result\"" { "action" } else { action };
            format!("{remedy} forbid({principal}, {action}, {resource}) when {{ {condition} }};")
        },
    )
}

fn rules(remedies: &'static [&'static str], erring: bool) -> impl Strategy<Value = Vec<String>> {
    let mut conditions = CONDITIONS.to_vec();
    conditions.extend(erring.then_some(ERRING));
    proptest::collection::vec(rule(remedies, conditions), 0..12)
}

fn world() -> impl Strategy<Value = World> {
    let some_labels = || proptest::sample::subsequence(vec!["a", "b", "c"], 0..=3);
    (select(vec!["bot", "other"]), some_labels(), select(vec!["send", "list"]), some_labels()).prop_map(
        |(agent, of_agent, name, of_tool)| {
            let mut world = World { name: format!("mail.{name}"), ..World::new() };
            world.agent = principal(agent);
            world.agent.labels = labels(&of_agent);
            world.definition = Arc::new(ToolDefinition { labels: labels(&of_tool), ..(*world.definition).clone() });
            world
        },
    )
}

fn arguments() -> impl Strategy<Value = Value> {
    let amount = proptest::option::of(0i64..10);
    let body = proptest::option::of(select(vec!["x", "hello", "ann@example.org", "x ann@example.org"]));
    (amount, body).prop_map(|(amount, body)| {
        let mut arguments = json!({"to": "ann"});
        if let Some(amount) = amount {
            arguments["amount"] = json!(amount);
        }
        if let Some(body) = body {
            arguments["body"] = json!(body);
        }
        arguments
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_slice_says_what_cedar_says_of_the_whole_set(rules in rules(&[""], false), world in world(), arguments in arguments()) {
        let set = compile(&rules.concat());
        let slice = set.slice(&world.subject(Hook::ToolCallRequest));
        let event = world.event(Hook::ToolCallRequest, Content::Arguments(Cow::Owned(members(&arguments))));
        let facts = world.facts(&event);
        let evaluation = judge(&slice, &facts);

        // The same entities, all that there is to know, all rules.
        let all = compile(&format!("{} forbid(principal, action, resource) when {{ context.detected.contains(\"\") }};", rules.concat()));
        let whole = all.slice(&world.subject(Hook::ToolCallRequest));
        let stage = whole.stage.as_ref().unwrap();
        let everything = Reads::of(&json!({"conditions": [{"Var": "context"}]}));
        let context = facts.context(stage, &everything, &event.content).unwrap();
        let policies = PolicySet::from_policies(set.rules().iter().map(|rule| rule.policy.clone())).unwrap();
        let request = Request::new(stage.principal.clone(), stage.action.clone(), stage.resource.clone(), context, None).unwrap();
        let response = Authorizer::new().is_authorized(&request, &policies, &stage.entities);
        prop_assert_eq!(response.diagnostics().errors().count(), 0);
        let mut expected: Vec<&str> = response.diagnostics().reason().map(AsRef::as_ref).collect();
        expected.sort_unstable();
        prop_assert_eq!(ids(&evaluation), expected);
    }

    #[test]
    fn another_rule_never_turns_a_refusal_into_anything_else(
        rules in rules(REMEDIES, true), more in rule(REMEDIES, CONDITIONS.to_vec()), world in world(), arguments in arguments(),
    ) {
        let before = world.call(&compile(&rules.concat()), &arguments).verdict.kind();
        let after = world.call(&compile(&format!("{}{more}", rules.concat())), &arguments).verdict.kind();
        prop_assert!(before != VerdictKind::Deny || after == VerdictKind::Deny, "{before:?} became {after:?}");
        prop_assert!(before != VerdictKind::Ask || after >= VerdictKind::Ask, "{before:?} became {after:?}");
    }

    #[test]
    fn a_rule_in_shadow_changes_nothing(
        rules in rules(REMEDIES, true), watching in rules(REMEDIES, true), world in world(), arguments in arguments(),
    ) {
        let named = |rules: &[String], name: &str| -> String {
            rules.iter().enumerate().map(|(number, rule)| format!("@id(\"{name}{number}\") {rule}")).collect()
        };
        let enforced = named(&rules, "e");
        let shadow: String =
            watching.iter().enumerate().map(|(number, rule)| format!("@id(\"s{number}\") @mode(\"shadow\") {rule}")).collect();
        let alone = world.call(&compile(&enforced), &arguments);
        let watched = world.call(&compile(&format!("{enforced}{shadow}")), &arguments);
        prop_assert_eq!(&watched.verdict, &alone.verdict);
        prop_assert_eq!(&watched.policies, &alone.policies);
        prop_assert!(alone.shadow.is_empty());
    }

    #[test]
    fn nothing_that_a_detector_names_is_passed_on(value in planted(), is_result in any::<bool>()) {
        let world = World::new();
        let set = compile(
            r#"@id("1") @remedy("redact") @detectors("email,card") forbid(principal, action, resource);
               @id("2") @remedy("redact") @detectors("secret") forbid(principal, action, resource);
               @id("3") @remedy("redact") @detectors("regex:zebra") forbid(principal, action, resource);"#,
        );
        let kinds = ["email", "card", "secret", "regex:zebra"].map(|name| DetectorKind::parse(name).unwrap());
        let evaluation = if is_result {
            world.result(&set, &value)
        } else {
            world.call(&set, &json!({"to": "ann", "extra": value}))
        };
        let passed = match &evaluation.verdict {
            Verdict::Deny(_) => return Ok(()),
            Verdict::Pass { content: Some(content), .. } => content.to_json(),
            Verdict::Pass { content: None, .. } => value,
        };
        for kind in kinds {
            let detectors = Detectors::new(std::slice::from_ref(&kind)).unwrap();
            prop_assert_eq!(detectors.redact_json(&passed), None, "{:?} in {}", kind, passed);
        }
    }
}

/// JSON with things in it that must not be passed on.
fn planted() -> impl Strategy<Value = Value> {
    let item = select(vec![
        "ann@example.org",
        "4111 1111 1111 1111",
        "zebra",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "password=hunter2hunter2",
        "plain",
    ]);
    let text = (item, "[a-z ,.:@=]{0,12}", "[a-z0-9 @-]{0,12}")
        .prop_map(|(item, before, after)| format!("{before}{item}{after}"));
    let leaf =
        prop_oneof![text.clone().prop_map(Value::from), Just(json!(4_111_111_111_111_111_u64)), Just(json!(null))];
    leaf.prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(text.clone(), inner, 0..4)
                .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}
