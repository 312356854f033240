//! Panels that replace the card: the confirmation of a standing approval, and the list of keys.

use super::press::prefixes;
use super::state::Rule;
use super::text::{Line, Tone, wrapped};
use crate::command::approvals::approval::{Approval, Offer};
use toolgate_model::approval::RequestedReach as Reach;

const KEYS: [(&str, &str); 14] = [
    ("↑ ↓ k j", "select a call"),
    ("PgUp PgDn", "scroll; also Space, Home and End"),
    ("o", "approve this call once"),
    ("s", "approve, also for later calls of this tool in this session"),
    ("w", "the same, in this directory"),
    ("u", "the same, for this agent everywhere"),
    ("p", "approve, also for later commands with the same prefix"),
    ("d", "deny"),
    ("r", "deny with a reason"),
    ("a", "answer the question"),
    ("y", "confirm the standing approval"),
    ("Esc", "go back without sending anything"),
    ("?", "this list"),
    ("q Ctrl-C", "quit; calls keep waiting"),
];

pub(super) fn help(cells: usize) -> Vec<Line> {
    let row = |(key, does): &(&str, &str)| Line::of(Tone::Strong, &format!("  {key:<12}")).and(Tone::Plain, does);
    let mut lines: Vec<Line> = KEYS.iter().map(row).collect();
    lines.push(Line::default());
    let never = "Enter, pastes, several keys at once, and keys within half a second after the card has changed by itself decide \
        nothing. s, w, u and p show the exact standing approval first. Commands are marked = granted, + new, ! risky.";
    lines.extend(words(never, cells).iter().map(|row| Line::of(Tone::Faint, row)));
    lines
}

pub(super) fn confirmation(approval: &Approval, rule: &Rule, cells: usize) -> Vec<Line> {
    let offer = offer(approval, rule);
    let mut lines =
        vec![Line::of(Tone::Strong, "Approve this call, and create this standing approval?"), Line::default()];
    let mut say = |name: &str, tone: Tone, text: &str| {
        for (number, row) in wrapped(text, cells.saturating_sub(12)).iter().enumerate() {
            let name = if number == 0 { name } else { "" };
            lines.push(Line::of(Tone::Faint, &format!("{name:<12}")).and(tone, row));
        }
    };
    say("Covers", Tone::Warning, &sentence(approval, rule, offer));
    say("Expires", Tone::Plain, "never; revoke it with `toolgate approvals standing revoke`");
    for example in offer.map(|offer| offer.matches.as_slice()).unwrap_or_default() {
        say("+ covered", Tone::Good, example);
    }
    for example in offer.map(|offer| offer.does_not_match.as_slice()).unwrap_or_default() {
        say("- excluded", Tone::Bad, example);
    }
    lines.push(Line::default());
    let others = if prefixes(approval).count() > 1 && rule.prefix.is_some() { " · p another prefix" } else { "" };
    lines.push(Line::of(Tone::Strong, &format!("y confirm · Esc cancel · s w u another reach{others}")));
    lines
}

fn offer<'a>(approval: &'a Approval, rule: &Rule) -> Option<&'a Offer> {
    match rule.prefix {
        Some(number) => approval.offers.iter().filter(|offer| offer.prefix().is_some()).nth(number),
        None => approval.offers.iter().find(|offer| offer.prefix().is_none()),
    }
}

/// Worded as in `toolgate approvals standing list`. The text of the offer is for one reach, and another one may be selected.
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

/// Wraps a text between words.
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
