//! Renders the screen: pending approvals above, the selected one below, keys at the bottom. Every line has the width of the
//! terminal, so that it overwrites the previous one.

use toolgate_model::time::Timestamp;

use super::card::{risk, time_left};
use super::press::chosen;
use super::state::{Inbox, Link, Mode, Purpose};
use super::text::{Line, Tone, cut, shown, width};
use crate::command::approvals::approval::Approval;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: u16,
    pub(super) rows: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) list: usize,
    pub(super) pane: usize,
}

/// The title, the line between list and pane, the message and the keys.
const FRAME: usize = 4;
/// Below this there is no pane, so that nothing can be approved.
const MIN_COLUMNS: u16 = 30;

impl Layout {
    /// The list takes up to a third.
    pub(super) fn of(size: Size, waiting: usize) -> Self {
        let rows = usize::from(size.rows);
        let list = waiting.clamp(1, (rows / 3).max(1));
        let pane = if size.columns < MIN_COLUMNS { 0 } else { rows.saturating_sub(FRAME + list) };
        Self { list, pane }
    }
}

pub(super) fn screen(inbox: &Inbox, now: Timestamp) -> Vec<Line> {
    let layout = Layout::of(inbox.size, inbox.waiting.len());
    let mut lines = vec![title(inbox)];
    lines.extend(list(inbox, layout.list, now));
    lines.push(border(inbox));
    let mut pane: Vec<Line> = inbox.pane(now).into_iter().skip(inbox.scroll).take(layout.pane).collect();
    pane.resize(layout.pane, Line::default());
    lines.extend(pane);
    lines.push(message(inbox, now));
    lines.push(keys(inbox));
    if layout.pane == 0 {
        lines = vec![Line::of(Tone::Warning, "the terminal is too small")];
    }
    lines.resize(usize::from(inbox.size.rows), Line::default());
    lines.iter().map(|line| line.fitted(usize::from(inbox.size.columns))).collect()
}

fn title(inbox: &Inbox) -> Line {
    let line = Line::of(Tone::Strong, "Toolgate approvals")
        .and(Tone::Plain, &format!(" · {} pending · ", inbox.waiting.len()));
    match &inbox.link {
        Link::Connecting => line.and(Tone::Faint, &format!("connecting to {}", inbox.url)),
        Link::Live => line.and(Tone::Good, "live").and(Tone::Faint, &format!(" · {}", inbox.url)),
        Link::Lost(why) => line.and(Tone::Bad, &format!("! NOT LIVE, retrying: {why}")),
    }
}

/// As many rows as fit, including the selected one.
fn list(inbox: &Inbox, rows: usize, now: Timestamp) -> Vec<Line> {
    let place = inbox.place().unwrap_or(0);
    let first = place.saturating_sub(rows.saturating_sub(1));
    let shown = inbox.waiting.iter().enumerate().skip(first).take(rows);
    let mut lines: Vec<Line> = shown.map(|(number, approval)| row(approval, number == place, inbox, now)).collect();
    lines.resize(rows, Line::default());
    lines
}

fn row(approval: &Approval, is_chosen: bool, inbox: &Inbox, now: Timestamp) -> Line {
    let (risk_tone, risk_sign) = risk(approval.risk.level);
    let tone = |tone| if is_chosen { Tone::Chosen } else { tone };
    let sending = inbox.sending.as_ref() == Some(&approval.id);
    let time = if sending { "sending".to_owned() } else { time_left(approval, now) };
    Line::of(tone(Tone::Plain), if is_chosen { "> " } else { "  " })
        .and(tone(Tone::Plain), &column(&time, 9))
        .and(tone(risk_tone), &column(risk_sign, 10))
        .and(tone(Tone::Plain), &column(&approval.agent_id, 18))
        .and(tone(Tone::Strong), &column(&approval.tool, 26))
        .and(tone(Tone::Plain), &approval.description)
}

fn column(text: &str, cells: usize) -> String {
    let text = cut(&shown(text), cells.saturating_sub(1));
    format!("{text}{}", " ".repeat(cells.saturating_sub(width(&text))))
}

fn border(inbox: &Inbox) -> Line {
    let name = match (&inbox.mode, &inbox.selected) {
        (Mode::Help, _) => "Keys",
        (_, Some(id)) => id.as_str(),
        (_, None) => "",
    };
    let columns = usize::from(inbox.size.columns);
    Line::of(Tone::Faint, "── ").and(Tone::Strong, name).and(Tone::Faint, &format!(" {}", "─".repeat(columns)))
}

fn message(inbox: &Inbox, now: Timestamp) -> Line {
    if let Some((tone, text)) = &inbox.message {
        return Line::of(*tone, text);
    }
    match inbox.lines_below(now) {
        0 => Line::of(Tone::Faint, "Enter, and keys within 0.5 s after the card has changed by itself, are ignored"),
        below => Line::of(Tone::Warning, &format!("▼ {below} more lines (PgDn)")),
    }
}

fn keys(inbox: &Inbox) -> Line {
    let columns = usize::from(inbox.size.columns);
    match &inbox.mode {
        _ if inbox.subject_is_gone() => Line::of(Tone::Warning, "Esc back · nothing is sent"),
        Mode::Help => Line::of(Tone::Faint, "Esc back"),
        Mode::Confirm { .. } => Line::of(Tone::Faint, "y confirm · Esc back"),
        Mode::Browse => Line::of(
            Tone::Faint,
            "o once · d deny · r deny with reason · s session · w directory · u always · p prefix · a answer · ? help · \
             q quit",
        ),
        Mode::Write { purpose: Purpose::Reason, text, .. } => writing("Reason: ", text, columns),
        Mode::Write { approval, purpose: Purpose::Answer, text } => {
            let options = inbox.approval(approval).and_then(|approval| approval.question.as_ref());
            let options = options.map(|question| question.options()).unwrap_or_default();
            let meant = chosen(text.trim(), &options);
            let label = if meant == text.trim() { "Answer: ".to_owned() } else { format!("Answer ({meant}): ") };
            writing(&label, text, columns)
        }
    }
}

/// Shows the end of the input.
fn writing(label: &str, text: &str, columns: usize) -> Line {
    let text = shown(text);
    let room = columns.saturating_sub(width(&shown(label)) + 2);
    let mut letters: Vec<char> = text.chars().collect();
    while width(&letters.iter().collect::<String>()) > room && !letters.is_empty() {
        letters.remove(0);
    }
    Line::of(Tone::Strong, label).and(Tone::Plain, &letters.iter().collect::<String>()).and(Tone::Strong, "_")
}

#[cfg(test)]
mod tests;
