//! Calls that read or write a memory.

use serde_json::{Map, Value, json};

use super::{StepError, StepQuestion, pointer};
use crate::guard::{Content, Hook};
use crate::service::DefinitionError;
use crate::service::reading::{Fields, word};

/// A call that reads or writes a memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryStep {
    pub operation: MemoryOperation,
    /// What is stored, in the parameters; or the entries that are returned, in the result.
    pub entries: String,
    /// The text of an entry that is an object, in the entry.
    pub content: String,
}

/// What the call does with the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryOperation {
    /// Stores entries.
    Store,
    /// Returns entries.
    Retrieve,
    /// Neither stores nor returns any.
    Forget,
}

const OPERATIONS: [(&str, MemoryOperation); 3] =
    [("forget", MemoryOperation::Forget), ("retrieve", MemoryOperation::Retrieve), ("store", MemoryOperation::Store)];

impl MemoryStep {
    pub(super) fn from_json(value: &Value, path: &str) -> Result<Self, DefinitionError> {
        let fields = Fields::of(value, path, &["content", "entries", "kind", "operation"])?;
        let operation = fields.need("operation", |value, path| word(value, path, &OPERATIONS))?;
        let read = |name| fields.read(name, pointer::read);
        Ok(Self {
            operation,
            entries: read("entries")?.unwrap_or_default(),
            content: read("content")?.unwrap_or_default(),
        })
    }

    pub(super) fn to_json(&self) -> Value {
        let operation = OPERATIONS.iter().find(|(_, operation)| *operation == self.operation);
        let mut members = Map::from_iter([("kind".to_owned(), json!("memory"))]);
        members.extend(operation.map(|(word, _)| ("operation".to_owned(), json!(word))));
        for (name, pointer) in [("content", &self.content), ("entries", &self.entries)] {
            if !pointer.is_empty() {
                members.insert(name.to_owned(), json!(pointer));
            }
        }
        Value::Object(members)
    }

    pub(super) fn check(&self, _parameters: &Value) -> Result<(), StepError> {
        Ok(())
    }

    pub(super) fn request_hooks(&self) -> &'static [Hook] {
        if self.operation == MemoryOperation::Store { &[Hook::MemoryStore] } else { &[] }
    }

    pub(super) fn response_hooks(&self) -> &'static [Hook] {
        if self.operation == MemoryOperation::Retrieve { &[Hook::MemoryContextRetrieval] } else { &[] }
    }

    pub(super) fn of_request(&self, parameters: &Value) -> Result<Vec<StepQuestion>, StepError> {
        self.question(self.request_hooks(), parameters)
    }

    pub(super) fn of_response(&self, _: &Value, result: &Value) -> Result<Vec<StepQuestion>, StepError> {
        self.question(self.response_hooks(), result)
    }

    fn question(&self, hooks: &[Hook], document: &Value) -> Result<Vec<StepQuestion>, StepError> {
        let Some(&hook) = hooks.first() else { return Ok(Vec::new()) };
        let (at, texts): (Vec<_>, Vec<_>) = self.entries_of(document)?.into_iter().unzip();
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let modifiable = at.iter().all(|place| !place.is_empty());
        Ok(vec![StepQuestion { modifiable, ..StepQuestion::new(hook, Content::Memory(texts), at) }])
    }

    /// The entries of a document, each with the pointer to its text.
    fn entries_of(&self, document: &Value) -> Result<Vec<(String, String)>, StepError> {
        let text = |place: String| match pointer::text_at(document, &place) {
            Some(text) => Ok((place, text)),
            None => Err(StepError::new(place, "has no text that guardians could be asked about")),
        };
        match document.pointer(&self.entries) {
            // Nothing that was declared is there: the whole document is looked at, and can only be denied.
            None => Ok(vec![(String::new(), document.to_string())]),
            Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(entries)) => {
                (0..entries.len()).map(|index| text(format!("{}/{index}{}", self.entries, self.content))).collect()
            }
            Some(_) => Ok(vec![text(format!("{}{}", self.entries, self.content))?]),
        }
    }

    /// Rewrites entries, and drops those that a guardian has left out.
    pub(super) fn replace(
        &self,
        document: &mut Value,
        question: &StepQuestion,
        content: Content<'static>,
    ) -> Result<(), StepError> {
        let (Content::Memory(original), Content::Memory(modified)) = (&question.content, content) else {
            return Err(StepError::new(&self.entries, "a guardian replaced the entries of a memory by other content"));
        };
        let kept = aligned(original, modified).map_err(|reason| StepError::new(&self.entries, reason))?;
        for (place, text) in question.at.iter().zip(&kept) {
            if let (Some(text), Some(value)) = (text, document.pointer_mut(place)) {
                *value = Value::String(text.clone());
            }
        }
        match document.pointer_mut(&self.entries) {
            Some(Value::Array(entries)) => {
                let mut kept = kept.iter();
                entries.retain(|_| kept.next().is_none_or(Option::is_some));
            }
            Some(entry) if kept.iter().all(Option::is_none) => *entry = Value::Null,
            _ => {}
        }
        Ok(())
    }
}

/// What became of each entry: its text, or `None` if it was left out or emptied. Where fewer entries come back, they must be
/// unchanged: which of several a rewritten one stands for cannot be known.
fn aligned(original: &[String], modified: Vec<String>) -> Result<Vec<Option<String>>, &'static str> {
    if modified.len() > original.len() {
        return Err("a guardian returned more entries than there were");
    }
    if modified.len() == original.len() {
        return Ok(modified.into_iter().map(|text| Some(text).filter(|text| !text.is_empty())).collect());
    }
    let mut modified = modified.into_iter().peekable();
    let kept = original.iter().map(|text| modified.next_if(|next| next == text)).collect();
    match modified.next() {
        None => Ok(kept),
        Some(_) => Err("a guardian both left out and rewrote entries; return an empty text for what is left out"),
    }
}
