//! The source of stores: memories, in which agents write and find texts, and collections of documents, in which they search.
//! Whose entries a call reads and writes follows from the call, never from its arguments; so does what is recorded about the
//! origin of an entry.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use serde_json::{Map, Value, json};
use toolgate_model::id::ItemId;
use toolgate_model::search::{Words, query_words};
use toolgate_model::secret::Material;
use toolgate_model::store::{
    ItemContent, MemoryScope, MemoryTerms, Provenance, StoreOperation, StoreTerms, UNTRUSTED, entry_json,
};

use self::index::IndexKey;
use super::Admitted;
use crate::action::Action;
use crate::gate::{Ports, Shared};
use crate::ids::Ids;
use crate::ports::clock::Clock;
use crate::ports::ledger::{
    AuditContext, FindBy, FindItems, Forget, ForgetItems, ForgetReason, FoundItem, KnownStore, Mandate, Marks, NewItem,
    Partition, PutItem, PutOutcome, Stores,
};
use crate::ports::sealer::{SealBinding, Sealer};
use crate::ports::source::{Access, Execution, FailureKind, ServiceResponse, Source, SourceFailure};
use crate::refusal::{Code, Refusal};

pub(crate) mod index;

/// How long untrusted content stays with a conversation, as other marks do.
const MARKS_LAST: Duration = Duration::from_secs(24 * 60 * 60);
/// The number of results if the call does not say.
const USUAL_LIMIT: usize = 10;
/// The maximum size of the texts of one result, in bytes.
const RESULT_BYTES: usize = 512 * 1024;
/// How often a text is sealed again if its master key was retired in the meantime.
const ATTEMPTS: u32 = 4;
/// The field of sealed material that holds the text.
const FIELD: &str = "json";

/// Executes the tools of stores.
pub(super) struct StoreSource {
    stores: Arc<dyn Stores>,
    sealer: Arc<dyn Sealer>,
    clock: Arc<dyn Clock>,
    ids: Arc<Ids>,
}

/// A call of a tool of a store.
struct StoreCall<'a> {
    call: &'a Admitted,
    store: KnownStore,
    key: IndexKey,
    partition: Partition,
    parameters: &'a Map<String, Value>,
}

impl StoreSource {
    pub(super) fn new(ports: &Ports, shared: &Shared) -> Self {
        Self {
            stores: ports.ledger.clone(),
            sealer: Arc::clone(&ports.sealer),
            clock: Arc::clone(&ports.clock),
            ids: Arc::clone(&shared.ids),
        }
    }
}

#[async_trait]
impl Source for StoreSource {
    fn executes(&self, action: Action) -> bool {
        action == Action::Store
    }

    async fn execute(&self, call: &Admitted, _: Option<Access<'_>>) -> Execution {
        let Some(operation) = call.definition().store else {
            return Err(unusable("its definition names no operation"));
        };
        let nothing = Map::new();
        let service = &call.candidate().tool.service;
        let store = self.stores.store(&call.invocation().tenant, service).await.map_err(failed)?;
        let store = store.ok_or_else(|| unusable("the store was removed"))?;
        let key = open_index(&*self.sealer, &store).await.map_err(failed)?;
        let partition = key.partition(&owner(call, &store.store.terms)?);
        let parameters = call.parameters().as_object().unwrap_or(&nothing);
        let store_call = StoreCall { call, store, key, partition, parameters };
        match operation {
            StoreOperation::Put => self.put(&store_call).await,
            StoreOperation::Forget => self.forget(&store_call).await,
            StoreOperation::Find | StoreOperation::Get | StoreOperation::List | StoreOperation::Search => {
                self.read(&store_call, operation).await
            }
        }
        .map(ServiceResponse::said)
    }
}

impl StoreSource {
    async fn put(&self, put: &StoreCall<'_>) -> Result<Value, SourceFailure> {
        let StoreTerms::Memory(terms) = &put.store.store.terms else { return Err(unusable("it is no memory")) };
        let (call, now) = (put.call, self.clock.now());
        let text = put.text("text").unwrap_or_default();
        let labels = put.texts("labels");
        let content = ItemContent {
            text: text.to_owned(),
            key: put.text("key").map(str::to_owned),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            ..ItemContent::default()
        };
        let expires_at = terms.end(now, put.number("ttl_seconds").map(Duration::from_secs));
        let invocation = call.invocation();
        let audit = AuditContext { tenant: invocation.tenant.clone(), actor: invocation.actor.clone(), time: now };
        for _ in 0..ATTEMPTS {
            let id = self.ids.make(now, ItemId::new).map_err(|error| failed(error.into()))?;
            let item = sealed_item(&*self.sealer, &put.store, (&put.key, &put.partition), id, &content);
            let command = PutItem {
                audit: audit.clone(),
                store: put.store.store.id,
                partition: put.partition.clone(),
                item: item.await.map_err(failed)?,
                key: put.text("key").map(|key| put.key.hash(&put.partition, key)),
                provenance: Provenance {
                    agent: invocation.agent.clone(),
                    actor: invocation.actor.clone(),
                    invocation: Some(invocation.id),
                    run: call.call().run.as_ref().map(ToString::to_string),
                    is_trusted: false,
                },
                expires_at,
                scope: call.call().mark_scope(),
                marks_since: now.minus(MARKS_LAST),
                max_items: terms.max_items.into(),
            };
            return match self.stores.put_item(command).await {
                Err(refusal) if refusal.code() == Code::MasterKeyRetired => continue,
                Err(refusal) => Err(failed(refusal)),
                Ok(PutOutcome::Stored { is_trusted, has_replaced }) => Ok(json!({
                    "id": id, "replaced": has_replaced, "trusted": is_trusted, "expires_at": expires_at,
                })),
                Ok(PutOutcome::Full { limit, of_agent }) => Err(full(terms, limit, of_agent)),
                Ok(PutOutcome::NoStore) => Err(unusable("the store was removed")),
            };
        }
        Err(SourceFailure::not_sent(FailureKind::Overloaded, "the master key is being changed; try again"))
    }

    async fn forget(&self, forget: &StoreCall<'_>) -> Result<Value, SourceFailure> {
        let partition = || forget.partition.clone();
        let what = match (forget.text("id"), forget.text("key"), forget.parameters.get("all")) {
            (Some(id), None, None | Some(Value::Bool(false))) => {
                let Ok(id) = ItemId::parse(id) else { return Ok(json!({"forgotten": 0})) };
                Forget::Item { partition: Some(partition()), id }
            }
            (None, Some(key), None | Some(Value::Bool(false))) => {
                Forget::Key { partition: partition(), key: forget.key.hash(&forget.partition, key) }
            }
            (None, None, Some(Value::Bool(true))) => Forget::Partition(partition()),
            _ => return Err(unusable("say what to forget: one of `id`, `key` and `all`")),
        };
        let invocation = forget.call.invocation();
        let audit =
            AuditContext { tenant: invocation.tenant.clone(), actor: invocation.actor.clone(), time: self.clock.now() };
        let command = ForgetItems {
            // The call was admitted.
            audit: Mandate::own(audit),
            store: forget.store.store.id,
            name: forget.store.store.name.clone(),
            what,
            reason: ForgetReason::Agent,
        };
        let forgotten = self.stores.forget_items(command).await.map_err(failed)?;
        Ok(json!({"forgotten": forgotten}))
    }

    async fn read(&self, read: &StoreCall<'_>, operation: StoreOperation) -> Result<Value, SourceFailure> {
        let limit = read.number("limit").and_then(|limit| usize::try_from(limit).ok()).unwrap_or(USUAL_LIMIT);
        let words = |query: &str| -> Vec<i64> {
            query_words(query).iter().map(|word| read.key.word(&read.partition, word)).collect()
        };
        let by = match operation {
            StoreOperation::Find | StoreOperation::Search => {
                FindBy::Words(words(read.text("query").unwrap_or_default()))
            }
            StoreOperation::Get => match (read.text("id").map(ItemId::parse), read.text("key")) {
                (Some(Ok(id)), None) => FindBy::Id(id),
                (Some(Err(_)), None) => return Ok(json!({"item": null})),
                (None, Some(key)) => FindBy::Key(read.key.hash(&read.partition, key)),
                _ => return Err(unusable("say what to read: either `id` or `key`")),
            },
            _ => {
                let before = read.text("cursor").map(ItemId::parse).transpose();
                FindBy::Newest { before: before.map_err(|_| unusable("`cursor` is none of an earlier result"))? }
            }
        };
        let is_list = operation == StoreOperation::List;
        let query = FindItems {
            store: read.store.store.id,
            partition: read.partition.clone(),
            by,
            labels: read.texts("labels").iter().map(|label| read.key.label(&read.partition, label)).collect(),
            limit: limit + usize::from(is_list),
            now: self.clock.now(),
        };
        let mut found = self.stores.find_items(query).await.map_err(failed)?;
        let has_more = is_list && found.len() > limit;
        found.truncate(limit);
        let (items, contents, is_cut) = self.open_all(read, found).await?;
        if operation != StoreOperation::Find && items.iter().any(|item| !item.provenance.is_trusted) {
            self.taint(read.call).await?;
        }
        let last = items.last().map(|item| item.id);
        let shown: Vec<Value> = items.iter().zip(&contents).map(|(item, content)| shown(item, content)).collect();
        Ok(match operation {
            StoreOperation::Find => json!({"results": shown}),
            StoreOperation::Get => json!({"item": shown.into_iter().next()}),
            StoreOperation::List => json!({"items": shown, "next_cursor": last.filter(|_| has_more || is_cut)}),
            _ => json!({"items": shown}),
        })
    }

    /// Unseals what was found, as far as it fits into a result.
    async fn open_all(
        &self,
        read: &StoreCall<'_>,
        mut found: Vec<FoundItem>,
    ) -> Result<(Vec<FoundItem>, Vec<ItemContent>, bool), SourceFailure> {
        let mut bytes = 0_usize;
        let fits = |item: &FoundItem| {
            bytes = bytes.saturating_add(item.sealed.ciphertext.len());
            bytes <= RESULT_BYTES
        };
        let fitting = found.iter().map(fits).take_while(|fits| *fits).count().max(1);
        let is_cut = found.len() > fitting;
        found.truncate(fitting);
        let open = |item| open_item(&*self.sealer, &read.store, item);
        let contents = try_join_all(found.iter().map(open)).await.map_err(failed)?;
        Ok((found, contents, is_cut))
    }

    /// Marks the conversation, before anything untrusted is handed out.
    async fn taint(&self, call: &Admitted) -> Result<(), SourceFailure> {
        let marks = Marks { scope: call.call().mark_scope(), labels: BTreeSet::from([UNTRUSTED.to_owned()]) };
        self.stores.leave_marks(&call.invocation().tenant, marks, self.clock.now()).await.map_err(failed)
    }
}

impl StoreCall<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).and_then(Value::as_str)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.parameters.get(name).and_then(Value::as_u64)
    }

    fn texts(&self, name: &str) -> Vec<&str> {
        self.parameters.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

/// Whose entries the call is about.
fn owner(call: &Admitted, terms: &StoreTerms) -> Result<Value, SourceFailure> {
    let StoreTerms::Memory(MemoryTerms { scope, .. }) = terms else { return Ok(everybody()) };
    let call = call.call();
    Ok(match scope {
        MemoryScope::Tenant => everybody(),
        MemoryScope::Agent => json!(["agent", call.agent]),
        MemoryScope::User => json!(["user", call.caller.id()]),
        MemoryScope::Session => match (&call.approval_session, &call.run) {
            (Some(session), _) => json!(["session", call.agent, session.owner, session.name.as_str()]),
            (None, Some(run)) => json!(["run", call.agent, call.caller.id(), run.to_string()]),
            (None, None) => {
                let why = "it is kept per session, and the call names none; pass `context.run_id` or a session";
                return Err(unusable(why));
            }
        },
    })
}

/// The owner of what everybody shares.
pub(crate) fn everybody() -> Value {
    json!(["tenant"])
}

fn shown(item: &FoundItem, content: &ItemContent) -> Value {
    if let Some(origin) = &item.document {
        return json!({
            "id": content.chunk, "content": content.text, "document": origin.document, "title": origin.title,
            "source": origin.source, "heading": content.heading, "offset": content.offset, "score": rounded(item.score),
        });
    }
    let mut members = entry_json(item.id, content, &item.provenance, item.times);
    if let Some(score) = rounded(item.score) {
        members.insert("score".to_owned(), json!(score));
    }
    Value::Object(members)
}

fn rounded(score: Option<f64>) -> Option<f64> {
    score.map(|score| (score * 1_000.0).round() / 1_000.0)
}

/// Seals a text, with the numbers of its words.
pub(crate) async fn sealed_item(
    sealer: &dyn Sealer,
    store: &KnownStore,
    (key, partition): (&IndexKey, &Partition),
    id: ItemId,
    content: &ItemContent,
) -> Result<NewItem, Refusal> {
    let text = serde_json::to_string(content).map_err(|_| unreadable(id))?;
    let mut material = Material::new();
    material.insert(FIELD.to_owned(), toolgate_model::secret::Secret::new(text));
    let sealed = sealer.seal(&SealBinding::of_item(&store.store.tenant, id), &material).await?;
    let words = Words::of(&content.text);
    let numbered = words.occurrences.iter().map(|(word, occurrences)| (key.word(partition, word), *occurrences));
    let labels = content.labels.iter().map(|label| (key.label(partition, label), 0));
    // Two words may have the same number: the item is found by both.
    let numbers: std::collections::BTreeMap<i64, u32> = labels.chain(numbered).collect();
    Ok(NewItem { id, sealed, words: numbers.into_iter().collect(), length: words.total })
}

async fn open_item(sealer: &dyn Sealer, store: &KnownStore, item: &FoundItem) -> Result<ItemContent, Refusal> {
    let binding = SealBinding::of_item(&store.store.tenant, item.id);
    let material = sealer.unseal(&binding, &item.sealed).await?;
    let text = material.get(FIELD).ok_or_else(|| unreadable(item.id))?;
    serde_json::from_str(text.expose()).map_err(|_| unreadable(item.id))
}

/// Opens the key of a store's index.
pub(crate) async fn open_index(sealer: &dyn Sealer, store: &KnownStore) -> Result<IndexKey, Refusal> {
    let binding = SealBinding::of_store(&store.store.tenant, store.store.id);
    let material = sealer.unseal(&binding, &store.index_key).await?;
    let unreadable = || Refusal::new(Code::Internal, "the index key of the store cannot be read");
    IndexKey::of_material(&material).ok_or_else(unreadable)
}

fn unreadable(id: ItemId) -> Refusal {
    Refusal::new(Code::Internal, format!("the text of {id} cannot be read; forget it, or restore it from a backup"))
}

fn unusable(why: &str) -> SourceFailure {
    SourceFailure::not_sent(FailureKind::NotExecutable, why)
}

fn full(terms: &MemoryTerms, limit: u64, of_agent: bool) -> SourceFailure {
    let reason = match of_agent {
        true => format!("the agent has {limit} entries in this memory, the limit; forget some"),
        false => {
            let scope = terms.scope.as_str();
            format!(
                "this memory has {limit} entries for the {scope}, the limit; forget some, or replace one by its key"
            )
        }
    };
    SourceFailure::not_sent(FailureKind::StoreFull, reason)
}

fn failed(refusal: Refusal) -> SourceFailure {
    let kind = match refusal.code() {
        Code::LedgerUnavailable | Code::KeyProviderUnavailable => FailureKind::Overloaded,
        _ => FailureKind::Service,
    };
    SourceFailure::not_sent(kind, format!("the store could not be used: {}", refusal.reason()))
}
