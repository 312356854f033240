//! Steps: what the call of a tool is to guardians besides the call of a tool. A tool that stores something in a memory, asks
//! another agent or calls a model declares so in its definition, and the hooks of that step are raised for its calls.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;
use thiserror::Error;

use crate::guard::{Content, Hook};
use crate::service::DefinitionError;
use crate::service::reading::{Fields, word};

pub use self::a2a::A2aStep;
pub use self::knowledge::KnowledgeStep;
pub use self::memory::{MemoryOperation, MemoryStep};
pub use self::model::{BETAS, ModelStep, VERSION};
pub use self::stream::{StepStream, StreamEvent, StreamMode, Unit, Units};

mod a2a;
mod knowledge;
mod memory;
mod model;
mod pointer;
mod stream;

#[cfg(test)]
mod tests;

/// What a call is besides the call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Reads or writes a memory.
    Memory(MemoryStep),
    /// Searches a knowledge base.
    Knowledge(KnowledgeStep),
    /// Sends a message to another agent.
    A2a(A2aStep),
    /// Calls a model.
    Model(ModelStep),
}

/// What guardians are asked about a part of a call or of its result.
#[derive(Debug, Clone, PartialEq)]
pub struct StepQuestion {
    pub hook: Hook,
    pub content: Content<'static>,
    /// The method, if it is a message of another protocol.
    pub method: Option<String>,
    /// The tool, if it is about one that the client executes.
    pub tool: Option<String>,
    /// Links the request of that tool to its result.
    pub execution: Option<String>,
    /// JSON pointers to where the content stands, as far as the step needs them to put modified content back.
    pub at: Vec<String>,
    /// Whether guardians may modify the content.
    pub modifiable: bool,
}

impl StepQuestion {
    /// A question about content that may be modified, and that is found at these places.
    pub fn new(hook: Hook, content: Content<'static>, at: Vec<String>) -> Self {
        Self { hook, content, method: None, tool: None, execution: None, at, modifiable: true }
    }
}

/// Parameters or a result that are not what the step requires.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct StepError {
    /// The parameter or the member of the result, as a JSON pointer.
    pub path: String,
    /// What is wrong and what to do instead.
    pub reason: String,
}

impl StepError {
    pub fn new(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { path: path.into(), reason: reason.into() }
    }
}

/// The kinds of steps in definitions.
#[derive(Clone, Copy)]
enum Kind {
    A2a,
    Knowledge,
    Memory,
    Model,
}

const KINDS: [(&str, Kind); 4] =
    [("a2a", Kind::A2a), ("knowledge", Kind::Knowledge), ("memory", Kind::Memory), ("model", Kind::Model)];

/// Applies a method of the variant.
macro_rules! each {
    ($step:expr, $inner:ident => $apply:expr) => {
        match $step {
            Step::Memory($inner) => $apply,
            Step::Knowledge($inner) => $apply,
            Step::A2a($inner) => $apply,
            Step::Model($inner) => $apply,
        }
    };
}

impl Step {
    pub(crate) fn from_json(value: &Value, path: &str) -> Result<Self, DefinitionError> {
        let members = crate::service::reading::object(value, path)?;
        let kind = Fields::among(members, path).need("kind", |value, path| word(value, path, &KINDS))?;
        Ok(match kind {
            Kind::Memory => Self::Memory(MemoryStep::from_json(value, path)?),
            Kind::Knowledge => Self::Knowledge(KnowledgeStep::from_json(value, path)?),
            Kind::A2a => Self::A2a(A2aStep::from_json(value, path)?),
            Kind::Model => Self::Model(ModelStep::from_json(value, path)?),
        })
    }

    /// Writes the normal form: only what is set.
    pub fn to_json(&self) -> Value {
        each!(self, step => step.to_json())
    }

    /// Checks parameters beyond their schema: refuses what may not be sent.
    pub fn check(&self, parameters: &Value) -> Result<(), StepError> {
        each!(self, step => step.check(parameters))
    }

    /// What is sent for these parameters.
    pub fn sent<'a>(&self, parameters: &'a Value) -> Cow<'a, Value> {
        match self {
            Self::Model(step) => step.sent(parameters),
            Self::A2a(step) => step.sent(parameters),
            Self::Memory(_) | Self::Knowledge(_) => Cow::Borrowed(parameters),
        }
    }

    /// The hooks that requests may raise. Where nobody is concerned by them, no question is put together.
    pub fn request_hooks(&self) -> &'static [Hook] {
        each!(self, step => step.request_hooks())
    }

    /// Whether results are texts that were found somewhere.
    pub fn retrieves(&self) -> bool {
        match self {
            Self::Memory(step) => step.operation == MemoryOperation::Retrieve,
            Self::Knowledge(_) => true,
            Self::A2a(_) | Self::Model(_) => false,
        }
    }

    /// The hooks that results may raise.
    pub fn response_hooks(&self) -> &'static [Hook] {
        each!(self, step => step.response_hooks())
    }

    /// What guardians are asked about a request, in this order.
    pub fn of_request(&self, parameters: &Value) -> Result<Vec<StepQuestion>, StepError> {
        each!(self, step => step.of_request(parameters))
    }

    /// What guardians are asked about a result, in this order.
    pub fn of_response(&self, parameters: &Value, result: &Value) -> Result<Vec<StepQuestion>, StepError> {
        each!(self, step => step.of_response(parameters, result))
    }

    /// Puts modified content in the place of the original, in the parameters or the result that the question is about.
    pub fn replace(
        &self,
        document: &mut Value,
        question: &StepQuestion,
        content: Content<'static>,
    ) -> Result<(), StepError> {
        if !question.modifiable {
            return Err(StepError::new("", "this message can be allowed or denied, but not modified"));
        }
        each!(self, step => step.replace(document, question, content))
    }

    /// The tools that a request offers to a model and that the client executes, by their names.
    pub fn client_tools(&self, parameters: &Value) -> Vec<String> {
        match self {
            Self::Model(step) => step.client_tools(parameters),
            Self::Memory(_) | Self::Knowledge(_) | Self::A2a(_) => Vec::new(),
        }
    }

    /// Takes the events of a streamed result; `None` if results of this step are never streams.
    pub fn stream(&self, parameters: &Value, mode: StreamMode) -> Option<StepStream> {
        match self {
            Self::Model(step) => Some(step.stream(parameters, mode)),
            Self::A2a(step) => Some(step.stream(parameters, mode)),
            Self::Memory(_) | Self::Knowledge(_) => None,
        }
    }

    /// The longest duration of a call, where it is another than usual.
    pub fn longest(&self) -> Option<Duration> {
        match self {
            Self::Model(_) => Some(Duration::from_secs(600)),
            Self::A2a(_) => Some(Duration::from_secs(3_600)),
            Self::Memory(_) | Self::Knowledge(_) => None,
        }
    }

    /// The longest result in bytes, where it is another than usual.
    pub fn result_limit(&self) -> Option<usize> {
        match self {
            Self::Model(_) | Self::A2a(_) => Some(8 * 1024 * 1024),
            Self::Memory(_) | Self::Knowledge(_) => None,
        }
    }
}
