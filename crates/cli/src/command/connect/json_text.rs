//! Edits JSON text in place: inserts and removes single values in the style of their neighbours, and leaves all other bytes
//! unchanged, comments too. The text must have been parsed before, without its comments ([`super::json_comments`]).

use std::ops::Range;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

/// The indentation for text without any.
const INDENTATION: &str = "  ";

pub struct JsonText<'a> {
    text: &'a str,
    root: Node,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Member(String),
    Item(usize),
}

struct Node {
    span: Range<usize>,
    children: Vec<Child>,
}

struct Child {
    /// `None` in an array.
    name: Option<String>,
    /// Including its name.
    span: Range<usize>,
    /// The position of the comma after it.
    comma: Option<usize>,
    node: Node,
}

impl<'a> JsonText<'a> {
    /// `None` if the text is not JSON.
    pub fn parse(text: &'a str) -> Option<Self> {
        let mut reader = Reader { text, position: 0 };
        let root = reader.value()?;
        Some(Self { text, root })
    }

    /// Adds a member, or an element without a name, to the object or array at this path: at the end, or before the others if
    /// a comment stands behind the last one, which would then seem to be about the new one.
    pub fn insert(&self, path: &[Step], name: Option<&str>, value: &Value) -> Option<String> {
        let node = self.find(path)?;
        let end = self.line_end();
        let (start, closing) = (node.span.start + 1, node.span.end - 1);
        let (Some(first), Some(last)) = (node.children.first(), node.children.last()) else {
            let outside = self.indentation_of_line(node.span.start);
            let inside = format!("{outside}{}", self.unit());
            let child = self.rendered(name, value, Some(&inside))?;
            let comments = self.text.get(start..closing)?.trim_end();
            return self.replaced(start..closing, &format!("{comments}{end}{inside}{child}{end}{outside}"));
        };
        let inside = self.text.get(start..first.span.start)?.rsplit_once('\n').map(|(_, line)| indentation(line));
        let child = self.rendered(name, value, inside)?;
        let separator = inside.map_or(" ".to_owned(), |inside| format!("{end}{inside}"));
        let behind = self.text.get(last.span.end..closing)?.lines().next().unwrap_or_default();
        if behind.contains('/') {
            return self.replaced(start..start, &format!("{separator}{child},"));
        }
        self.replaced(last.span.end..last.span.end, &format!(",{separator}{child}"))
    }

    /// Removes the value at this path, with its comma.
    pub fn remove(&self, path: &[Step]) -> Option<String> {
        let (last, parents) = path.split_last()?;
        let node = self.find(parents)?;
        let place = node.position(last)?;
        let before = place.checked_sub(1).and_then(|place| node.children.get(place));
        let gone = node.children.get(place)?;
        let span = match (before, node.children.get(place + 1)) {
            (Some(before), _) => before.span.end..gone.span.end,
            (None, Some(after)) => gone.span.start..after.span.start,
            (None, None) => node.span.start + 1..node.span.end - 1,
        };
        let around = [span.start..gone.span.start, gone.span.end..span.end];
        let has_comments = around.into_iter().any(|part| self.text.get(part).is_some_and(|part| part.contains('/')));
        if !has_comments {
            return self.replaced(span, "");
        }
        // The comments stay: only the value and one comma are removed, and the line if nothing else is on it.
        let end = gone.comma.map_or(gone.span.end, |comma| comma + 1);
        let shorter = self.replaced(self.whole_line(gone.span.start..end), "")?;
        match (gone.comma, before.and_then(|before| before.comma)) {
            (None, Some(comma)) => Some(format!("{}{}", shorter.get(..comma)?, shorter.get(comma + 1..)?)),
            _ => Some(shorter),
        }
    }

    /// The span with its indentation and line end, if nothing else is on its lines.
    fn whole_line(&self, span: Range<usize>) -> Range<usize> {
        let before = self.text.get(..span.start).unwrap_or_default();
        let start = before.trim_end_matches([' ', '\t']).len();
        let behind = self.text.get(span.end..).unwrap_or_default();
        let blank = behind.len() - behind.trim_start_matches([' ', '\t', '\r']).len();
        let is_alone = before.get(..start).is_some_and(|before| before.ends_with('\n'));
        match behind.get(blank..).is_some_and(|behind| behind.starts_with('\n')) {
            true if is_alone => start..span.end + blank + 1,
            _ => span,
        }
    }

    fn find(&self, path: &[Step]) -> Option<&Node> {
        path.iter().try_fold(&self.root, |node, step| Some(&node.children.get(node.position(step)?)?.node))
    }

    fn replaced(&self, span: Range<usize>, text: &str) -> Option<String> {
        Some(format!("{}{text}{}", self.text.get(..span.start)?, self.text.get(span.end..)?))
    }

    /// The value and its name: on lines that start with `inside`, or on one line.
    fn rendered(&self, name: Option<&str>, value: &Value, inside: Option<&str>) -> Option<String> {
        let value = match inside {
            None => value.to_string(),
            Some(inside) => {
                let mut bytes = Vec::new();
                let formatter = PrettyFormatter::with_indent(self.unit().as_bytes());
                value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter)).ok()?;
                String::from_utf8(bytes).ok()?.replace('\n', &format!("{}{inside}", self.line_end()))
            }
        };
        Some(match name {
            Some(name) => format!("{}: {value}", Value::from(name)),
            None => value,
        })
    }

    /// The indentation of the text.
    fn unit(&self) -> &str {
        let first = self.root.children.first().map(|child| child.span.start);
        let blank = first.and_then(|first| self.text.get(self.root.span.start + 1..first));
        match blank.and_then(|blank| blank.rsplit_once('\n')) {
            Some((_, line)) if !indentation(line).is_empty() => indentation(line),
            _ => INDENTATION,
        }
    }

    fn line_end(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    fn indentation_of_line(&self, position: usize) -> &str {
        let before = self.text.get(..position).unwrap_or_default();
        indentation(before.rsplit_once('\n').map_or(before, |(_, line)| line))
    }
}

fn indentation(line: &str) -> &str {
    line.get(..line.len() - line.trim_start().len()).unwrap_or_default()
}

impl Node {
    fn position(&self, step: &Step) -> Option<usize> {
        match step {
            Step::Item(place) => Some(*place),
            Step::Member(name) => self.children.iter().position(|child| child.name.as_ref() == Some(name)),
        }
    }
}

/// Scans text that is known to be JSON, perhaps with comments and commas before closing brackets.
struct Reader<'a> {
    text: &'a str,
    position: usize,
}

impl Reader<'_> {
    fn value(&mut self) -> Option<Node> {
        self.skip_blanks();
        let start = self.position;
        let mut children = Vec::new();
        match self.peek()? {
            b'{' => self.container(b'}', &mut children)?,
            b'[' => self.container(b']', &mut children)?,
            b'"' => self.string()?,
            _ => {
                while self.peek().is_some_and(|byte| !b",]}/ \t\r\n".contains(&byte)) {
                    self.position += 1;
                }
            }
        }
        Some(Node { span: start..self.position, children })
    }

    fn container(&mut self, closing: u8, children: &mut Vec<Child>) -> Option<()> {
        self.position += 1;
        loop {
            self.skip_blanks();
            match self.peek()? {
                byte if byte == closing => {
                    self.position += 1;
                    return Some(());
                }
                b',' => {
                    if let Some(child) = children.last_mut() {
                        child.comma = Some(self.position);
                    }
                    self.position += 1;
                }
                _ => children.push(self.child(closing == b'}')?),
            }
        }
    }

    fn child(&mut self, named: bool) -> Option<Child> {
        let start = self.position;
        let mut name = None;
        if named {
            self.string()?;
            name = Some(serde_json::from_str(self.text.get(start..self.position)?).ok()?);
            self.skip_blanks();
            self.position += 1;
        }
        let node = self.value()?;
        let start = if named { start } else { node.span.start };
        Some(Child { name, span: start..node.span.end, comma: None, node })
    }

    fn string(&mut self) -> Option<()> {
        self.position += 1;
        loop {
            match self.peek()? {
                b'\\' => self.position += 2,
                b'"' => {
                    self.position += 1;
                    return Some(());
                }
                _ => self.position += 1,
            }
        }
    }

    /// Skips white space and comments.
    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(byte) if byte.is_ascii_whitespace() => self.position += 1,
                Some(b'/') => {
                    let rest = self.text.get(self.position..).unwrap_or_default();
                    self.position += comment_length(rest).unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }
}

/// The length of the comment at the start of the text, without the line end; `None` if there is none.
pub(super) fn comment_length(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    let inner = text.strip_prefix("/*")?;
    Some(inner.find("*/").map_or(text.len(), |end| end + 4))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(steps: &[&str]) -> Vec<Step> {
        steps.iter().map(|step| step.parse().map_or_else(|_| Step::Member((*step).to_owned()), Step::Item)).collect()
    }

    fn inserted(text: &str, steps: &[&str], name: Option<&str>, value: &Value) -> String {
        JsonText::parse(text).unwrap().insert(&path(steps), name, value).unwrap()
    }

    #[test]
    fn what_is_inserted_looks_like_its_neighbours() {
        let value = json!({"c": [1]});
        for (text, expected) in [
            (
                "{\n    \"a\": 1\n}\n",
                "{\n    \"a\": 1,\n    \"b\": {\n        \"c\": [\n            1\n        ]\n    }\n}\n",
            ),
            ("{\n\t\"a\": 1\n}", "{\n\t\"a\": 1,\n\t\"b\": {\n\t\t\"c\": [\n\t\t\t1\n\t\t]\n\t}\n}"),
            ("{\"a\":1}", "{\"a\":1, \"b\": {\"c\":[1]}}"),
            ("{}", "{\n  \"b\": {\n    \"c\": [\n      1\n    ]\n  }\n}"),
            ("{\r\n  \"a\": 1\r\n}", "{\r\n  \"a\": 1,\r\n  \"b\": {\r\n    \"c\": [\r\n      1\r\n    ]\r\n  }\r\n}"),
        ] {
            assert_eq!(inserted(text, &[], Some("b"), &value), expected, "{text}");
        }
    }

    #[test]
    fn what_was_inserted_is_removed_without_a_trace() {
        let text = "{\n  \"x\": \"a \\\" } ]\",\n  \"a\": [ 1 , {\"k\": [\n  ]} ] ,\"é\": {\"b\": [true]}\n}\n";
        for steps in [&["a"][..], &["é", "b"]] {
            let longer = inserted(text, steps, None, &json!({"n": null}));
            let mut last = path(steps);
            last.push(Step::Item(if steps.len() == 1 { 2 } else { 1 }));
            assert_eq!(JsonText::parse(&longer).unwrap().remove(&last).unwrap(), text, "{longer}");
        }
        let longer = inserted(text, &[], Some("new"), &json!("\u{1}"));
        assert_eq!(JsonText::parse(&longer).unwrap().remove(&path(&["new"])).unwrap(), text);
    }

    #[test]
    fn the_first_the_middle_and_the_only_one_are_removed_with_their_comma() {
        let removed = |text: &str, steps: &[&str]| JsonText::parse(text).unwrap().remove(&path(steps)).unwrap();
        assert_eq!(removed("{\n  \"a\": 1,\n  \"b\": 2\n}", &["a"]), "{\n  \"b\": 2\n}");
        assert_eq!(removed("[1, 2, 3]", &["1"]), "[1, 3]");
        assert_eq!(removed("{\"a\": [ 1 ]}", &["a", "0"]), "{\"a\": []}");
        assert_eq!(removed("{\n  \"a\": 1\n}\n", &["a"]), "{}\n");
    }

    #[test]
    fn comments_stay_where_they_are_and_what_they_are_about() {
        let text = "// Zed\n{\n  // the look\n  \"theme\": \"One\", /* a { */\n  \"size\": 1, // large\n}\n";
        let longer = inserted(text, &[], Some("new"), &json!(true));
        assert_eq!(
            longer,
            "// Zed\n{\n  \"new\": true,\n  // the look\n  \"theme\": \"One\", /* a { */\n  \"size\": 1, // large\n}\n"
        );
        assert_eq!(JsonText::parse(&longer).unwrap().remove(&path(&["new"])).unwrap(), text);
        let without = JsonText::parse(text).unwrap().remove(&path(&["theme"])).unwrap();
        assert_eq!(without, "// Zed\n{\n  // the look\n   /* a { */\n  \"size\": 1, // large\n}\n");
        let without = JsonText::parse(text).unwrap().remove(&path(&["size"])).unwrap();
        assert_eq!(without, "// Zed\n{\n  // the look\n  \"theme\": \"One\", /* a { */\n   // large\n}\n");
    }

    #[test]
    fn a_comma_before_a_closing_bracket_is_kept_and_an_empty_object_keeps_its_comment() {
        let text = "{\n  \"a\": 1,\n}\n";
        let longer = inserted(text, &[], Some("b"), &json!(2));
        assert_eq!(longer, "{\n  \"a\": 1,\n  \"b\": 2,\n}\n");
        assert_eq!(JsonText::parse(&longer).unwrap().remove(&path(&["b"])).unwrap(), text);
        assert_eq!(inserted("{ // nothing\n}", &[], Some("b"), &json!(2)), "{ // nothing\n  \"b\": 2\n}");
        let text = "{\n  \"a\": 1, // one\n  \"b\": 2\n}";
        let without = JsonText::parse(text).unwrap().remove(&path(&["b"])).unwrap();
        assert_eq!(without, "{\n  \"a\": 1 // one\n}");
    }

    #[test]
    fn a_path_that_leads_nowhere_changes_nothing() {
        let text = JsonText::parse("{\"a\": [1]}").unwrap();
        for steps in [&["b"][..], &["a", "1"], &["a", "0", "x"]] {
            assert!(text.remove(&path(steps)).is_none(), "{steps:?}");
        }
        assert!(JsonText::parse("{\"a\"").is_none());
    }
}
