//! Memories and collections of documents. A store is a registered service, so creating one needs what registering a service
//! needs; who may use it is a matter of grants.

use std::sync::Arc;

use toolgate_model::credential::{AuthType, Credential, ServiceName};
use toolgate_model::document::{Chunk, DocumentFormat, DocumentId, RemovedParts, chunks, readable_text};
use toolgate_model::id::{ItemId, RevisionId, StoreId, VaultId};
use toolgate_model::permission::Permission;
use toolgate_model::principal::PrincipalId;
use toolgate_model::scope::{Scope, ScopeSet};
use toolgate_model::secret::Material;
use toolgate_model::store::{CHUNK_LIMIT, ItemContent, Store, StoreKind, StoreTerms, definition, scopes};
use toolgate_model::text::{Line, MultilineText};

use super::credentials::NewCredential;
use super::services::require_registrar;
use crate::authority::Administration;
use crate::builtin;
use crate::call::stores::index::IndexKey;
use crate::call::stores::{everybody, open_index, sealed_item};
use crate::gate::{Ports, Shared};
use crate::identify::Caller;
use crate::ids::Ids;
use crate::ports::clock::Clock;
use crate::ports::ledger::{
    AddChunks, BeginDocument, CreateStore, Document, FinishDocument, Forget, ForgetItems, ForgetReason, KnownStore,
    Page, PageRequest, RemoveDocument, RemoveStore, Stores,
};
use crate::ports::sealer::{SealBinding, Sealer};
use crate::refusal::{Code, Refusal};

/// How many chunks are written in one transaction: other writes wait for it.
const CHUNKS_AT_ONCE: usize = 8;
/// How often something is sealed again if its master key was retired in the meantime.
const ATTEMPTS: u32 = 4;

/// A store to be created.
pub struct NewStore {
    pub name: ServiceName,
    pub description: Option<MultilineText>,
    pub terms: StoreTerms,
    /// Where a credential without material is made, so that the store can be granted.
    pub vault: Option<VaultId>,
}

/// A document to be ingested.
pub struct NewDocument {
    pub id: DocumentId,
    pub title: Option<Line>,
    pub source: Option<Line>,
    pub format: DocumentFormat,
    pub text: String,
}

/// A document that was ingested.
pub struct Ingested {
    pub document: Document,
    /// Whether it replaces an earlier one with its id.
    pub has_replaced: bool,
}

/// The administration of stores.
pub struct StoreAdministration {
    stores: Arc<dyn Stores>,
    sealer: Arc<dyn Sealer>,
    clock: Arc<dyn Clock>,
    ids: Arc<Ids>,
    administration: Arc<Administration>,
}

impl StoreAdministration {
    pub(crate) fn new(ports: &Ports, shared: &Shared, administration: Arc<Administration>) -> Self {
        Self {
            stores: ports.ledger.clone(),
            sealer: Arc::clone(&ports.sealer),
            clock: Arc::clone(&ports.clock),
            ids: Arc::clone(&shared.ids),
            administration,
        }
    }

    /// Creates a store, and a credential of it if a vault is named.
    pub async fn create(&self, caller: &Caller, new: NewStore) -> Result<(Store, Option<Credential>), Refusal> {
        require_registrar(caller)?;
        if new.name.as_str() == builtin::WORKSPACE {
            let reason = format!("`{}` is reserved for built-in tools; choose another name", builtin::WORKSPACE);
            return Err(Refusal::new(Code::InvalidField, reason).with("path", "name"));
        }
        new.terms.check().map_err(|(name, reason)| {
            Refusal::new(Code::InvalidField, format!("`{name}` {reason}")).with("path", name)
        })?;
        let now = self.clock.now();
        let store = Store {
            id: self.ids.make(now, StoreId::new)?,
            tenant: caller.tenant().clone(),
            name: new.name,
            description: new.description,
            terms: new.terms,
            created_at: now,
        };
        let credential = match new.vault {
            Some(vault) => Some(self.open_credential(caller, vault, &store).await?),
            None => None,
        };
        let created = self.store(caller, &store).await;
        if let (Err(_), Some(credential)) = (&created, &credential) {
            // Nothing rests on it.
            self.administration.revoke_credential(caller, credential.id, None).await?;
        }
        created.map(|()| (store, credential))
    }

    async fn store(&self, caller: &Caller, store: &Store) -> Result<(), Refusal> {
        let definition = definition(store)?;
        let material = IndexKey::new_material()?;
        let binding = SealBinding::of_store(&store.tenant, store.id);
        for _ in 0..ATTEMPTS {
            let command = CreateStore {
                audit: caller.mandate(self.clock.now()),
                store: store.clone(),
                definition: definition.clone(),
                index_key: self.sealer.seal(&binding, &material).await?,
            };
            match self.stores.create_store(command).await {
                Err(refusal) if refusal.code() == Code::MasterKeyRetired => {}
                other => return other,
            }
        }
        Err(too_busy())
    }

    async fn open_credential(&self, caller: &Caller, vault: VaultId, store: &Store) -> Result<Credential, Refusal> {
        let service = &store.name;
        let scopes = scopes(store.terms.kind()).iter().map(|scope| Scope::parse(scope));
        let scopes_available = scopes
            .collect::<Result<ScopeSet, _>>()
            .map_err(|error| Refusal::new(Code::Internal, format!("a scope of stores is invalid: {error}")))?;
        let metadata = serde_json::json!({"auth": {"location": "none"}});
        let new = NewCredential {
            vault,
            service: service.clone(),
            label: Line::parse(&format!("{service} (no secret)"))
                .map_err(|error| Refusal::new(Code::InvalidField, error.to_string()).with("path", "name"))?,
            auth_type: AuthType::ApiKey,
            scopes_available,
            metadata: metadata.as_object().cloned().unwrap_or_default(),
            material: Material::default(),
            expires_at: None,
        };
        self.administration.create_credential(caller, new).await
    }

    /// The stores of this kind, each with its number of items.
    pub async fn stores(&self, caller: &Caller, kind: StoreKind) -> Result<Vec<(Store, u64)>, Refusal> {
        caller.require(Permission::ManageTools)?;
        let mut stores = self.stores.stores(caller.tenant()).await?;
        stores.retain(|(store, _)| store.terms.kind() == kind);
        Ok(stores)
    }

    /// One of them.
    pub async fn shown(&self, caller: &Caller, kind: StoreKind, name: &ServiceName) -> Result<(Store, u64), Refusal> {
        self.known(caller, kind, name).await?;
        let stores = self.stores(caller, kind).await?;
        stores.into_iter().find(|(store, _)| store.name == *name).ok_or_else(|| not_found(kind, name))
    }

    async fn known(&self, caller: &Caller, kind: StoreKind, name: &ServiceName) -> Result<KnownStore, Refusal> {
        if !caller.may(Permission::ManageTools) {
            return Err(not_found(kind, name));
        }
        let known = self.stores.store(caller.tenant(), name).await?;
        known.filter(|known| known.store.terms.kind() == kind).ok_or_else(|| not_found(kind, name))
    }

    /// Removes a store with everything in it. Its credentials and their grants stay, without tools.
    pub async fn remove(&self, caller: &Caller, kind: StoreKind, name: ServiceName) -> Result<(), Refusal> {
        let known = self.known(caller, kind, &name).await?;
        require_registrar(caller)?;
        let audit = caller.mandate(self.clock.now());
        self.stores.remove_store(RemoveStore { audit, store: known.store.id, name }).await
    }

    /// Forgets entries of a memory, including those of all agents; returns how many.
    pub async fn forget(&self, caller: &Caller, name: ServiceName, what: ForgetWhat) -> Result<u64, Refusal> {
        let known = self.known(caller, StoreKind::Memory, &name).await?;
        require_registrar(caller)?;
        let what = match what {
            ForgetWhat::Item(id) => Forget::Item { partition: None, id },
            ForgetWhat::Agent(agent) => Forget::Agent(agent),
            ForgetWhat::User(user) => Forget::Actor(user),
            ForgetWhat::All => Forget::All,
        };
        let audit = caller.mandate(self.clock.now());
        let reason = ForgetReason::Administrator;
        self.stores.forget_items(ForgetItems { audit, store: known.store.id, name, what, reason }).await
    }

    /// Ingests a document: it can be found when this returns, and an earlier one with its id no longer.
    pub async fn ingest(&self, caller: &Caller, name: &ServiceName, new: NewDocument) -> Result<Ingested, Refusal> {
        let known = self.known(caller, StoreKind::Knowledge, name).await?;
        require_registrar(caller)?;
        let StoreTerms::Knowledge(terms) = &known.store.terms else {
            return Err(not_found(StoreKind::Knowledge, name));
        };
        let (document, chunks) = divided(caller, &new, self.clock.now())?;
        let revision = self.ids.make(self.clock.now(), RevisionId::new)?;
        let begin = BeginDocument {
            audit: caller.mandate(self.clock.now()),
            store: known.store.id,
            revision,
            document: document.clone(),
            max_documents: terms.max_documents.into(),
        };
        self.stores.begin_document(begin).await?;
        let key = open_index(&*self.sealer, &known).await?;
        for batch in chunks.chunks(CHUNKS_AT_ONCE) {
            self.add(caller, &known, &key, revision, batch).await?;
        }
        let finish = FinishDocument {
            audit: caller.mandate(self.clock.now()),
            store: known.store.id,
            name: name.clone(),
            revision,
            document: document.clone(),
        };
        let has_replaced = self.stores.finish_document(finish).await?;
        Ok(Ingested { document, has_replaced })
    }

    async fn add(
        &self,
        caller: &Caller,
        known: &KnownStore,
        key: &IndexKey,
        revision: RevisionId,
        chunks: &[Chunk],
    ) -> Result<(), Refusal> {
        let partition = key.partition(&everybody());
        for _ in 0..ATTEMPTS {
            let mut items = Vec::with_capacity(chunks.len());
            for chunk in chunks {
                let content = ItemContent {
                    text: chunk.text.clone(),
                    chunk: Some(chunk.id.clone()),
                    heading: chunk.heading.clone(),
                    offset: u64::try_from(chunk.offset).ok(),
                    ..ItemContent::default()
                };
                let id = self.ids.make(self.clock.now(), ItemId::new)?;
                items.push(sealed_item(&*self.sealer, known, (key, &partition), id, &content).await?);
            }
            let audit = caller.audit(self.clock.now());
            let command =
                AddChunks { audit, store: known.store.id, partition: partition.clone(), revision, chunks: items };
            match self.stores.add_chunks(command).await {
                Err(refusal) if refusal.code() == Code::MasterKeyRetired => {}
                other => return other,
            }
        }
        Err(too_busy())
    }

    pub async fn documents(
        &self,
        caller: &Caller,
        name: &ServiceName,
        page: PageRequest,
    ) -> Result<Page<Document>, Refusal> {
        let known = self.known(caller, StoreKind::Knowledge, name).await?;
        self.stores.documents(known.store.id, page).await
    }

    pub async fn remove_document(
        &self,
        caller: &Caller,
        name: ServiceName,
        document: &DocumentId,
    ) -> Result<(), Refusal> {
        let known = self.known(caller, StoreKind::Knowledge, &name).await?;
        require_registrar(caller)?;
        let audit = caller.mandate(self.clock.now());
        let document = document.as_str().to_owned();
        self.stores.remove_document(RemoveDocument { audit, store: known.store.id, name, document }).await
    }
}

/// What an administrator makes a memory forget.
pub enum ForgetWhat {
    Item(ItemId),
    /// What this agent has written.
    Agent(PrincipalId),
    /// What was written for this caller.
    User(PrincipalId),
    All,
}

/// The text of a document in chunks, without what a reader would not see.
fn divided(
    caller: &Caller,
    new: &NewDocument,
    now: toolgate_model::time::Timestamp,
) -> Result<(Document, Vec<Chunk>), Refusal> {
    let readable = readable_text(new.format, &new.text);
    let chunks = chunks(new.id.as_str(), &readable.text);
    let count = u64::try_from(chunks.len()).unwrap_or(u64::MAX);
    if chunks.is_empty() {
        let reason = "the document has no text that a reader would see";
        return Err(Refusal::new(Code::InvalidField, reason).with("path", "text"));
    }
    if count > CHUNK_LIMIT {
        let reason = format!("the document has {count} chunks, and a collection can have {CHUNK_LIMIT}; divide it");
        return Err(Refusal::new(Code::InvalidField, reason).with("path", "text"));
    }
    let title = new.title.as_ref().map(|title| title.as_str().to_owned()).or(readable.title);
    let removed: RemovedParts = readable.removed;
    let document = Document {
        id: new.id.as_str().to_owned(),
        title: title.map(|title| title.chars().take(200).collect()),
        source: new.source.as_ref().map(|source| source.as_str().to_owned()),
        format: new.format,
        bytes: u64::try_from(readable.text.len()).unwrap_or(u64::MAX),
        chunks: count,
        removed,
        ingested_by: caller.id().clone(),
        created_at: now,
    };
    Ok((document, chunks))
}

fn too_busy() -> Refusal {
    Refusal::new(Code::MasterKeyRetired, "the master key is being changed; try again")
}

fn not_found(kind: StoreKind, name: &ServiceName) -> Refusal {
    Refusal::new(Code::StoreNotFound, format!("there is no {} `{name}`", kind.noun()))
}
