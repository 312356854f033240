//! Rules against the catalog: what does not exist cannot be spoken of.

use super::*;

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
        (r#"forbid(principal, action, resource == Tool::"mail.sned");"#, "no tool `mail.sned`", Some("mail.send")),
        (r#"forbid(principal, action, resource in Service::"mial");"#, "no service `mial`", Some("`mail`")),
        (
            r#"forbid(principal, action == Action::"call:mail.sent", resource);"#,
            "no action `call:mail.sent`",
            Some("call:mail.send"),
        ),
        (
            r#"forbid(principal, action, resource == Hook::"user_mesage");"#,
            "no hook `user_mesage`",
            Some("user_message"),
        ),
        (r#"forbid(principal, action, resource) when { resource == Tool::"zzz" };"#, "no tool `zzz`", None),
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
