//! Rules against the catalog: what does not exist cannot be spoken of.

use super::*;
use toolgate_gate::ports::policy_book::KnownPrincipals;
use toolgate_model::principal_scope::HeldScopes;

fn check(text: &str) -> Vec<Problem> {
    compile(text).check(&[World::new().policy_tool()])
}

#[test]
fn a_rule_that_fits_the_catalog_has_no_problem() {
    let found = check(
        r#"@id("a") @remedy("ask") forbid(principal, action in Action::"call", resource in Service::"mail")
             when { context.arguments has body && context.arguments.body like "*x*" };
           forbid(principal is Principal, action == Action::"call:mail.send", resource == Tool::"mail.send")
             when { context.arguments.to == "x" };
           forbid(principal in Label::"any", action in Action::"hook", resource) when { context.text like "*x*" };
           forbid(principal, action == Action::"call:external", resource == Tool::"claude-code.Bash");
           forbid(principal, action, resource) when { context.detected.contains("card") };"#,
    );
    assert_eq!(found, []);
}

#[test]
fn what_does_not_exist_is_named_with_what_is_nearest() {
    for (rule, part, help) in [
        (r#"forbid(principal, action, resource == Tool::"mail.sned");"#, "unknown tool `mail.sned`", Some("mail.send")),
        (r#"forbid(principal, action, resource in Service::"mial");"#, "unknown service `mial`", Some("`mail`")),
        (
            r#"forbid(principal, action == Action::"call:mail.sent", resource);"#,
            "unknown action `call:mail.sent`",
            Some("call:mail.send"),
        ),
        (
            r#"forbid(principal, action, resource == Hook::"user_mesage");"#,
            "unknown hook `user_mesage`",
            Some("user_message"),
        ),
        (r#"forbid(principal, action, resource) when { resource == Tool::"zzz" };"#, "unknown tool `zzz`", None),
        (
            r#"forbid(principal, action == Action::"call:mail.send", resource) when { context.arguments.boddy == "x" };"#,
            "boddy",
            None,
        ),
        (
            r#"forbid(principal, action == Action::"call:mail.send", resource) when { context.arguments.amount == "x" };"#,
            "types",
            None,
        ),
        (
            r#"forbid(principal, action == Action::"call:mail.send", resource) when { context.arguments.amount > 3 };"#,
            "amount",
            None,
        ),
        (
            r#"forbid(principal, action in Action::"call", resource) when { context.arguments has titel };"#,
            "can never apply",
            None,
        ),
        (r#"forbid(principal in Group::"x", action, resource);"#, "Group", None),
        (r#"forbid(principal, action, resource) when { principal.team == "x" };"#, "team", None),
    ] {
        let found = check(&format!("\n{rule}"));
        assert!(!found.is_empty(), "{rule}");
        let named = found.iter().find(|problem| problem.message.contains(part));
        let named = named.unwrap_or_else(|| panic!("{rule}: {found:?}"));
        assert_eq!(
            (named.file.as_str(), named.line, named.policy.as_deref()),
            ("rules.cedar", Some(2), Some("rules:1"))
        );
        if let Some(help) = help {
            assert!(named.help.as_ref().unwrap().contains(help), "{named:?}");
        }
    }
}

#[test]
fn a_catalog_that_has_no_schema_is_a_problem() {
    let tool = World::new().policy_tool();
    assert_eq!(compile("forbid(principal, action, resource);").check(&[tool.clone(), tool]).len(), 1);
}

#[test]
fn a_rule_that_names_what_there_is_not_is_right_and_warned_about() {
    let principals = KnownPrincipals {
        complete: true,
        ids: ["clerk".to_owned()].into(),
        labels: ["trainee".to_owned()].into(),
        scopes: vec![HeldScopes::from_stored(["approver:security".to_owned()].into_iter())],
    };
    let warnings = |rule: &str, principals: &KnownPrincipals| {
        let set = compile(rule);
        assert_eq!(set.check(&[World::new().policy_tool()]), [], "{rule}");
        set.warnings(&[World::new().policy_tool()], principals)
    };
    for (rule, part, help) in [
        (r#"forbid(principal == Principal::"clrek", action, resource);"#, "unknown principal `clrek`", Some("clerk")),
        (r#"forbid(principal in Label::"trainees", action, resource);"#, "unknown label `trainees`", Some("trainee")),
        (
            r#"forbid(principal, action in Action::"call", resource) when { resource.tier == "wirte" };"#,
            "tier `wirte`",
            Some("write"),
        ),
        (
            r#"forbid(principal, action in Action::"call", resource) when { ["read", "exce"].contains(resource.tier) };"#,
            "tier `exce`",
            Some("exec"),
        ),
        (
            r#"forbid(principal, action, resource) when { context.time.weekday == "Sunday" };"#,
            "weekday `Sunday`",
            Some("sunday"),
        ),
        (
            r#"@remedy("ask") @approvers("security,legal") forbid(principal, action in Action::"call", resource);"#,
            "unknown approver group `legal`",
            None,
        ),
        (
            r#"@remedy("redact") @fields("boddy") forbid(principal, action == Action::"call:mail.send", resource);"#,
            "unknown field `boddy`",
            Some("body"),
        ),
    ] {
        let found = warnings(rule, &principals);
        let [warning] = found.as_slice() else { panic!("{rule}: {found:?}") };
        assert!(warning.message.contains(part), "{rule}: {}", warning.message);
        assert_eq!(
            warning.help.as_deref().map(|told| help.is_some_and(|help| told.contains(help))),
            help.map(|_| true),
            "{rule}"
        );
    }
    let right = r#"@remedy("ask") @approvers("security")
        forbid(principal == Principal::"clerk", action in Action::"call", resource)
        when { resource.tier == "write" && context.time.weekday != "sunday" };
        @remedy("redact") @fields("body") forbid(principal, action == Action::"call:mail.send", resource);"#;
    assert_eq!(warnings(right, &principals), []);
    // Where there are more than were looked at, nothing is known not to be there.
    let unknown = r#"forbid(principal == Principal::"nobody", action, resource);"#;
    assert_eq!(warnings(unknown, &KnownPrincipals::default()), []);
}
