//! Requests, answers and streams of each API.

use serde_json::{Value, json};

use crate::guard::{Content, Hook, Part, PartBody, Role};
use crate::step::{Step, StepQuestion};

mod cost;
mod refusals;
mod requests;
mod streams;

/// The step of an API with these further members.
fn step(api: &str, more: Value) -> Step {
    let mut members = json!({"kind": "model", "api": api});
    members.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Step::from_json(&members, "step").unwrap()
}

/// What a question shows, in short: texts as they are, calls with their tool, results with the call that they belong to.
fn brief(question: &StepQuestion) -> String {
    let hook = question.hook.as_str();
    let id = question.execution.as_deref().unwrap_or_default();
    let tool = question.tool.as_deref().unwrap_or_default();
    match &question.content {
        Content::Parts(parts) => format!("{hook}: {}", parts.iter().map(text).collect::<Vec<_>>().join("|")),
        Content::Arguments(arguments) => {
            format!("{hook}: {tool}#{id} {}", Value::Object(arguments.clone().into_owned()))
        }
        Content::Result { value, is_error } => format!("{hook}: {tool}#{id} {value} {is_error}"),
        _ => panic!("{question:?}"),
    }
}

fn text(part: &Part) -> String {
    match &part.body {
        PartBody::Text(text) => text.clone(),
        PartBody::Data(data) => format!("<{data}>"),
        PartBody::File(_) => "<file>".to_owned(),
    }
}

fn agent(text: &str) -> Content<'static> {
    Content::Parts(vec![Part::text(text)])
}

const AGENT: Hook = Hook::Message(Role::Agent);
