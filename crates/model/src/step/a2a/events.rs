//! The events of a streamed answer of an agent. Each is judged before it is passed on; the text of an artifact that comes in
//! several events is judged with the end of what came before, because what a rule looks for may begin in one event and end
//! in the next.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};

use super::A2aStep;
use crate::a2a::{Binding, member, named_in_result, same_identity};
use crate::guard::Content;
use crate::step::stream::Units;
use crate::step::{StepError, StepQuestion, StreamEvent, StreamMode, Unit};
use crate::strict_json;

/// How much of an artifact's text is judged again together with its next piece, in characters.
const OVERLAP: usize = 1_024;
/// How many artifacts of one stream are followed.
const ARTIFACT_LIMIT: usize = 64;
/// The most that is held back until the end, in bytes.
const WHOLE_LIMIT: usize = 8 * 1024 * 1024;

pub(super) struct Events {
    step: A2aStep,
    mode: StreamMode,
    seen: u64,
    task: Option<String>,
    context: Option<String>,
    state: Option<String>,
    /// The end of what was passed on of each artifact.
    tails: Mutex<BTreeMap<String, String>>,
    /// What is held back until the end, where everything is.
    held: Vec<(StreamEvent, Value)>,
    held_bytes: usize,
    /// What was held back, once the stream has ended.
    whole: Vec<Value>,
}

impl Events {
    pub(super) fn new(step: A2aStep, mode: StreamMode) -> Self {
        Self {
            step,
            mode,
            seen: 0,
            task: None,
            context: None,
            state: None,
            tails: Mutex::default(),
            held: Vec::new(),
            held_bytes: 0,
            whole: Vec::new(),
        }
    }

    fn note(&mut self, message: &Value) -> Result<(), StepError> {
        let Some(body) = message.get("result") else { return Ok(()) };
        let named = named_in_result(body)?;
        self.task = named.tasks.first().cloned().or_else(|| self.task.take());
        self.context = named.contexts.first().cloned().or_else(|| self.context.take());
        let holders = ["task", "statusupdate"].into_iter().filter_map(|name| member::find(body, name));
        let state = std::iter::once(body).chain(holders).find_map(|one| one.pointer("/status/state")?.as_str());
        if let Some(state) = state {
            self.state = Some(state.to_owned());
        }
        Ok(())
    }

    /// The text that comes before this piece of an artifact, if it is one.
    fn tail(&self, message: &Value) -> Option<String> {
        let (id, appends, _) = piece(message)?;
        let tails = self.tails.lock().unwrap_or_else(PoisonError::into_inner);
        tails.get(id).filter(|tail| appends && !tail.is_empty()).cloned()
    }

    /// Remembers the end of what is passed on of an artifact.
    fn passed(&self, message: &Value) -> Result<(), StepError> {
        let Some((id, appends, text)) = piece(message) else { return Ok(()) };
        let mut tails = self.tails.lock().unwrap_or_else(PoisonError::into_inner);
        if tails.len() >= ARTIFACT_LIMIT && !tails.contains_key(id) {
            let reason = format!("the agent streams more than {ARTIFACT_LIMIT} artifacts, the most that are followed");
            return Err(StepError::new("", reason));
        }
        let before = tails.get(id).filter(|_| appends).cloned().unwrap_or_default();
        tails.insert(id.to_owned(), end_of(before + &text));
        Ok(())
    }

    /// Remembers what is passed on instead of the original, behind this tail.
    fn replaced(&self, tail: Option<&String>, message: &Value) {
        let Some((id, _, text)) = piece(message) else { return };
        let mut tails = self.tails.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = tails.get_mut(id) {
            *known = end_of(tail.cloned().unwrap_or_default() + &text);
        }
    }

    fn unit(&self, event: StreamEvent, message: Value, is_error: bool) -> Result<Unit, StepError> {
        if self.mode == StreamMode::Off {
            return Ok(Unit::free(vec![event]));
        }
        let tail = self.tail(&message);
        self.passed(&message)?;
        let mut shown = message;
        // What a guardian returns begins with it again: `replace` takes it off.
        let at = tail.iter().cloned().collect();
        if let (Some(tail), Some(text)) = (&tail, first_text(&mut shown)) {
            text.insert_str(0, tail);
        }
        let question = self.step.question(shown, !is_error && self.step.operation.response_modifiable());
        Ok(Unit { question: Some(StepQuestion { at, ..question }), events: vec![event] })
    }

    /// An event as a message of the protocol, whatever carries it.
    fn message(&self, event: &StreamEvent) -> Result<(Value, bool), StepError> {
        let named_error = event.name.as_deref() == Some("error");
        let data = match strict_json::parse(event.data.as_bytes()) {
            Ok(data) => data,
            // An error may be bare text; a message may not.
            Err(_) if named_error => json!({"message": event.data}),
            Err(_) => return Err(StepError::new("", "the agent streams an event that is not JSON")),
        };
        if data.get("jsonrpc").is_some() {
            let is_error = data.get("error").is_some_and(|error| !error.is_null());
            return Ok((data, is_error || named_error));
        }
        let is_error = named_error || (data.get("error").is_some() && self.step.binding == Binding::HttpJson);
        let member = if is_error { "error" } else { "result" };
        Ok((json!({"jsonrpc": "2.0", "id": super::ID, member: data}), is_error))
    }

    /// The data of an event with this message in it, as the binding has it.
    fn data(&self, original: &StreamEvent, mut message: Value) -> Option<String> {
        let was_enveloped = strict_json::parse(original.data.as_bytes()).ok()?.get("jsonrpc").is_some();
        let data = if was_enveloped { message } else { message.get_mut("result")?.take() };
        Some(data.to_string())
    }
}

impl Units for Events {
    fn take(&mut self, event: StreamEvent) -> Result<Vec<Unit>, StepError> {
        self.seen += 1;
        let (message, is_error) = self.message(&event)?;
        self.note(&message)?;
        if self.mode == StreamMode::Whole {
            self.held_bytes += event.data.len();
            if self.held_bytes > WHOLE_LIMIT {
                let reason = format!("the answer is larger than {WHOLE_LIMIT} bytes, the most that is held back");
                return Err(StepError::new("", reason));
            }
            self.held.push((event, message));
            return Ok(Vec::new());
        }
        Ok(vec![self.unit(event, message, is_error)?])
    }

    fn end(&mut self) -> Result<Vec<Unit>, StepError> {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return Ok(Vec::new());
        }
        let (events, messages): (Vec<_>, Vec<_>) = held.into_iter().unzip();
        self.whole.clone_from(&messages);
        let whole = json!({"jsonrpc": "2.0", "id": super::ID, "result": messages});
        let question = self.step.question(whole, self.step.operation.response_modifiable());
        Ok(vec![Unit { question: Some(question), events }])
    }

    fn replace(&self, unit: &mut Unit, content: Content<'static>) -> Result<(), StepError> {
        let removed = || StepError::new("", "a guardian removed the content of an event");
        let Some(question) = unit.question.as_ref() else { return Err(removed()) };
        let (Content::Message(before), Content::Message(after)) = (&question.content, content) else {
            return Err(StepError::new("", "a guardian replaced an event by other content"));
        };
        if !same_identity(before, &after) {
            let reason = "a guardian changed what identifies an event: its ids, role or state";
            return Err(StepError::new("", reason));
        }
        let mut after = after.into_owned();
        if let Some(tail) = question.at.first() {
            let text = first_text(&mut after).ok_or_else(removed)?;
            // What was passed on cannot be changed any more.
            let reason = "a guardian changed what an earlier event of the same artifact had passed on";
            *text = text.strip_prefix(tail.as_str()).ok_or_else(|| StepError::new("", reason))?.to_owned();
        }
        let messages = match (self.mode, unit.events.len()) {
            (StreamMode::Whole, count) => {
                let list = after.get_mut("result").and_then(Value::as_array_mut).map(std::mem::take);
                list.filter(|list| list.len() == count).ok_or_else(removed)?
            }
            _ => vec![after],
        };
        let mut events = Vec::with_capacity(messages.len());
        for (event, message) in unit.events.iter().zip(messages) {
            if self.mode != StreamMode::Whole {
                self.replaced(question.at.first(), &message);
            }
            let data = self.data(event, message).ok_or_else(removed)?;
            events.push(StreamEvent { name: event.name.clone(), data });
        }
        unit.events = events;
        Ok(())
    }

    fn result(&self) -> Value {
        let members = [("task_id", &self.task), ("context_id", &self.context), ("state", &self.state)];
        let members = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value.as_ref()?))));
        let counted = [("streamed_events".to_owned(), json!(self.seen))];
        let mut result: Map<String, Value> = counted.into_iter().chain(members).collect();
        if !self.whole.is_empty() {
            // What was held back until the end is judged as the result of the tool, too.
            result.insert("events".to_owned(), json!(self.whole));
        }
        Value::Object(result)
    }
}

/// The end of a text that is judged again.
fn end_of(text: String) -> String {
    let skipped = text.chars().count().saturating_sub(OVERLAP);
    text.chars().skip(skipped).collect()
}

/// The artifact that an event is a piece of: its id, whether the piece is appended, and its text.
fn piece(message: &Value) -> Option<(&str, bool, String)> {
    let body = message.get("result")?;
    let update = member::find(body, "artifactupdate").unwrap_or(body);
    let artifact = member::find(update, "artifact")?;
    let id = member::find(artifact, "artifactid")?.as_str()?;
    let appends = member::find(update, "append") == Some(&Value::Bool(true));
    let parts = member::find(artifact, "parts").and_then(Value::as_array);
    let text: String = parts.into_iter().flatten().filter_map(|part| part.get("text")?.as_str()).collect();
    Some((id, appends, text))
}

/// The first text of a piece of an artifact.
fn first_text(message: &mut Value) -> Option<&mut String> {
    let body = message.get_mut("result")?;
    let update = match member::find(body, "artifactupdate").is_some() {
        true => member::find_mut(body, "artifactupdate")?,
        false => body,
    };
    let parts = member::find_mut(member::find_mut(update, "artifact")?, "parts")?.as_array_mut()?;
    parts.iter_mut().find_map(|part| match part.get_mut("text") {
        Some(Value::String(text)) => Some(text),
        _ => None,
    })
}
