//! Reads mappings member by member. Every problem is collected with its position; what can still be read is read, so that
//! one run reports all problems of a file.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::problem::{Located, Place, Problem, meant, quoted};
use super::tree::{Content, Entry, Node};

/// The problems that were found so far.
#[derive(Debug, Default)]
pub(super) struct Problems(pub(super) Vec<Problem>);

impl Problems {
    pub(super) fn add(&mut self, at: Place, path: &str, message: impl Into<String>) {
        self.0.push(Problem::new(at, path, message));
    }

    /// The value, or a problem at its position.
    pub(super) fn keep<T, E: std::fmt::Display>(&mut self, at: Place, path: &str, read: Result<T, E>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(error) => {
                self.add(at, path, format!("`{path}` {error}"));
                None
            }
        }
    }
}

/// The members of one mapping, with its path.
pub(super) struct Members<'t> {
    pub(super) at: Place,
    pub(super) path: String,
    entries: &'t [Entry],
}

impl<'t> Members<'t> {
    /// The members of a mapping with no others than `known`.
    pub(super) fn of(node: &'t Node, path: &str, known: &[&str], problems: &mut Problems) -> Option<Self> {
        let members = Self { at: node.at, path: path.to_owned(), entries: mapping(node, path, problems)? };
        for entry in members.entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let suggestion = match meant(&entry.key, known.iter().copied()) {
                none if none.is_empty() => format!("; use {}", known.join(", ")),
                suggestion => suggestion,
            };
            let message = format!("`{}` is unknown{suggestion}", quoted(&members.path_of(&entry.key)));
            problems.add(entry.at, &members.path_of(&entry.key), message);
        }
        Some(members)
    }

    pub(super) fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// A member, even if it is `null`.
    pub(super) fn given(&self, name: &str) -> Option<&'t Entry> {
        self.entries.iter().find(|entry| entry.key == name)
    }

    /// A member that is set.
    pub(super) fn get(&self, name: &str) -> Option<&'t Node> {
        self.given(name).map(|entry| &entry.value).filter(|node| !node.is_null())
    }

    /// A member that must be set.
    pub(super) fn need(&self, name: &str, problems: &mut Problems) -> Option<&'t Node> {
        let found = self.get(name);
        if found.is_none() {
            let path = self.path_of(name);
            let at = self.given(name).map_or(self.at, |entry| entry.at);
            problems.add(at, &path, format!("`{path}` is missing"));
        }
        found
    }

    /// A member that is a text, parsed.
    pub(super) fn parsed<T, E: std::fmt::Display>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
        problems: &mut Problems,
    ) -> Option<Located<T>> {
        self.get(name).and_then(|node| parsed(node, &self.path_of(name), parse, problems))
    }

    /// A member in the JSON form of a type of the model.
    pub(super) fn json<T: DeserializeOwned>(&self, name: &str, problems: &mut Problems) -> Option<T> {
        let node = self.get(name)?;
        problems.keep(node.at, &self.path_of(name), serde_json::from_value(node.to_json()))
    }

    pub(super) fn flag(&self, name: &str, problems: &mut Problems) -> Option<bool> {
        let node = self.get(name)?;
        match node.content {
            Content::Scalar(Value::Bool(flag)) => Some(flag),
            _ => wrong(node, &self.path_of(name), "true or false", problems),
        }
    }

    pub(super) fn count(&self, name: &str, most: u64, problems: &mut Problems) -> Option<u64> {
        let node = self.get(name)?;
        let count = match &node.content {
            Content::Scalar(Value::Number(number)) => number.as_u64().filter(|count| *count <= most),
            _ => None,
        };
        if count.is_none() {
            wrong::<()>(node, &self.path_of(name), &format!("an integer from 0 to {most}"), problems);
        }
        count
    }
}

pub(super) fn mapping<'t>(node: &'t Node, path: &str, problems: &mut Problems) -> Option<&'t [Entry]> {
    match &node.content {
        Content::Map(entries) => Some(entries),
        _ => wrong(node, path, "a mapping (`name: value`)", problems),
    }
}

/// The items of a list with at most `most` items.
pub(super) fn list<'t>(node: &'t Node, path: &str, most: usize, problems: &mut Problems) -> &'t [Node] {
    match &node.content {
        Content::List(items) if items.len() > most => {
            problems.add(node.at, path, format!("`{path}` has {} entries, the limit is {most}", items.len()));
            &[]
        }
        Content::List(items) => items,
        _ => {
            wrong::<()>(node, path, "a list (`[a, b]`)", problems);
            &[]
        }
    }
}

/// A list of texts, each once, parsed.
pub(super) fn texts<T: PartialEq, E: std::fmt::Display>(
    node: &Node,
    path: &str,
    most: usize,
    parse: impl Fn(&str) -> Result<T, E>,
    problems: &mut Problems,
) -> Vec<Located<T>> {
    let mut found: Vec<Located<T>> = Vec::new();
    for (number, item) in list(node, path, most, problems).iter().enumerate() {
        let path = format!("{path}.{number}");
        let Some(own) = parsed(item, &path, &parse, problems) else { continue };
        match found.iter().any(|other| other.value == own.value) {
            true => {
                problems.add(own.at, &path, format!("`{}` is listed twice", quoted(item.text().unwrap_or_default())))
            }
            false => found.push(own),
        }
    }
    found
}

pub(super) fn parsed<T, E: std::fmt::Display>(
    node: &Node,
    path: &str,
    parse: impl FnOnce(&str) -> Result<T, E>,
    problems: &mut Problems,
) -> Option<Located<T>> {
    let Some(text) = node.text() else {
        let scalar = matches!(&node.content, Content::Scalar(value) if !value.is_null());
        let expected = if scalar { "a text; put it in quotes" } else { "a text" };
        return wrong(node, path, expected, problems);
    };
    match parse(text) {
        Ok(value) => Some(Located { value, at: node.at }),
        Err(error) => {
            problems.add(node.at, path, format!("`{}` in `{path}` {error}", quoted(text)));
            None
        }
    }
}

pub(super) fn wrong<T>(node: &Node, path: &str, expected: &str, problems: &mut Problems) -> Option<T> {
    problems.add(node.at, path, format!("`{path}` is {}; it must be {expected}", node.kind()));
    None
}
