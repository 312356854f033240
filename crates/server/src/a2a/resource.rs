//! Requests as HTTP and JSON: the path and the method are the operation. Paths of 0.3 begin with `/v1`.

use http::Method;
use http::request::Parts;
use serde_json::{Map, Value, json};
use toolgate_model::a2a::{A2aError, Binding, ErrorKind, Operation, Version, member};
use toolgate_model::strict_json;

use super::call::Asked;
use super::spoken::Spoken;
use super::{PATH, version};

/// Parameters of a query that are no texts.
const NUMBERS: [&str; 2] = ["historyLength", "pageSize"];
const FLAGS: [&str; 1] = ["includeArtifacts"];

/// What a path below an agent's address means.
pub(super) enum Resource {
    /// The public card.
    Card,
    Operation(Routed),
}

/// An operation, as its path names it.
pub(super) struct Routed {
    operation: Operation,
    version: Version,
    task: Option<String>,
}

/// Finds what a request is for; `None` where there is nothing.
pub(super) fn route(method: &Method, path: &str) -> Option<(String, Resource)> {
    // The raw path: an id may contain an encoded slash.
    let mut segments = path.strip_prefix(PATH)?.strip_prefix('/')?.split('/');
    let agent = decoded(segments.next()?)?;
    let mut rest: Vec<&str> = segments.collect();
    if rest.first() == Some(&".well-known") {
        let is_card = matches!(rest.get(1), Some(&("agent-card.json" | "agent.json"))) && rest.len() == 2;
        return (is_card && method == Method::GET).then_some((agent, Resource::Card));
    }
    let version = match rest.first() {
        Some(&"v1") => {
            rest.remove(0);
            Version::V0_3
        }
        _ => Version::V1_0,
    };
    let (operation, task) = operation(method, version, &rest)?;
    Some((agent, Resource::Operation(Routed { operation, version, task })))
}

fn operation(method: &Method, version: Version, rest: &[&str]) -> Option<(Operation, Option<String>)> {
    let (get, post, delete) = (method == Method::GET, method == Method::POST, method == Method::DELETE);
    let found = match rest {
        ["message:send"] if post => (Operation::Send, None),
        ["message:stream"] if post => (Operation::Stream, None),
        ["tasks"] if get && version == Version::V1_0 => (Operation::List, None),
        ["extendedAgentCard"] if get && version == Version::V1_0 => (Operation::Card, None),
        ["card"] if get && version == Version::V0_3 => (Operation::Card, None),
        ["tasks", named] => {
            let (task, verb) = match named.rsplit_once(':') {
                Some((task, "cancel")) if post => (task, Operation::Cancel),
                // The text says POST, the definition GET, and clients do both.
                Some((task, "subscribe")) if get || post => (task, Operation::Subscribe),
                _ if get => (*named, Operation::Get),
                _ => return None,
            };
            (verb, Some(decoded(task)?))
        }
        ["tasks", task, "pushNotificationConfigs"] if post => (Operation::PushSet, Some(decoded(task)?)),
        ["tasks", task, "pushNotificationConfigs"] if get => (Operation::PushList, Some(decoded(task)?)),
        ["tasks", task, "pushNotificationConfigs", _] if get => (Operation::PushGet, Some(decoded(task)?)),
        ["tasks", task, "pushNotificationConfigs", _] if delete => (Operation::PushDelete, Some(decoded(task)?)),
        _ => return None,
    };
    Some(found)
}

/// A segment without its percent-encoding; `None` for one that is empty or malformed.
fn decoded(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let value = digit(rest.next())? * 16 + digit(rest.next())?;
                bytes.push(u8::try_from(value).ok()?);
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

impl Routed {
    pub(super) fn spoken(&self) -> Spoken {
        Spoken { binding: Binding::HttpJson, version: self.version, id: Value::Null }
    }

    /// Reads the request.
    pub(super) fn read(self, parts: &Parts, bytes: &[u8]) -> Result<Asked, A2aError> {
        version::check(parts, self.version)?;
        let wrong = |kind: ErrorKind, reason: &str| A2aError::new(kind, reason, Map::new());
        let mut params = match bytes.is_empty() {
            true => Map::new(),
            false => match strict_json::parse(bytes) {
                Ok(Value::Object(members)) => members,
                Ok(_) => return Err(wrong(ErrorKind::InvalidParams, "the body must be a JSON object")),
                Err(error) => {
                    return Err(wrong(ErrorKind::ParseError, &format!("the body is not valid JSON: {error}")));
                }
            },
        };
        if parts.method == Method::GET {
            for (name, value) in url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()) {
                if !name.eq_ignore_ascii_case("a2a-version") {
                    params.insert(name.to_string(), typed(&name, &value));
                }
            }
        }
        if let Some(task) = &self.task {
            // The path names the task, whatever the rest says.
            params.retain(|name, _| !member::is(name, "id") && !member::is(name, "name"));
            params.insert("id".to_owned(), json!(task));
        }
        Ok(Asked { operation: self.operation, params, spoken: self.spoken() })
    }
}

/// A value of a query as JSON has it: one binding of an agent may be called by a client of the other.
fn typed(name: &str, value: &str) -> Value {
    if NUMBERS.contains(&name)
        && let Ok(number) = value.parse::<u64>()
    {
        return json!(number);
    }
    match value {
        "true" if FLAGS.contains(&name) => json!(true),
        "false" if FLAGS.contains(&name) => json!(false),
        text => json!(text),
    }
}
