//! Safety tiers and labels from the hints of a server. Hints are claims: what makes a tool more dangerous is believed, what
//! makes it less so only of a trusted mount.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::descriptor::SafetyTier;
use crate::text::Label;

/// What hints come to.
pub(super) struct Decided {
    pub(super) tier: SafetyTier,
    pub(super) idempotent: bool,
    pub(super) labels: BTreeSet<Label>,
}

/// What follows from the annotations of a tool. Without any, the protocol's defaults apply: the tool writes, destroys and
/// reaches the outside.
pub(super) fn decide(annotations: Option<&Value>, trusted: bool) -> Decided {
    let hint = |name: &str, default: bool| {
        let claimed = annotations.and_then(|hints| hints.get(name)).and_then(Value::as_bool).unwrap_or(default);
        // The harmless value of these two is true, that of the others false.
        let harmless = matches!(name, "idempotentHint" | "readOnlyHint");
        if trusted || claimed != harmless { claimed } else { !harmless }
    };
    let read_only = hint("readOnlyHint", false);
    let labels = [
        ("mcp", true),
        ("destructive", !read_only && hint("destructiveHint", true)),
        ("open-world", hint("openWorldHint", true)),
    ];
    Decided {
        tier: if read_only { SafetyTier::Read } else { SafetyTier::Write },
        idempotent: hint("idempotentHint", false),
        labels: labels
            .into_iter()
            .filter(|(_, applies)| *applies)
            .filter_map(|(name, _)| Label::parse(name).ok())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decided(annotations: Value, trusted: bool) -> (SafetyTier, bool, Vec<String>) {
        let Decided { tier, idempotent, labels } = decide(Some(&annotations), trusted);
        (tier, idempotent, labels.iter().map(ToString::to_string).collect())
    }

    fn labels(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn without_hints_a_tool_is_as_dangerous_as_can_be() {
        for trusted in [false, true] {
            let all = (SafetyTier::Write, false, labels(&["destructive", "mcp", "open-world"]));
            assert_eq!(decided(json!({}), trusted), all);
            assert_eq!(decided(json!({"readOnlyHint": "yes"}), trusted), all);
        }
    }

    #[test]
    fn hints_lower_a_tier_only_for_a_trusted_mount() {
        let harmless =
            json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false});
        assert_eq!(decided(harmless.clone(), true), (SafetyTier::Read, true, labels(&["mcp"])));
        let all = (SafetyTier::Write, false, labels(&["destructive", "mcp", "open-world"]));
        assert_eq!(decided(harmless, false), all);
        let mild = json!({"destructiveHint": false, "openWorldHint": true});
        assert_eq!(decided(mild, true), (SafetyTier::Write, false, labels(&["mcp", "open-world"])));
    }

    #[test]
    fn hints_that_raise_are_believed_of_everybody() {
        for trusted in [false, true] {
            let (tier, _, labels) = decided(json!({"readOnlyHint": false, "destructiveHint": true}), trusted);
            assert_eq!(tier, SafetyTier::Write);
            assert!(labels.contains(&"destructive".to_owned()));
        }
    }
}
