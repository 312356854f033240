//! Edits TOML text in place: appends a table and removes tables, and leaves all other bytes unchanged. The text must have been
//! accepted by the parser; what is done here is checked by parsing the outcome.

use std::ops::Range;

use serde_json::Value;

/// A table with a header of its own, `[a.b]`.
struct Section {
    path: Vec<String>,
    /// From its header to the end of its last line with content: comments and blank lines after it are not part of it.
    span: Range<usize>,
}

/// The text with a table of these members at its end.
pub fn with_table(text: &str, path: &[&str], members: &Value) -> String {
    let end = line_end(text);
    let mut longer = text.to_owned();
    if !longer.is_empty() && !longer.ends_with('\n') {
        longer.push_str(end);
    }
    if !longer.is_empty() {
        longer.push_str(end);
    }
    let path: Vec<String> = path.iter().map(|name| key(name)).collect();
    longer.push_str(&format!("[{}]{end}", path.join(".")));
    for (name, value) in members.as_object().into_iter().flatten() {
        longer.push_str(&format!("{} = {}{end}", key(name), rendered(value)));
    }
    longer
}

/// The text without the table at this path and the tables below it; `None` if none has a header.
pub fn without_table(text: &str, path: &[&str]) -> Option<String> {
    let is_meant = |section: &&Section| {
        section.path.len() >= path.len() && section.path.iter().zip(path).all(|(own, name)| own == name)
    };
    let sections = sections(text);
    let mut shorter = text.to_owned();
    let mut is_found = false;
    for section in sections.iter().filter(is_meant).rev() {
        let before = text.get(..section.span.start)?;
        // The blank line before it belongs to it.
        let start = [("\r\n\r\n", 2), ("\n\n", 1)]
            .iter()
            .find(|(blank, _)| before.ends_with(blank))
            .map_or(section.span.start, |(_, length)| section.span.start - length);
        shorter.replace_range(start..section.span.end, "");
        is_found = true;
    }
    is_found.then_some(shorter)
}

/// An entry of an array of tables, `[[name]]`, on lines of its own.
pub fn array_entry(name: &str, members: &Value) -> String {
    let lines =
        members.as_object().into_iter().flatten().map(|(name, value)| format!("{} = {}\n", key(name), rendered(value)));
    std::iter::once(format!("[[{}]]\n", key(name))).chain(lines).collect()
}

fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

fn key(name: &str) -> String {
    let is_bare = |letter: u8| letter.is_ascii_alphanumeric() || b"-_".contains(&letter);
    if !name.is_empty() && name.bytes().all(is_bare) { name.to_owned() } else { quoted(name) }
}

fn rendered(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(items) => format!("[{}]", items.iter().map(rendered).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{} = {}", key(name), rendered(value)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// A basic string of TOML, which has the escapes of JSON and one more.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// A string that spans lines, with its quote.
type OpenString = Option<&'static str>;

fn sections(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let (mut open, mut depth, mut position) = (None, 0_usize, 0);
    for line in text.split_inclusive('\n') {
        let start = position;
        position += line.len();
        let content = line.trim_start();
        let is_inside = open.is_some() || depth > 0;
        if !is_inside && content.starts_with('[') {
            let path = header(content).unwrap_or_default();
            sections.push(Section { path, span: start..position });
            continue;
        }
        scan(line, &mut open, &mut depth);
        let has_content = is_inside || !(content.is_empty() || content.starts_with('#'));
        if let Some(section) = sections.last_mut().filter(|_| has_content) {
            section.span.end = position;
        }
    }
    sections
}

/// Follows strings and brackets through a line.
fn scan(line: &str, open: &mut OpenString, depth: &mut usize) {
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        if let Some(quote) = *open {
            let is_escape = letter == '\\' && quote.starts_with('"');
            if is_escape {
                rest = rest.char_indices().nth(2).map_or("", |(place, _)| rest.get(place..).unwrap_or_default());
                continue;
            }
            match rest.strip_prefix(quote) {
                Some(behind) => {
                    *open = None;
                    rest = behind;
                }
                None => rest = rest.get(letter.len_utf8()..).unwrap_or_default(),
            }
            continue;
        }
        let quotes = ["\"\"\"", "'''", "\"", "'"];
        if let Some((quote, behind)) = quotes.iter().find_map(|quote| Some((*quote, rest.strip_prefix(quote)?))) {
            *open = Some(quote);
            rest = behind;
            continue;
        }
        match letter {
            '#' => return,
            '[' | '{' => *depth += 1,
            ']' | '}' => *depth = depth.saturating_sub(1),
            _ => {}
        }
        rest = rest.get(letter.len_utf8()..).unwrap_or_default();
    }
}

/// The path in a header.
fn header(line: &str) -> Option<Vec<String>> {
    let mut rest = line.trim_start_matches('[');
    let mut path = Vec::new();
    loop {
        rest = rest.trim_start();
        let (name, behind) = match rest.chars().next()? {
            '"' => {
                let length = rest.char_indices().skip(1).scan(false, |is_escaped, (place, letter)| {
                    let ends = letter == '"' && !*is_escaped;
                    *is_escaped = letter == '\\' && !*is_escaped;
                    Some((place, ends))
                });
                let end = length.into_iter().find(|(_, ends)| *ends)?.0 + 1;
                (serde_json::from_str::<String>(rest.get(..end)?).ok()?, rest.get(end..)?)
            }
            '\'' => {
                let (name, behind) = rest.get(1..)?.split_once('\'')?;
                (name.to_owned(), behind)
            }
            _ => {
                let end = rest.find(['.', ']', ' ', '\t'])?;
                (rest.get(..end)?.to_owned(), rest.get(end..)?)
            }
        };
        path.push(name);
        rest = behind.trim_start();
        match rest.chars().next()? {
            '.' => rest = rest.get(1..)?,
            ']' => return Some(path),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CONFIG: &str = "# Codex\nmodel = \"o3\" # [not.a.header]\nnotify = [\n  \"a\",\n  \"[mcp_servers.toolgate]\",\n]\n\n\
        [mcp_servers.\"my docs\"]\ncommand = \"npx\"\ntext = \"\"\"\n[mcp_servers.fake]\n\"\"\"\n\n[mcp_servers.\"my docs\".env]\n\
        KEY = 'x'\n\n# profiles\n[profiles.fast]\nmodel = \"mini\"\n";

    #[test]
    fn a_table_is_appended_and_removed_without_a_trace() {
        for text in ["", "model = \"o3\"\n", CONFIG, "a = 1\r\n\r\n[b]\r\nc = 2\r\n"] {
            let entry = json!({"command": "/usr/bin/toolgate", "args": ["mcp", "a\"b"], "env": {"A B": "1"}});
            let longer = with_table(text, &["mcp_servers", "toolgate"], &entry);
            let parsed: Value = toml::from_str(&longer).unwrap();
            assert_eq!(parsed["mcp_servers"]["toolgate"], entry, "{longer}");
            assert_eq!(without_table(&longer, &["mcp_servers", "toolgate"]).as_deref(), Some(text), "{longer}");
        }
    }

    #[test]
    fn a_table_is_removed_with_those_below_it_and_nothing_else() {
        let shorter = without_table(CONFIG, &["mcp_servers", "my docs"]).unwrap();
        assert_eq!(
            shorter,
            "# Codex\nmodel = \"o3\" # [not.a.header]\nnotify = [\n  \"a\",\n  \"[mcp_servers.toolgate]\",\n]\n\n# profiles\n[profiles.fast]\nmodel = \"mini\"\n"
        );
        assert_eq!(without_table(CONFIG, &["mcp_servers", "fake"]), None);
        assert_eq!(without_table(CONFIG, &["mcp_servers", "toolgate"]), None);
    }

    #[test]
    fn an_entry_of_an_array_can_be_read_back() {
        let members = json!({"name": "files", "command": ["npx", "-y", "server"], "env": {"LEVEL": "1"}});
        let text = array_entry("mounts", &members);
        assert_eq!(
            text,
            "[[mounts]]\nname = \"files\"\ncommand = [\"npx\", \"-y\", \"server\"]\nenv = { LEVEL = \"1\" }\n"
        );
        assert_eq!(toml::from_str::<Value>(&text).unwrap()["mounts"][0], members);
    }
}
