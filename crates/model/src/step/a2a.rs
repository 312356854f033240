//! A call that sends a message to another agent.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{StepError, StepQuestion, StepStream, StreamMode};
use crate::guard::{Content, Hook};
use crate::service::DefinitionError;
use crate::service::reading::Fields;

/// A call that sends a message to another agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct A2aStep {}

impl A2aStep {
    pub(super) fn from_json(value: &Value, path: &str) -> Result<Self, DefinitionError> {
        Fields::of(value, path, &["kind"])?;
        Ok(Self {})
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"kind": "a2a"})
    }

    pub(super) fn check(&self, _parameters: &Value) -> Result<(), StepError> {
        Ok(())
    }

    pub(super) fn sent<'a>(&self, parameters: &'a Value) -> Cow<'a, Value> {
        Cow::Borrowed(parameters)
    }

    pub(super) fn request_hooks(&self) -> &'static [Hook] {
        &[]
    }

    pub(super) fn response_hooks(&self) -> &'static [Hook] {
        &[]
    }

    pub(super) fn of_request(&self, _parameters: &Value) -> Result<Vec<StepQuestion>, StepError> {
        Ok(Vec::new())
    }

    pub(super) fn of_response(&self, _parameters: &Value, _result: &Value) -> Result<Vec<StepQuestion>, StepError> {
        Ok(Vec::new())
    }

    pub(super) fn replace(
        &self,
        _document: &mut Value,
        _question: &StepQuestion,
        _content: Content<'static>,
    ) -> Result<(), StepError> {
        Ok(())
    }

    pub(super) fn stream(&self, _parameters: &Value, _mode: StreamMode) -> StepStream {
        StepStream::counting()
    }
}
