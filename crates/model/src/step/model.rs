//! A call that calls a model.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{StepError, StepQuestion, StepStream, StreamMode};
use crate::guard::{Content, Hook};
use crate::service::DefinitionError;
use crate::service::reading::Fields;

/// A call that calls a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelStep {}

impl ModelStep {
    pub(super) fn from_json(value: &Value, path: &str) -> Result<Self, DefinitionError> {
        Fields::of(value, path, &["kind"])?;
        Ok(Self {})
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"kind": "model"})
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

    pub(super) fn client_tools(&self, _parameters: &Value) -> Vec<String> {
        Vec::new()
    }

    pub(super) fn stream(&self, _parameters: &Value, _mode: StreamMode) -> StepStream {
        StepStream::counting()
    }
}
