//! Calls that search a knowledge base.

use serde_json::{Map, Value, json};

use super::{StepError, StepQuestion, pointer};
use crate::guard::{Content, Finding, Hook};
use crate::service::DefinitionError;
use crate::service::reading::Fields;

/// A call that searches a knowledge base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgeStep {
    /// The query, in the parameters.
    pub query: Option<String>,
    /// The list of what was found, in the result.
    pub results: String,
    /// The id of an item of it, in the item; by default its position.
    pub id: Option<String>,
    /// The text of an item, in the item.
    pub content: String,
}

impl KnowledgeStep {
    pub(super) fn from_json(value: &Value, path: &str) -> Result<Self, DefinitionError> {
        let fields = Fields::of(value, path, &["content", "id", "kind", "query", "results"])?;
        Ok(Self {
            query: fields.read("query", pointer::read)?,
            results: fields.need("results", pointer::read)?,
            id: fields.read("id", pointer::read)?,
            content: fields.read("content", pointer::read)?.unwrap_or_default(),
        })
    }

    pub(super) fn to_json(&self) -> Value {
        let mut members =
            Map::from_iter([("kind".to_owned(), json!("knowledge")), ("results".to_owned(), json!(self.results))]);
        let content = Some(&self.content).filter(|content| !content.is_empty());
        for (name, pointer) in [("content", content), ("id", self.id.as_ref()), ("query", self.query.as_ref())] {
            members.extend(pointer.map(|pointer| (name.to_owned(), json!(pointer))));
        }
        Value::Object(members)
    }

    pub(super) fn check(&self, _parameters: &Value) -> Result<(), StepError> {
        Ok(())
    }

    pub(super) fn request_hooks(&self) -> &'static [Hook] {
        &[]
    }

    pub(super) fn response_hooks(&self) -> &'static [Hook] {
        &[Hook::KnowledgeRetrieval]
    }

    pub(super) fn of_request(&self, _parameters: &Value) -> Result<Vec<StepQuestion>, StepError> {
        Ok(Vec::new())
    }

    pub(super) fn of_response(&self, parameters: &Value, result: &Value) -> Result<Vec<StepQuestion>, StepError> {
        let items = match result.pointer(&self.results) {
            Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            // Nothing that was declared is there: the whole result is looked at, and can only be denied.
            None => return Ok(vec![self.whole(parameters, result)]),
            Some(_) => return Err(StepError::new(&self.results, "is not a list of results")),
        };
        if items.is_empty() {
            return Ok(Vec::new());
        }
        let finding = |(index, item): (usize, &Value)| {
            let id = self.id.as_ref().and_then(|id| pointer::text_at(item, id));
            let unreadable = || {
                let place = format!("{}/{index}{}", self.results, self.content);
                StepError::new(place, "has no text that guardians could be asked about")
            };
            let content = pointer::text_at(item, &self.content).ok_or_else(unreadable)?;
            Ok(Finding { id: id.unwrap_or_else(|| index.to_string()), content, mime_type: None, metadata: None })
        };
        let results = items.iter().enumerate().map(finding).collect::<Result<_, _>>()?;
        Ok(vec![self.question(parameters, results)])
    }

    fn question(&self, parameters: &Value, results: Vec<Finding>) -> StepQuestion {
        let query = self.query.as_ref().and_then(|query| pointer::text_at(parameters, query));
        let content = Content::Knowledge { query, keywords: Vec::new(), results };
        StepQuestion::new(Hook::KnowledgeRetrieval, content, Vec::new())
    }

    fn whole(&self, parameters: &Value, result: &Value) -> StepQuestion {
        let found = Finding { id: "result".to_owned(), content: result.to_string(), mime_type: None, metadata: None };
        StepQuestion { modifiable: false, ..self.question(parameters, vec![found]) }
    }

    /// Rewrites results, and drops those that a guardian has left out.
    pub(super) fn replace(
        &self,
        document: &mut Value,
        question: &StepQuestion,
        content: Content<'static>,
    ) -> Result<(), StepError> {
        let (Content::Knowledge { results: original, .. }, Content::Knowledge { results: modified, .. }) =
            (&question.content, content)
        else {
            return Err(StepError::new(&self.results, "a guardian replaced the results of a search by other content"));
        };
        let Some(Value::Array(items)) = document.pointer_mut(&self.results) else {
            return Err(StepError::new(&self.results, "is not a list of results"));
        };
        let mut modified = modified.into_iter().peekable();
        let mut kept = Vec::with_capacity(items.len());
        for (mut item, before) in std::mem::take(items).into_iter().zip(original) {
            // What is kept stays in order, so an id that differs is one that was left out.
            let Some(now) = modified.next_if(|now| now.id == before.id) else { continue };
            if now.content != before.content
                && let Some(text) = item.pointer_mut(&self.content)
            {
                *text = Value::String(now.content);
            }
            kept.push(item);
        }
        if modified.next().is_some() {
            return Err(StepError::new(&self.results, "a guardian returned results that the search had not found"));
        }
        *items = kept;
        Ok(())
    }
}
