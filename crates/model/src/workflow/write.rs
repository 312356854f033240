//! Writes YAML that [`super::tree`] reads back as the same values, and that a person would have written.

use serde_json::{Map, Value};

use super::scalar;

/// Members that come first, in this order; all others follow by name.
const FIRST: [&str; 8] = ["name", "version", "task", "agent", "kind", "service", "vault", "scopes"];
/// The maximum length of a list on one line.
const LINE_LENGTH: usize = 100;
/// What other versions of YAML read as true or false.
const WORDS: [&str; 8] = ["y", "n", "yes", "no", "on", "off", "true", "false"];

/// The members of a document, in this order, separated by empty lines.
pub fn to_yaml(members: &[(&str, Value)]) -> String {
    let mut text = String::new();
    for (name, value) in members {
        let is_long = matches!(value, Value::Object(_) | Value::Array(_));
        if is_long && !text.is_empty() {
            text.push('\n');
        }
        member(&mut text, 0, name, value);
    }
    text
}

fn member(text: &mut String, indent: usize, name: &str, value: &Value) {
    text.push_str(&scalar_text(name));
    text.push(':');
    write(text, indent, value, false);
}

/// Writes a value after its key, or after the dash of its list, and ends the line.
fn write(text: &mut String, indent: usize, value: &Value, in_list: bool) {
    match value {
        Value::Object(members) if members.is_empty() => text.push_str(" {}\n"),
        Value::Object(members) => {
            for (number, (name, value)) in in_order(members).into_iter().enumerate() {
                let indent = indent + 2;
                match (in_list, number) {
                    (true, 0) => text.push(' '),
                    (false, 0) => {
                        text.push('\n');
                        pad(text, indent);
                    }
                    _ => pad(text, indent),
                }
                member(text, indent, name, value);
            }
        }
        Value::Array(items) => match on_one_line(items) {
            Some(line) => text.push_str(&format!(" {line}\n")),
            None => {
                text.push('\n');
                for item in items {
                    pad(text, indent + 2);
                    text.push('-');
                    write(text, indent + 2, item, true);
                }
            }
        },
        Value::String(own) if is_block(own) => {
            text.push_str(if own.ends_with('\n') { " |\n" } else { " |-\n" });
            for line in own.lines() {
                if !line.is_empty() {
                    pad(text, indent + 2);
                    text.push_str(line);
                }
                text.push('\n');
            }
        }
        Value::String(own) => text.push_str(&format!(" {}\n", scalar_text(own))),
        other => text.push_str(&format!(" {other}\n")),
    }
}

fn in_order(members: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let place = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_by_key(|(name, _)| (place(name), name.as_str()));
    sorted
}

fn on_one_line(items: &[Value]) -> Option<String> {
    let texts = items.iter().map(|item| match item {
        Value::String(text) if !text.contains('\n') => Some(scalar_text(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(item.to_string()),
        _ => None,
    });
    let line = format!("[{}]", texts.collect::<Option<Vec<_>>>()?.join(", "));
    (line.len() <= LINE_LENGTH).then_some(line)
}

fn pad(text: &mut String, indent: usize) {
    text.extend(std::iter::repeat_n(' ', indent));
}

/// A text without quotes if every reader takes it for this text.
fn scalar_text(text: &str) -> String {
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:@/-".contains(&byte))
        && !text.ends_with(':')
        && scalar::plain(text) == Ok(Value::String(text.to_owned()))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    if is_plain { text.to_owned() } else { quoted(text) }
}

/// JSON's quotes and escapes are YAML's too, except that YAML also wants invisible characters escaped.
fn quoted(text: &str) -> String {
    let json = Value::String(text.to_owned()).to_string();
    let mut quoted = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            _ => quoted.push(letter),
        }
    }
    quoted
}

/// Whether a text is written as indented lines.
fn is_block(text: &str) -> bool {
    let is_printable = |letter: char| {
        letter == '\n'
            || (!letter.is_control()
                && !matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'))
    };
    let body = text.strip_suffix('\n').unwrap_or(text);
    text.contains('\n')
        && !body.is_empty()
        && !body.starts_with([' ', '\n'])
        && !body.ends_with('\n')
        && text.chars().all(is_printable)
        && body.lines().all(|line| !line.ends_with(' '))
}
