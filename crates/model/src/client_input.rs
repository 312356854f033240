//! Input that a server asks the client of a call for while it carries the call out (MCP: elicitation, sampling, roots).
//! What servers ask is untrusted content with limits; what clients send back is input of the agent's side, never an
//! approval.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use url::Url;

use crate::credential::ServiceName;
use crate::id::CredentialId;
use crate::secret_name::is_secret;

#[cfg(test)]
mod tests;

/// The most requests for input in one result.
pub const REQUEST_LIMIT: usize = 16;
/// The most that they may have together, as JSON, in bytes.
const SIZE_LIMIT: usize = 256 * 1024;
/// The longest key of a request, in bytes.
const KEY_LIMIT: usize = 128;
/// The longest text that a user is shown, in bytes.
const MESSAGE_LIMIT: usize = 8 * 1024;
/// The longest URL that a user is asked to open, in bytes.
const URL_LIMIT: usize = 2_048;
/// The most fields of a form.
const FIELD_LIMIT: usize = 64;
/// The longest state of a server, in bytes.
const STATE_LIMIT: usize = 16 * 1024;

/// The members that hold what a server asks for, what the client sends for it, and the state of the server.
pub const INPUT_REQUESTS: &str = "inputRequests";
pub const INPUT_RESPONSES: &str = "inputResponses";
pub const STATE: &str = "requestState";
pub const ELICIT: &str = "elicitation/create";
pub const SAMPLE: &str = "sampling/createMessage";
pub const LIST_ROOTS: &str = "roots/list";

/// What a client can be asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct InputCapabilities {
    /// Its user fills in forms.
    pub form: bool,
    /// Its user opens URLs.
    pub url: bool,
    /// It has a model generate messages.
    pub sampling: bool,
    /// The model may use tools.
    pub sampling_tools: bool,
    /// The model may be given the context of servers.
    pub sampling_context: bool,
    /// It lists the directories that it works in.
    pub roots: bool,
}

impl InputCapabilities {
    /// From the capabilities that a client declares. Elicitation without a mode means forms.
    pub fn of(declared: Option<&Value>) -> Self {
        let member = |name: &str| declared.and_then(|declared| declared.get(name)).filter(|value| value.is_object());
        let (elicitation, sampling) = (member("elicitation"), member("sampling"));
        let has = |of: Option<&Value>, name: &str| of.and_then(|of| of.get(name)).is_some_and(Value::is_object);
        let url = has(elicitation, "url");
        Self {
            form: has(elicitation, "form") || (elicitation.is_some() && !url),
            url,
            sampling: sampling.is_some(),
            sampling_tools: has(sampling, "tools"),
            sampling_context: has(sampling, "context"),
            roots: member("roots").is_some(),
        }
    }

    /// As a client declares them.
    pub fn to_json(self) -> Value {
        let modes = |of: &[(&str, bool)]| -> Value {
            Value::Object(
                of.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| ((*name).to_owned(), json!({}))).collect(),
            )
        };
        let mut declared = Map::new();
        if self.form || self.url {
            declared.insert("elicitation".to_owned(), modes(&[("form", self.form), ("url", self.url)]));
        }
        if self.roots {
            declared.insert("roots".to_owned(), json!({}));
        }
        if self.sampling {
            let of = [("context", self.sampling_context), ("tools", self.sampling_tools)];
            declared.insert("sampling".to_owned(), modes(&of));
        }
        Value::Object(declared)
    }

    /// Whether everything that is needed is there.
    pub fn covers(self, needed: Self) -> bool {
        let pairs = [
            (needed.form, self.form),
            (needed.url, self.url),
            (needed.sampling, self.sampling),
            (needed.sampling_tools, self.sampling_tools),
            (needed.sampling_context, self.sampling_context),
            (needed.roots, self.roots),
        ];
        pairs.iter().all(|(is_needed, is_there)| *is_there || !is_needed)
    }

    fn with(self, other: Self) -> Self {
        Self {
            form: self.form || other.form,
            url: self.url || other.url,
            sampling: self.sampling || other.sampling,
            sampling_tools: self.sampling_tools || other.sampling_tools,
            sampling_context: self.sampling_context || other.sampling_context,
            roots: self.roots || other.roots,
        }
    }
}

/// Why what a server asks for is not passed on. Says nothing that the server sent.
pub type Unfit = &'static str;

/// What a client must be able to do for these requests.
pub fn needs(requests: &Map<String, Value>) -> Result<InputCapabilities, Unfit> {
    if requests.len() > REQUEST_LIMIT {
        return Err("the server asks for more at once than is passed on");
    }
    requests.iter().try_fold(InputCapabilities::default(), |needed, (key, request)| {
        if key.is_empty() || key.len() > KEY_LIMIT || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("the server asks for input under a key that is not plain text");
        }
        let method =
            request.get("method").and_then(Value::as_str).ok_or("the server asks for input without a method")?;
        let nothing = Map::new();
        let params = match request.get("params") {
            None => &nothing,
            Some(params) => params.as_object().ok_or("the server asks for input with parameters that are no object")?,
        };
        Ok(needed.with(needs_of(method, params)?))
    })
}

/// What a client must be able to do for one request of a server.
pub fn needs_of(method: &str, params: &Map<String, Value>) -> Result<InputCapabilities, Unfit> {
    if json!(params).to_string().len() > SIZE_LIMIT {
        return Err("the server asks for input with more text than is passed on");
    }
    let nothing = InputCapabilities::default();
    match method {
        ELICIT => elicitation(params),
        SAMPLE => {
            if !params.get("messages").is_some_and(Value::is_array) {
                return Err("the server asks for a generated message without messages");
            }
            let sampling_tools = params.contains_key("tools") || params.contains_key("toolChoice");
            Ok(InputCapabilities { sampling: true, sampling_tools, ..nothing })
        }
        LIST_ROOTS => Ok(InputCapabilities { roots: true, ..nothing }),
        _ => Err("the server asks the client for something that no client is asked for"),
    }
}

fn elicitation(params: &Map<String, Value>) -> Result<InputCapabilities, Unfit> {
    let nothing = InputCapabilities::default();
    let message = params.get("message").and_then(Value::as_str).ok_or("the server asks a user without a message")?;
    if message.len() > MESSAGE_LIMIT {
        return Err("the server asks a user with a longer message than is passed on");
    }
    match params.get("mode").map(Value::as_str) {
        None | Some(Some("form")) => {
            check_form(params.get("requestedSchema"))?;
            Ok(InputCapabilities { form: true, ..nothing })
        }
        Some(Some("url")) => {
            check_url(params.get("url").and_then(Value::as_str).unwrap_or_default())?;
            Ok(InputCapabilities { url: true, ..nothing })
        }
        Some(_) => Err("the server requests input in a mode that the gate does not support"),
    }
}

/// A form has fields of plain values, and asks for no secret: what is filled in passes through the
/// agent.
fn check_form(schema: Option<&Value>) -> Result<(), Unfit> {
    let schema = schema.and_then(Value::as_object).ok_or("the server asks for a form without a schema")?;
    let fields = match schema.get("properties") {
        None => return Ok(()),
        Some(fields) => fields.as_object().ok_or("the server asks for a form whose fields are no object")?,
    };
    if fields.len() > FIELD_LIMIT {
        return Err("the server asks for a form with more fields than is passed on");
    }
    match fields.keys().any(|name| is_secret("", name)) {
        true => Err("the server asks for a secret in a form, which would pass through the agent"),
        false => Ok(()),
    }
}

/// Only a page on the web: other schemes start programs or run scripts, and a user name in it hides the host.
fn check_url(text: &str) -> Result<(), Unfit> {
    let unfit = "the server asks a user to open something that is no address of a web page";
    let url = Url::parse(text).map_err(|_| unfit)?;
    let is_web = matches!(url.scheme(), "http" | "https") && url.host_str().is_some_and(|host| !host.is_empty());
    let is_plain = url.username().is_empty() && url.password().is_none() && !text.chars().any(char::is_control);
    if is_web && is_plain && text.len() <= URL_LIMIT { Ok(()) } else { Err(unfit) }
}

/// Checks what a client sends for the requests: one object under each key.
pub fn check_responses(responses: &Map<String, Value>) -> Result<(), &'static str> {
    if responses.len() > 4 * REQUEST_LIMIT {
        return Err("has more members than were asked for");
    }
    match responses.values().all(Value::is_object) {
        true => Ok(()),
        false => Err("must have an object for each key"),
    }
}

/// What a server keeps of an interrupted call. Opaque, and not shown to anybody: a server may put anything in it, the
/// credential that it was called with included.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerState(String);

impl ServerState {
    pub fn new(text: String) -> Result<Self, Unfit> {
        if text.len() > STATE_LIMIT {
            return Err("the server asks for input with a longer state than is passed on");
        }
        Ok(Self(text))
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ServerState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ServerState(..)")
    }
}

/// Who has asked: the call that brings the input goes to the same server with the same credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputOrigin {
    pub service: ServiceName,
    /// The endpoint of the server; `None` for a process.
    pub endpoint: Option<String>,
    pub credential: CredentialId,
    /// The keys that it has asked for.
    pub asked: Vec<String>,
    pub state: Option<ServerState>,
}

/// A result that asks for input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputRequired {
    pub requests: Map<String, Value>,
    /// What the client must be able to do.
    pub needs: InputCapabilities,
    pub origin: InputOrigin,
}

/// What the client of a call can be asked for, and what it has sent so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientInput {
    pub capabilities: InputCapabilities,
    #[serde(default)]
    pub responses: Map<String, Value>,
    /// Set if the call goes on where a server has interrupted it.
    #[serde(default)]
    pub origin: Option<InputOrigin>,
}

impl ClientInput {
    /// The members of the request's parameters that bring the input.
    pub fn members(&self) -> Vec<(&'static str, Value)> {
        let responses = (!self.responses.is_empty()).then(|| (INPUT_RESPONSES, Value::Object(self.responses.clone())));
        let state = self.origin.as_ref().and_then(|origin| origin.state.as_ref());
        responses.into_iter().chain(state.map(|state| (STATE, json!(state.expose())))).collect()
    }

    /// What distinguishes two calls with the same arguments; `None` for a call without input.
    pub fn digested(&self) -> Option<Value> {
        if self.responses.is_empty() && self.origin.is_none() {
            return None;
        }
        let state = self.origin.as_ref().map(|origin| json!({"origin": origin}));
        Some(json!({"responses": self.responses, "state": state}))
    }
}
