//! Stores of texts that agents use by tools: memories, in which agents write, and collections of documents, which an
//! administrator fills. A store is a registered service; who may use it is a matter of grants.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::credential::ServiceName;
use crate::id::{InvocationId, ItemId, StoreId};
use crate::principal::{PrincipalId, TenantId};
use crate::text::MultilineText;
use crate::time::Timestamp;

pub use self::tools::{StoreOperation, TEXT_LIMIT, definition, scopes, version};

mod tools;

/// The maximum number of stores of a tenant.
pub const STORE_LIMIT: u64 = 200;
/// The maximum number of entries that one agent has in a memory, in all partitions together.
pub const AGENT_LIMIT: u64 = 10_000;
/// The maximum number of chunks of a collection.
pub const CHUNK_LIMIT: u64 = 20_000;
/// The mark of conversations into which untrusted content has come, for policies.
pub const UNTRUSTED: &str = "untrusted";
/// How long entries can be kept at most, in days.
const LONGEST_RETENTION: u32 = 3_650;

/// Whose entries a call reads and writes. It follows from the call, never from its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryScope {
    /// Those of the agent.
    Agent,
    /// Those of the agent in one conversation or run.
    Session,
    /// Those of everybody who may use the memory.
    Tenant,
    /// Those of the caller: the person that a runtime acts for, or the agent itself.
    User,
}

impl MemoryScope {
    pub const ALL: [Self; 4] = [Self::Session, Self::User, Self::Agent, Self::Tenant];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Session => "session",
            Self::Tenant => "tenant",
            Self::User => "user",
        }
    }

    /// Parses [`MemoryScope::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

/// What a store is, and its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StoreTerms {
    Memory(MemoryTerms),
    Knowledge(KnowledgeTerms),
}

/// The terms of a memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryTerms {
    pub scope: MemoryScope,
    /// How long entries are kept; `None` until they are forgotten.
    pub retention_days: Option<u32>,
    /// The maximum number of entries of one partition.
    pub max_items: u32,
    /// The maximum length of an entry, in characters.
    pub max_characters: u32,
    /// How many entries one agent may write in a minute.
    pub writes_per_minute: u32,
}

/// The terms of a collection of documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnowledgeTerms {
    /// Whether what it holds may have been written by anybody.
    pub untrusted: bool,
    /// The maximum number of documents.
    pub max_documents: u32,
}

impl Default for MemoryTerms {
    fn default() -> Self {
        Self {
            scope: MemoryScope::Agent,
            retention_days: None,
            max_items: 1_000,
            max_characters: 8_000,
            writes_per_minute: 60,
        }
    }
}

impl Default for KnowledgeTerms {
    fn default() -> Self {
        Self { untrusted: false, max_documents: 1_000 }
    }
}

impl StoreTerms {
    pub fn kind(&self) -> StoreKind {
        match self {
            Self::Memory(_) => StoreKind::Memory,
            Self::Knowledge(_) => StoreKind::Knowledge,
        }
    }

    /// Checks the limits; the error names the member.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let within = |name, value: u32, most: u32| match (1..=most).contains(&value) {
            true => Ok(()),
            false => Err((name, format!("must be from 1 to {most}"))),
        };
        match self {
            Self::Memory(terms) => {
                within("retention_days", terms.retention_days.unwrap_or(1), LONGEST_RETENTION)?;
                within("max_items", terms.max_items, 10_000)?;
                within("max_characters", terms.max_characters, TEXT_LIMIT)?;
                within("writes_per_minute", terms.writes_per_minute, 6_000)
            }
            Self::Knowledge(terms) => within("max_documents", terms.max_documents, 10_000),
        }
    }
}

impl MemoryTerms {
    /// When an entry ends that is written now: after the retention of the store, or earlier if its writer wants that.
    pub fn end(&self, now: Timestamp, ttl: Option<Duration>) -> Option<Timestamp> {
        let retention = self.retention_days.map(|days| Duration::from_secs(u64::from(days) * 86_400));
        let kept = match (retention, ttl) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        kept.map(|kept| now.plus(kept))
    }
}

/// The two kinds of stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    Knowledge,
    Memory,
}

impl StoreKind {
    /// The stored form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Knowledge => "knowledge",
            Self::Memory => "memory",
        }
    }

    /// In messages.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Knowledge => "collection",
            Self::Memory => "memory store",
        }
    }
}

impl fmt::Display for StoreKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A store.
#[derive(Debug, Clone, PartialEq)]
pub struct Store {
    pub id: StoreId,
    pub tenant: TenantId,
    /// The name of its service.
    pub name: ServiceName,
    pub description: Option<MultilineText>,
    pub terms: StoreTerms,
    pub created_at: Timestamp,
}

/// What the gate knows of the origin of an entry. No writer can choose it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    pub agent: PrincipalId,
    pub actor: PrincipalId,
    /// The call that wrote it; `None` where an administrator did.
    pub invocation: Option<InvocationId>,
    pub run: Option<String>,
    /// Whether no untrusted content had come into the conversation before.
    pub is_trusted: bool,
}

/// The text of an item with what belongs to it, as it is sealed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemContent {
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Of chunks: the chunk's own id, which stays when the document is ingested again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heading: Option<String>,
    /// Where the chunk begins in the text of its document, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

/// An entry of a memory as agents see it.
pub fn entry_json(id: ItemId, content: &ItemContent, provenance: &Provenance, times: ItemTimes) -> Map<String, Value> {
    let members = serde_json::json!({
        "id": id,
        "key": content.key,
        "text": content.text,
        "labels": content.labels,
        "trusted": provenance.is_trusted,
        "written_by": {
            "agent": provenance.agent,
            "actor": provenance.actor,
            "invocation": provenance.invocation,
            "run": provenance.run,
        },
        "created_at": times.created_at,
        "expires_at": times.expires_at,
    });
    match members {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// When an item was written, and when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemTimes {
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_ends_at_the_earlier_of_both_ends() {
        let now = Timestamp::from_millis(0).unwrap();
        let (terms, hour) = (MemoryTerms::default(), Duration::from_secs(3_600));
        assert_eq!(terms.end(now, None), None);
        assert_eq!(terms.end(now, Some(hour)), Some(now.plus(hour)));
        let day = Duration::from_secs(86_400);
        let terms = MemoryTerms { retention_days: Some(1), ..terms };
        assert_eq!(terms.end(now, None), Some(now.plus(day)));
        assert_eq!(terms.end(now, Some(hour)), Some(now.plus(hour)));
        assert_eq!(terms.end(now, Some(day * 2)), Some(now.plus(day)), "a writer cannot keep it longer");
    }

    #[test]
    fn limits_of_stores_are_checked() {
        assert_eq!(StoreTerms::Memory(MemoryTerms::default()).check(), Ok(()));
        assert_eq!(StoreTerms::Knowledge(KnowledgeTerms::default()).check(), Ok(()));
        let terms = MemoryTerms { max_items: 0, ..MemoryTerms::default() };
        assert_eq!(StoreTerms::Memory(terms).check().unwrap_err().0, "max_items");
        let terms = MemoryTerms { retention_days: Some(0), ..MemoryTerms::default() };
        assert_eq!(StoreTerms::Memory(terms).check().unwrap_err().0, "retention_days");
    }
}
