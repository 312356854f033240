//! Output of commands: tables or JSON on standard output, messages on standard error. Control characters in untrusted content
//! are escaped.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use serde_json::Value;

use self::grid::{Excess, arranged};

mod grid;

/// The result of a command, as JSON and as text.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Printed with `--json`.
    pub value: Value,
    pub text: String,
    /// Printed on standard error, without `--json`.
    pub aside: String,
    /// Makes the exit status 1.
    pub refused: bool,
}

impl Report {
    pub fn new(value: impl Serialize, text: impl Into<String>) -> Self {
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        Self { value, text: text.into(), aside: String::new(), refused: false }
    }

    #[must_use]
    pub fn with_aside(self, aside: impl Into<String>) -> Self {
        Self { aside: aside.into(), ..self }
    }

    #[must_use]
    pub fn refused_if(self, refused: bool) -> Self {
        Self { refused, ..self }
    }

    /// The text lists all members of the value.
    pub fn details(value: impl Serialize) -> Self {
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        let text = details(&value);
        Self::new(value, text)
    }

    pub fn print(&self, json: bool) -> io::Result<()> {
        // A command that has printed its own lines has no value.
        let json = json && !self.value.is_null();
        let text = if json { json_text(&self.value) } else { self.text.clone() };
        if !text.is_empty() {
            print(text.trim_end_matches('\n'))?;
        }
        if !json && !self.aside.is_empty() {
            say(self.aside.trim_end_matches('\n'));
        }
        Ok(())
    }
}

/// Prints to standard output. A closed pipe, as with `head`, is not an error.
pub fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Prints to standard error; failures cannot be reported.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Escapes characters that could change how a terminal displays the text.
pub fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() || is_deceptive(letter) {
            cleaned.extend(letter.escape_unicode());
        } else {
            cleaned.push(letter);
        }
    }
    cleaned
}

/// [`clean`] for several lines.
pub fn clean_lines(text: &str) -> String {
    text.lines().map(clean).collect::<Vec<_>>().join("\n")
}

/// Formats JSON, with characters that affect a terminal escaped as in JSON.
pub fn json_text(value: &Value) -> String {
    let text = format!("{value:#}");
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter != '\n' && (letter.is_control() || is_deceptive(letter)) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(letter);
        }
    }
    escaped
}

/// A JSON value on one line, for tables.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => clean(text),
        Value::Array(elements) if elements.is_empty() => "-".to_owned(),
        Value::Object(members) if members.is_empty() => "-".to_owned(),
        Value::Array(elements) if elements.iter().all(|element| !element.is_array() && !element.is_object()) => {
            elements.iter().map(plain).collect::<Vec<_>>().join(", ")
        }
        other => clean(&other.to_string()),
    }
}

/// An aligned table. `columns` are the headings and the members that they show.
pub fn table(rows: &[Value], columns: &[(&str, &str)]) -> String {
    if rows.is_empty() {
        return "none".to_owned();
    }
    let headings = columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
    let cells = rows.iter().map(|row| columns.iter().map(|(_, member)| plain(at(row, member))).collect());
    arranged(&std::iter::once(headings).chain(cells).collect::<Vec<_>>(), terminal_columns(), Excess::Stack)
}

pub fn table_of<T: Serialize>(things: &[T], columns: &[(&str, &str)]) -> String {
    let rows: Vec<Value> = things.iter().filter_map(|thing| serde_json::to_value(thing).ok()).collect();
    table(&rows, columns)
}

/// The members of an object and of nested objects, one per line.
pub fn details(value: &Value) -> String {
    let mut rows = Vec::new();
    collect("", value, &mut rows);
    align(rows)
}

/// The member at a path with dots; `null` if it is missing.
pub fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(value, |value, name| value.get(name).unwrap_or(&Value::Null))
}

/// Rows in columns; the last column wraps at the width of the terminal.
pub fn align(rows: Vec<Vec<String>>) -> String {
    arranged(&rows, terminal_columns(), Excess::Overflow)
}

/// `None` if standard output is not a terminal.
fn terminal_columns() -> Option<usize> {
    if cfg!(test) || !io::stdout().is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

fn collect(path: &str, value: &Value, rows: &mut Vec<Vec<String>>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                let name = clean(name);
                let path = if path.is_empty() { name } else { format!("{path}.{name}") };
                collect(&path, value, rows);
            }
        }
        other => rows.push(vec![format!("{path}:"), plain(other)]),
    }
}

/// Invisible characters that change how other characters are displayed.
pub(crate) fn is_deceptive(letter: char) -> bool {
    matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_aligned_and_nothing_is_cut() {
        let rows = [json!({"id": "a", "who": {"name": "ann"}}), json!({"id": "x".repeat(90), "tags": ["b", "c"]})];
        let text = table(&rows, &[("ID", "id"), ("NAME", "who.name"), ("TAGS", "tags")]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].find("NAME"), lines[1].find("ann"));
        assert!(lines[2].starts_with(&"x".repeat(90)));
        assert!(lines[2].ends_with("b, c"));
        assert_eq!(table(&[], &[("ID", "id")]), "none");
        assert_eq!(details(&json!({"a": {"b": 1, "c": []}, "d": null})), "a.b:  1\na.c:  -\nd:    -\n");
    }

    #[test]
    fn no_control_character_reaches_a_terminal() {
        let hostile = "a\u{1b}[31mred\u{7}\r\n\u{202e}b\u{9b}c";
        for text in [
            clean(hostile),
            plain(&json!(hostile)),
            plain(&json!({"k": [{hostile: hostile}]})),
            details(&json!({hostile: hostile})),
        ] {
            assert!(!text.trim_end().chars().any(|letter| letter.is_control() || is_deceptive(letter)), "{text:?}");
        }
        let value = json!({"k": [hostile, "\u{e0041}"], "n": 1});
        let text = json_text(&value);
        assert!(
            !text.chars().any(|letter| (letter.is_control() && letter != '\n') || is_deceptive(letter)),
            "{text:?}"
        );
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert_eq!(clean_lines("a\nb\u{1b}"), "a\nb\\u{1b}");
        assert_eq!(clean("Zürich ✓"), "Zürich ✓");
    }
}
