//! What guardians are asked about a request: the texts of operator and user, and the results of tools. The history is sent
//! again with every request, and is judged again with it: what a guardian modified in an earlier call would otherwise reach
//! the model unmodified in the next one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::api::Api;
use crate::guard::{Content, File, Hook, Part, PartBody, Role};
use crate::step::{StepError, StepQuestion};

mod chat;
mod messages;
mod responses;

/// A part of a conversation.
pub(super) enum Entry {
    /// A text of the operator or of the user, in parts.
    Said { role: Role, parts: Vec<Found> },
    /// Something that the model wrote, with the names of the tools that it called, by the ids of the calls.
    Model(Vec<(String, String)>),
    /// The result of a tool.
    Result { at: String, call: Option<String>, value: Value, is_error: bool },
}

/// A part, and where it stands.
pub(super) struct Found {
    pub(super) at: String,
    pub(super) body: PartBody,
}

impl Found {
    pub(super) fn text(at: impl Into<String>, text: &str) -> Self {
        Self { at: at.into(), body: PartBody::Text(text.to_owned()) }
    }

    /// What has no text: a picture, a recording, a file.
    pub(super) fn medium(at: impl Into<String>, value: &Value) -> Self {
        let name = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let file = File {
            name: name("/filename").or_else(|| name("/file/filename")).or_else(|| name("/title")),
            mime_type: name("/source/media_type"),
            place: value.clone(),
        };
        Self { at: at.into(), body: PartBody::File(file) }
    }
}

/// What guardians are asked about a request, in order.
pub(crate) fn questions(api: Api, request: &Value) -> Result<Vec<StepQuestion>, StepError> {
    let entries = match api {
        Api::Chat => chat::entries(request)?,
        Api::Messages | Api::CountTokens => messages::entries(request)?,
        Api::Responses | Api::InputTokens => responses::entries(request)?,
        Api::Embeddings => embedded(request)?,
    };
    Ok(ask(entries, api.generates()))
}

/// The names of the tools that a request offers to the model, and of those whose results it has. One that is in the request
/// nowhere may be called as well.
pub(crate) fn client_tools(api: Api, request: &Value) -> Vec<String> {
    let mut names = BTreeSet::from([UNDECLARED.to_owned()]);
    for list in ["tools", "functions"] {
        let tools = request.get(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        tools.iter().for_each(|tool| declared(tool, &mut names));
    }
    for question in questions(api, request).unwrap_or_default() {
        names.extend(question.tool.filter(|_| question.hook == Hook::ToolCallResult));
    }
    names.into_iter().collect()
}

/// Stands for the tools that a model calls although nobody has offered them.
const UNDECLARED: &str = "undeclared";

fn declared(tool: &Value, names: &mut BTreeSet<String>) {
    let pointers = ["/function/name", "/custom/name", "/name", "/type"];
    let name = pointers.iter().find_map(|pointer| tool.pointer(pointer)?.as_str());
    names.extend(name.map(str::to_owned));
    let inner = tool.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    inner.iter().for_each(|tool| declared(tool, names));
}

fn ask(entries: Vec<Entry>, starts: bool) -> Vec<StepQuestion> {
    // A model's turn that nothing follows is the beginning of the answer that is asked for.
    let is_said = |entry: &Entry| !matches!(entry, Entry::Model(_) | Entry::Said { role: Role::System, .. });
    let last = entries.iter().rposition(is_said).unwrap_or(0);
    let turn = entries.iter().take(last).rposition(|entry| matches!(entry, Entry::Model(_)));
    let mut asked = Asked::default();
    for (number, entry) in entries.into_iter().enumerate() {
        asked.add(entry, turn.is_none_or(|turn| number > turn));
    }
    asked.into_questions(starts && turn.is_none())
}

#[derive(Default)]
struct Asked {
    system: Vec<Vec<Found>>,
    history: Vec<Found>,
    new: Vec<Vec<Found>>,
    results: Vec<StepQuestion>,
    /// The names of the tools that were called.
    tools: BTreeMap<String, String>,
}

impl Asked {
    fn add(&mut self, entry: Entry, is_new: bool) {
        match entry {
            Entry::Said { parts, .. } if parts.is_empty() => {}
            Entry::Said { role: Role::System, parts } => self.system.push(parts),
            Entry::Said { parts, .. } if is_new => self.new.push(parts),
            Entry::Said { parts, .. } => self.history.extend(parts),
            Entry::Model(calls) => self.tools.extend(calls),
            Entry::Result { at, call, value, is_error } => {
                let tool = call.as_ref().and_then(|call| self.tools.get(call).cloned());
                let content = Content::Result { value: Cow::Owned(value), is_error };
                let question = StepQuestion::new(Hook::ToolCallResult, content, vec![at]);
                self.results.push(StepQuestion { tool, execution: call, ..question });
            }
        }
    }

    fn into_questions(self, starts: bool) -> Vec<StepQuestion> {
        let of = |hook: Hook, parts: Vec<Found>| {
            let (at, parts) = parts.into_iter().map(|Found { at, body }| (at, Part { body, metadata: None })).unzip();
            StepQuestion::new(hook, Content::Parts(parts), at)
        };
        let mut questions: Vec<_> =
            self.system.into_iter().map(|parts| of(Hook::Message(Role::System), parts)).collect();
        let trigger = self.new.iter().flatten().map(|Found { at, body }| Found { at: at.clone(), body: body.clone() });
        let trigger: Vec<_> = trigger.collect();
        if starts && !trigger.is_empty() {
            questions.push(of(Hook::AgentTrigger, trigger));
        }
        if !self.history.is_empty() {
            questions.push(of(Hook::Message(Role::User), self.history));
        }
        questions.extend(self.new.into_iter().map(|parts| of(Hook::Message(Role::User), parts)));
        questions.extend(self.results);
        questions
    }
}

fn embedded(request: &Value) -> Result<Vec<Entry>, StepError> {
    let said = |parts| vec![Entry::Said { role: Role::User, parts }];
    match request.get("input") {
        Some(Value::String(text)) => Ok(said(vec![Found::text("/input", text)])),
        Some(Value::Array(items)) => {
            let found = |(number, item): (usize, &Value)| match item {
                Value::String(text) => Ok(Found::text(format!("/input/{number}"), text)),
                _ => Err(unreadable(format!("/input/{number}"), "text: tokens cannot be read")),
            };
            items.iter().enumerate().map(found).collect::<Result<_, _>>().map(said)
        }
        _ => Err(unreadable("/input", "a text or a list of texts")),
    }
}

/// Content that cannot be understood, where a guardian is concerned.
pub(super) fn unreadable(at: impl Into<String>, wanted: &str) -> StepError {
    let at = at.into();
    let shown: String = at.chars().take(128).collect();
    StepError::new(at, format!("{shown} cannot be checked: it must be {wanted}"))
}

/// The items of a list that must be one.
pub(super) fn items<'a>(value: Option<&'a Value>, at: &str) -> Result<&'a [Value], StepError> {
    match value {
        Some(Value::Array(items)) => Ok(items),
        _ => Err(unreadable(at, "a list")),
    }
}

/// A text, if it is one.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}
