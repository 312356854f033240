//! Re-evaluates recorded events of which not everything was recorded. A rule that reads something unknown leaves the
//! verdict open, unless it is a denial in any case.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::facts::Facts;
use super::judge::{Evaluation, enforce, evaluate, judge, would_be};
use super::reads::Members;
use super::remedy::Remedy;
use super::rule::Rule;
use super::slice::{Ruleset, Slice, Stage};
use toolgate_model::guard::{Hook, Verdict};

/// The unknown parts of an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Missing {
    /// The unknown arguments of the call.
    pub arguments: Members,
    /// The content, if it is not the arguments: the result or a message.
    pub content: bool,
    /// The agent's reasoning.
    pub reasoning: bool,
    /// The address of the caller.
    pub address: bool,
    /// The labels that earlier calls left on the conversation.
    pub marks: bool,
    /// The number and the cost of the agent's calls.
    pub totals: bool,
    /// What was searched for in the missing content, and whether it was found: see [`Evaluation::found`].
    pub found: BTreeMap<String, bool>,
}

/// The result of re-evaluating an event of which not everything is known.
#[derive(Debug, Clone, PartialEq)]
pub enum Replayed {
    /// The verdict does not depend on what is missing.
    Known(Evaluation),
    /// The verdict may depend on it.
    Undecidable {
        /// The rules that read what is missing.
        policies: Vec<String>,
        /// The missing parts that they read.
        missing: Vec<String>,
    },
}

/// Re-evaluates an event of which not everything is known. Rules in shadow mode that read something missing are
/// skipped.
pub fn judge_known(slice: &Slice, facts: &Facts<'_>, missing: &Missing) -> Replayed {
    let Ok(stage) = &slice.stage else { return Replayed::Known(judge(slice, facts)) };
    let (seeing, mut blind) = split(slice.rules.enforced.rules.values(), stage, missing);
    let (watching, _) = split(slice.rules.shadow.rules.values(), stage, missing);
    let (Ok(seeing), Ok(watching)) = (Ruleset::of(seeing.into_iter()), Ruleset::of(watching.into_iter())) else {
        return undecidable(&blind);
    };
    // Whether a redaction rule applies can be known even if what it would redact is not.
    let content_is_missing = missing.content_of(stage.hook);
    let satisfied = evaluate(slice, stage, &seeing, facts, &facts.event.content).unwrap_or_default();
    let redacting = satisfied.iter().filter_map(|rule| match &rule.remedy {
        Some(Remedy::Redact(redaction)) if content_is_missing => Some((*rule, missing.found.get(&redaction.wanted))),
        _ => None,
    });
    let mut changing = Vec::new();
    for (rule, found) in redacting {
        match found {
            Some(true) => changing.push(rule),
            Some(false) => {}
            None => blind.extend(seeing.rules.get(rule.policy.id()).map(|rule| (rule, vec![content_name(stage.hook)]))),
        }
    }
    if !blind.is_empty() {
        // Only rules that apply to the original content count: the undecidable ones might have changed it.
        if !satisfied.iter().any(|rule| rule.remedy.is_none()) {
            return undecidable(&blind);
        }
    }
    let shadow = would_be(slice, stage, &watching, facts);
    let mut evaluation = Evaluation { shadow, ..enforce(slice, stage, &seeing, facts) };
    if let (Verdict::Pass { content: changed @ None, .. }, false) = (&mut evaluation.verdict, changing.is_empty()) {
        // That the content was modified is known, the modified content is not.
        *changed = Some(Box::new(facts.event.content.clone().into_owned()));
        evaluation.policies.extend(changing.into_iter().map(|rule| slice.name(rule)));
    }
    Replayed::Known(evaluation)
}

/// The name of an event's content.
fn content_name(hook: Hook) -> String {
    if hook == Hook::ToolCallRequest { "arguments" } else { "content" }.to_owned()
}

/// A rule with the missing parts that it reads.
type Blind<'r> = (&'r Arc<Rule>, Vec<String>);

fn split<'r>(
    rules: impl Iterator<Item = &'r Arc<Rule>>,
    stage: &Stage,
    missing: &Missing,
) -> (Vec<&'r Arc<Rule>>, Vec<Blind<'r>>) {
    let (mut seeing, mut blind) = (Vec::new(), Vec::new());
    for rule in rules {
        let unread = missing.of(rule, stage.hook);
        if unread.is_empty() {
            seeing.push(rule);
        } else {
            blind.push((rule, unread));
        }
    }
    (seeing, blind)
}

fn undecidable(blind: &[Blind<'_>]) -> Replayed {
    let mut missing: Vec<String> = blind.iter().flat_map(|(_, unread)| unread.iter().cloned()).collect();
    missing.sort();
    missing.dedup();
    Replayed::Undecidable { policies: blind.iter().map(|(rule, _)| rule.id.clone()).collect(), missing }
}

impl Missing {
    /// Whether part of the content is missing.
    fn content_of(&self, hook: Hook) -> bool {
        if hook == Hook::ToolCallRequest { !self.arguments.is_empty() } else { self.content }
    }

    /// The missing parts that a rule reads.
    fn of(&self, rule: &Rule, hook: Hook) -> Vec<String> {
        let reads = |names: &[&str]| rule.reads.any_of(names);
        let mut unread = Vec::new();
        if let Some(read) = rule.reads.attribute("arguments") {
            match (read, &self.arguments) {
                (Members::All, missing) if missing.is_empty() => {}
                (Members::Only(names), missing) => {
                    let gone = names.iter().filter(|name| missing.contains(name));
                    unread.extend(gone.map(|name| format!("arguments.{name}")));
                }
                (Members::All, _) => unread.push("arguments".to_owned()),
            }
        }
        let content = if hook == Hook::ToolCallRequest { "arguments" } else { "content" };
        let whole = [
            ("arguments", reads(&["argumentsText"]) && !self.arguments.is_empty()),
            (content, reads(&["detected"]) && self.content_of(hook)),
            ("content", reads(&["result", "text"]) && self.content),
            ("reasoning", reads(&["reasoning"]) && self.reasoning),
            ("address", reads(&["address"]) && self.address),
            ("history", reads(&["marks"]) && self.marks),
            ("history", reads(&["spent", "calls"]) && self.totals),
        ];
        unread.extend(whole.into_iter().filter(|(_, is_missing)| *is_missing).map(|(name, _)| name.to_owned()));
        unread.dedup();
        unread
    }
}
