//! Batches of events in their stored form: one row for what one transaction records of a tenant.
//!
//! A batch is text, two lines for each event: its [`Heading`], by which it is looked up, and its canonical JSON, which
//! is hashed. The text is stored as it is or, if that is shorter, compressed.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use crate::sql::{Row, SqlError};
use crate::transaction::{Transaction, values};

/// The limits of one batch. Reading one event decompresses its batch.
pub const MOST_EVENTS: u32 = 128;
/// See [`MOST_EVENTS`].
pub const MOST_BYTES: usize = 256 * 1024;

/// The first byte of a compressed batch. The first byte of one that is not compressed is the bracket of a heading.
const COMPRESSED: u8 = 1;
/// Shorter texts are stored as they are: compressing the one event of a lone call would cost a twentieth of that call.
const SHORTEST_COMPRESSED: usize = 3 * 1024;
/// The maximum length of decompressed text. An event of a call with the longest arguments is far shorter.
const LONGEST: usize = 256 * 1024 * 1024;
/// The number of batches per read, if they are full and if they have only a few events each.
const FULL_AT_A_TIME: u32 = 16;
const SMALL_AT_A_TIME: u32 = 256;

/// A field that events are looked up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    Actor,
    Agent,
    Intent,
    Kind,
    Run,
    Task,
    Tool,
}

impl Field {
    /// All of them, in the order in which a heading has them.
    pub const ALL: [Self; 7] = [Self::Actor, Self::Agent, Self::Intent, Self::Kind, Self::Run, Self::Task, Self::Tool];

    /// The name in the index.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Actor => "actor",
            Self::Agent => "agent",
            Self::Intent => "intent",
            Self::Kind => "kind",
            Self::Run => "run",
            Self::Task => "task",
            Self::Tool => "tool",
        }
    }
}

/// The lookup values of an event: a value or none for each of [`Field::ALL`], and its time in milliseconds.
#[derive(Debug, Serialize, Deserialize)]
pub struct Heading<'a>(#[serde(borrow)] pub [Term<'a>; Field::ALL.len()], pub i64);

/// The value of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term<'a>(pub Option<Cow<'a, str>>);

impl<'a> Term<'a> {
    pub fn of(value: Option<&'a str>) -> Self {
        Self(value.map(Cow::Borrowed))
    }
}

impl Heading<'_> {
    pub fn time(&self) -> Result<Timestamp, SqlError> {
        Timestamp::from_millis(self.1).map_err(|_| SqlError::Corrupt("the time of an event".to_owned()))
    }

    pub fn get(&self, field: Field) -> Option<&str> {
        Field::ALL.into_iter().zip(&self.0).find(|(of, _)| *of == field).and_then(|(_, term)| term.0.as_deref())
    }

    /// The fields that it has, with their values.
    pub fn terms(&self) -> impl Iterator<Item = (Field, &str)> {
        Field::ALL.into_iter().zip(&self.0).filter_map(|(field, term)| Some((field, term.0.as_deref()?)))
    }
}

impl Serialize for Term<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Term<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TermVisitor)
    }
}

/// Borrows a text that has no escapes.
struct TermVisitor;

impl<'de> Visitor<'de> for TermVisitor {
    type Value = Term<'de>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a string or null")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Term<'de>, E> {
        Ok(Term(Some(Cow::Borrowed(text))))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Term<'de>, E> {
        Ok(Term(Some(Cow::Owned(text.to_owned()))))
    }

    fn visit_unit<E: Error>(self) -> Result<Term<'de>, E> {
        Ok(Term(None))
    }
}

/// The stored form of a batch of this text.
pub fn encode(text: &str) -> Cow<'_, [u8]> {
    if text.len() < SHORTEST_COMPRESSED {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut stored = vec![0; lz4_flex::block::get_maximum_output_size(text.len()).saturating_add(5)];
    if let (Some((tag, rest)), Ok(length)) = (stored.split_first_mut(), u32::try_from(text.len()))
        && let Some((size, block)) = rest.split_first_chunk_mut::<4>()
        && let Ok(compressed) = lz4_flex::block::compress_into(text.as_bytes(), block)
        && compressed.saturating_add(5) < text.len()
    {
        (*tag, *size) = (COMPRESSED, length.to_le_bytes());
        stored.truncate(compressed.saturating_add(5));
        return Cow::Owned(stored);
    }
    Cow::Borrowed(text.as_bytes())
}

/// The text of a stored batch.
fn decode(stored: &[u8]) -> Result<String, SqlError> {
    let damaged = |reason: &str| SqlError::Corrupt(format!("a batch of events: {reason}"));
    let text = match stored.split_first() {
        Some((&COMPRESSED, rest)) => {
            let (size, block) = rest.split_first_chunk::<4>().ok_or_else(|| damaged("it has no size"))?;
            let size = usize::try_from(u32::from_le_bytes(*size)).unwrap_or(usize::MAX);
            if size > LONGEST {
                return Err(damaged("it is too long"));
            }
            lz4_flex::block::decompress(block, size).map_err(|error| damaged(&error.to_string()))?
        }
        _ => stored.to_vec(),
    };
    String::from_utf8(text).map_err(|_| damaged("it is not text"))
}

/// A batch with its position in the log.
pub struct Batch {
    first: u64,
    text: String,
}

pub struct BatchEvent<'a> {
    pub sequence: u64,
    pub heading: Heading<'a>,
    pub canonical: &'a str,
}

impl Batch {
    /// From its first position and its stored form.
    pub fn read(row: &Row) -> Result<Self, SqlError> {
        Ok(Self { first: row.count(0)?, text: decode(row.blob(1)?)? })
    }

    pub fn first(&self) -> u64 {
        self.first
    }

    /// Its events, in order.
    pub fn events(&self) -> impl Iterator<Item = Result<BatchEvent<'_>, SqlError>> {
        let mut lines = self.text.split('\n');
        (self.first..).map_while(move |sequence| {
            let heading = lines.next()?;
            let damaged = || SqlError::Corrupt(format!("event {sequence}"));
            Some(match (serde_json::from_str(heading), lines.next()) {
                (Ok(heading), Some(canonical)) => Ok(BatchEvent { sequence, heading, canonical }),
                _ => Err(damaged()),
            })
        })
    }
}

/// Reads the events of a stretch of the log, a few batches at a time.
pub struct BatchReader<'a> {
    tenant: &'a TenantId,
    stretch: Range<u64>,
    at_a_time: u32,
}

impl<'a> BatchReader<'a> {
    pub fn new(tenant: &'a TenantId, stretch: Range<u64>) -> Self {
        Self { tenant, stretch, at_a_time: FULL_AT_A_TIME }
    }

    /// The next batches; none at the end. The first may begin before the stretch, the last may end after it.
    pub async fn next<T: Transaction>(&mut self, transaction: &mut T) -> Result<Vec<Batch>, SqlError> {
        if self.stretch.is_empty() {
            return Ok(Vec::new());
        }
        let sql = "SELECT first, events, size FROM event_batches WHERE tenant = $1 AND first >= (SELECT COALESCE(MAX(first), 0) \
             FROM event_batches WHERE tenant = $1 AND first <= $2) AND first < $3 ORDER BY first LIMIT $4";
        let Range { start, end } = self.stretch;
        let rows = transaction.query(sql, values![self.tenant, start, end, self.at_a_time]).await?;
        let batches = rows.iter().map(Batch::read).collect::<Result<Vec<_>, _>>()?;
        let mut events: u64 = 0;
        for row in &rows {
            let size: u64 = row.count(2)?;
            events = events.saturating_add(size);
            self.stretch.start = row.count::<u64>(0)?.saturating_add(size);
        }
        if rows.is_empty() {
            self.stretch.start = end;
        }
        let are_small = events < u64::from(self.at_a_time).saturating_mul(4);
        self.at_a_time = if are_small { SMALL_AT_A_TIME } else { FULL_AT_A_TIME };
        Ok(batches)
    }
}

#[cfg(test)]
mod tests;
