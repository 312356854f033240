//! How the tour is told: headings, sentences, requests, answers and lines of the log, within the width of a terminal.
//! Colours only where a terminal shows them.

use std::io::IsTerminal;

use serde_json::Value;

use super::Failure;
use crate::output::{at, clean, plain, print};

/// The widest line.
const WIDTH: usize = 96;
/// How far to the right requests and answers stand, behind whose they are.
const MARGIN: usize = 12;

/// A colour, or the like.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ink {
    Bold,
    Cyan,
    Green,
    Grey,
    Plain,
    Yellow,
}

/// The members of an object in the order in which they are to be shown.
pub(super) type Members = Vec<(&'static str, Value)>;

/// Where the tour is told.
pub(super) struct Narration {
    coloured: bool,
}

impl Narration {
    /// On standard output, with colours where that is a terminal and nobody asked for none.
    pub(super) fn of_terminal() -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self { coloured: std::io::stdout().is_terminal() && !set("NO_COLOR") && !dumb }
    }

    /// A new part.
    pub(super) fn heading(&self, text: &str) -> Result<(), Failure> {
        self.line(&format!("\n{}", self.painted(Ink::Bold, text)))
    }

    /// Sentences.
    pub(super) fn prose(&self, text: &str) -> Result<(), Failure> {
        self.line(&wrapped(text, "  ", "  "))
    }

    /// An empty line.
    pub(super) fn gap(&self) -> Result<(), Failure> {
        self.line("")
    }

    /// Somebody asks the gate for something.
    pub(super) fn request(&self, who: &str, method: &str, path: &str, body: &Members) -> Result<(), Failure> {
        let text = if body.is_empty() {
            format!("{method} {path}")
        } else {
            format!("{method} {path} {}", inline_members(body))
        };
        self.entry(who, "→", &text, Ink::Cyan)
    }

    /// What the gate answers.
    pub(super) fn answer(&self, status: u16, body: &Members) -> Result<(), Failure> {
        let ink = if status < 300 { Ink::Green } else { Ink::Yellow };
        self.entry("gate", "←", &format!("{status} {}", inline_members(body)), ink)
    }

    /// What it wrote down.
    pub(super) fn log(&self, events: &[Value]) -> Result<(), Failure> {
        events.iter().try_for_each(|event| self.entry("log", "≡", &event_line(event), Ink::Grey))
    }

    /// A line of its own, in a colour.
    pub(super) fn note(&self, ink: Ink, text: &str) -> Result<(), Failure> {
        self.line(&self.painted(ink, &wrapped(text, "  ", "  ")))
    }

    fn entry(&self, who: &str, mark: &str, text: &str, ink: Ink) -> Result<(), Failure> {
        let first = format!("  {who:>width$} {mark} ", width = MARGIN - 5);
        let text = wrapped(&shortened(&clean(text)), &first, &" ".repeat(MARGIN));
        self.line(&self.painted(ink, &text))
    }

    fn painted(&self, ink: Ink, text: &str) -> String {
        let code = match ink {
            Ink::Bold => "1",
            Ink::Cyan => "36",
            Ink::Green => "32",
            Ink::Grey => "90",
            Ink::Yellow => "33",
            Ink::Plain => return text.to_owned(),
        };
        if self.coloured { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn line(&self, text: &str) -> Result<(), Failure> {
        print(text).map_err(|error| Failure::io("standard output", error))
    }
}

/// An event in one line: its number, its type, who did it, and what a reader wants to know.
fn event_line(event: &Value) -> String {
    let data = at(event, "data");
    let of = |name: &str| plain(at(data, name));
    let told = match at(event, "type").as_str().unwrap_or_default() {
        "tool.invoked" => format!("{}.{}: {}, the service said {}", of("service"), of("tool"), of("status"), of("http_status")),
        "tool.denied" => format!("{}: {} at {}", of("tool"), of("error_code"), of("stage")),
        "grant.delegated" => format!("{} to {}: {}", of("source_grant_id"), of("target_agent_id"), of("scopes")),
        "grant.revoked" => format!("{}, and {} below it", of("grant_id"), of("cascade_count")),
        _ => String::new(),
    };
    let head = format!("#{} {} by {}", plain(at(event, "sequence")), plain(at(event, "type")), plain(at(event, "actor")));
    if told.is_empty() { head } else { format!("{head}: {told}") }
}

/// A JSON value on one line, with room to breathe.
fn inline(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{}: {}", Value::from(name.as_str()), inline(value))).collect();
            format!("{{{}}}", members.join(", "))
        }
        Value::Array(elements) => format!("[{}]", elements.iter().map(inline).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

fn inline_members(members: &Members) -> String {
    let members: Vec<String> =
        members.iter().map(|(name, value)| format!("{}: {}", Value::from(*name), inline(value))).collect();
    format!("{{{}}}", members.join(", "))
}

/// The text in lines of at most the width, broken at blanks.
fn wrapped(text: &str, first: &str, rest: &str) -> String {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split(' ') {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(std::mem::replace(&mut line, rest.to_owned()));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    lines.push(line);
    lines.join("\n")
}

/// The text with every id cut to its kind and its last letters.
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
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_cut_and_everything_else_stays() {
        let text = "grant grant_01M7FJG722FWVSARERX3HED9Q3, `parameters.amount` (5000) inv_01M7FJG8ZPEQ28XV0TNBHDW614";
        assert_eq!(shortened(text), "grant grant_…D9Q3, `parameters.amount` (5000) inv_…W614");
    }

    #[test]
    fn no_line_is_wider_than_the_width() {
        let text = wrapped(&"word ".repeat(60), "  first → ", "          ");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("          word")), "{text}");
    }

    #[test]
    fn json_is_told_on_one_line() {
        assert_eq!(inline(&json!({"a": [1, "b"], "c": {}})), r#"{"a": [1, "b"], "c": {}}"#);
    }
}
