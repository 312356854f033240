//! Prints the tour: headings, text, requests, responses and events, within the width of a terminal, and with colours if there
//! is one.

use std::io::IsTerminal;

use serde_json::{Value, json};
use toolgate_cli::Failure;
use toolgate_cli::output::{clean, plain, print};
use toolgate_model::event::{EventPayload, StoredEvent};

const WIDTH: usize = 80;
/// The indentation of requests and responses, after their source.
const MARGIN: usize = 12;

#[derive(Debug, Clone, Copy)]
pub(super) enum Style {
    Bold,
    Cyan,
    Green,
    Grey,
    Plain,
    Yellow,
}

/// The members of an object, in display order.
pub(super) type Members = Vec<(&'static str, Value)>;

pub(super) struct Narration {
    coloured: bool,
}

impl Narration {
    /// Colours are used if standard output is a terminal and `NO_COLOR` is not set.
    pub(super) fn of_terminal() -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self { coloured: std::io::stdout().is_terminal() && !set("NO_COLOR") && !dumb }
    }

    pub(super) fn heading(&self, text: &str) -> Result<(), Failure> {
        self.line(&format!("\n{}", self.painted(Style::Bold, text)))
    }

    pub(super) fn prose(&self, text: &str) -> Result<(), Failure> {
        self.note(Style::Plain, text)
    }

    pub(super) fn gap(&self) -> Result<(), Failure> {
        self.line("")
    }

    /// Text to copy, which is not wrapped.
    pub(super) fn verbatim(&self, text: &str) -> Result<(), Failure> {
        self.line(&self.painted(Style::Cyan, &format!("  {text}")))
    }

    pub(super) fn closing(&self, kept: bool) -> Result<(), Failure> {
        self.line(&format!(
            "\n{}",
            self.painted(Style::Bold, "All results were as expected, and nothing is left behind.")
        ))?;
        if kept {
            return Ok(());
        }
        self.line("`toolgate demo --keep` keeps it running; `toolgate serve` starts your own gate.")
    }

    pub(super) fn request(&self, who: &str, method: &str, path: &str, body: &Members) -> Result<(), Failure> {
        self.entry(who, "→", &[&[format!("{method} {path}")], units(body).as_slice()].concat(), Style::Cyan)
    }

    pub(super) fn response(&self, status: u16, body: &Members) -> Result<(), Failure> {
        let style = if status < 300 { Style::Green } else { Style::Yellow };
        self.entry("gate", "←", &[&[status.to_string()], units(body).as_slice()].concat(), style)
    }

    pub(super) fn log(&self, events: &[StoredEvent]) -> Result<(), Failure> {
        events.iter().try_for_each(|event| self.entry("log", "≡", &[event_line(event)], Style::Grey))
    }

    /// Only sequences and types.
    pub(super) fn log_in_short(&self, events: &[StoredEvent]) -> Result<(), Failure> {
        let number = |event: Option<&StoredEvent>| event.map_or_else(String::new, |event| event.sequence.to_string());
        let mut units = vec![format!("#{} to #{}:", number(events.first()), number(events.last()))];
        let types: Vec<String> = events.iter().map(|event| clean(event.event.payload.name())).collect();
        units.push(types.join(", "));
        self.entry("log", "≡", &units, Style::Grey)
    }

    pub(super) fn note(&self, style: Style, text: &str) -> Result<(), Failure> {
        self.line(&self.painted(style, &wrapped(&[text.to_owned()], "  ", "  ")))
    }

    /// A source, and units of text that are kept together if they fit.
    fn entry(&self, who: &str, mark: &str, units: &[String], style: Style) -> Result<(), Failure> {
        let first = format!("  {who:>width$} {mark} ", width = MARGIN - 5);
        let units: Vec<String> = units.iter().map(|unit| shortened(&clean(unit))).collect();
        self.line(&self.painted(style, &wrapped(&units, &first, &" ".repeat(MARGIN))))
    }

    fn painted(&self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Bold => "1",
            Style::Cyan => "36",
            Style::Green => "32",
            Style::Grey => "90",
            Style::Yellow => "33",
            Style::Plain => return text.to_owned(),
        };
        if self.coloured { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn line(&self, text: &str) -> Result<(), Failure> {
        print(text).map_err(|error| Failure::io("standard output", error))
    }
}

/// An event in one line: sequence, type, actor and main attributes.
fn event_line(stored: &StoredEvent) -> String {
    let event = &stored.event;
    let text = match &event.payload {
        EventPayload::ToolInvoked(invoked) => {
            let http = plain(&json!(invoked.http_status));
            Some(format!("{}, {}, HTTP {http}", clean(&invoked.tool), invoked.status.as_str()))
        }
        EventPayload::ToolDenied(denied) => Some(format!("{}, {}", clean(&denied.tool), clean(&denied.error_code))),
        EventPayload::GrantDelegated(delegated) => {
            let (source, target) = (delegated.source_grant_id, &delegated.target_agent_id);
            Some(format!("{source} to {target}: {}", plain(&json!(delegated.scopes))))
        }
        EventPayload::GrantRevoked(revoked) => {
            Some(format!("{}, and {} below it", revoked.grant_id, revoked.cascade_count))
        }
        _ => None,
    };
    let head = format!("#{} {} by {}", stored.sequence, clean(event.payload.name()), event.actor);
    text.map_or(head.clone(), |text| format!("{head}: {text}"))
}

/// A JSON value on one line, with spaces.
fn inline(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{}: {}", Value::from(name.as_str()), inline(value)))
                .collect();
            format!("{{{}}}", members.join(", "))
        }
        Value::Array(elements) => format!("[{}]", elements.iter().map(inline).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

fn units(members: &Members) -> Vec<String> {
    let last = members.len().saturating_sub(1);
    let unit = |(place, (name, value)): (usize, &(&'static str, Value))| {
        let (before, behind) = (if place == 0 { "{" } else { "" }, if place == last { "}" } else { "," });
        format!("{before}{}: {}{behind}", Value::from(*name), inline(value))
    };
    members.iter().enumerate().map(unit).collect()
}

/// Wraps between units, and at spaces in units that are longer than a line.
fn wrapped(units: &[String], first: &str, rest: &str) -> String {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut empty = true;
    let room = |line: &str, empty: bool, text: &str| {
        line.chars().count() + usize::from(!empty) + text.chars().count() <= WIDTH
    };
    for unit in units {
        let whole = room(rest, true, unit);
        let words: Vec<&str> = if whole { vec![unit] } else { unit.split(' ').collect() };
        for word in words {
            if !empty && !room(&line, empty, word) {
                lines.push(std::mem::replace(&mut line, rest.to_owned()));
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
    }
    lines.push(line);
    lines.join("\n")
}

/// Shortens ids to their prefix and last characters.
fn shortened(text: &str) -> String {
    let mut short = String::with_capacity(text.len());
    for word in text.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_') {
        let id = word.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let behind = word.strip_prefix(id).unwrap_or_default();
        match id.rsplit_once('_') {
            Some((kind, body)) if body.len() == 26 && body.bytes().all(|byte| !byte.is_ascii_lowercase()) => {
                let last: String = body.chars().skip(22).collect();
                short.push_str(&format!("{kind}_…{last}"));
            }
            _ => short.push_str(id),
        }
        short.push_str(behind);
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_cut_and_everything_else_stays() {
        let text = "grant grant_01M7FJG722FWVSARERX3HED9Q3, `parameters.amount` (5000) inv_01M7FJG8ZPEQ28XV0TNBHDW614";
        assert_eq!(shortened(text), "grant grant_…D9Q3, `parameters.amount` (5000) inv_…W614");
    }

    #[test]
    fn no_line_is_wider_than_the_width() {
        let text = wrapped(&[["word"; 60].join(" ")], "  first → ", "          ");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("          word")), "{text}");
    }

    #[test]
    fn members_stay_together_where_there_is_room() {
        let members = vec![("tool", json!("a".repeat(40))), ("parameters", json!({"amount": 2000, "currency": "usd"}))];
        let text = wrapped(&units(&members), "> ", "  ");
        let expected = format!(
            "> {{\"tool\": \"{}\",\n  \"parameters\": {{\"amount\": 2000, \"currency\": \"usd\"}}}}",
            "a".repeat(40)
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn json_is_told_on_one_line() {
        assert_eq!(inline(&json!({"a": [1, "b"], "c": {}})), r#"{"a": [1, "b"], "c": {}}"#);
    }
}
