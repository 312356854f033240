//! What takes the place of the card: the rule that is about to stand, and the list of keys.

use super::press::prefixes;
use super::state::Rule;
use super::text::{Line, Tone, wrapped};
use crate::command::approvals::approval::{Approval, Offer};
use toolgate_model::approval::RequestedReach as Reach;

const KEYS: [(&str, &str); 14] = [
    ("↑ ↓ k j", "choose a call"),
    ("PgUp PgDn", "read on; Space, Home and End too"),
    ("o", "approve this call, once"),
    ("s", "approve, and let later calls of this tool pass in this session"),
    ("w", "the same in this directory"),
    ("u", "the same for this agent everywhere"),
    ("p", "approve, and let commands pass that begin alike"),
    ("d", "deny"),
    ("r", "deny and say why"),
    ("a", "answer the question"),
    ("y", "let the rule stand that is shown"),
    ("Esc", "go back without sending anything"),
    ("?", "this list"),
    ("q Ctrl-C", "leave; what waits goes on waiting"),
];

/// The keys, and what is never taken for one.
pub(super) fn help(cells: usize) -> Vec<Line> {
    let row = |(key, does): &(&str, &str)| Line::of(Tone::Strong, &format!("  {key:<12}")).and(Tone::Plain, does);
    let mut lines: Vec<Line> = KEYS.iter().map(row).collect();
    lines.push(Line::default());
    let never = "Enter decides nothing, and neither do pastes, several keys at once, or keys within half a second after the \
        card has changed by itself. s, w, u and p show the exact rule first. Signs on commands: = granted, + new, ! risky.";
    lines.extend(words(never, cells).iter().map(|row| Line::of(Tone::Faint, row)));
    lines
}

/// The exact rule that would stand, with examples.
pub(super) fn confirmation(approval: &Approval, rule: &Rule, cells: usize) -> Vec<Line> {
    let offer = offer(approval, rule);
    let mut lines = vec![Line::of(Tone::Strong, "Approve this call, and let this rule stand?"), Line::default()];
    let mut say = |name: &str, tone: Tone, text: &str| {
        for (number, row) in wrapped(text, cells.saturating_sub(12)).iter().enumerate() {
            let name = if number == 0 { name } else { "" };
            lines.push(Line::of(Tone::Faint, &format!("{name:<12}")).and(tone, row));
        }
    };
    say("Rule", Tone::Warning, &sentence(approval, rule, offer));
    say("How long", Tone::Plain, "until it is taken back (toolgate approvals standing revoke)");
    for example in offer.map(|offer| offer.matches.as_slice()).unwrap_or_default() {
        say("+ passes", Tone::Good, example);
    }
    for example in offer.map(|offer| offer.does_not_match.as_slice()).unwrap_or_default() {
        say("- asks", Tone::Bad, example);
    }
    lines.push(Line::default());
    let others = if prefixes(approval).count() > 1 && rule.prefix.is_some() { " · p another prefix" } else { "" };
    lines.push(Line::of(Tone::Strong, &format!("y yes · Esc no · s w u another reach{others}")));
    lines
}

/// The offer that a rule takes up.
fn offer<'a>(approval: &'a Approval, rule: &Rule) -> Option<&'a Offer> {
    match rule.prefix {
        Some(number) => approval.offers.iter().filter(|offer| offer.prefix().is_some()).nth(number),
        None => approval.offers.iter().find(|offer| offer.prefix().is_none()),
    }
}

/// The rule in the words in which `toolgate approvals standing list` shows it. The gate's own words in the offer are about
/// one reach only, and the person may have chosen another.
fn sentence(approval: &Approval, rule: &Rule, offer: Option<&Offer>) -> String {
    let which = match offer.and_then(Offer::prefix) {
        Some(prefix) => format!("commands of {} that begin with `{prefix}`", approval.tool),
        None => format!("every call of {}", approval.tool),
    };
    let session = approval.session.as_ref();
    let far = match rule.reach {
        Reach::Session => session.map(|session| format!("in session {}", session.name)),
        Reach::Workspace => session.and_then(|session| Some(format!("in {}", session.workspace.as_ref()?))),
        Reach::User => Some("everywhere".to_owned()),
    };
    format!("{which} by {}, {}", approval.agent_id, far.unwrap_or_default())
}

/// A sentence of ours in rows, broken between words.
fn words(text: &str, cells: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match rows.last_mut().filter(|row| row.len() + 1 + word.len() <= cells) {
            Some(row) => {
                row.push(' ');
                row.push_str(word);
            }
            None => rows.push(word.to_owned()),
        }
    }
    rows
}
