//! What a server says about itself, as it is pinned and compared.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::a2a::{Operation, pinned_card};
use crate::canonical::to_canonical;
use crate::merkle::sha256;
use crate::scope::Scope;

/// The most that is kept of each text of a server, in bytes.
const NAME_LIMIT: usize = 256;
const INSTRUCTIONS_LIMIT: usize = 16 * 1024;

/// What a server says about itself. Untrusted content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIdentity {
    pub name: String,
    pub title: Option<String>,
    /// Shown, and no part of the hash: servers are updated without becoming another one.
    pub version: String,
    /// Instructions of the server for models.
    pub instructions: Option<String>,
    /// What it can do besides tools, as far as the gate forwards it.
    pub capabilities: BTreeSet<Capability>,
    /// The digest of what starts it, if it is a process: the gate's own word.
    pub command: Option<String>,
    /// The card of a peer agent.
    pub card: Option<Value>,
}

/// A part of the protocol that the gate forwards to servers that declare it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    Completions,
    Prompts,
    Resources,
}

impl Capability {
    pub const ALL: [Self; 3] = [Self::Completions, Self::Prompts, Self::Resources];

    /// The scope of the tools by which it is forwarded.
    pub fn scope(self) -> &'static str {
        match self {
            Self::Completions | Self::Prompts => "prompts.read",
            Self::Resources => "resources.read",
        }
    }

    /// As the protocol writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completions => "completions",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
        }
    }
}

impl ServerIdentity {
    /// What a server said, cut to what is kept.
    pub fn new(
        name: &str,
        title: Option<&str>,
        version: &str,
        instructions: Option<&str>,
        capabilities: &Map<String, Value>,
    ) -> Self {
        let declared = |capability: &Capability| capabilities.get(capability.as_str()).is_some_and(Value::is_object);
        Self {
            name: cut(name, NAME_LIMIT),
            title: title.map(|title| cut(title, NAME_LIMIT)),
            version: cut(version, NAME_LIMIT),
            instructions: instructions.map(|text| cut(text, INSTRUCTIONS_LIMIT)),
            capabilities: Capability::ALL.into_iter().filter(declared).collect(),
            command: None,
            card: None,
        }
    }

    /// The same, started by the command with this digest.
    #[must_use]
    pub fn started_by(self, command: Option<String>) -> Self {
        Self { command, ..self }
    }

    /// A peer agent with this card.
    pub fn of_card(card: Value) -> Self {
        let text = |name: &str| card.get(name).and_then(Value::as_str).unwrap_or_default();
        Self { card: Some(card.clone()), ..Self::new(text("name"), None, text("version"), None, &Map::new()) }
    }

    /// What a person confirms by accepting the server: the hash of everything but its version.
    pub fn hash(&self) -> String {
        let mut pinned = self.to_json();
        if let Some(members) = pinned.as_object_mut() {
            members.remove("version");
            if let Some(card) = members.get_mut("card") {
                *card = pinned_card(card);
            }
        }
        format!("sha256:{}", sha256(&to_canonical(&pinned)).to_hex())
    }

    /// The scopes of what is forwarded besides tools; of a peer agent those of all its operations.
    pub fn scopes(&self) -> impl Iterator<Item = Scope> {
        let capabilities = self.capabilities.iter().map(|capability| capability.scope());
        let operations = Operation::ALL.iter().filter(|operation| self.card.is_some() && !operation.is_push());
        let scopes = capabilities.chain(operations.map(|operation| operation.scope()));
        scopes.filter_map(|scope| Scope::parse(scope).ok())
    }

    /// As it is stored and shown.
    pub fn to_json(&self) -> Value {
        let capabilities: Vec<_> = self.capabilities.iter().map(|capability| capability.as_str()).collect();
        let mut members = Map::new();
        members.insert("name".to_owned(), json!(self.name));
        members.insert("version".to_owned(), json!(self.version));
        members.insert("capabilities".to_owned(), json!(capabilities));
        let texts = [("title", &self.title), ("instructions", &self.instructions), ("command", &self.command)];
        for (member, text) in texts {
            if let Some(text) = text {
                members.insert(member.to_owned(), json!(text));
            }
        }
        members.extend(self.card.as_ref().map(|card| ("card".to_owned(), card.clone())));
        Value::Object(members)
    }

    /// Reads [`ServerIdentity::to_json`] back.
    pub fn from_json(value: &Value) -> Option<Self> {
        let text = |member| value.get(member).and_then(Value::as_str);
        let listed = value.get("capabilities")?.as_array()?;
        Some(Self {
            name: text("name")?.to_owned(),
            title: text("title").map(str::to_owned),
            version: text("version")?.to_owned(),
            instructions: text("instructions").map(str::to_owned),
            capabilities: Capability::ALL
                .into_iter()
                .filter(|capability| listed.iter().any(|listed| listed == capability.as_str()))
                .collect(),
            command: text("command").map(str::to_owned),
            card: value.get("card").cloned(),
        })
    }
}

fn cut(text: &str, limit: usize) -> String {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> ServerIdentity {
        let capabilities = json!({"prompts": {}, "tools": {}, "resources": {"subscribe": true}});
        ServerIdentity::new("files", Some("Files"), "1.0", Some("Read first."), capabilities.as_object().unwrap())
    }

    #[test]
    fn an_identity_is_read_back_as_it_was_written() {
        let identity = identity();
        assert_eq!(ServerIdentity::from_json(&identity.to_json()), Some(identity.clone()));
        let process = identity.clone().started_by(Some("sha256:1".to_owned()));
        assert_eq!(ServerIdentity::from_json(&process.to_json()), Some(process));
        assert_eq!(identity.capabilities.len(), 2);
    }

    #[test]
    fn everything_but_the_version_is_confirmed() {
        let one = identity();
        assert_eq!(ServerIdentity { version: "2".to_owned(), ..one.clone() }.hash(), one.hash());
        for other in [
            ServerIdentity { name: "other".to_owned(), ..one.clone() },
            ServerIdentity { title: None, ..one.clone() },
            ServerIdentity { instructions: Some("Read last.".to_owned()), ..one.clone() },
            ServerIdentity { capabilities: BTreeSet::new(), ..one.clone() },
            one.clone().started_by(Some("sha256:1".to_owned())),
        ] {
            assert_ne!(other.hash(), one.hash());
        }
    }

    #[test]
    fn a_card_is_confirmed_except_for_its_version_and_signatures() {
        let card = json!({"name": "travel", "description": "Books.", "version": "1", "signatures": [{}], "x": 1});
        let one = ServerIdentity::of_card(card.clone());
        assert_eq!(ServerIdentity::from_json(&one.to_json()), Some(one.clone()));
        for (member, value, confirmed) in [
            ("version", json!("2"), true),
            ("signatures", json!([]), true),
            ("description", json!("Books flights."), false),
            ("name", json!("other"), false),
            ("x", json!(2), false),
        ] {
            let mut other = card.clone();
            other[member] = value;
            assert_eq!(ServerIdentity::of_card(other).hash() == one.hash(), confirmed, "{member}");
        }
    }

    #[test]
    fn texts_are_cut_between_characters() {
        let long = "é".repeat(300);
        assert_eq!(ServerIdentity::new(&long, None, "", None, &Map::new()).name.len(), 256);
    }
}
