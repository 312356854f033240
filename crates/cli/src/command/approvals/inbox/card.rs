//! The details of an approval. Arguments are shown completely.

use serde_json::{Map, Value};
use toolgate_model::time::Timestamp;

use super::text::{Line, Tone, cut, exact, shown, width, wrapped};
use crate::command::approvals::approval::{Approval, Level, Part, PartState};
use crate::command::diff::{Change, all_lines};

const INDENT: usize = 14;

pub(super) fn card(approval: &Approval, now: Timestamp, cells: usize) -> Vec<Line> {
    let mut card = Card { lines: Vec::new(), cells };
    card.field("Tool", Tone::Strong, &tool(approval));
    if !approval.description.is_empty() {
        card.field("Description", Tone::Plain, &approval.description);
    }
    if let Some(action) = &approval.action {
        card.field("Request", Tone::Plain, &format!("{} {}", action.method, action.host));
        card.field("Credential", Tone::Strong, &action.credential_label);
    }
    card.field("Caller", Tone::Plain, &asker(approval));
    if let Some(session) = &approval.session {
        card.field("Session", Tone::Plain, &format!("{} of {}", session.name, session.owner_id));
        card.field("Directory", Tone::Plain, session.workspace.as_deref().unwrap_or("not specified"));
    }
    card.field("Time left", Tone::Plain, &time_left(approval, now));
    card.approvers(approval);
    for reason in &approval.reasons {
        card.field("Reason", Tone::Plain, &format!("{} ({})", reason.text, reason.source));
    }
    if let Some(reason) = approval.no_offer_reason.as_ref().filter(|_| approval.is_pending()) {
        card.field("Scope", Tone::Plain, &format!("only this call: {reason}"));
    }
    let (tone, sign) = risk(approval.risk.level);
    card.field("Risk", tone, sign);
    for note in &approval.risk.notes {
        card.field("", tone, &format!("! {note}"));
    }
    if let Some(question) = &approval.question {
        card.heading("Question");
        card.literal("", &question.text());
        for (number, option) in question.options().iter().enumerate() {
            card.field(&format!("  {}", number + 1), Tone::Strong, option);
        }
    }
    card.parts(approval.parts.as_deref().unwrap_or_default());
    card.arguments(approval);
    card.lines
}

pub(super) fn risk(level: Level) -> (Tone, &'static str) {
    match level {
        Level::Low => (Tone::Good, "low"),
        Level::Medium => (Tone::Warning, "medium !"),
        Level::High => (Tone::Bad, "HIGH !!"),
    }
}

pub(super) fn time_left(approval: &Approval, now: Timestamp) -> String {
    let Some(expires) = approval.expires_at else { return "unlimited".to_owned() };
    let seconds = expires.as_millis().saturating_sub(now.as_millis()).div_euclid(1_000);
    match seconds {
        ..0 => "expired".to_owned(),
        0..3_600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}", seconds / 3_600, seconds / 60 % 60),
    }
}

fn tool(approval: &Approval) -> String {
    match &approval.category {
        Some(category) => format!("{} ({category})", approval.tool),
        None => approval.tool.clone(),
    }
}

fn asker(approval: &Approval) -> String {
    match &approval.actor_id {
        Some(actor) if *actor != approval.agent_id => format!("{} (called by {actor})", approval.agent_id),
        _ => approval.agent_id.clone(),
    }
}

struct Card {
    lines: Vec<Line>,
    cells: usize,
}

impl Card {
    fn heading(&mut self, text: &str) {
        self.lines.push(Line::default());
        self.lines.push(Line::of(Tone::Strong, text));
    }

    /// A name and its value, wrapped.
    fn field(&mut self, name: &str, tone: Tone, value: &str) {
        let rows = wrapped(value, self.cells.saturating_sub(INDENT));
        for (number, row) in rows.iter().enumerate() {
            let name = if number == 0 { name } else { "" };
            self.lines.push(Line::of(Tone::Faint, &column(name, INDENT)).and(tone, row));
        }
    }

    fn approvers(&mut self, approval: &Approval) {
        if let Some(approvers) = approval.approvers.filter(|approvers| approvers.needed > 1) {
            self.field("Approvers", Tone::Plain, &format!("{} of {} have approved", approvers.given, approvers.needed));
        }
        if !approval.groups.is_empty() {
            self.field("Required", Tone::Plain, &format!("members of {}", approval.groups.join(", ")));
        }
        if approval.separation_of_duties {
            self.field("", Tone::Plain, "nobody who was involved in the call");
        }
        for vote in &approval.votes {
            let reason = vote.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            self.field(
                "Decision",
                Tone::Plain,
                &format!("{} by {} ({}){reason}", vote.decision, vote.by, vote.channel),
            );
        }
        if !approval.is_pending() {
            let reason = approval.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            self.field("Status", Tone::Strong, &format!("{}{reason}", approval.ending()));
        }
    }

    fn parts(&mut self, parts: &[Part]) {
        if parts.is_empty() {
            return;
        }
        self.heading("Commands");
        for part in parts {
            let (tone, sign) = match part.state {
                PartState::Granted => (Tone::Good, "= granted"),
                PartState::New => (Tone::Warning, "+ new"),
                PartState::Risky => (Tone::Bad, "! risky"),
            };
            self.field(&format!("  {sign}"), tone, &part.text);
            if let Some(why) = part.why.as_ref().filter(|why| !why.is_empty()) {
                self.field("", Tone::Faint, &format!("  {why}"));
            }
        }
    }

    fn arguments(&mut self, approval: &Approval) {
        let Some(arguments) = &approval.arguments else {
            self.heading("Arguments");
            self.lines.push(Line::of(Tone::Warning, "  not shown: only approvers see them, until a day after the end"));
            return;
        };
        if let Some(original) = &approval.original_arguments {
            self.heading("Modified by a guardian (- requested, + will be used)");
            self.changed_members(original, arguments);
        }
        let edits = edits(arguments);
        for (old, new) in &edits {
            self.heading("Edit (- removed, + added)");
            self.change("", old, new);
        }
        self.heading("Arguments (exact)");
        if arguments.is_empty() {
            self.lines.push(Line::of(Tone::Plain, "  none"));
        }
        for (name, value) in arguments {
            let in_edit = !edits.is_empty() && matches!(name.as_str(), "old_string" | "new_string");
            if in_edit {
                self.field(&format!("  {name}"), Tone::Faint, "shown in the edit above");
            } else {
                self.value(name, value);
            }
        }
    }

    fn value(&mut self, name: &str, value: &Value) {
        match value {
            Value::String(text) => self.literal(&format!("  {name}"), text),
            other => {
                self.name_if_long(name);
                self.field(&short_name(&format!("  {name}")), Tone::Plain, &other.to_string());
            }
        }
    }

    /// Marks each line of the text, so that none can be mistaken for a part of the card.
    fn literal(&mut self, name: &str, text: &str) {
        self.name_if_long(name.trim_start());
        let room = self.cells.saturating_sub(INDENT + 2);
        for (number, line) in text.split('\n').enumerate() {
            for (row_number, row) in wrapped(&exact(line), room).iter().enumerate() {
                let name = if number + row_number == 0 { short_name(name) } else { String::new() };
                // A wrapped row is not a new line of the text.
                let border = if row_number == 0 { "│ " } else { "┊ " };
                let line = Line::of(Tone::Faint, &column(&name, INDENT)).and(Tone::Faint, border);
                self.lines.push(line.and(Tone::Plain, row));
            }
        }
    }

    /// A name that does not fit beside its value is shown above it, so that no two names look alike.
    fn name_if_long(&mut self, name: &str) {
        if short_name(&format!("  {name}")).is_empty() {
            let rows = wrapped(name, self.cells.saturating_sub(2));
            self.lines.extend(rows.iter().map(|row| Line::of(Tone::Faint, "  ").and(Tone::Faint, row)));
        }
    }

    fn changed_members(&mut self, original: &Map<String, Value>, arguments: &Map<String, Value>) {
        let mut names: Vec<&String> = original.keys().chain(arguments.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            let (old, new) = (original.get(name), arguments.get(name));
            if old != new {
                self.change(name, &as_text(old), &as_text(new));
            }
        }
    }

    fn change(&mut self, name: &str, old: &str, new: &str) {
        if !name.is_empty() {
            self.lines.push(Line::of(Tone::Faint, &format!("  {name}")));
        }
        let room = self.cells.saturating_sub(4);
        for change in all_lines(old, new) {
            let (tone, sign, line) = match change {
                Change::Same(line) => (Tone::Faint, "  │ ", line),
                Change::Old(line) => (Tone::Bad, "- │ ", line),
                Change::New(line) => (Tone::Good, "+ │ ", line),
            };
            for (number, row) in wrapped(&exact(line), room).iter().enumerate() {
                let sign = if number == 0 { sign } else { "  ┊ " };
                self.lines.push(Line::of(tone, sign).and(tone, row));
            }
        }
    }
}

/// The edits that a call of an editing tool makes.
fn edits(arguments: &Map<String, Value>) -> Vec<(String, String)> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
    text("old_string").zip(text("new_string")).into_iter().collect()
}

fn as_text(value: Option<&Value>) -> String {
    match value {
        None => "(nothing)".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// A name with space behind it; empty where it does not fit.
fn short_name(name: &str) -> String {
    if width(&shown(name)) < INDENT { name.to_owned() } else { String::new() }
}

fn column(text: &str, cells: usize) -> String {
    let text = cut(&shown(text), cells.saturating_sub(1));
    let blanks = cells.saturating_sub(width(&text));
    format!("{text}{}", " ".repeat(blanks))
}

#[cfg(test)]
mod tests;
