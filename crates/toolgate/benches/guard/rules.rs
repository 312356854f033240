//! Policy sets as people have them: a handful of rules about the call at hand, and many about other agents and tools.

use std::fmt::Write;

use toolgate_model::guard::PolicyFile;

/// Rules that concern a payment, each reading something else of it. None is satisfied by the payment of the benchmark.
pub const ABOUT_THE_CALL: [&str; 5] = [
    r#"forbid (principal == Principal::"payer", action == Action::"call:bank.pay", resource)
       when { context.arguments.amount > 50000 || !(["EUR", "USD"].contains(context.arguments.currency)) };"#,
    r#"forbid (principal in Label::"untrusted", action in Action::"call", resource)
       when { context.time.hour < 6 && resource.tier == "exec" };"#,
    r#"@remedy("ask") forbid (principal, action == Action::"call:bank.pay", resource)
       when { context.arguments has note && context.arguments.note like "*urgent*" };"#,
    r#"forbid (principal, action in Action::"call", resource in Label::"money") when { context.address.isMulticast() };"#,
    r#"forbid (principal, action in Action::"call", resource)
       when { ["write", "exec"].contains(resource.tier) && resource.labels.contains("frozen") };"#,
];

/// A rule that reads what the agent has done so far, which is a look into the ledger.
pub const ABOUT_THE_PAST: &str = r#"forbid (principal, action in Action::"call", resource in Label::"money")
       when { context.marks.contains("private-data") && context.spent.today.greaterThan(decimal("100000.00")) };"#;

/// This many rules: first these, as far as there is room, then others about others.
pub fn set(own: &[&str], count: usize) -> PolicyFile {
    let mut text = own.iter().take(count).copied().collect::<Vec<_>>().join("\n");
    for number in own.len()..count {
        let scope = match number % 4 {
            0 => format!(r#"principal == Principal::"other-{number}", action, resource"#),
            1 => format!(r#"principal in Label::"team-{number}", action in Action::"call", resource"#),
            2 => format!(r#"principal, action in Action::"call", resource == Tool::"{}""#, other_tool(number)),
            _ => format!(r#"principal, action == Action::"call:{}", resource"#, other_tool(number)),
        };
        write!(text, "\nforbid ({scope}) when {{ context.time.hour < 8 || context.calls.today > {number} }};").unwrap();
    }
    PolicyFile { name: "rules.cedar".to_owned(), text }
}

/// The tools of [`set`] that are not called.
pub fn other_tools(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("tool-{number}"))
}

fn other_tool(number: usize) -> String {
    format!("other.tool-{number}")
}
