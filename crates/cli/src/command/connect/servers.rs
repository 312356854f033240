//! Adds a server to the settings of a client, and removes it. Works on the text of the file, and parses the outcome: it must
//! differ from the previous settings in that server and in nothing else.

use serde_json::{Map, Value};
use thiserror::Error;

use super::json_text::{JsonText, Step};
use super::{json_comments, toml_text};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Json,
    /// With comments, and commas before closing brackets.
    CommentedJson,
    Toml,
}

/// How a client writes its servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServersFile {
    pub format: Format,
    /// The member that contains the servers.
    pub key: &'static str,
}

#[derive(Debug, Error)]
pub enum ServersError {
    #[error("it could not be parsed (line {line}: {reason}); correct it")]
    Syntax { line: usize, reason: String },
    #[error("`{0}` does not have the format of the client; correct it")]
    Shape(&'static str),
    #[error("server `{0}` could not be changed without changing anything else; change it by hand")]
    Style(String),
}

impl ServersFile {
    /// The servers by name.
    pub fn servers(&self, text: &str) -> Result<Map<String, Value>, ServersError> {
        match self.parse(text)?.remove(self.key) {
            None => Ok(Map::new()),
            Some(Value::Object(servers)) => Ok(servers),
            Some(_) => Err(ServersError::Shape(self.key)),
        }
    }

    /// The settings with this server, which replaces one of the same name; unchanged if they have it.
    pub fn with(&self, text: &str, name: &str, entry: &Value) -> Result<String, ServersError> {
        let servers = self.servers(text)?;
        let text = match servers.get(name) {
            Some(own) if own == entry => return Ok(text.to_owned()),
            Some(_) => self.without(text, name)?,
            None => text.to_owned(),
        };
        let longer = match self.format {
            Format::Toml => Some(toml_text::with_table(&text, &[self.key, name], entry)),
            Format::Json | Format::CommentedJson => self.inserted(&text, name, entry),
        };
        self.verified(&text, longer, name, Some(entry))
    }

    /// The settings without this server.
    pub fn without(&self, text: &str, name: &str) -> Result<String, ServersError> {
        if !self.servers(text)?.contains_key(name) {
            return Ok(text.to_owned());
        }
        let shorter = match self.format {
            Format::Toml => toml_text::without_table(text, &[self.key, name]),
            Format::Json | Format::CommentedJson => {
                JsonText::parse(text).and_then(|text| text.remove(&[member(self.key), member(name)]))
            }
        };
        self.verified(text, shorter, name, None)
    }

    /// Whether there is nothing in the settings, or nothing but an empty list of servers.
    pub fn is_empty(&self, text: &str) -> bool {
        self.normal(text).is_ok_and(|settings| settings.is_empty())
    }

    fn inserted(&self, text: &str, name: &str, entry: &Value) -> Option<String> {
        let text = if text.trim().is_empty() { "{}\n" } else { text };
        let has_servers = self.parse(text).ok()?.contains_key(self.key);
        let json = JsonText::parse(text)?;
        if has_servers {
            return json.insert(&[member(self.key)], Some(name), entry);
        }
        let servers = Value::Object([(name.to_owned(), entry.clone())].into_iter().collect());
        json.insert(&[], Some(self.key), &servers)
    }

    /// INVARIANT: what is written differs from what was there in this server only, whatever the style of the file.
    fn verified(
        &self,
        old: &str,
        new: Option<String>,
        name: &str,
        entry: Option<&Value>,
    ) -> Result<String, ServersError> {
        let style = || ServersError::Style(name.to_owned());
        let new = new.ok_or_else(style)?;
        let mut expected = self.parse(old)?;
        let servers = expected.entry(self.key).or_insert_with(|| Value::Object(Map::new()));
        let servers = servers.as_object_mut().ok_or(ServersError::Shape(self.key))?;
        match entry {
            Some(entry) => servers.insert(name.to_owned(), entry.clone()),
            None => servers.remove(name),
        };
        let expected = self.without_empty_servers(expected);
        if self.normal(&new).is_ok_and(|new| new == expected) { Ok(new) } else { Err(style()) }
    }

    fn normal(&self, text: &str) -> Result<Map<String, Value>, ServersError> {
        Ok(self.without_empty_servers(self.parse(text)?))
    }

    fn without_empty_servers(&self, mut settings: Map<String, Value>) -> Map<String, Value> {
        if settings.get(self.key).and_then(Value::as_object).is_some_and(Map::is_empty) {
            settings.remove(self.key);
        }
        settings
    }

    fn parse(&self, text: &str) -> Result<Map<String, Value>, ServersError> {
        if text.trim().is_empty() {
            return Ok(Map::new());
        }
        let parsed = match self.format {
            Format::Json => from_json(text),
            Format::CommentedJson => from_json(&json_comments::blanked(text)),
            // What TOML says of a wrong value would show it, and it may be a secret.
            Format::Toml => toml::from_str::<Value>(text).map_err(|error| {
                let start = error.span().map_or(0, |span| span.start);
                let line = text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1;
                let reason = error.message().lines().next().unwrap_or_default().to_owned();
                ServersError::Syntax { line, reason }
            }),
        };
        match parsed? {
            Value::Object(settings) => Ok(settings),
            _ => Err(ServersError::Shape("the document")),
        }
    }
}

fn from_json(text: &str) -> Result<Value, ServersError> {
    serde_json::from_str(text)
        .map_err(|error| ServersError::Syntax { line: error.line(), reason: "it is not JSON".to_owned() })
}

fn member(name: &str) -> Step {
    Step::Member(name.to_owned())
}
