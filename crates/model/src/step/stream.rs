//! Results that arrive as a stream of events: what guardians are asked about before which events are passed on.

use serde_json::{Map, Value, json};

use super::{StepError, StepQuestion};
use crate::guard::Content;

/// An event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEvent {
    /// The name, if it has one.
    pub name: Option<String>,
    pub data: String,
}

/// How much is held back until guardians have decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamMode {
    /// Nothing: nobody is concerned.
    Off,
    /// Until the smallest unit that can be understood is complete.
    Units,
    /// Until the end.
    Whole,
}

/// Events that are passed on together, once guardians have allowed what they contain.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// `None` for events without content.
    pub question: Option<StepQuestion>,
    pub events: Vec<StreamEvent>,
}

impl Unit {
    /// Events that nobody has to be asked about.
    pub fn free(events: Vec<StreamEvent>) -> Self {
        Self { question: None, events }
    }
}

/// Takes the events of one streamed result.
pub trait Units: Send + Sync {
    /// Takes the next event; gives what is complete with it. An event that cannot be understood, where a guardian is concerned,
    /// is an error, which ends the stream.
    fn take(&mut self, event: StreamEvent) -> Result<Vec<Unit>, StepError>;

    /// The stream has ended; an error if it broke off.
    fn end(&mut self) -> Result<Vec<Unit>, StepError>;

    /// Puts modified content in the place of the original.
    fn replace(&self, unit: &mut Unit, content: Content<'static>) -> Result<(), StepError>;

    /// The events of a unit that is passed on, with everything in them that was modified.
    fn released(&mut self, unit: Unit) -> Vec<StreamEvent> {
        unit.events
    }

    /// What is recorded and charged as the result of the call, from what came so far.
    fn result(&self) -> Value;
}

/// The stream of one call.
pub struct StepStream(Box<dyn Units>);

impl StepStream {
    pub fn new(units: impl Units + 'static) -> Self {
        Self(Box::new(units))
    }

    /// A stream of which only the events are counted.
    pub fn counting() -> Self {
        Self::new(Counting::default())
    }

    pub fn take(&mut self, event: StreamEvent) -> Result<Vec<Unit>, StepError> {
        self.0.take(event)
    }

    pub fn end(&mut self) -> Result<Vec<Unit>, StepError> {
        self.0.end()
    }

    pub fn replace(&self, unit: &mut Unit, content: Content<'static>) -> Result<(), StepError> {
        if unit.question.as_ref().is_some_and(|question| !question.modifiable) {
            return Err(StepError::new("", "this part of a stream can be allowed or denied, but not modified"));
        }
        self.0.replace(unit, content)
    }

    /// The events of a unit that guardians have allowed, in the order of the units.
    pub fn released(&mut self, unit: Unit) -> Vec<StreamEvent> {
        self.0.released(unit)
    }

    pub fn result(&self) -> Value {
        self.0.result()
    }
}

#[derive(Default)]
struct Counting {
    events: u64,
}

impl Units for Counting {
    fn take(&mut self, event: StreamEvent) -> Result<Vec<Unit>, StepError> {
        self.events += 1;
        Ok(vec![Unit::free(vec![event])])
    }

    fn end(&mut self) -> Result<Vec<Unit>, StepError> {
        Ok(Vec::new())
    }

    fn replace(&self, _: &mut Unit, _: Content<'static>) -> Result<(), StepError> {
        Err(StepError::new("", "these events can be allowed or denied, but not modified"))
    }

    fn result(&self) -> Value {
        Value::Object(Map::from_iter([("streamed_events".to_owned(), json!(self.events))]))
    }
}
