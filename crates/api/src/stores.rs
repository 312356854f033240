//! Memories and collections of documents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_model::credential::ServiceName;
use toolgate_model::document::{DocumentFormat, DocumentId, RemovedParts};
use toolgate_model::id::{CredentialId, ItemId, VaultId};
use toolgate_model::principal::PrincipalId;
use toolgate_model::store::MemoryScope;
use toolgate_model::text::{Line, MultilineText};
use toolgate_model::time::Timestamp;

use crate::endpoint::{RequestBody, endpoints};
use crate::parameters::Paging;
use crate::reply::{NextCursor, Removed};

endpoints! {
    tag "stores" = "Memories and collections of documents, which agents use by tools.";

    /// Create a memory
    ///
    /// It is registered as a service with the tools `put`, `get`, `search`, `list` and `forget`. Needs `tools.manage` and
    /// `agents.act_as`.
    CreateMemory = POST "/api/v1/memory/stores" as "create_memory" {
        body: MemoryRequest = {"name": "notes", "scope": "agent"},
        reply: CREATED Memory = "The memory.",
    }

    /// List memories
    ///
    /// Needs `tools.manage`.
    ListMemories = GET "/api/v1/memory/stores" as "list_memories" {
        reply: OK MemoryList = "All memories of the tenant.",
    }

    /// Show a memory
    ///
    /// Needs `tools.manage`.
    ShowMemory = GET "/api/v1/memory/stores/{store}" as "show_memory" {
        path: ServiceName,
        reply: OK Memory = "The memory.",
    }

    /// Delete a memory with everything in it
    ///
    /// Its credentials and grants stay, without tools. Needs `tools.manage` and `agents.act_as`.
    DeleteMemory = DELETE "/api/v1/memory/stores/{store}" as "delete_memory" {
        path: ServiceName,
        reply: OK RemovedStore = "What was deleted.",
    }

    /// Forget entries of a memory
    ///
    /// They are deleted for good, including those of other agents. Exactly one member says which. Needs `tools.manage` and
    /// `agents.act_as`.
    ForgetEntries = POST "/api/v1/memory/stores/{store}/forget" as "forget_entries" {
        path: ServiceName,
        body: ForgetRequest = {"user": "alice"},
        reply: OK Forgotten = "How many were deleted.",
    }

    /// Create a collection of documents
    ///
    /// It is registered as a service with the tool `search`. Needs `tools.manage` and `agents.act_as`.
    CreateCollection = POST "/api/v1/knowledge" as "create_collection" {
        body: CollectionRequest = {"name": "handbook"},
        reply: CREATED Collection = "The collection.",
    }

    /// List collections
    ///
    /// Needs `tools.manage`.
    ListCollections = GET "/api/v1/knowledge" as "list_collections" {
        reply: OK CollectionList = "All collections of the tenant.",
    }

    /// Show a collection
    ///
    /// Needs `tools.manage`.
    ShowCollection = GET "/api/v1/knowledge/{collection}" as "show_collection" {
        path: ServiceName,
        reply: OK Collection = "The collection.",
    }

    /// Delete a collection with its documents
    ///
    /// Its credentials and grants stay, without tools. Needs `tools.manage` and `agents.act_as`.
    DeleteCollection = DELETE "/api/v1/knowledge/{collection}" as "delete_collection" {
        path: ServiceName,
        reply: OK RemovedStore = "What was deleted.",
    }

    /// Ingest a document
    ///
    /// It can be found when this returns. An earlier document with the same id is replaced. What a reader would not see
    /// is removed and counted: much of it hints at text that was planted for models. Needs `tools.manage` and
    /// `agents.act_as`.
    IngestDocument = POST "/api/v1/knowledge/{collection}/documents" as "ingest_document" {
        path: ServiceName,
        body: DocumentRequest = {
            "id": "refunds", "format": "text/markdown", "text": "# Refunds\n\nWithin 30 days."
        },
        reply: OK IngestedDocument = "What was ingested.",
    }

    /// List the documents of a collection
    ///
    /// Needs `tools.manage`.
    ListDocuments = GET "/api/v1/knowledge/{collection}/documents" as "list_documents" {
        path: ServiceName,
        query: Paging,
        reply: OK DocumentPage = "A page of documents.",
    }

    /// Remove a document
    ///
    /// Needs `tools.manage` and `agents.act_as`.
    RemoveDocument = DELETE "/api/v1/knowledge/{collection}/documents/{document}" as "remove_document" {
        path: (ServiceName, DocumentId),
        reply: OK RemovedDocument = "What was removed.",
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryRequest {
    /// The service that its tools belong to.
    pub name: ServiceName,
    /// For people and agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<MultilineText>,
    /// Whose entries a call reads and writes. It follows from the call, never from its arguments.
    pub scope: MemoryScope,
    /// How long entries are kept, from 1 to 3650 days. Default: until they are forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3650))]
    pub retention_days: Option<u32>,
    /// The maximum number of entries that belong together by the scope. Default: 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub max_items: Option<u32>,
    /// The maximum length of an entry, in characters. Default: 8000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64_000))]
    pub max_characters: Option<u32>,
    /// How many entries one agent may write in a minute. Default: 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 6_000))]
    pub writes_per_minute: Option<u32>,
    /// The vault in which a credential without material is made, so that the memory can be granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vault_id: Option<VaultId>,
}

impl RequestBody for MemoryRequest {}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    pub name: ServiceName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<MultilineText>,
    pub scope: MemoryScope,
    pub retention_days: Option<u32>,
    pub max_items: u32,
    pub max_characters: u32,
    pub writes_per_minute: u32,
    /// The number of entries, of everybody together.
    pub items: u64,
    /// The credential that was made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_id: Option<CredentialId>,
    pub created_at: Timestamp,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct MemoryList {
    pub stores: Vec<Memory>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RemovedStore {
    pub status: Removed,
    pub name: ServiceName,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgetRequest {
    /// One entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_id: Option<ItemId>,
    /// What this agent has written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<PrincipalId>,
    /// What was written for this caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<PrincipalId>,
    /// Everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
}

impl RequestBody for ForgetRequest {}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Forgotten {
    pub forgotten: u64,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectionRequest {
    /// The service that its tool belongs to.
    pub name: ServiceName,
    /// For people and agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<MultilineText>,
    /// Whether anybody may have written what it holds: conversations that search in it are marked `untrusted`. Default:
    /// false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<bool>,
    /// The maximum number of documents. Default: 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub max_documents: Option<u32>,
    /// The vault in which a credential without material is made, so that the collection can be granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vault_id: Option<VaultId>,
}

impl RequestBody for CollectionRequest {}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Collection {
    pub name: ServiceName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<MultilineText>,
    pub untrusted: bool,
    pub max_documents: u32,
    /// The number of chunks of its documents.
    pub chunks: u64,
    /// The credential that was made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_id: Option<CredentialId>,
    pub created_at: Timestamp,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CollectionList {
    pub collections: Vec<Collection>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentRequest {
    /// Its name in the collection.
    pub id: DocumentId,
    /// Default: the title of the page, or the first heading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Line>,
    /// Where it comes from, such as an address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Line>,
    pub format: DocumentFormat,
    pub text: String,
}

impl RequestBody for DocumentRequest {}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct IngestedDocument {
    #[serde(flatten)]
    pub document: Document,
    /// Whether it replaces an earlier one with its id.
    pub replaced: bool,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Document {
    pub id: String,
    pub title: Option<String>,
    pub source: Option<String>,
    pub format: DocumentFormat,
    /// The size of its text.
    pub bytes: u64,
    pub chunks: u64,
    /// What was removed because a reader would not see it.
    pub removed: RemovedParts,
    pub ingested_by: PrincipalId,
    pub created_at: Timestamp,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct DocumentPage {
    pub documents: Vec<Document>,
    pub next_cursor: NextCursor,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RemovedDocument {
    pub status: Removed,
    pub id: String,
}
