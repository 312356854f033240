//! Which tasks and contexts messages name, and what of a message nobody may change.
//!
//! All callers share one credential towards an agent, so that it takes them for one user: who may see which task is
//! decided here, from the ids in requests and results.

use serde_json::{Map, Value};

use super::{Operation, member};
use crate::step::StepError;

/// The longest id of a task or a context, in bytes. Agents choose them, and they are opaque.
const ID_LIMIT: usize = 512;
/// How many tasks one message may refer to.
const REFERENCE_LIMIT: usize = 64;

/// The tasks and contexts that a message names, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    pub tasks: Vec<String>,
    pub contexts: Vec<String>,
}

impl Named {
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.contexts.is_empty()
    }

    fn task(&mut self, place: &str, value: &Value) -> Result<(), StepError> {
        add(&mut self.tasks, place, value)
    }

    fn context(&mut self, place: &str, value: &Value) -> Result<(), StepError> {
        add(&mut self.contexts, place, value)
    }

    /// The ids of one object: of a message, an update, or a task.
    fn take(&mut self, place: &str, object: &Map<String, Value>) -> Result<(), StepError> {
        for (name, value) in member::all(object, "taskid") {
            self.task(&format!("{place}/{name}"), value)?;
        }
        for (name, value) in member::all(object, "contextid") {
            self.context(&format!("{place}/{name}"), value)?;
        }
        Ok(())
    }
}

/// An empty id is none: that is how ProtoJSON writes an absent one.
fn add(ids: &mut Vec<String>, place: &str, value: &Value) -> Result<(), StepError> {
    let Some(id) = value.as_str() else { return Err(StepError::new(place, "must be a string")) };
    if id.len() > ID_LIMIT || id.chars().any(char::is_control) {
        let reason = format!("must be an id of at most {ID_LIMIT} bytes without control characters");
        return Err(StepError::new(place, reason));
    }
    if !id.is_empty() && !ids.iter().any(|known| known == id) {
        ids.push(id.to_owned());
    }
    Ok(())
}

/// The tasks and contexts that a request names. Refused where an id is not one, or could be read in two ways.
pub fn named_in_request(operation: Operation, parameters: &Value) -> Result<Named, StepError> {
    let mut named = Named::default();
    let Some(members) = parameters.as_object() else { return Err(StepError::new("", "must be an object")) };
    if operation.sends() {
        let mut messages =
            members.iter().filter(|(name, _)| member::is(name, "message") || member::is(name, "request"));
        let (Some((name, message)), None) = (messages.next(), messages.next()) else {
            return Err(StepError::new("/message", "there must be one message"));
        };
        let place = format!("/{name}");
        let Some(message) = message.as_object() else { return Err(StepError::new(place, "must be an object")) };
        refuse_twice(&place, message, &["taskid", "contextid", "referencetaskids"])?;
        named.take(&place, message)?;
        for (name, references) in member::all(message, "referencetaskids") {
            let place = format!("{place}/{name}");
            let references = references.as_array().filter(|references| references.len() <= REFERENCE_LIMIT);
            let reason = || format!("must be a list of at most {REFERENCE_LIMIT} ids");
            for id in references.ok_or_else(|| StepError::new(place.clone(), reason()))? {
                named.task(&place, id)?;
            }
        }
    } else if operation.names_task() {
        refuse_twice("", members, &["id"])?;
        for (name, id) in member::all(members, "id") {
            named.task(&format!("/{name}"), id)?;
        }
        if named.tasks.is_empty() {
            return Err(StepError::new("/id", "must name a task"));
        }
        // Another name of the same task in ProtoJSON of 0.3, which the path already has.
        if let Some((name, _)) = member::all(members, "name").next() {
            return Err(StepError::new(format!("/{name}"), "must be left out: `id` names the task"));
        }
    } else if operation == Operation::List {
        refuse_twice("", members, &["contextid"])?;
        for (name, id) in member::all(members, "contextid") {
            named.context(&format!("/{name}"), id)?;
        }
    }
    Ok(named)
}

/// Refuses members that are given in two spellings: the gate and the agent could choose differently.
fn refuse_twice(place: &str, object: &Map<String, Value>, names: &[&str]) -> Result<(), StepError> {
    for plain_name in names {
        let mut spelled = object.keys().filter(|name| member::is(name, plain_name));
        if let (Some(_), Some(second)) = (spelled.next(), spelled.next()) {
            return Err(StepError::new(format!("{place}/{second}"), "is given in two spellings; give it once"));
        }
    }
    Ok(())
}

/// The tasks and contexts that a result, or one event of a stream, is about.
pub fn named_in_result(result: &Value) -> Result<Named, StepError> {
    let mut named = Named::default();
    let Some(members) = result.as_object() else { return Ok(named) };
    named_in_object("", members, &mut named)?;
    for wrapper in ["task", "message", "statusupdate", "artifactupdate", "msg"] {
        for (name, wrapped) in member::all(members, wrapper) {
            if let Some(wrapped) = wrapped.as_object() {
                named_in_object(&format!("/{name}"), wrapped, &mut named)?;
            }
        }
    }
    for (name, tasks) in member::all(members, "tasks") {
        for (position, task) in tasks.as_array().into_iter().flatten().enumerate() {
            if let Some(task) = task.as_object() {
                named_in_object(&format!("/{name}/{position}"), task, &mut named)?;
            }
        }
    }
    Ok(named)
}

fn named_in_object(place: &str, object: &Map<String, Value>, named: &mut Named) -> Result<(), StepError> {
    // A task is what has a state and an id.
    if member::all(object, "status").any(|(_, status)| status.is_object()) {
        for (name, id) in member::all(object, "id") {
            named.task(&format!("{place}/{name}"), id)?;
        }
    }
    named.take(place, object)
}

/// What identifies a message, its task and its place in the conversation, by plain names.
const IDENTITY: [&str; 18] = [
    "append",
    "artifactid",
    "code",
    "contextid",
    "final",
    "id",
    "jsonrpc",
    "kind",
    "lastchunk",
    "messageid",
    "method",
    "nextpagetoken",
    "referencetaskids",
    "role",
    "state",
    "taskid",
    "tenant",
    "totalsize",
];
/// What the parties fill with what they like.
const FREE: [&str; 4] = ["content", "data", "metadata", "parts"];

/// Whether two messages are the same one with other content: what identifies them, in the same order.
pub fn same_identity(before: &Value, after: &Value) -> bool {
    let (mut mine, mut theirs) = (Vec::new(), Vec::new());
    collect(before, &mut mine);
    collect(after, &mut theirs);
    mine == theirs
}

fn collect<'a>(value: &'a Value, found: &mut Vec<(String, &'a Value)>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(members) => {
            for (name, value) in members {
                let plain = member::plain(name);
                if IDENTITY.contains(&plain.as_str()) && !value.is_object() {
                    found.push((plain, value));
                } else if !FREE.contains(&plain.as_str()) {
                    collect(value, found);
                }
            }
        }
        _ => {}
    }
}
