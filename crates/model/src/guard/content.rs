//! The content of an event: the part that would be used, and that a guardian may modify.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::canonical::to_canonical;
use crate::merkle::sha256;

/// What would be used if nobody objects.
#[derive(Debug, Clone, PartialEq)]
pub enum Content<'a> {
    Arguments(Cow<'a, Map<String, Value>>),
    Result {
        value: Cow<'a, Value>,
        /// Whether it is a failure.
        is_error: bool,
    },
    /// A message or a trigger, in parts.
    Parts(Vec<Part>),
    /// Entries of a memory.
    Memory(Vec<String>),
    /// Results of a knowledge base.
    Knowledge {
        query: Option<String>,
        keywords: Vec<String>,
        results: Vec<Finding>,
    },
    /// A message of another protocol, unchanged.
    Message(Cow<'a, Value>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub body: PartBody,
    pub metadata: Option<Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum PartBody {
    Text(String),
    /// Structured data.
    Data(Value),
    File(File),
}

#[derive(Debug, Clone, PartialEq)]
pub struct File {
    pub name: Option<String>,
    pub mime_type: Option<String>,
    /// Its content in base64, or its location, unchanged.
    pub place: Value,
}

/// A result of a knowledge base.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub id: String,
    pub content: String,
    pub mime_type: Option<String>,
    pub metadata: Option<Value>,
}

impl Content<'_> {
    pub fn into_owned(self) -> Content<'static> {
        match self {
            Self::Arguments(arguments) => Content::Arguments(Cow::Owned(arguments.into_owned())),
            Self::Result { value, is_error } => Content::Result { value: Cow::Owned(value.into_owned()), is_error },
            Self::Parts(parts) => Content::Parts(parts),
            Self::Memory(entries) => Content::Memory(entries),
            Self::Knowledge { query, keywords, results } => Content::Knowledge { query, keywords, results },
            Self::Message(message) => Content::Message(Cow::Owned(message.into_owned())),
        }
    }

    /// As JSON, for hashing, for the record and for searching.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Arguments(arguments) => Value::Object(arguments.clone().into_owned()),
            Self::Result { value, is_error } => json!({"result": value, "is_error": is_error}),
            Self::Parts(parts) => Value::Array(parts.iter().map(Part::to_json).collect()),
            Self::Memory(entries) => json!(entries),
            Self::Knowledge { query, keywords, results } => json!({
                "query": query, "keywords": keywords, "results": results.iter().map(Finding::to_json).collect::<Vec<_>>(),
            }),
            Self::Message(message) => message.clone().into_owned(),
        }
    }

    /// Content of the same kind from modified output of [`Content::to_json`]; `None` if it is no longer of this kind.
    pub fn with_json(&self, json: Value) -> Option<Content<'static>> {
        Some(match self {
            Self::Arguments(_) => match json {
                Value::Object(arguments) => Content::Arguments(Cow::Owned(arguments)),
                _ => return None,
            },
            Self::Result { is_error, .. } => {
                let Value::Object(mut members) = json else { return None };
                Content::Result { value: Cow::Owned(members.remove("result")?), is_error: *is_error }
            }
            Self::Parts(parts) => {
                let Value::Array(items) = json else { return None };
                if items.len() != parts.len() {
                    return None;
                }
                Content::Parts(parts.iter().zip(items).map(|(part, item)| part.with_json(item)).collect::<Option<_>>()?)
            }
            Self::Memory(_) => Content::Memory(texts(json)?),
            Self::Knowledge { .. } => {
                let Value::Object(mut members) = json else { return None };
                let query = match members.remove("query")? {
                    Value::Null => None,
                    Value::String(query) => Some(query),
                    _ => return None,
                };
                let keywords = texts(members.remove("keywords")?)?;
                let Value::Array(results) = members.remove("results")? else { return None };
                let results = results.into_iter().map(Finding::from_json).collect::<Option<_>>()?;
                Content::Knowledge { query, keywords, results }
            }
            Self::Message(_) => Content::Message(Cow::Owned(json)),
        })
    }

    /// SHA-256 of the canonical JSON, in lower case hexadecimal.
    pub fn digest(&self) -> String {
        match self {
            // On the path of every call, so copies are avoided.
            Self::Message(message) => sha256(&to_canonical(message)).to_hex(),
            other => sha256(&to_canonical(&other.to_json())).to_hex(),
        }
    }
}

fn texts(json: Value) -> Option<Vec<String>> {
    let Value::Array(items) = json else { return None };
    let text = |item| match item {
        Value::String(text) => Some(text),
        _ => None,
    };
    items.into_iter().map(text).collect()
}

impl Part {
    /// Text without metadata.
    pub fn text(text: impl Into<String>) -> Self {
        Self { body: PartBody::Text(text.into()), metadata: None }
    }

    fn to_json(&self) -> Value {
        let mut json = match &self.body {
            PartBody::Text(text) => json!({"text": text}),
            PartBody::Data(data) => json!({"data": data}),
            PartBody::File(file) => json!({"file": {
                "name": file.name, "mime_type": file.mime_type, "place": file.place,
            }}),
        };
        if let (Some(metadata), Value::Object(members)) = (&self.metadata, &mut json) {
            members.insert("metadata".to_owned(), metadata.clone());
        }
        json
    }

    fn with_json(&self, json: Value) -> Option<Self> {
        let Value::Object(mut members) = json else { return None };
        let metadata = members.remove("metadata");
        let body = match &self.body {
            PartBody::Text(_) => match members.remove("text")? {
                Value::String(text) => PartBody::Text(text),
                _ => return None,
            },
            PartBody::Data(_) => PartBody::Data(members.remove("data")?),
            PartBody::File(_) => {
                let Value::Object(mut file) = members.remove("file")? else { return None };
                let mut text = |name: &str| match file.remove(name) {
                    Some(Value::String(text)) => Some(text),
                    _ => None,
                };
                let (name, mime_type) = (text("name"), text("mime_type"));
                PartBody::File(File { name, mime_type, place: file.remove("place")? })
            }
        };
        Some(Self { body, metadata })
    }
}

impl Finding {
    fn to_json(&self) -> Value {
        json!({"id": self.id, "content": self.content, "mime_type": self.mime_type, "metadata": self.metadata})
    }

    fn from_json(json: Value) -> Option<Self> {
        let Value::Object(mut members) = json else { return None };
        let mut text = |name: &str| match members.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let (id, content, mime_type) = (text("id")?, text("content")?, text("mime_type"));
        let metadata = members.remove("metadata").filter(|metadata| !metadata.is_null());
        Some(Self { id, content, mime_type, metadata })
    }
}
