//! Stores of texts: memories and collections of documents. The ledger has texts only as they were sealed, and words only as
//! numbers that follow from a key of the store, so that nothing of a text can be found in it.

use async_trait::async_trait;
use toolgate_model::credential::ServiceName;
use toolgate_model::document::{DocumentFormat, RemovedParts};
use toolgate_model::id::{ItemId, RevisionId, StoreId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::service::ServiceDefinition;
use toolgate_model::store::{ItemTimes, Provenance, Store};
use toolgate_model::time::Timestamp;

use super::{AuditContext, Mandate, MarkScope, Marks, Page, PageRequest};
use crate::ports::sealer::SealedMaterial;
use crate::refusal::Refusal;

#[async_trait]
pub trait Stores: Send + Sync {
    /// Creates a store and registers its service.
    async fn create_store(&self, command: CreateStore) -> Result<(), Refusal>;
    /// Removes a store and its service. Its texts cannot be read from then on; [`Stores::sweep_stores`] deletes them.
    async fn remove_store(&self, command: RemoveStore) -> Result<(), Refusal>;
    /// The stores of a tenant by name, each with its number of items.
    async fn stores(&self, tenant: &TenantId) -> Result<Vec<(Store, u64)>, Refusal>;
    /// A store with the key of its index.
    async fn store(&self, tenant: &TenantId, name: &ServiceName) -> Result<Option<KnownStore>, Refusal>;
    /// Writes an entry of a memory.
    async fn put_item(&self, command: PutItem) -> Result<PutOutcome, Refusal>;
    async fn find_items(&self, query: FindItems) -> Result<Vec<FoundItem>, Refusal>;
    /// Deletes entries of a memory; returns how many.
    async fn forget_items(&self, command: ForgetItems) -> Result<u64, Refusal>;
    /// Leaves marks on a conversation.
    async fn leave_marks(&self, tenant: &TenantId, marks: Marks, time: Timestamp) -> Result<(), Refusal>;
    /// Begins to ingest a document. It cannot be found before it is finished.
    async fn begin_document(&self, command: BeginDocument) -> Result<(), Refusal>;
    /// Adds chunks to a document that is being ingested.
    async fn add_chunks(&self, command: AddChunks) -> Result<(), Refusal>;
    /// Makes the ingested document the current one; returns whether it replaces another.
    async fn finish_document(&self, command: FinishDocument) -> Result<bool, Refusal>;
    /// Removes a document: it cannot be found from then on.
    async fn remove_document(&self, command: RemoveDocument) -> Result<(), Refusal>;
    /// The documents of a collection by their ids, from the cursor on.
    async fn documents(&self, store: StoreId, page: PageRequest) -> Result<Page<Document>, Refusal>;
    /// Deletes a batch of what has expired and of what was removed; returns how many items that were.
    async fn sweep_stores(&self, now: Timestamp) -> Result<u64, Refusal>;
    /// Overwrites what was deleted since the last time, wherever the engine still has it. True if nothing is left to do.
    async fn erase_deleted(&self) -> Result<bool, Refusal>;
}

#[derive(Clone)]
pub struct CreateStore {
    pub audit: Mandate,
    pub store: Store,
    pub definition: ServiceDefinition,
    /// The key of its index.
    pub index_key: SealedMaterial,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoveStore {
    pub audit: Mandate,
    pub store: StoreId,
    pub name: ServiceName,
}

/// A store with the sealed key of its index.
#[derive(Clone)]
pub struct KnownStore {
    pub store: Store,
    pub index_key: SealedMaterial,
}

/// Whose items of a store: follows from a keyed hash, so that the ledger does not tell names of conversations.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Partition(pub String);

/// A text to write.
#[derive(Clone)]
pub struct NewItem {
    pub id: ItemId,
    pub sealed: SealedMaterial,
    /// Its words and labels by their numbers, with their occurrences.
    pub words: Vec<(i64, u32)>,
    /// The number of its words, counting repetitions.
    pub length: u32,
}

#[derive(Clone)]
pub struct PutItem {
    pub audit: AuditContext,
    pub store: StoreId,
    pub partition: Partition,
    pub item: NewItem,
    /// The keyed hash of its key: an item with the same one is replaced.
    pub key: Option<String>,
    /// Whether it is trusted is decided in the transaction.
    pub provenance: Provenance,
    pub expires_at: Option<Timestamp>,
    /// The conversation: what is written after untrusted content is untrusted.
    pub scope: MarkScope,
    /// The earliest time of marks that count.
    pub marks_since: Timestamp,
    /// The maximum number of items of the partition.
    pub max_items: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutOutcome {
    Stored {
        is_trusted: bool,
        has_replaced: bool,
    },
    /// There are as many already.
    Full {
        limit: u64,
        /// Whether that is the limit of the agent, and not of the partition.
        of_agent: bool,
    },
    /// It was removed in the meantime.
    NoStore,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindItems {
    pub store: StoreId,
    pub partition: Partition,
    pub by: FindBy,
    /// Only items with all of these labels, by their numbers.
    pub labels: Vec<i64>,
    pub limit: usize,
    pub now: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindBy {
    Id(ItemId),
    /// The keyed hash of a key.
    Key(String),
    /// The newest before this one.
    Newest {
        before: Option<ItemId>,
    },
    /// The best for these words, by their numbers.
    Words(Vec<i64>),
}

#[derive(Clone)]
pub struct FoundItem {
    pub id: ItemId,
    pub sealed: SealedMaterial,
    pub provenance: Provenance,
    pub times: ItemTimes,
    /// Set if it was found by words.
    pub score: Option<f64>,
    /// The document of a chunk.
    pub document: Option<ChunkOrigin>,
}

/// Where a chunk comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkOrigin {
    pub document: String,
    pub title: Option<String>,
    pub source: Option<String>,
}

/// Which entries of a memory are forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forget {
    Item {
        partition: Option<Partition>,
        id: ItemId,
    },
    Key {
        partition: Partition,
        key: String,
    },
    Partition(Partition),
    /// What this agent has written.
    Agent(PrincipalId),
    /// What was written for this caller.
    Actor(PrincipalId),
    All,
}

/// Why entries are forgotten, for the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgetReason {
    Administrator,
    Agent,
    Expired,
}

impl ForgetReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Administrator => "administrator",
            Self::Agent => "agent",
            Self::Expired => "expired",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgetItems {
    pub audit: Mandate,
    pub store: StoreId,
    pub name: ServiceName,
    pub what: Forget,
    pub reason: ForgetReason,
}

/// A document of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub id: String,
    pub title: Option<String>,
    /// Where it comes from, as its ingester says.
    pub source: Option<String>,
    pub format: DocumentFormat,
    /// The size of its text.
    pub bytes: u64,
    pub chunks: u64,
    pub removed: RemovedParts,
    pub ingested_by: PrincipalId,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeginDocument {
    pub audit: Mandate,
    pub store: StoreId,
    pub revision: RevisionId,
    pub document: Document,
    pub max_documents: u64,
}

#[derive(Clone)]
pub struct AddChunks {
    pub audit: AuditContext,
    pub store: StoreId,
    pub partition: Partition,
    pub revision: RevisionId,
    pub chunks: Vec<NewItem>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishDocument {
    pub audit: Mandate,
    pub store: StoreId,
    pub name: ServiceName,
    pub revision: RevisionId,
    pub document: Document,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoveDocument {
    pub audit: Mandate,
    pub store: StoreId,
    pub name: ServiceName,
    pub document: String,
}
