//! Memories and collections of documents.

use toolgate_api::reply::{NextCursor, Removed};
use toolgate_api::stores::{
    Collection, CollectionList, CreateCollection, CreateMemory, DeleteCollection, DeleteMemory, Document, DocumentPage,
    ForgetEntries, Forgotten, IngestDocument, IngestedDocument, ListCollections, ListDocuments, ListMemories, Memory,
    MemoryList, RemoveDocument, RemovedDocument, RemovedStore, ShowCollection, ShowMemory,
};
use toolgate_gate::authority::stores::{ForgetWhat, NewDocument, NewStore};
use toolgate_gate::ports::ledger;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::id::CredentialId;
use toolgate_model::store::{KnowledgeTerms, MemoryTerms, Store, StoreKind, StoreTerms};

use super::error::Denied;
use crate::mount::TypedRequest;
use crate::parameters::page;

pub(super) async fn create_memory(request: TypedRequest<CreateMemory>) -> Result<Memory, Denied> {
    let TypedRequest { app, caller, body, .. } = request;
    let usual = MemoryTerms::default();
    let terms = MemoryTerms {
        scope: body.scope,
        retention_days: body.retention_days,
        max_items: body.max_items.unwrap_or(usual.max_items),
        max_characters: body.max_characters.unwrap_or(usual.max_characters),
        writes_per_minute: body.writes_per_minute.unwrap_or(usual.writes_per_minute),
    };
    let new = NewStore {
        name: body.name,
        description: body.description,
        terms: StoreTerms::Memory(terms),
        vault: body.vault_id,
    };
    let (store, credential) = app.gate.stores.create(&caller, new).await?;
    memory(store, 0, credential.map(|credential| credential.id))
}

pub(super) async fn list_memories(request: TypedRequest<ListMemories>) -> Result<MemoryList, Denied> {
    let TypedRequest { app, caller, .. } = request;
    let stores = app.gate.stores.stores(&caller, StoreKind::Memory).await?;
    let shown = |(store, items)| memory(store, items, None);
    Ok(MemoryList { stores: stores.into_iter().map(shown).collect::<Result<_, _>>()? })
}

pub(super) async fn show_memory(request: TypedRequest<ShowMemory>) -> Result<Memory, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let (store, items) = app.gate.stores.shown(&caller, StoreKind::Memory, &path).await?;
    memory(store, items, None)
}

pub(super) async fn delete_memory(request: TypedRequest<DeleteMemory>) -> Result<RemovedStore, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    app.gate.stores.remove(&caller, StoreKind::Memory, path.clone()).await?;
    Ok(RemovedStore { status: Removed::Value, name: path })
}

pub(super) async fn forget(request: TypedRequest<ForgetEntries>) -> Result<Forgotten, Denied> {
    let TypedRequest { app, caller, path, body, .. } = request;
    let all = body.all.filter(|all| *all);
    let what = match (body.item_id, body.agent, body.user, all) {
        (Some(id), None, None, None) => ForgetWhat::Item(id),
        (None, Some(agent), None, None) => ForgetWhat::Agent(agent),
        (None, None, Some(user), None) => ForgetWhat::User(user),
        (None, None, None, Some(_)) => ForgetWhat::All,
        _ => {
            let reason = "say what to forget: exactly one of `item_id`, `agent`, `user` and `all`";
            return Err(Refusal::new(Code::InvalidField, reason).with("path", "item_id").into());
        }
    };
    Ok(Forgotten { forgotten: app.gate.stores.forget(&caller, path, what).await? })
}

pub(super) async fn create_collection(request: TypedRequest<CreateCollection>) -> Result<Collection, Denied> {
    let TypedRequest { app, caller, body, .. } = request;
    let usual = KnowledgeTerms::default();
    let terms = KnowledgeTerms {
        untrusted: body.untrusted.unwrap_or(usual.untrusted),
        max_documents: body.max_documents.unwrap_or(usual.max_documents),
    };
    let new = NewStore {
        name: body.name,
        description: body.description,
        terms: StoreTerms::Knowledge(terms),
        vault: body.vault_id,
    };
    let (store, credential) = app.gate.stores.create(&caller, new).await?;
    collection(store, 0, credential.map(|credential| credential.id))
}

pub(super) async fn list_collections(request: TypedRequest<ListCollections>) -> Result<CollectionList, Denied> {
    let TypedRequest { app, caller, .. } = request;
    let stores = app.gate.stores.stores(&caller, StoreKind::Knowledge).await?;
    let shown = |(store, chunks)| collection(store, chunks, None);
    Ok(CollectionList { collections: stores.into_iter().map(shown).collect::<Result<_, _>>()? })
}

pub(super) async fn show_collection(request: TypedRequest<ShowCollection>) -> Result<Collection, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let (store, chunks) = app.gate.stores.shown(&caller, StoreKind::Knowledge, &path).await?;
    collection(store, chunks, None)
}

pub(super) async fn delete_collection(request: TypedRequest<DeleteCollection>) -> Result<RemovedStore, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    app.gate.stores.remove(&caller, StoreKind::Knowledge, path.clone()).await?;
    Ok(RemovedStore { status: Removed::Value, name: path })
}

pub(super) async fn ingest(request: TypedRequest<IngestDocument>) -> Result<IngestedDocument, Denied> {
    let TypedRequest { app, caller, path, body, .. } = request;
    let new = NewDocument { id: body.id, title: body.title, source: body.source, format: body.format, text: body.text };
    let ingested = app.gate.stores.ingest(&caller, &path, new).await?;
    Ok(IngestedDocument { document: document(ingested.document), replaced: ingested.has_replaced })
}

pub(super) async fn list_documents(request: TypedRequest<ListDocuments>) -> Result<DocumentPage, Denied> {
    let TypedRequest { app, caller, path, query, .. } = request;
    let page = app.gate.stores.documents(&caller, &path, page(query.limit, query.cursor)?).await?;
    let documents = page.items.into_iter().map(document).collect();
    Ok(DocumentPage { documents, next_cursor: NextCursor(page.next) })
}

pub(super) async fn remove_document(request: TypedRequest<RemoveDocument>) -> Result<RemovedDocument, Denied> {
    let TypedRequest { app, caller, path: (collection, id), .. } = request;
    app.gate.stores.remove_document(&caller, collection, &id).await?;
    Ok(RemovedDocument { status: Removed::Value, id: id.to_string() })
}

fn memory(store: Store, items: u64, credential_id: Option<CredentialId>) -> Result<Memory, Denied> {
    let Store { name, description, terms: StoreTerms::Memory(terms), created_at, .. } = store else {
        return Err(Refusal::new(Code::Internal, "the store is no memory").into());
    };
    Ok(Memory {
        name,
        description,
        scope: terms.scope,
        retention_days: terms.retention_days,
        max_items: terms.max_items,
        max_characters: terms.max_characters,
        writes_per_minute: terms.writes_per_minute,
        items,
        credential_id,
        created_at,
    })
}

fn collection(store: Store, chunks: u64, credential_id: Option<CredentialId>) -> Result<Collection, Denied> {
    let Store { name, description, terms: StoreTerms::Knowledge(terms), created_at, .. } = store else {
        return Err(Refusal::new(Code::Internal, "the store is no collection").into());
    };
    let KnowledgeTerms { untrusted, max_documents } = terms;
    Ok(Collection { name, description, untrusted, max_documents, chunks, credential_id, created_at })
}

fn document(document: ledger::Document) -> Document {
    Document {
        id: document.id,
        title: document.title,
        source: document.source,
        format: document.format,
        bytes: document.bytes,
        chunks: document.chunks,
        removed: document.removed,
        ingested_by: document.ingested_by,
        created_at: document.created_at,
    }
}
