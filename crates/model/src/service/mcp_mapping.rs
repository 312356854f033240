//! MCP mappings: how a call of a tool becomes a request to a mounted MCP server, and the hash that pins the definition
//! that a person has accepted.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::reading::{Fields, parsed, refuse, word};
use super::{DefinitionError, HttpMethod, RenderedBody, RenderedRequest};
use crate::canonical::{to_canonical, write_string};
use crate::client_input::ClientInput;
use crate::connection::BaseUrl;
use crate::merkle::sha256;
use crate::text::check_line;

#[cfg(test)]
mod tests;

/// The longest name of an upstream tool, in bytes.
const NAME_LIMIT: usize = 256;
/// What a definition is pinned by: the members that change what a tool is or appears to be.
const PINNED: [&str; 7] = ["annotations", "description", "icons", "inputSchema", "name", "outputSchema", "title"];
/// How a hash is written.
const HASH_PREFIX: &str = "sha256:";

/// How a call becomes a request to an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpMapping {
    pub method: McpMethod,
    /// The name of the tool at the server.
    ///
    /// INVARIANT: set for [`McpMethod::CallTool`] and for no other method.
    pub name: Option<String>,
    /// The hash of the definition that was accepted, see [`definition_hash`]. A call is refused if the server lists another
    /// definition, and if there is no hash.
    pub definition_hash: Option<String>,
    /// What happens to characters of the result that a reader cannot see.
    pub hidden_characters: HiddenCharacters,
}

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$of_word:meta])* $variant:ident = $word:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$of_word])* $variant,)+
        }

        impl $name {
            /// All words and what they mean.
            pub const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant),)+];

            /// As it is written.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    )+};
}

words! {
    /// The methods that calls are forwarded by.
    McpMethod {
        CallTool = "tools/call",
        Complete = "completion/complete",
        GetPrompt = "prompts/get",
        ListPrompts = "prompts/list",
        ListResourceTemplates = "resources/templates/list",
        ListResources = "resources/list",
        ReadResource = "resources/read",
    }
    /// What happens to hidden characters in the text of a result: tags, bidirectional controls, zero-width characters.
    HiddenCharacters {
        /// Each is replaced by its code point, `<U+200B>`, so that people and models see that it was there.
        Show = "show",
        /// They are removed.
        Strip = "strip",
        /// They stay.
        Keep = "keep",
    }
}

impl McpMethod {
    /// Whether a server may respond with a request for input.
    pub fn asks(self) -> bool {
        matches!(self, Self::CallTool | Self::GetPrompt | Self::ReadResource)
    }

    /// The parameters of the request that a call may set. For a tool all parameters are its arguments.
    fn members(self) -> Option<&'static [&'static str]> {
        match self {
            Self::CallTool => None,
            Self::ListPrompts | Self::ListResourceTemplates | Self::ListResources => Some(&["cursor"]),
            Self::ReadResource => Some(&["uri"]),
            Self::GetPrompt => Some(&["arguments", "name"]),
            Self::Complete => Some(&["argument", "context", "ref"]),
        }
    }
}

impl McpMapping {
    /// A call of the tool of this name.
    pub fn of_tool(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::of_method(McpMethod::CallTool) }
    }

    /// A request by this method, which is not that of tools.
    pub fn of_method(method: McpMethod) -> Self {
        Self { method, name: None, definition_hash: None, hidden_characters: HiddenCharacters::Show }
    }

    pub(super) fn from_json(value: &Value, path: &str) -> Result<Self, DefinitionError> {
        let fields = Fields::of(value, path, &["definition_hash", "hidden_characters", "method", "name"])?;
        let method = fields.need("method", |value, path| word(value, path, McpMethod::WORDS))?;
        let name = fields.read("name", parsed(|name| check_line(name, NAME_LIMIT).map(|()| name.to_owned())))?;
        let definition_hash = fields.read("definition_hash", parsed(read_hash))?;
        let is_tool = method == McpMethod::CallTool;
        if is_tool && name.is_none() {
            return Err(refuse(&fields.at("name"), "is missing: tools/call needs the name of the tool at the server"));
        }
        for (member, is_set) in [("definition_hash", definition_hash.is_some()), ("name", name.is_some())] {
            if is_set && !is_tool {
                return Err(refuse(&fields.at(member), "must not be set: only tools/call has a tool"));
            }
        }
        let hidden_characters =
            fields.read("hidden_characters", |value, path| word(value, path, HiddenCharacters::WORDS))?;
        Ok(Self {
            method,
            name,
            definition_hash,
            hidden_characters: hidden_characters.unwrap_or(HiddenCharacters::Show),
        })
    }

    /// Writes the normal form: only what is set.
    pub fn to_json(&self) -> Value {
        let mut members = Map::new();
        members.insert("method".to_owned(), json!(self.method.as_str()));
        let name = self.name.as_ref().map(|name| ("name", json!(name)));
        let hash = self.definition_hash.as_ref().map(|hash| ("definition_hash", json!(hash)));
        let hidden = Some(self.hidden_characters).filter(|&rule| rule != HiddenCharacters::Show);
        let hidden = hidden.map(|rule| ("hidden_characters", json!(rule.as_str())));
        members.extend([name, hash, hidden].into_iter().flatten().map(|(name, value)| (name.to_owned(), value)));
        Value::Object(members)
    }

    /// Refuses a parameter that the method does not have, by its name: it could set what belongs to the protocol.
    pub fn check(&self, parameters: &Map<String, Value>) -> Result<(), String> {
        let Some(members) = self.method.members() else { return Ok(()) };
        match parameters.keys().find(|name| !members.contains(&name.as_str())) {
            Some(unknown) => Err(unknown.chars().take(64).collect()),
            None => Ok(()),
        }
    }

    /// The JSON-RPC request for these parameters of a call, without its id and `_meta`, which belong to the connection;
    /// with the input that the client of the call has sent, where the method takes any.
    pub fn message(&self, parameters: &Map<String, Value>, input: Option<&ClientInput>) -> Result<Vec<u8>, String> {
        let mut message = Vec::with_capacity(256);
        message.extend_from_slice(self.method.opening().as_bytes());
        match self.method.members() {
            None => {
                message.extend_from_slice(b"\"name\":");
                write_string(self.name.as_deref().unwrap_or_default(), &mut message);
                message.extend_from_slice(b",\"arguments\":");
                write(parameters, &mut message);
            }
            Some(_) => {
                self.check(parameters)?;
                for (position, (name, value)) in parameters.iter().enumerate() {
                    message.extend_from_slice(if position > 0 { b"," } else { b"" });
                    write_string(name, &mut message);
                    message.push(b':');
                    write(value, &mut message);
                }
            }
        }
        for (name, value) in input.filter(|_| self.method.asks()).map(ClientInput::members).into_iter().flatten() {
            message.extend_from_slice(if message.last() == Some(&b'{') { b"" } else { b"," });
            write_string(name, &mut message);
            message.push(b':');
            write(&value, &mut message);
        }
        message.extend_from_slice(b"}}");
        Ok(message)
    }

    /// The request to a server at this endpoint.
    pub fn render(
        &self,
        endpoint: &BaseUrl,
        parameters: &Map<String, Value>,
        input: Option<&ClientInput>,
    ) -> Result<RenderedRequest, String> {
        let bytes = self.message(parameters, input)?;
        Ok(RenderedRequest {
            method: HttpMethod::Post,
            url: endpoint.as_url().clone(),
            headers: Vec::new(),
            body: Some(RenderedBody { content_type: "application/json".into(), bytes }),
        })
    }
}

impl McpMethod {
    /// What every message of the method begins with: its first member goes behind it.
    pub fn opening(self) -> &'static str {
        macro_rules! opening {
            ($method:literal) => {
                concat!("{\"jsonrpc\":\"2.0\",\"method\":\"", $method, "\",\"params\":{")
            };
        }
        match self {
            Self::CallTool => opening!("tools/call"),
            Self::Complete => opening!("completion/complete"),
            Self::GetPrompt => opening!("prompts/get"),
            Self::ListPrompts => opening!("prompts/list"),
            Self::ListResourceTemplates => opening!("resources/templates/list"),
            Self::ListResources => opening!("resources/list"),
            Self::ReadResource => opening!("resources/read"),
        }
    }
}

fn write(value: &impl Serialize, message: &mut Vec<u8>) {
    // INVARIANT: what was read from JSON can be written as JSON, and a vector takes all of it.
    let _ = serde_json::to_writer(message, value);
}

/// The hash that a definition in a server's `tools/list` is pinned by: SHA-256 of the canonical JSON of the members that
/// agents or people decide on. Members that only the hop uses, such as `_meta`, are no part of it.
pub fn definition_hash(definition: &Value) -> String {
    let pinned = PINNED.iter().filter_map(|&member| Some((member.to_owned(), definition.get(member)?.clone())));
    let pinned = Value::Object(pinned.collect());
    format!("{HASH_PREFIX}{}", sha256(&to_canonical(&pinned)).to_hex())
}

fn read_hash(text: &str) -> Result<String, &'static str> {
    let digits = text.strip_prefix(HASH_PREFIX).unwrap_or_default();
    let is_hex = digits.len() == 64 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    if is_hex { Ok(text.to_owned()) } else { Err("must be sha256: followed by 64 hexadecimal digits") }
}
