//! Puts what guardians have modified into the events that are passed on, and into every later copy of it.

use serde_json::{Value, json};

use super::{AnswerStream, Held};
use crate::guard::{Content, PartBody};
use crate::step::{StepQuestion, StreamEvent};

impl AnswerStream {
    /// Notes what became of a question.
    pub(super) fn note_decided(&mut self, question: &StepQuestion) {
        let Some(key) = question.at.first() else { return };
        let Some(came) = self.asked.remove(key) else { return };
        let decided = match &question.content {
            // The last part is what is asked about; those before it are delivered.
            Content::Parts(parts) => match parts.last().map(|part| &part.body) {
                Some(PartBody::Text(text)) => text.clone(),
                _ => return,
            },
            Content::Arguments(arguments) => {
                let is_free = self.tools.get(key).is_some_and(|tool| tool.is_free);
                let original = super::super::response::read_arguments(&came);
                match (is_free, arguments.get("input")) {
                    (true, Some(Value::String(input))) => input.clone(),
                    // Spelled as the model has spelled it.
                    (false, _) if original.as_ref() == Some(&**arguments) => came.clone(),
                    _ => Value::Object(arguments.clone().into_owned()).to_string(),
                }
            }
            _ => return,
        };
        self.totals.entry(key.clone()).or_default().sent.push_str(&decided);
        if decided != came {
            self.altered.insert(key.clone());
            self.changed.insert(key.clone(), decided);
        }
    }

    /// The events of a unit, as they are passed on.
    pub(super) fn rewritten(&mut self, held: Vec<Held>) -> Vec<StreamEvent> {
        // A call without any input has no other place than the event that begins it.
        let changed = std::mem::take(&mut self.changed);
        let mut places: Vec<(String, usize, String)> = Vec::new();
        for key in changed.keys() {
            let found = held.iter().enumerate().flat_map(|(number, held)| {
                let own = held.pieces.iter().filter(|(piece, _)| piece == key);
                own.map(move |(_, at)| (number, held, at))
            });
            let is_text = |held: &Held, at: &str| {
                held.json.as_ref().and_then(|json| json.pointer(at)).is_some_and(Value::is_string)
            };
            let best = found.clone().find(|(_, held, at)| is_text(held, at)).or_else(|| found.clone().next());
            places.extend(best.map(|(number, _, at)| (key.clone(), number, at.clone())));
        }
        let mut events = Vec::with_capacity(held.len());
        for (number, Held { mut event, json, pieces, copies }) in held.into_iter().enumerate() {
            let Some(mut json) = json else {
                events.push(event);
                continue;
            };
            let mut touched = false;
            for (key, at) in &pieces {
                let Some(text) = changed.get(key) else { continue };
                let is_place = places.iter().any(|place| place.0 == *key && place.1 == number && place.2 == *at);
                touched |= put(&mut json, at, if is_place { text } else { "" });
            }
            for (key, at) in copies.iter().filter(|(key, _)| self.altered.contains(key)) {
                let sent = self.totals.get(key).map(|total| total.sent.as_str()).unwrap_or_default();
                touched |= put(&mut json, at, sent);
            }
            if touched {
                event.data = json.to_string();
            }
            events.push(event);
        }
        events
    }
}

/// Puts a text in a place, and takes away what repeats it token by token.
fn put(json: &mut Value, at: &str, text: &str) -> bool {
    let Some(place) = json.pointer_mut(at) else { return false };
    *place = match place {
        Value::Object(_) if text.is_empty() => json!({}),
        Value::Object(_) => serde_json::from_str(text).unwrap_or_else(|_| json!({})),
        _ => Value::String(text.to_owned()),
    };
    drop_tokens(json, at);
    true
}

/// The probabilities beside a text have the tokens of the original.
pub(crate) fn drop_tokens(document: &mut Value, at: &str) {
    let mut around = at;
    for _ in 0..3 {
        let Some((above, _)) = around.rsplit_once('/') else { return };
        around = above;
        let inside = if around.is_empty() { Some(&mut *document) } else { document.pointer_mut(around) };
        match inside.and_then(|inside| inside.get_mut("logprobs")) {
            Some(Value::Array(tokens)) => tokens.clear(),
            Some(tokens @ Value::Object(_)) => *tokens = Value::Null,
            // A request says only whether it wants them.
            _ => {}
        }
    }
}
