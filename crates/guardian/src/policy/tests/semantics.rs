//! What a rule does: refuses, asks, takes out, watches.

use toolgate_model::guard::{DenialCause, Part, PolicyRef, Role};

use super::*;

const EVERYTHING: &str = "forbid(principal, action, resource)";

#[test]
fn a_satisfied_forbid_refuses_and_anything_else_passes() {
    for (condition, expected) in [
        (r#"when { context.arguments.to == "ann" }"#, VerdictKind::Deny),
        (r#"when { context.arguments.to == "bob" }"#, VerdictKind::Allow),
        (r#"unless { context.arguments.to == "ann" }"#, VerdictKind::Allow),
        (r#"when { context.arguments has amount && context.arguments.amount > 2 }"#, VerdictKind::Deny),
        (r#"when { context.arguments has price }"#, VerdictKind::Allow),
        (r#"when { context.argumentsText like "*hello*" }"#, VerdictKind::Deny),
        (r#"when { principal in Label::"trusted" }"#, VerdictKind::Deny),
        (r#"when { principal.labels.contains("untrusted") }"#, VerdictKind::Allow),
        (r#"when { principal.kind == "agent" && principal.id == "bot" }"#, VerdictKind::Deny),
        (r#"when { context.actor == principal && context.actor.kind == "agent" }"#, VerdictKind::Deny),
        (r#"when { resource in Service::"mail" && resource in Label::"outbound" }"#, VerdictKind::Deny),
        (r#"when { resource.tier == "write" && resource.egress == "host-mediated" }"#, VerdictKind::Deny),
        (r#"when { resource.external || resource.idempotent }"#, VerdictKind::Allow),
        (r#"when { action in Action::"call" && action == Action::"call:mail.send" }"#, VerdictKind::Deny),
        (r#"when { action in Action::"result" }"#, VerdictKind::Allow),
        (r#"when { context.time.hour == 21 && context.time.minute == 30 }"#, VerdictKind::Deny),
        (r#"when { context.time.weekday == "sunday" && context.time.date == "2026-11-15" }"#, VerdictKind::Deny),
        (r#"when { context.time.now >= datetime("2026-11-15T21:30:05.250Z") }"#, VerdictKind::Deny),
        (r#"when { context.time.now > datetime("2026-11-15T21:30:05.250Z") }"#, VerdictKind::Allow),
        (r#"when { context.address.isLoopback() }"#, VerdictKind::Deny),
        (r#"when { context has reasoning || context has session || context has run }"#, VerdictKind::Allow),
        (r#"when { context.dialect == "native" }"#, VerdictKind::Deny),
        (r#"when { context.marks.contains("private") || context.calls.today > 0 }"#, VerdictKind::Allow),
    ] {
        let evaluation = verdict(&format!("{EVERYTHING} {condition};"));
        assert_eq!(evaluation.verdict.kind(), expected, "{condition}: {evaluation:?}");
    }
}

#[test]
fn a_refusal_names_the_rule_its_version_and_its_reason() {
    let evaluation = verdict(
        r#"@id("b") forbid(principal, action, resource); @id("a") @reason("not on sundays") forbid(principal, action, resource);"#,
    );
    let denial = denial(&evaluation);
    assert_eq!(denial.cause, DenialCause::Policy);
    assert_eq!(denial.reason, "not on sundays");
    assert_eq!(denial.policy, Some(PolicyRef { id: "a".to_owned(), version: "7".to_owned() }));
    assert_eq!(ids(&evaluation), ["a", "b"]);
    assert_eq!(super::denial(&verdict(&format!("{EVERYTHING};"))).reason, "policy `rules:1` forbids this");
}

#[test]
fn what_cannot_be_evaluated_refuses_without_telling_the_value() {
    for (condition, part) in [
        ("context.arguments.price.lessThan(decimal(\"1.0\"))", "test it with `has` first"),
        ("context.arguments.amount == 9223372036854775807 + context.arguments.amount", "integer overflow"),
        ("context.arguments.body < 3", "type error"),
        ("decimal(context.arguments.body).lessThan(decimal(\"1.0\"))", "an extension function failed"),
        ("context.arguments.nothing == 1", "test it with `has` first"),
        ("context.session == \"a\"", "test it with `has` first"),
    ] {
        let evaluation = verdict(&format!("{EVERYTHING} when {{ {condition} }};"));
        let denial = denial(&evaluation);
        assert_eq!(denial.cause, DenialCause::Unevaluable, "{condition}");
        assert!(denial.reason.contains("policy `rules:1`") && denial.reason.contains(part), "{}", denial.reason);
        assert!(!denial.reason.contains("hello"));
        assert_eq!(ids(&evaluation), ["rules:1"]);
    }
}

#[test]
fn an_argument_that_cannot_be_expressed_refuses_only_where_it_is_read() {
    let world = World::new();
    let arguments = json!({"to": "ann", "price": 0.123_456, "amount": 1});
    let reader = compile(&format!("@id(\"p\") {EVERYTHING} when {{ context.arguments has price }};"));
    let evaluation = world.call(&reader, &arguments);
    let denial = denial(&evaluation);
    assert_eq!(denial.cause, DenialCause::Unevaluable);
    assert!(denial.reason.contains("`price`") && denial.reason.contains("policy `p`"), "{}", denial.reason);
    assert!(!denial.reason.contains("0.123"));
    let other = compile(&format!("{EVERYTHING} when {{ context.arguments.to == \"bob\" }};"));
    assert_eq!(world.call(&other, &arguments).verdict, Verdict::allow());
}

#[test]
fn what_was_not_found_out_refuses() {
    let mut world = World::new();
    (world.history, world.address) = (None, None);
    for condition in [
        "context.marks.contains(\"x\")",
        "context.spent.today.greaterThan(decimal(\"1.0\"))",
        "context.calls.run > 1",
        "context.address.isLoopback()",
    ] {
        let set = compile(&format!("{EVERYTHING} when {{ {condition} }};"));
        let evaluation = world.call(&set, &json!({"to": "ann"}));
        assert_eq!(denial(&evaluation).cause, DenialCause::Unevaluable, "{condition}");
    }
    let set = compile(&format!("{EVERYTHING} when {{ context.arguments has to }};"));
    assert_eq!(denial(&world.result(&set, &json!("x"))).cause, DenialCause::Unevaluable);
}

#[test]
fn each_call_is_judged_by_the_address_that_it_came_from() {
    let mut world = World::new();
    let set = compile(&format!("{EVERYTHING} when {{ context.address.isLoopback() }};"));
    let slice = set.slice(&world.subject(Hook::ToolCallRequest));
    let mut verdict_from = |address: &str| {
        world.address = Some(address.parse().unwrap());
        let event = world.event(Hook::ToolCallRequest, Content::Arguments(Cow::Owned(Map::new())));
        judge(&slice, &world.facts(&event)).verdict.kind()
    };
    use VerdictKind::{Allow, Deny};
    for (address, expected) in [
        ("127.0.0.1", Deny),
        ("127.0.0.1", Deny),
        ("192.0.2.7", Allow),
        ("192.0.2.7", Allow),
        ("::1", Deny),
        ("2001:db8::1", Allow),
        ("127.0.0.2", Deny),
    ] {
        assert_eq!(verdict_from(address), expected, "{address}");
    }
}

#[test]
fn costs_are_rounded_up() {
    let mut world = World::new();
    world.history = Some(History {
        counts: Counts { cost_today: 1_000_001, cost_in_run: 250_000, ..Counts::default() },
        ..History::default()
    });
    let condition = r#"context.spent.today == decimal("1.0001") && context.spent.run == decimal("0.25")"#;
    let evaluation = world.call(&compile(&format!("{EVERYTHING} when {{ {condition} }};")), &json!({"to": "ann"}));
    assert_eq!(evaluation.verdict.kind(), VerdictKind::Deny);
}

#[test]
fn an_ask_says_who_may_answer_and_a_refusal_beside_it_wins() {
    let ask = r#"@id("ask") @reason("sends mail") @remedy("ask") @approvers("security") @quorum("2") @within("1h")
                 forbid(principal, action in Action::"call", resource);"#;
    let evaluation = verdict(ask);
    let Verdict::Pass { content: None, asks } = &evaluation.verdict else { panic!("{evaluation:?}") };
    let [ask_one] = asks.as_slice() else { panic!("{asks:?}") };
    assert_eq!((ask_one.reason.as_str(), ask_one.approvers, ask_one.ttl_seconds), ("sends mail", 2, Some(3600)));
    assert_eq!(ask_one.groups, ["security"]);
    assert_eq!(ask_one.policy.as_ref().unwrap().id, "ask");
    assert_eq!(verdict(&format!("{ask} {EVERYTHING};")).verdict.kind(), VerdictKind::Deny);
}

#[test]
fn an_ask_about_a_result_refuses() {
    let set = compile(&format!("@remedy(\"ask\") {EVERYTHING};"));
    let evaluation = World::new().result(&set, &json!({"a": 1}));
    assert!(denial(&evaluation).reason.contains("a result cannot be sent for approval"));
    let set = compile(&format!("@mode(\"shadow\") @remedy(\"ask\") {EVERYTHING};"));
    assert_eq!(World::new().result(&set, &json!(1)).shadow[0].verdict, VerdictKind::Deny);
}

#[test]
fn a_redaction_changes_what_it_finds_and_nothing_else() {
    let world = World::new();
    let set = compile(
        r#"@id("r") @remedy("redact") @fields("body") @detectors("email") forbid(principal, action, resource);"#,
    );
    let evaluation = world.call(&set, &json!({"to": "ann@example.org", "body": "ask bob@example.org"}));
    let expected = json!({"to": "ann@example.org", "body": "ask [REDACTED-EMAIL]"});
    assert_eq!(evaluation.verdict, Verdict::modify(Content::Arguments(Cow::Owned(members(&expected)))));
    assert_eq!(ids(&evaluation), ["r"]);
    let evaluation = world.call(&set, &json!({"to": "ann@example.org", "body": "ask bob"}));
    assert_eq!(evaluation.verdict, Verdict::allow());
    assert_eq!(evaluation.found, [("body|email".to_owned(), false)].into());
}

#[test]
fn a_redaction_of_secrets_takes_out_those_of_the_call_by_their_values_and_no_others() {
    let world = World::new();
    let arguments = members(&json!({"to": "ann", "body": "use open-sesame-2026 there"}));
    let event = world.event(Hook::ToolCallRequest, Content::Arguments(Cow::Owned(arguments)));
    let secrets: [&[u8]; 1] = [b"open-sesame-2026"];
    let facts = Facts { secrets: &secrets, ..world.facts(&event) };
    for (detectors, kind) in [("secret", VerdictKind::Modify), ("email", VerdictKind::Allow)] {
        let set = compile(&format!(r#"@remedy("redact") @detectors("{detectors}") {EVERYTHING};"#));
        let evaluation = judge(&set.slice(&world.subject(Hook::ToolCallRequest)), &facts);
        assert_eq!(evaluation.verdict.kind(), kind, "{detectors}");
        if let Verdict::Pass { content: Some(content), .. } = &evaluation.verdict {
            assert!(!content.to_json().to_string().contains("sesame"), "{content:?}");
        }
    }
}

#[test]
fn a_redaction_without_detectors_replaces_the_fields() {
    let set = compile(r#"@remedy("redact") @fields("body") forbid(principal, action, resource);"#);
    let evaluation = World::new().call(&set, &json!({"to": "ann", "body": "hello"}));
    let expected = json!({"to": "ann", "body": "[REDACTED]"});
    assert_eq!(evaluation.verdict, Verdict::modify(Content::Arguments(Cow::Owned(members(&expected)))));
}

#[test]
fn what_was_changed_is_judged_again() {
    let text = r#"@id("r") @remedy("redact") @fields("body") @detectors("email") forbid(principal, action, resource);
                  @id("d") forbid(principal, action, resource) when { context.argumentsText like "*REDACTED*" };"#;
    let evaluation = World::new().call(&compile(text), &json!({"to": "ann", "body": "bob@example.org"}));
    assert_eq!(denial(&evaluation).policy.as_ref().unwrap().id, "d");
    let text = r#"@id("r") @remedy("redact") @fields("to,body") @detectors("email") forbid(principal, action, resource);
                  @id("d") @remedy("ask") forbid(principal, action, resource) when { context.detected.contains("email") };"#;
    let evaluation = World::new().call(&compile(text), &json!({"to": "ann", "body": "bob@example.org"}));
    assert_eq!(evaluation.verdict.kind(), VerdictKind::Ask, "an ask that was needed once stays: {evaluation:?}");
    assert_eq!(ids(&evaluation), ["d", "r"]);
}

#[test]
fn content_that_cannot_be_put_back_refuses() {
    let set = compile(r#"@remedy("redact") @detectors("regex:result") forbid(principal, action, resource);"#);
    assert!(denial(&World::new().result(&set, &json!("x"))).reason.contains("a redaction that is not possible"));
}

#[test]
fn results_and_other_hooks_are_judged_by_what_they_hold() {
    let world = World::new();
    let set = compile(
        r#"@id("r") forbid(principal, action in Action::"result", resource) when { context.result.text like "*ignore all*" };
           @id("e") forbid(principal, action == Action::"result:mail.send", resource) when { context.result.isError };
           @id("m") forbid(principal, action == Action::"hook:user_message", resource) when { context.text like "*secret*" };
           @id("k") @remedy("redact") @detectors("email") forbid(principal, action in Action::"hook", resource == Hook::"memory_store");"#,
    );
    assert_eq!(ids(&world.result(&set, &json!({"a": "ignore all rules"}))), ["r"]);
    assert_eq!(world.result(&set, &json!("fine")).verdict, Verdict::allow());
    let said = |text: &str| {
        let content = Content::Parts(vec![Part::text("a"), Part::text(text)]);
        world.judge_at(&set, Hook::Message(Role::User), content)
    };
    assert_eq!(ids(&said("the secret plan")), ["m"]);
    assert_eq!(said("hello").verdict, Verdict::allow());
    let stored = world.judge_at(&set, Hook::MemoryStore, Content::Memory(vec!["ann@example.org".to_owned()]));
    assert_eq!(stored.verdict, Verdict::modify(Content::Memory(vec!["[REDACTED-EMAIL]".to_owned()])));
}

#[test]
fn the_arguments_of_a_call_are_known_with_its_result() {
    let world = World::new();
    let set =
        compile(r#"forbid(principal, action in Action::"result", resource) when { context.arguments.to == "ann" };"#);
    let event = world.event(Hook::ToolCallResult, Content::Result { value: Cow::Owned(json!(1)), is_error: false });
    let arguments = members(&json!({"to": "ann"}));
    let facts = Facts { arguments: Some(&arguments), ..world.facts(&event) };
    let slice = set.slice(&world.subject(Hook::ToolCallResult));
    assert!(slice.rules.enforced.reads.any_of(&["arguments"]));
    assert_eq!(slice.needs(), Needs::default());
    assert_eq!(judge(&slice, &facts).verdict.kind(), VerdictKind::Deny);
}

#[test]
fn a_tool_of_somebody_else_is_known_by_its_name_and_its_text() {
    let world = World { external: true, ..World::new() };
    let set = compile(
        r#"@id("a") forbid(principal, action == Action::"call:external", resource == Tool::"mail.send")
             when { resource.external && context.argumentsText like "*rm -rf*" };
           @id("b") forbid(principal, action == Action::"call:mail.send", resource);"#,
    );
    assert_eq!(ids(&world.call(&set, &json!({"command": "rm -rf /"}))), ["a"]);
    assert_eq!(world.call(&set, &json!({"command": "ls"})).verdict, Verdict::allow());
}

#[test]
fn a_rule_in_shadow_is_only_written_down() {
    let set = compile(
        r#"@id("d") @mode("shadow") forbid(principal, action, resource);
           @id("e") @mode("shadow") forbid(principal, action, resource) when { context.session == "x" };
           @id("n") @mode("shadow") forbid(principal, action, resource) when { context.arguments.to == "bob" };
           @id("r") @mode("shadow") @remedy("redact") @detectors("email") forbid(principal, action, resource);
           @id("s") @mode("shadow") @remedy("redact") @fields("body") forbid(principal, action, resource);
           @id("q") @mode("shadow") @remedy("ask") forbid(principal, action, resource);"#,
    );
    let evaluation = World::new().call(&set, &json!({"to": "ann", "body": "hello"}));
    assert_eq!(evaluation.verdict, Verdict::allow());
    let words: Vec<_> = evaluation.shadow.iter().map(|word| (word.policy.id.as_str(), word.verdict)).collect();
    use VerdictKind::{Ask, Deny, Modify};
    assert_eq!(words, [("d", Deny), ("e", Deny), ("q", Ask), ("s", Modify)]);
}

#[test]
fn an_event_about_a_tool_without_one_refuses() {
    let world = World::new();
    let set = compile(&format!("{EVERYTHING};"));
    let subject = Subject { tool: None, ..world.subject(Hook::ToolCallRequest) };
    let event = world.event(Hook::ToolCallRequest, Content::Arguments(Cow::Owned(Map::new())));
    let evaluation = judge(&set.slice(&subject), &world.facts(&event));
    assert_eq!(denial(&evaluation).cause, DenialCause::Unevaluable);
}

#[test]
fn an_agent_that_nobody_knows_has_no_labels() {
    let world = World::new();
    let set = compile(
        r#"forbid(principal, action, resource) unless { principal in Label::"trusted" } ;
           @id("u") forbid(principal, action, resource) when { principal.kind == "unknown" && context.actor.id == "bot" };"#,
    );
    let ghost = PrincipalId::parse("ghost").unwrap();
    let subject = Subject { agent: &ghost, principal: None, ..world.subject(Hook::ToolCallRequest) };
    let event = world.event(Hook::ToolCallRequest, Content::Arguments(Cow::Owned(members(&json!({"to": "a"})))));
    assert_eq!(ids(&judge(&set.slice(&subject), &world.facts(&event))), ["rules:1", "u"]);
    let own = Subject { principal: None, ..world.subject(Hook::ToolCallRequest) };
    assert_eq!(judge(&set.slice(&own), &world.facts(&event)).verdict, Verdict::allow());
}

#[test]
fn a_rule_without_an_action_does_not_apply_to_the_gates_own_messages_of_mcp() {
    use toolgate_model::guard::Direction;

    let world = World::new();
    let message = json!({"method": "tools/call", "params": {"name": "send"}});
    let rules = [
        (EVERYTHING, VerdictKind::Allow, VerdictKind::Deny),
        (r#"forbid(principal == Principal::"bot", action, resource)"#, VerdictKind::Allow, VerdictKind::Deny),
        (r#"forbid(principal, action, resource == Tool::"mail.send")"#, VerdictKind::Allow, VerdictKind::Allow),
        (r#"forbid(principal, action in Action::"call", resource)"#, VerdictKind::Allow, VerdictKind::Allow),
        (r#"forbid(principal, action in Action::"hook", resource)"#, VerdictKind::Deny, VerdictKind::Deny),
        (r#"forbid(principal, action == Action::"hook:mcp_outbound", resource)"#, VerdictKind::Deny, VerdictKind::Deny),
        (
            r#"forbid(principal, action == Action::"hook:mcp_inbound", resource)"#,
            VerdictKind::Allow,
            VerdictKind::Allow,
        ),
    ];
    for (rule, own, of_runtime) in rules {
        let set = compile(&format!("{rule};"));
        for (dialect, expected) in [(Dialect::Native, own), (Dialect::Aos, of_runtime)] {
            let hook = Hook::Mcp(Direction::Outbound);
            let subject = Subject { dialect, ..world.subject(hook) };
            let event = world.event(hook, Content::Message(Cow::Borrowed(&message)));
            let evaluation = judge(&set.slice(&subject), &Facts { dialect, ..world.facts(&event) });
            assert_eq!(evaluation.verdict.kind(), expected, "{rule} {dialect:?}: {evaluation:?}");
        }
    }
}
