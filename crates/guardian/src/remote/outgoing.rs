//! What is sent to a guardian: the event without the secrets of the call, without keys of the gate, and without what
//! the guardian's redaction settings name. And the reverse: what a modification of it means for the original event.

use std::borrow::Cow;

use serde_json::Value;
use toolgate_model::arguments::without;
use toolgate_model::guard::{AgentRef, Content, HookEvent};
use toolgate_model::key;

use super::merge::merged;
use crate::detector::{DetectorError, DetectorKind, Detectors, FieldSelector, redact_fields};

/// What is redacted from the requests to a guardian, besides secrets.
#[derive(Debug, Clone, Default)]
pub struct Redaction {
    /// Fields of the content, whatever they contain.
    pub fields: Option<FieldSelector>,
    /// Applied to the content, the agent's reasoning and all other free text.
    pub detectors: Option<Detectors>,
}

/// Redacts outgoing events.
#[derive(Debug)]
pub(super) struct Filter {
    redaction: Redaction,
    /// A key of the gate that is passed as an argument must not leave the gate.
    keys: Detectors,
}

/// An event as a guardian sees it.
#[derive(Debug)]
pub(super) struct Outgoing<'a> {
    pub(super) event: HookEvent<'a>,
    /// The content before and after the redaction, if something was redacted.
    hidden: Option<(Value, Value)>,
}

impl Filter {
    pub(super) fn new(redaction: Redaction) -> Result<Self, DetectorError> {
        let keys = Detectors::new(&[DetectorKind::Custom(key::PATTERN.to_owned())])?;
        Ok(Self { redaction, keys })
    }

    /// The redacted event; `None` if its content would no longer be of its kind.
    pub(super) fn outgoing<'a>(&self, event: &'a HookEvent<'_>, secrets: &[&[u8]]) -> Option<Outgoing<'a>> {
        let original = event.content.to_json();
        let (content, hidden) = match self.shown(&original, secrets) {
            None => (borrowed(&event.content), None),
            Some(shown) => (event.content.with_json(shown.clone())?, Some((original, shown))),
        };
        let text = |text: &'a str| self.text(text, secrets, self.redaction.detectors.as_ref());
        // Names of agents and tools stay readable, or there would be nothing to decide on.
        let name = |text: &'a str| self.text(text, secrets, None);
        let event = HookEvent {
            hook: event.hook,
            agent: AgentRef { id: name(&event.agent.id), name: event.agent.name.as_deref().map(text) },
            tool: event.tool.as_deref().map(name),
            execution: event.execution.as_deref().map(name),
            session: event.session.as_deref().map(text),
            turn: event.turn.as_deref().map(text),
            step: event.step.as_deref().map(text),
            user: event.user.as_deref().map(text),
            method: event.method.as_deref().map(name),
            reasoning: event.reasoning.as_deref().map(text),
            time: event.time,
            content,
        };
        Some(Outgoing { event, hidden })
    }

    /// The redacted value; `None` if it is unchanged.
    fn shown(&self, original: &Value, secrets: &[&[u8]]) -> Option<Value> {
        let mut shown = match without(original, secrets) {
            Cow::Owned(shown) => Some(shown),
            Cow::Borrowed(_) => None,
        };
        let mut then = |redact: &dyn Fn(&Value) -> Option<Value>| {
            shown = redact(shown.as_ref().unwrap_or(original)).or(shown.take());
        };
        then(&|value| self.keys.redact_json(value));
        if let Some(fields) = &self.redaction.fields {
            then(&|value| redact_fields(value, fields, None));
        }
        if let Some(detectors) = &self.redaction.detectors {
            then(&|value| detectors.redact_json(value));
        }
        shown
    }

    fn text<'a>(&self, text: &'a str, secrets: &[&[u8]], detectors: Option<&Detectors>) -> Cow<'a, str> {
        let mut shown = Cow::Borrowed(text);
        if !secrets.is_empty()
            && let Cow::Owned(Value::String(redacted)) = without(&Value::from(text), secrets)
        {
            shown = Cow::Owned(redacted);
        }
        for detectors in [Some(&self.keys), detectors].into_iter().flatten() {
            if let Some(redacted) = detectors.redact(&shown) {
                shown = Cow::Owned(redacted);
            }
        }
        shown
    }
}

impl Outgoing<'_> {
    /// The original content with a guardian's modification applied; `None` if it is ambiguous.
    pub(super) fn restored(&self, returned: Content<'static>) -> Option<Content<'static>> {
        match &self.hidden {
            None => Some(returned),
            Some((original, shown)) => returned.with_json(merged(original, shown, &returned.to_json())?),
        }
    }
}

/// A copy that borrows what it can.
fn borrowed<'a>(content: &'a Content<'_>) -> Content<'a> {
    match content {
        Content::Arguments(arguments) => Content::Arguments(Cow::Borrowed(arguments)),
        Content::Result { value, is_error } => Content::Result { value: Cow::Borrowed(value), is_error: *is_error },
        Content::Message(message) => Content::Message(Cow::Borrowed(message)),
        other => other.clone(),
    }
}
