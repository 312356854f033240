//! What people and programs see: plain aligned tables or JSON on standard output, everything else on standard error.
//! Text that came from elsewhere never reaches a terminal with its control characters.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde_json::Value;

/// The longest cell of a table; whoever needs all of it asks for JSON.
const CELL_LIMIT: usize = 60;

/// What a command has to show: the same thing for programs and for people.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// For programs.
    pub value: Value,
    /// For people.
    pub text: String,
    /// Whether what is shown is a no, which scripts learn from the exit status.
    pub refused: bool,
}

impl Report {
    /// A thing and its sentence.
    pub fn new(value: Value, text: impl Into<String>) -> Self {
        Self { value, text: text.into(), refused: false }
    }

    /// The same as a no, if it is one.
    #[must_use]
    pub fn refused_if(self, refused: bool) -> Self {
        Self { refused, ..self }
    }

    /// A thing and all of its members.
    pub fn details(value: Value) -> Self {
        let text = details(&value);
        Self::new(value, text)
    }

    /// Writes it.
    pub fn print(&self, json: bool) -> io::Result<()> {
        // A command that has written its lines itself has no value left to show.
        let json = json && !self.value.is_null();
        let text = if json { format!("{:#}", self.value) } else { self.text.clone() };
        if text.is_empty() { Ok(()) } else { print(text.trim_end_matches('\n')) }
    }
}

/// Writes lines to standard output. A reader that has gone away, as `head` does, is no failure.
pub fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes lines to standard error. There is nowhere to report a failure of that.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// The text with everything escaped that could move, colour or reorder what a terminal shows.
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

/// The same for a message of several lines.
pub fn clean_lines(text: &str) -> String {
    text.lines().map(clean).collect::<Vec<_>>().join("\n")
}

/// A JSON value as people read it, on one line.
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

/// An aligned table with a heading. `columns` are the heading and the member of each row that stands below it.
pub fn table(rows: &[Value], columns: &[(&str, &str)]) -> String {
    if rows.is_empty() {
        return "none".to_owned();
    }
    let headings = columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
    let cells = rows.iter().map(|row| columns.iter().map(|(_, member)| shortened(&plain(at(row, member)))).collect());
    align(std::iter::once(headings).chain(cells).collect())
}

/// The members of an object, and of the objects in it, one to a line.
pub fn details(value: &Value) -> String {
    let mut rows = Vec::new();
    collect("", value, &mut rows);
    align(rows)
}

/// The member of that name, in nested objects along dots; `null` where it is missing.
pub fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(value, |value, name| value.get(name).unwrap_or(&Value::Null))
}

/// Rows of equally many cells, in columns as wide as their widest cell.
pub fn align(rows: Vec<Vec<String>>) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in &rows {
        for (column, cell) in row.iter().enumerate() {
            let width = cell.chars().count();
            match widths.get_mut(column) {
                Some(widest) => *widest = width.max(*widest),
                None => widths.push(width),
            }
        }
    }
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            // Writing to a string cannot fail.
            let _ = write!(line, "{cell:<width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
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

fn shortened(text: &str) -> String {
    if text.chars().count() <= CELL_LIMIT {
        return text.to_owned();
    }
    text.chars().take(CELL_LIMIT - 1).chain(['…']).collect()
}

/// Characters that change how their neighbours are shown without being seen themselves.
pub(crate) fn is_deceptive(letter: char) -> bool {
    matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_aligned_and_long_cells_cut() {
        let rows = [json!({"id": "a", "who": {"name": "ann"}}), json!({"id": "x".repeat(90), "tags": ["b", "c"]})];
        let text = table(&rows, &[("ID", "id"), ("NAME", "who.name"), ("TAGS", "tags")]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].find("NAME"), lines[1].find("ann"));
        assert!(lines[2].starts_with(&"x".repeat(59)) && lines[2].contains('…'));
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
        assert_eq!(clean_lines("a\nb\u{1b}"), "a\nb\\u{1b}");
        assert_eq!(clean("Zürich ✓"), "Zürich ✓");
    }
}
