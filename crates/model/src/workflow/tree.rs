//! YAML as a tree in which every value knows its position. Strict, so that a file means one thing: no anchors, aliases,
//! merge keys or tags, no duplicate keys, no numbers that would lose digits, one document, bounded size and depth.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use serde_saphyr::granit_parser::{ErrorKind, Event, Marker, Parser, ScalarStyle};

use super::problem::{Place, Problem};
use super::scalar;
use crate::strict_json::MAX_DEPTH;

/// The maximum size of a file, in bytes.
pub const FILE_LIMIT: usize = 1024 * 1024;
/// More values than any file needs; bounds the memory of one.
const NODE_LIMIT: usize = 200_000;

/// A value with its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub at: Place,
    pub content: Content,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    Scalar(Value),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A member of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub key: String,
    /// The position of the key.
    pub at: Place,
    pub value: Node,
}

impl Node {
    /// Parses a text; problems that do not prevent reading the rest are added to the list.
    pub fn parse(text: &str, problems: &mut Vec<Problem>) -> Option<Self> {
        if text.len() > FILE_LIMIT {
            let reason = format!("the file has {} bytes, the limit is {FILE_LIMIT}", text.len());
            problems.push(Problem::new(Place::START, "", reason));
            return None;
        }
        let mut building = Building { open: Vec::new(), root: None, nodes: 0, problems };
        for event in Parser::new_from_str(text) {
            let step = match event {
                Ok((event, span)) => building.take(event, span.start),
                Err(error) => {
                    let at = Place::of(*error.marker());
                    Err(match error.kind() {
                        ErrorKind::RecursionLimitExceeded => too_deep(at),
                        kind => Problem::new(at, "", format!("this is not valid YAML: {kind}")),
                    })
                }
            };
            if let Err(problem) = step {
                building.problems.push(problem);
                return None;
            }
        }
        let Building { root, problems, .. } = building;
        if root.is_none() {
            problems.push(Problem::new(Place::START, "", "the file is empty; it needs at least `name` and `version`"));
        }
        root
    }

    pub fn is_null(&self) -> bool {
        self.content == Content::Scalar(Value::Null)
    }

    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The value without positions.
    pub fn to_json(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => items.iter().map(Self::to_json).collect(),
            Content::Map(entries) => {
                let members = entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json()));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }

    /// The position of a path below this value, such as `tools.charges.create.http`; of as much of it as exists. Names
    /// may contain dots.
    pub fn place_of(&self, path: &str) -> Place {
        if path.is_empty() {
            return self.at;
        }
        match &self.content {
            Content::Map(entries) => {
                let rest = |entry: &Entry| {
                    let rest = path.strip_prefix(entry.key.as_str())?;
                    if rest.is_empty() { Some(rest.len()) } else { rest.strip_prefix('.').map(str::len) }
                };
                // The longest name wins: the rest of the path is the shortest.
                let found =
                    entries.iter().filter_map(|entry| Some((rest(entry)?, entry))).min_by_key(|(rest, _)| *rest);
                match found {
                    Some((0, entry)) => entry.at,
                    Some((rest, entry)) => entry.value.place_of(path.get(path.len() - rest..).unwrap_or_default()),
                    None => self.at,
                }
            }
            Content::List(items) => {
                let (number, rest) = path.split_once('.').unwrap_or((path, ""));
                let item = number.parse::<usize>().ok().and_then(|number| items.get(number));
                item.map_or(self.at, |item| item.place_of(rest))
            }
            Content::Scalar(_) => self.at,
        }
    }

    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match &self.content {
            Content::List(_) => "a list",
            Content::Map(_) => "a mapping",
            Content::Scalar(Value::Null) => "empty",
            Content::Scalar(Value::Bool(_)) => "true or false",
            Content::Scalar(Value::Number(_)) => "a number",
            Content::Scalar(_) => "a text",
        }
    }
}

/// A collection that has not ended.
struct Open {
    at: Place,
    content: Content,
    /// The key whose value comes next.
    key: Option<(String, Place)>,
    keys: BTreeSet<String>,
}

struct Building<'p> {
    open: Vec<Open>,
    root: Option<Node>,
    nodes: usize,
    problems: &'p mut Vec<Problem>,
}

impl Building<'_> {
    /// Takes the next event; an error ends the reading.
    fn take(&mut self, event: Event<'_>, start: Marker) -> Result<(), Problem> {
        let at = Place::of(start);
        match event {
            Event::DocumentStart(..) if self.root.is_some() => {
                Err(Problem::new(at, "", "a file has one document; write the second one to a file of its own"))
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_names(at, anchor, tag.is_some())?;
                let value = match style {
                    ScalarStyle::Plain => scalar::plain(&text).unwrap_or_else(|reason| {
                        self.problems.push(Problem::new(at, "", reason));
                        Value::Null
                    }),
                    _ => Value::String(text.into_owned()),
                };
                self.add(Node { at, content: Content::Scalar(value) })
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.refuse_names(at, anchor, tag.is_some())?;
                self.begin(at, Content::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, tag) => {
                self.refuse_names(at, anchor, tag.is_some())?;
                self.begin(at, Content::Map(Vec::new()))
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(ended) => self.add(Node { at: ended.at, content: ended.content }),
                None => Ok(()),
            },
            Event::Alias(_) | Event::UnresolvedAlias(_) => Err(no_names(at)),
            _ => Ok(()),
        }
    }

    fn refuse_names(&self, at: Place, anchor: usize, is_tagged: bool) -> Result<(), Problem> {
        match (anchor, is_tagged) {
            (0, false) => Ok(()),
            (0, true) => Err(Problem::new(at, "", "tags such as `!!str` are not used here; remove it")),
            _ => Err(no_names(at)),
        }
    }

    fn begin(&mut self, at: Place, content: Content) -> Result<(), Problem> {
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(at));
        }
        self.open.push(Open { at, content, key: None, keys: BTreeSet::new() });
        Ok(())
    }

    fn add(&mut self, node: Node) -> Result<(), Problem> {
        self.nodes += 1;
        if self.nodes > NODE_LIMIT {
            return Err(Problem::new(node.at, "", format!("the file has more than {NODE_LIMIT} values; split it")));
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.content {
            Content::List(items) => items.push(node),
            Content::Map(entries) => match open.key.take() {
                None => open.key = Some((key(&node)?, node.at)),
                Some((key, at)) if open.keys.contains(&key) => {
                    self.problems.push(Problem::new(at, "", format!("`{key}` is given twice; remove one of the two")));
                }
                Some((key, at)) => {
                    open.keys.insert(key.clone());
                    entries.push(Entry { key, at, value: node });
                }
            },
            Content::Scalar(_) => {}
        }
        Ok(())
    }
}

fn key(node: &Node) -> Result<String, Problem> {
    match &node.content {
        Content::Scalar(Value::String(key)) if key == "<<" => {
            Err(Problem::new(node.at, "", "merge keys (`<<`) are not used here; write the members out"))
        }
        Content::Scalar(Value::String(key)) => Ok(key.clone()),
        _ => Err(Problem::new(node.at, "", format!("a key must be a text and is {}; put it in quotes", node.kind()))),
    }
}

fn too_deep(at: Place) -> Problem {
    Problem::new(at, "", format!("the file is nested deeper than {MAX_DEPTH} levels; flatten it"))
}

fn no_names(at: Place) -> Problem {
    Problem::new(at, "", "anchors and aliases (`&name`, `*name`) are not used here; write the value out")
}
