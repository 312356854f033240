//! Answers that arrive as a stream of events. The events of each API are read into pieces of texts and of calls; what a
//! guardian has to see is held back until it has decided, and passed on as it came, byte by byte, unless it was modified.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use super::api::Api;
use super::response::{Call, said, unreadable};
use crate::guard::{Content, Part, PartBody};
use crate::step::{StepError, StepQuestion, StreamEvent, StreamMode, Unit, Units};
use crate::strict_json;

use self::reading::{Kind, Piece, Reading, Tool};
use self::record::Record;
pub(crate) use self::rewriting::drop_tokens;

mod chat;
mod messages;
mod reading;
mod record;
mod responses;
mod rewriting;
mod sentence;

/// The end of a stream of chat completions.
const DONE: &str = "[DONE]";
/// How much of the text before it a guardian sees of each part, in characters.
const PRECEDING: usize = 256;

/// The stream of one answer.
pub(crate) struct AnswerStream {
    api: Api,
    mode: StreamMode,
    /// Whether the usage was asked for by this gate alone.
    hides_usage: bool,
    record: Record,
    /// The texts and calls that have begun, in order, of which something is not judged yet.
    open: Vec<Open>,
    /// The tools that are called, by the key of the call.
    tools: BTreeMap<String, Tool>,
    /// What came so far of each text and each call.
    totals: BTreeMap<String, Total>,
    /// Events that are not passed on yet.
    held: Vec<Held>,
    /// The same once they are given to the pipeline, for each unit of events.
    given: VecDeque<Vec<Held>>,
    /// What was asked about each key, as it came.
    asked: BTreeMap<String, String>,
    /// What guardians have made of it, where they have modified it.
    changed: BTreeMap<String, String>,
    /// The keys of which anything was ever modified.
    altered: BTreeSet<String>,
}

/// A text or a call that has begun.
struct Open {
    key: String,
    kind: Kind,
    /// What is not judged yet.
    pending: String,
    closed: bool,
    /// A question that the events themselves say, rather than their pieces.
    ready: Vec<StepQuestion>,
}

#[derive(Default)]
struct Total {
    /// As it came.
    came: String,
    /// As it was passed on.
    sent: String,
}

/// An event with the places of what it has.
struct Held {
    event: StreamEvent,
    json: Option<Value>,
    pieces: Vec<(String, String)>,
    copies: Vec<(String, String)>,
}

impl AnswerStream {
    pub(crate) fn new(api: Api, mode: StreamMode, hides_usage: bool) -> Self {
        Self {
            api,
            mode,
            hides_usage,
            record: Record::new(api),
            open: Vec::new(),
            tools: BTreeMap::new(),
            totals: BTreeMap::new(),
            held: Vec::new(),
            given: VecDeque::new(),
            asked: BTreeMap::new(),
            changed: BTreeMap::new(),
            altered: BTreeSet::new(),
        }
    }

    fn read(&self, json: &Value) -> Result<Reading, StepError> {
        match self.api {
            Api::Chat => chat::read(json),
            Api::Messages => messages::read(json),
            _ => responses::read(json),
        }
    }

    /// Passes an event on as it is; a copy is read for the record.
    fn observe(&mut self, event: StreamEvent) -> Vec<Unit> {
        let reading = serde_json::from_str(&event.data).ok().map(|json: Value| {
            self.record.note(&json);
            self.read(&json).unwrap_or_default()
        });
        let reading = reading.unwrap_or_default();
        reading.pieces.iter().for_each(|piece| self.record.count(&piece.text));
        self.record.finish(reading.last || event.data == DONE, reading.finished);
        if reading.is_usage && self.hides_usage {
            return Vec::new();
        }
        vec![Unit::free(vec![event])]
    }

    fn judge(&mut self, event: StreamEvent) -> Result<Vec<Unit>, StepError> {
        if event.data == DONE {
            self.record.finish(true, true);
            self.hold(event, None, Vec::new(), Vec::new());
            self.open.iter_mut().for_each(|open| open.closed = true);
            return if self.is_complete(true) { self.flush() } else { Ok(Vec::new()) };
        }
        let json = strict_json::parse(event.data.as_bytes())
            .map_err(|error| unreadable("an event", &format!("JSON, and is not: {error}")))?;
        self.record.note(&json);
        let mut reading = self.read(&json)?;
        self.record.finish(reading.last, reading.finished);
        if reading.is_usage && self.hides_usage {
            return Ok(Vec::new());
        }
        let mut units = Vec::new();
        if self.mode == StreamMode::Units && self.is_left_by(&reading) {
            units = self.flush()?;
        }
        self.tools.extend(std::mem::take(&mut reading.tools));
        for key in std::mem::take(&mut reading.opens) {
            if !self.open.iter().any(|open| open.key == key) {
                self.open.push(Open::of_tool(key));
            }
        }
        let pieces = std::mem::take(&mut reading.pieces);
        let mut places: Vec<_> = pieces.iter().map(|piece| (piece.key.clone(), piece.at.clone())).collect();
        pieces.into_iter().for_each(|piece| self.add(piece));
        let copies = std::mem::take(&mut reading.copies);
        // What is announced before it comes is empty, and stays so.
        let copied = copies.iter().filter(|copy| !copy.text.is_empty());
        let copied = copied.map(|copy| (copy.key.clone(), copy.at.clone())).collect();
        for copy in copies {
            let place = (copy.key.clone(), copy.at.clone());
            if self.add_copy(copy)? {
                places.push(place);
            }
        }
        for (key, questions) in std::mem::take(&mut reading.ready) {
            self.add_ready(key, questions);
        }
        self.hold(event, Some(json), places, copied);
        for open in &mut self.open {
            open.closed |= reading.last || reading.closes.iter().any(|closed| closed.covers(&open.key));
        }
        if self.is_complete(reading.last) {
            units.extend(self.flush()?);
        }
        Ok(units)
    }

    /// Whether the event goes on with something else than the text that is waiting for its end.
    fn is_left_by(&self, reading: &Reading) -> bool {
        let continues = |open: &Open| reading.pieces.iter().any(|piece| piece.key == open.key);
        let begins = !reading.pieces.is_empty() || !reading.opens.is_empty();
        begins && !self.open.is_empty() && self.open.iter().all(|open| open.is_text() && !continues(open))
    }

    fn is_complete(&self, last: bool) -> bool {
        match self.mode {
            // Guardians may want to see the whole before any of it is passed on.
            StreamMode::Whole => false,
            _ => last || self.open.iter().all(|open| open.closed || open.is_text() && sentence::ends(&open.pending)),
        }
    }

    fn hold(
        &mut self,
        event: StreamEvent,
        json: Option<Value>,
        pieces: Vec<(String, String)>,
        copies: Vec<(String, String)>,
    ) {
        self.held.push(Held { event, json, pieces, copies });
    }

    fn add(&mut self, piece: Piece) {
        self.record.count(&piece.text);
        let Piece { key, text, kind, .. } = piece;
        // The input of a tool that the provider itself runs is something to show, not a call that the client makes.
        let kind = if kind == Kind::Call && !self.tools.contains_key(&key) { Kind::Fixed } else { kind };
        self.totals.entry(key.clone()).or_default().came.push_str(&text);
        match self.open.iter_mut().find(|open| open.key == key) {
            Some(open) => open.pending.push_str(&text),
            None => self.open.push(Open { key, kind, pending: text, closed: false, ready: Vec::new() }),
        }
    }

    /// A text that was streamed before, and now comes again as a whole. True if it was not, and so is judged as a piece.
    fn add_copy(&mut self, copy: Piece) -> Result<bool, StepError> {
        match self.totals.get(&copy.key) {
            Some(total) if total.came == copy.text => Ok(false),
            None if copy.text.is_empty() => Ok(false),
            Some(_) => Err(unreadable(&copy.at, "the text that was streamed before")),
            None => {
                let key = copy.key.clone();
                self.add(copy);
                self.open.iter_mut().filter(|open| open.key == key).for_each(|open| open.closed = true);
                Ok(true)
            }
        }
    }

    /// What is shown as it stands in the event. It is asked about once, however often it is repeated.
    fn add_ready(&mut self, key: String, questions: Vec<StepQuestion>) {
        if self.totals.get(&key).is_some_and(|total| !total.came.is_empty()) {
            return;
        }
        self.totals.entry(key.clone()).or_default().came.push('.');
        match self.open.iter_mut().find(|open| open.key == key) {
            Some(open) => open.ready = questions,
            None => {
                self.open.push(Open { key, kind: Kind::Fixed, pending: String::new(), closed: true, ready: questions })
            }
        }
    }

    /// The questions about everything that is open, followed by all events that were held.
    fn flush(&mut self) -> Result<Vec<Unit>, StepError> {
        let mut units = Vec::new();
        for open in std::mem::take(&mut self.open) {
            units.extend(
                open.ready.iter().cloned().map(|question| Unit { question: Some(question), events: Vec::new() }),
            );
            let question = match open.kind {
                // What is shown as a whole, and has been.
                Kind::Call if !self.tools.contains_key(&open.key) => continue,
                Kind::Call => self.call(&open)?,
                Kind::Text | Kind::Fixed if open.pending.trim().is_empty() => {
                    // Nobody is asked about white space.
                    self.totals.entry(open.key.clone()).or_default().sent.push_str(&open.pending);
                    continue;
                }
                Kind::Text | Kind::Fixed => self.text(&open),
            };
            self.asked.insert(open.key, open.pending);
            units.push(Unit { question: Some(question), events: Vec::new() });
        }
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            units.push(Unit::free(held.iter().map(|held| held.event.clone()).collect()));
            self.given.push_back(held);
        }
        Ok(units)
    }

    /// A text with what was passed on before it, so that nothing hides behind the end of a sentence.
    fn text(&self, open: &Open) -> StepQuestion {
        let question = said(vec![open.key.clone()], &open.pending, open.kind == Kind::Text);
        let before = self.totals.get(&open.key).map(|total| total.sent.as_str()).unwrap_or_default();
        let skipped = before.chars().count().saturating_sub(PRECEDING);
        let before: String = before.chars().skip(skipped).collect();
        match (before.is_empty(), question.content) {
            (false, Content::Parts(parts)) => {
                let metadata = Some(serde_json::json!({"delivered": true}));
                let before = Part { body: PartBody::Text(before), metadata };
                StepQuestion { content: Content::Parts([vec![before], parts].concat()), ..question }
            }
            (_, content) => StepQuestion { content, ..question },
        }
    }

    fn call(&self, open: &Open) -> Result<StepQuestion, StepError> {
        let tool = self.tools.get(&open.key);
        let (id, name) = (tool.and_then(|tool| tool.id.as_deref()), tool.and_then(|tool| tool.name.as_deref()));
        let is_free = tool.is_some_and(|tool| tool.is_free);
        let input = Value::String(open.pending.clone());
        let at = if is_free { "/input" } else { "/arguments" };
        let question = Call { id, name, at, input: Some(&input) }.question()?;
        Ok(StepQuestion { at: vec![open.key.clone()], ..question })
    }
}

impl Open {
    fn of_tool(key: String) -> Self {
        Self { key, kind: Kind::Call, pending: String::new(), closed: false, ready: Vec::new() }
    }

    fn is_text(&self) -> bool {
        self.kind != Kind::Call && self.ready.is_empty()
    }
}

impl Units for AnswerStream {
    fn take(&mut self, event: StreamEvent) -> Result<Vec<Unit>, StepError> {
        match self.mode {
            StreamMode::Off => Ok(self.observe(event)),
            StreamMode::Units | StreamMode::Whole => self.judge(event),
        }
    }

    fn end(&mut self) -> Result<Vec<Unit>, StepError> {
        if !self.record.is_finished() {
            return Err(StepError::new("", "the provider broke the answer off before its end"));
        }
        self.open.iter_mut().for_each(|open| open.closed = true);
        self.flush()
    }

    fn replace(&self, unit: &mut Unit, content: Content<'static>) -> Result<(), StepError> {
        let other = || StepError::new("", "a guardian replaced a part of an answer by content of another kind");
        let question = unit.question.as_mut().ok_or_else(other)?;
        let fits = match (&question.content, &content) {
            (Content::Parts(before), Content::Parts(after)) => {
                before.len() == after.len() && after.iter().all(|part| matches!(part.body, PartBody::Text(_)))
            }
            (Content::Arguments(_), Content::Arguments(_)) => true,
            _ => false,
        };
        if !fits {
            return Err(other());
        }
        question.content = content;
        Ok(())
    }

    fn released(&mut self, unit: Unit) -> Vec<StreamEvent> {
        match unit.question {
            Some(question) => {
                self.note_decided(&question);
                Vec::new()
            }
            None => match self.given.pop_front() {
                Some(held) => self.rewritten(held),
                None => unit.events,
            },
        }
    }

    fn result(&self) -> Value {
        let mut result = self.record.result();
        if let (StreamMode::Whole, Some(members)) = (self.mode, result.as_object_mut()) {
            let texts = self.totals.iter().map(|(key, total)| (key.clone(), Value::from(total.came.as_str())));
            members.insert("answer".to_owned(), Value::Object(texts.collect()));
        }
        result
    }
}
