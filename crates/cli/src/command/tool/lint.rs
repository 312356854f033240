//! `toolgate tool lint`: attributes that registered tools do not declare, for which the gate assumes a safe default.

use serde_json::{Value, json};

use crate::output::{Report, at, table};

/// What a tool should declare: the member of its definition, and the heading of its column.
const DECLARED: [(&str, &str); 9] = [
    ("safety_tier", "TIER"),
    ("approval", "APPROVAL"),
    ("egress", "EGRESS"),
    ("replay_policy", "REPLAY"),
    ("required_scopes", "SCOPES"),
    ("description", "DESCRIPTION"),
    ("parameters", "PARAMETERS"),
    ("rate_limit", "RATE"),
    ("estimated_cost_usd", "COST"),
];

/// The attributes that a tool definition in normal form does not have.
fn undeclared(tool: &Value) -> Vec<&'static str> {
    let is_declared = |name: &str| match name {
        // An idempotent tool declares by that what happens when it is called again.
        "replay_policy" => !at(tool, name).is_null() || at(tool, "idempotent") == &Value::Bool(true),
        _ => !at(tool, name).is_null(),
    };
    DECLARED.iter().map(|(name, _)| *name).filter(|name| !is_declared(name)).collect()
}

/// With `strict`, an undeclared attribute is a failure.
pub(super) fn lint(versions: &[Value], strict: bool) -> Report {
    let mut found = Vec::new();
    let mut rows = Vec::new();
    let mut checked: usize = 0;
    for version in versions {
        for (name, tool) in at(version, "tools").as_object().into_iter().flatten() {
            checked += 1;
            let undeclared = undeclared(tool);
            if undeclared.is_empty() {
                continue;
            }
            let tool = format!("{}.{name}", at(version, "service").as_str().unwrap_or_default());
            let mut row = json!({"tool": tool, "version": at(version, "version")});
            if let Value::Object(row) = &mut row {
                row.extend(DECLARED.iter().map(|(name, _)| {
                    let cell = if undeclared.contains(name) { Value::Null } else { Value::Bool(true) };
                    ((*name).to_owned(), cell)
                }));
            }
            rows.push(row);
            found.push(json!({"tool": tool, "version": at(version, "version"), "undeclared": undeclared}));
        }
    }
    let columns: Vec<(&str, &str)> = [("TOOL", "tool"), ("VERSION", "version")]
        .into_iter()
        .chain(DECLARED.iter().map(|(name, heading)| (*heading, *name)))
        .collect();
    let text = match (found.len(), checked) {
        (_, 0) => "No tools are registered.".to_owned(),
        (0, _) => format!("All {checked} tools declare everything."),
        (count, _) => format!(
            "{}\n{count} of {checked} tools have undeclared attributes (-). An undeclared tier counts as write.",
            table(&rows, &columns)
        ),
    };
    let refused = strict && !found.is_empty();
    Report::new(json!({"checked": checked, "tools": found}), text).refused_if(refused)
}

#[cfg(test)]
mod tests {
    use toolgate_model::service::ServiceDefinition;

    use super::*;

    fn registered(tool: Value) -> Vec<Value> {
        let definition = json!({"service": "mail", "version": "1", "tools": {"send": tool}});
        vec![ServiceDefinition::from_json(&definition).unwrap().to_json()]
    }

    fn whole() -> Value {
        json!({
            "description": "Sends", "safety_tier": "write", "approval": "never", "egress": "host-mediated",
            "replay_policy": "non-deterministic", "required_scopes": [], "parameters": {"to": {"type": "string"}},
            "rate_limit": {"requests": 1, "per_seconds": 1}, "estimated_cost_usd": 0,
        })
    }

    #[test]
    fn a_tool_that_says_nothing_is_told_all_that_it_leaves_out() {
        let report = lint(&registered(json!({})), false);
        let names: Vec<&str> = DECLARED.iter().map(|(name, _)| *name).collect();
        assert_eq!(
            report.value,
            json!({
                "checked": 1, "tools": [{"tool": "mail.send", "version": "1", "undeclared": names}],
            })
        );
        assert!(!report.refused && lint(&registered(json!({})), true).refused);
        let cells: Vec<&str> = report.text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(cells, ["mail.send", "1", "-", "-", "-", "-", "-", "-", "-", "-", "-"]);
    }

    #[test]
    fn each_declaration_counts_by_itself() {
        for (name, _) in DECLARED {
            let mut tool = whole();
            tool[name] = Value::Null;
            let report = lint(&registered(tool), true);
            assert_eq!(report.value["tools"][0]["undeclared"], json!([name]));
            assert!(report.refused, "{name}");
        }
    }

    #[test]
    fn a_tool_that_declares_everything_is_only_counted() {
        let report = lint(&registered(whole()), true);
        assert_eq!((report.refused, report.text.as_str()), (false, "All 1 tools declare everything."));
        assert_eq!(lint(&[], true).text, "No tools are registered.");
    }

    #[test]
    fn an_idempotent_tool_has_said_what_happens_when_it_is_called_again() {
        let mut tool = whole();
        tool["replay_policy"] = Value::Null;
        tool["idempotent"] = json!(true);
        assert_eq!(lint(&registered(tool), true).value["tools"], json!([]));
    }
}
