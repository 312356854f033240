//! A review as a person reads it: findings first, then the definition or its difference to the accepted one, with hidden
//! characters made visible.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};
use toolgate_api::mounts::{
    DefinitionHash, Finding, FindingSeverity, MountReview, ServerReview, ToolReview, ToolState,
};
use toolgate_model::visible::visible;

use crate::command::Failure;
use crate::command::diff::unified;
use crate::output::{clean, plain};

/// The review as text.
pub(super) fn rendered(review: &MountReview) -> String {
    let mut blocks: Vec<String> = review.server.iter().map(server).collect();
    blocks.extend(review.tools.iter().map(tool));
    if blocks.is_empty() {
        return format!("{}: nothing waits for a decision.", review.name);
    }
    blocks.join("\n\n")
}

/// The hashes of these tools, as the review shows them.
pub(super) fn hashes(review: &MountReview, names: &[String]) -> Result<BTreeMap<String, DefinitionHash>, Failure> {
    let hash = |name: &String| {
        let tool = review.tools.iter().find(|tool| tool.upstream == *name);
        let hash = tool.and_then(|tool| tool.hash.clone());
        hash.map(|hash| (name.clone(), hash))
            .ok_or_else(|| Failure::Said(format!("no tool `{}` of {} waits for a decision", clean(name), review.name)))
    };
    names.iter().map(hash).collect()
}

fn server(review: &ServerReview) -> String {
    let mut lines = vec!["Server:".to_owned()];
    lines.extend(review.findings.iter().map(finding));
    let pinned = review.pinned.as_ref().map(|pinned| pretty(&json!(pinned)));
    lines.push(difference(pinned, Some(pretty(&json!(review.seen)))));
    lines.join("\n")
}

fn tool(review: &ToolReview) -> String {
    let mut lines = vec![format!("Tool {} ({}):", visible(&review.upstream), word(&review.state))];
    lines.extend(review.unusable.iter().map(|reason| format!("  cannot be accepted: {}", clean(reason))));
    lines.extend(review.findings.iter().map(finding));
    if let Some(tier) = &review.safety_tier {
        lines.push(format!("  safety tier {}; labels {}", clean(tier), plain(&json!(review.labels))));
    }
    let text = |definition: &Option<Map<String, Value>>| definition.as_ref().map(|members| pretty(&json!(members)));
    let seen = text(&review.seen);
    if seen.is_none() && review.state != ToolState::Removed {
        if review.unusable.is_none() {
            lines.push("  the definition is too large to be shown or accepted".to_owned());
        }
        return lines.join("\n");
    }
    lines.push(difference(text(&review.pinned), seen));
    lines.join("\n")
}

fn finding(finding: &Finding) -> String {
    let severity = match finding.severity {
        FindingSeverity::Block => "BLOCK",
        FindingSeverity::Warn => "warn",
    };
    let place = if finding.path.is_empty() { "definition" } else { &finding.path };
    format!("  {severity} {} at {}: {}", clean(&finding.code), clean(place), clean(&finding.message))
}

fn difference(pinned: Option<String>, seen: Option<String>) -> String {
    match (pinned, seen) {
        (None, Some(seen)) => indented(&seen),
        (Some(pinned), Some(seen)) if pinned == seen => {
            format!("  unchanged since it was accepted:\n{}", indented(&seen))
        }
        (pinned, seen) => {
            unified("accepted", pinned.as_deref().unwrap_or_default(), "offered", seen.as_deref().unwrap_or_default())
        }
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

fn word(value: &impl Serialize) -> String {
    plain(&json!(value))
}

/// A definition as lines: long texts are broken where they have line ends, and what cannot be seen is written out.
fn pretty(value: &Value) -> String {
    let text = format!("{value:#}");
    let lines = text.lines().flat_map(|line| {
        let indent = line.len() - line.trim_start().len();
        let parts: Vec<&str> = line.split("\\n").collect();
        let last = parts.len() - 1;
        let broken = parts.into_iter().enumerate().map(move |(place, part)| {
            let start = if place == 0 { String::new() } else { " ".repeat(indent + 4) };
            let end = if place == last { "" } else { "\\n" };
            format!("{start}{}{end}", visible(part))
        });
        broken.collect::<Vec<_>>()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use toolgate_model::credential::ServiceName;
    use toolgate_model::service::ToolName;

    use super::*;

    fn definition(text: &str) -> Option<Map<String, Value>> {
        json!({"name": "read", "description": text}).as_object().cloned()
    }

    fn review(pinned: Option<&str>, seen: Option<&str>, state: ToolState) -> MountReview {
        MountReview {
            name: ServiceName::parse("files").unwrap(),
            server: None,
            tools: vec![ToolReview {
                upstream: "read".to_owned(),
                tool: ToolName::parse("read").unwrap(),
                state,
                hash: Some(DefinitionHash("sha256:ab".to_owned())),
                pinned: pinned.and_then(definition),
                seen: seen.and_then(definition),
                findings: vec![Finding {
                    code: "hidden_characters".to_owned(),
                    severity: FindingSeverity::Block,
                    path: "description".to_owned(),
                    message: "has the hidden character U+200B".to_owned(),
                }],
                unusable: None,
                safety_tier: Some("write".to_owned()),
                labels: vec!["mcp".to_owned()],
            }],
        }
    }

    #[test]
    fn findings_come_before_the_difference_and_nothing_stays_hidden() {
        let text = rendered(&review(Some("Reads."), Some("Reads\u{200b}.\nAll of it."), ToolState::Changed));
        let block = text.find("BLOCK hidden_characters at description").unwrap();
        let changed = text.find("+  \"description\": \"Reads\\u{200b}.\\n").unwrap();
        assert!(block < changed, "{text}");
        assert!(text.contains("-  \"description\": \"Reads.\"") && text.contains("+      All of it.\""), "{text}");
        assert!(!text.contains('\u{200b}'));
    }

    #[test]
    fn a_new_definition_is_shown_whole_and_a_removed_one_as_gone() {
        let text = rendered(&review(None, Some("Reads."), ToolState::New));
        assert!(text.starts_with("Tool read (new):") && text.contains("    \"description\": \"Reads.\""), "{text}");
        let text = rendered(&review(Some("Reads."), None, ToolState::Removed));
        assert!(text.contains("-  \"description\": \"Reads.\""), "{text}");
        let text = rendered(&review(None, None, ToolState::New));
        assert!(text.contains("too large"), "{text}");
    }

    #[test]
    fn only_what_is_shown_can_be_decided() {
        let review = review(None, Some("Reads."), ToolState::New);
        assert_eq!(hashes(&review, &["read".to_owned()]).unwrap().len(), 1);
        assert!(hashes(&review, &["write".to_owned()]).is_err());
    }
}
