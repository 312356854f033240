//! Annotations: what they mean, and that nothing in them is ignored.

use super::*;

fn one_problem(text: &str) -> Problem {
    let mut found = problems(text);
    assert_eq!(found.len(), 1, "{text}: {found:?}");
    found.remove(0)
}

#[test]
fn every_annotation_that_is_wrong_is_named() {
    let rule = "forbid(principal, action, resource);";
    for (annotations, part) in [
        (r#"@remdy("ask")"#, "unknown annotation `@remdy`"),
        (r#"@id("")"#, "`@id` must not be empty"),
        (r#"@id("two words")"#, "`@id` must not contain"),
        (r#"@reason("")"#, "`@reason` must not be empty"),
        ("@reason(\"two\\nlines\")", "`@reason` must not contain"),
        (r#"@description("")"#, "`@description` must not be empty"),
        (r#"@mode("enforce")"#, "`@mode` must be shadow"),
        (r#"@remedy("warn")"#, "`@remedy` must be ask or redact"),
        (r#"@remedy("ask") @quorum("0")"#, "`@quorum` must be a number from 1 to 16"),
        (r#"@remedy("ask") @quorum("17")"#, "`@quorum` must be a number from 1 to 16"),
        (r#"@remedy("ask") @quorum("two")"#, "`@quorum` must be a number from 1 to 16"),
        (r#"@remedy("ask") @approvers("a,,b")"#, "invalid group in `@approvers`: it must not be empty"),
        (r#"@remedy("ask") @approvers("a b")"#, "invalid group in `@approvers`: it must not contain"),
        (r#"@remedy("ask") @within("15")"#, "`@within` must be a duration"),
        (r#"@remedy("ask") @within("0m")"#, "`@within` must be a duration"),
        (r#"@remedy("ask") @within("+5m")"#, "`@within` must be a duration"),
        (r#"@remedy("ask") @within("8d")"#, "`@within` must be a duration"),
        (r#"@remedy("ask") @within("99999999999999999999d")"#, "`@within` must be a duration"),
        (r#"@remedy("ask") @within("m")"#, "`@within` must be a duration"),
        (r#"@approvers("a")"#, "`@approvers` requires `@remedy(\"ask\")`"),
        (r#"@quorum("2")"#, "`@quorum` requires `@remedy(\"ask\")`"),
        (r#"@within("5m")"#, "`@within` requires `@remedy(\"ask\")`"),
        (r#"@fields("a")"#, "`@fields` requires `@remedy(\"redact\")`"),
        (r#"@remedy("ask") @detectors("email")"#, "`@detectors` requires `@remedy(\"redact\")`"),
        (r#"@remedy("redact") @detectors("email") @quorum("2")"#, "`@quorum` requires `@remedy(\"ask\")`"),
        (r#"@remedy("redact")"#, "`@remedy(\"redact\")` needs a target"),
        (r#"@remedy("redact") @fields("*")"#, "`@remedy(\"redact\")` needs a target"),
        (r#"@remedy("redact") @fields("a..b")"#, "`@fields`"),
        (r#"@remedy("redact") @detectors("e-mail")"#, "unknown detector `e-mail`"),
        (r#"@remedy("redact") @detectors("")"#, "unknown detector"),
        (r#"@remedy("redact") @detectors("regex:(")"#, "invalid expression"),
    ] {
        let problem = one_problem(&format!("\n{annotations}\n{rule}"));
        assert!(problem.message.contains(part), "{annotations}: {problem:?}");
        assert_eq!(problem.line, Some(2), "{annotations}");
        assert_eq!(problem.file, "rules.cedar");
        assert!(problem.policy.is_some());
    }
    assert_eq!(one_problem(&format!(r#"@remdy("ask") {rule}"#)).help.as_deref(), Some("did you mean `@remedy`?"));
}

#[test]
fn a_permit_and_a_template_give_nothing() {
    assert!(one_problem("permit(principal, action, resource);").message.starts_with("`permit` is not supported"));
    let template = "\n\nforbid(principal == ?principal, action, resource);";
    let problem = one_problem(template);
    assert!(problem.message.contains("template"));
    assert_eq!(problem.line, Some(3));
}

#[test]
fn nobody_is_asked_about_results() {
    for scope in [
        r#"action in Action::"result""#,
        r#"action == Action::"result:mail.send""#,
        r#"action in [Action::"result", Action::"result:mail.send"]"#,
    ] {
        let problem = one_problem(&format!(r#"@remedy("ask") forbid(principal, {scope}, resource);"#));
        assert!(problem.message.contains("cannot be sent for approval"), "{scope}");
    }
    compile(r#"@remedy("ask") forbid(principal, action in [Action::"result", Action::"call"], resource);"#);
}

#[test]
fn a_rule_has_the_id_that_it_is_given_or_that_of_its_place() {
    let set = compile(
        "// first\nforbid(principal, action, resource);\n\n@id(\"mine\")\nforbid(principal, action, resource);\n\
         forbid(principal, action, resource) when { true };",
    );
    let found: Vec<_> = set.rules().iter().map(|rule| (rule.id.as_str(), rule.line)).collect();
    assert_eq!(found, [("rules:1", Some(2)), ("mine", Some(4)), ("rules:3", Some(6))]);
}

#[test]
fn no_two_rules_have_the_same_id() {
    let rule = r#"@id("x") forbid(principal, action, resource);"#;
    let files = [
        PolicyFile { name: "a.cedar".to_owned(), text: format!("{rule}\n") },
        PolicyFile { name: "b.cedar".to_owned(), text: format!("\n{rule}") },
    ];
    let found = CompiledSet::compile(1, &files).err().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].file.as_str(), found[0].line), ("b.cedar", Some(2)));
    assert!(found[0].message.contains("a.cedar in line 1"));
}

#[test]
fn only_cedar_files_are_read() {
    let other = PolicyFile { name: "tests.yaml".to_owned(), text: "- given: {".to_owned() };
    assert!(CompiledSet::compile(1, &[other]).unwrap().rules().is_empty());
}

#[test]
fn what_cedar_cannot_read_is_told_with_its_line() {
    let problem =
        one_problem("forbid(principal, action, resource);\nforbid(principal, action, resource) when { 1 + };");
    assert_eq!((problem.line, problem.file.as_str()), (Some(2), "rules.cedar"));
    assert!(problem.message.contains("unexpected token"));
    let both = problems("permit(principal, action, resource);\n@mode(\"x\") forbid(principal, action, resource);");
    assert_eq!(both.iter().map(|problem| problem.line).collect::<Vec<_>>(), [Some(1), Some(2)]);
}

#[test]
fn the_annotations_of_an_ask_and_of_a_redaction_are_read() {
    let set = compile(
        r#"@id("a") @reason("why") @description("what for") @remedy("ask") @approvers("security, legal") @quorum("2") @within("15m")
           forbid(principal, action, resource);
           @id("b") @remedy("ask") forbid(principal, action, resource);
           @id("c") @mode("shadow") @remedy("redact") @detectors("email, regex:a{1,2}, b") forbid(principal, action, resource);"#,
    );
    let [first, second, third] = set.rules() else { panic!() };
    let Some(Remedy::Ask(ask)) = &first.remedy else { panic!() };
    let groups = vec!["security".to_owned(), "legal".to_owned()];
    assert_eq!(*ask, Asking { groups, quorum: 2, within: Some(900) });
    assert_eq!((first.reason.as_deref(), first.description.as_deref()), (Some("why"), Some("what for")));
    let Some(Remedy::Ask(ask)) = &second.remedy else { panic!() };
    assert_eq!(*ask, Asking { groups: Vec::new(), quorum: 1, within: None });
    let Some(Remedy::Redact(redaction)) = &third.remedy else { panic!() };
    assert!(third.shadow);
    let detectors = redaction.detectors.as_ref().unwrap();
    assert!(detectors.occurs("aa, b") && detectors.occurs("ann@example.org") && !detectors.occurs("aa"));
}
