//! Stores: what is put is found by the same words in the same order, only by whom it belongs to, and what is forgotten is gone.

use std::time::Duration;

use serde_json::json;
use toolgate_gate::ports::ledger::{
    AddChunks, BeginDocument, CreateStore, Document, FindBy, FindItems, FinishDocument, Forget, ForgetItems,
    ForgetReason, Freshness, HistoryQuery, MarkScope, Marks, NewItem, PageRequest, Partition, PutItem, PutOutcome,
    RemoveDocument, RemoveService, RemoveStore,
};
use toolgate_gate::refusal::Code;
use toolgate_model::credential::ServiceName;
use toolgate_model::document::{DocumentFormat, RemovedParts};
use toolgate_model::id::{ItemId, RevisionId, StoreId};
use toolgate_model::store::{KnowledgeTerms, MemoryTerms, Provenance, Store, StoreTerms, UNTRUSTED, definition};
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal, sealed_under};

use super::support::refused;

contract!(
    a_store_is_a_service_and_goes_with_it,
    items_are_found_by_words_in_the_order_of_their_rank,
    a_key_replaces_and_labels_filter,
    a_partition_and_an_agent_have_limits,
    nobody_finds_what_is_of_another_partition,
    what_is_put_after_untrusted_content_is_untrusted,
    forgotten_items_are_gone_with_their_words_and_leave_an_event,
    expired_items_are_not_found_and_are_deleted,
    a_removed_store_is_emptied,
    a_document_is_found_while_it_is_current,
    a_store_is_not_changed_by_a_definition,
    sealed_texts_are_rewrapped,
);

fn store(tenant: &TestTenant, terms: StoreTerms) -> Store {
    Store {
        id: StoreId::new(tenant.now(), [7; 10]),
        tenant: tenant.id.clone(),
        name: ServiceName::parse("notes").unwrap(),
        description: None,
        terms,
        created_at: tenant.now(),
    }
}

fn creation(tenant: &TestTenant, store: &Store) -> CreateStore {
    CreateStore {
        audit: tenant.audit(),
        store: store.clone(),
        definition: definition(store).unwrap(),
        index_key: sealed_under("k1"),
    }
}

async fn created(fixture: &LedgerFixture, terms: StoreTerms) -> (TestTenant, Store) {
    let tenant = fixture.tenant().await;
    let store = Store { id: StoreId::new(tenant.now(), unique()), ..store(&tenant, terms) };
    tenant.ledger.create_store(creation(&tenant, &store)).await.unwrap();
    (tenant, store)
}

async fn memory(fixture: &LedgerFixture) -> (TestTenant, Store) {
    created(fixture, StoreTerms::Memory(MemoryTerms::default())).await
}

/// Numbers that no other test uses in the shared database.
fn unique() -> [u8; 10] {
    toolgate_gate::ports::entropy::random().unwrap()
}

fn mine() -> Partition {
    Partition("mine".to_owned())
}

/// A put of an item with these words, each with its occurrences.
fn put(tenant: &TestTenant, store: &Store, number: u8, words: &[(i64, u32)]) -> PutItem {
    let [_, rest @ ..] = unique();
    let mut entropy = [number; 10];
    entropy[1..].copy_from_slice(&rest);
    PutItem {
        audit: tenant.audit(),
        store: store.id,
        partition: mine(),
        item: NewItem {
            id: ItemId::new(tenant.now(), entropy),
            sealed: sealed_under("k1"),
            words: words.to_vec(),
            length: words.iter().map(|(_, occurrences)| occurrences).sum(),
        },
        key: None,
        provenance: Provenance {
            agent: principal("writer"),
            actor: principal("host"),
            invocation: None,
            run: Some("run-1".to_owned()),
            is_trusted: false,
        },
        expires_at: None,
        scope: MarkScope { agent: principal("writer"), session: String::new() },
        marks_since: tenant.now().minus(Duration::from_secs(3600)),
        max_items: 3,
    }
}

fn find(tenant: &TestTenant, store: &Store, by: FindBy) -> FindItems {
    FindItems { store: store.id, partition: mine(), by, labels: Vec::new(), limit: 10, now: tenant.now() }
}

async fn found(tenant: &TestTenant, query: FindItems) -> Vec<ItemId> {
    tenant.ledger.find_items(query).await.unwrap().into_iter().map(|item| item.id).collect()
}

async fn newest(tenant: &TestTenant, store: &Store) -> Vec<ItemId> {
    found(tenant, find(tenant, store, FindBy::Newest { before: None })).await
}

async fn a_store_is_a_service_and_goes_with_it(fixture: &LedgerFixture) {
    let (tenant, store) = memory(fixture).await;
    let registry = tenant.ledger.registry(&tenant.id, tenant.now(), Freshness::Newest).await.unwrap();
    assert_eq!(registry.services.len(), 1);
    assert_eq!(registry.services[0].definition, definition(&store).unwrap());
    let again = CreateStore {
        store: Store { id: StoreId::new(tenant.now(), unique()), ..store.clone() },
        ..creation(&tenant, &store)
    };
    refused(&tenant, Code::AlreadyExists, tenant.ledger.create_store(again)).await;
    assert_eq!(tenant.ledger.stores(&tenant.id).await.unwrap(), [(store.clone(), 0)]);
    let known = tenant.ledger.store(&tenant.id, &store.name).await.unwrap().unwrap();
    assert_eq!(known.store, store);
    let removal = RemoveStore { audit: tenant.audit(), store: store.id, name: store.name.clone() };
    tenant.ledger.remove_store(removal.clone()).await.unwrap();
    assert!(tenant.ledger.store(&tenant.id, &store.name).await.unwrap().is_none());
    refused(&tenant, Code::StoreNotFound, tenant.ledger.remove_store(removal)).await;
    let registry = tenant.ledger.registry(&tenant.id, tenant.now(), Freshness::Newest).await.unwrap();
    assert!(registry.services.is_empty());
    assert_eq!((tenant.events_of("store.created").await.len(), tenant.events_of("store.removed").await.len()), (1, 1));
}

async fn items_are_found_by_words_in_the_order_of_their_rank(fixture: &LedgerFixture) {
    let (tenant, store) = memory(fixture).await;
    let (cat, zebra, filler) = (i64::MIN, 2, 3);
    let puts = [
        put(&tenant, &store, 1, &[(cat, 1), (filler, 9)]),
        put(&tenant, &store, 2, &[(cat, 3)]),
        put(&tenant, &store, 3, &[(zebra, 1), (filler, 4)]),
    ];
    for put in &puts {
        let outcome = tenant.ledger.put_item(put.clone()).await.unwrap();
        assert_eq!(outcome, PutOutcome::Stored { is_trusted: true, has_replaced: false });
    }
    let ids: Vec<ItemId> = puts.iter().map(|put| put.item.id).collect();
    let words = |words: &[i64]| find(&tenant, &store, FindBy::Words(words.to_vec()));
    assert_eq!(found(&tenant, words(&[cat, zebra])).await, [ids[2], ids[1], ids[0]]);
    assert_eq!(found(&tenant, words(&[cat])).await, [ids[1], ids[0]]);
    assert!(found(&tenant, words(&[99])).await.is_empty());
    assert!(found(&tenant, words(&[])).await.is_empty());
    let best = FindItems { limit: 1, ..words(&[cat, zebra, filler]) };
    assert_eq!(found(&tenant, best).await.len(), 1);
    let by_id = tenant.ledger.find_items(find(&tenant, &store, FindBy::Id(ids[0]))).await.unwrap();
    assert_eq!(by_id[0].provenance.actor, principal("host"));
    assert_eq!((by_id[0].provenance.run.as_deref(), by_id[0].score), (Some("run-1"), None));
}

async fn a_key_replaces_and_labels_filter(fixture: &LedgerFixture) {
    let (tenant, store) = memory(fixture).await;
    let keyed =
        |number, words: &[(i64, u32)]| PutItem { key: Some("k".to_owned()), ..put(&tenant, &store, number, words) };
    let (first, second) = (keyed(1, &[(1, 1)]), keyed(2, &[(2, 1), (50, 0)]));
    tenant.ledger.put_item(first).await.unwrap();
    let outcome = tenant.ledger.put_item(second.clone()).await.unwrap();
    assert_eq!(outcome, PutOutcome::Stored { is_trusted: true, has_replaced: true });
    assert_eq!(newest(&tenant, &store).await, [second.item.id]);
    assert!(found(&tenant, find(&tenant, &store, FindBy::Words(vec![1]))).await.is_empty(), "its words are gone");
    assert_eq!(found(&tenant, find(&tenant, &store, FindBy::Key("k".to_owned()))).await, [second.item.id]);
    for by in [FindBy::Words(vec![2]), FindBy::Newest { before: None }] {
        for (label, count) in [(50, 1), (51, 0)] {
            let query = FindItems { labels: vec![label], ..find(&tenant, &store, by.clone()) };
            assert_eq!(found(&tenant, query).await.len(), count, "{by:?}");
        }
    }
}

async fn a_partition_and_an_agent_have_limits(fixture: &LedgerFixture) {
    let (tenant, store) = memory(fixture).await;
    for number in 1..=3 {
        tenant.ledger.put_item(put(&tenant, &store, number, &[(1, 1)])).await.unwrap();
    }
    let full = tenant.ledger.put_item(put(&tenant, &store, 4, &[])).await.unwrap();
    assert_eq!(full, PutOutcome::Full { limit: 3, of_agent: false });
    let elsewhere = PutItem { partition: Partition("other".to_owned()), ..put(&tenant, &store, 5, &[]) };
    assert!(matches!(tenant.ledger.put_item(elsewhere).await.unwrap(), PutOutcome::Stored { .. }));
    let gone = PutItem { store: StoreId::new(tenant.now(), unique()), ..put(&tenant, &store, 6, &[]) };
    assert_eq!(tenant.ledger.put_item(gone).await.unwrap(), PutOutcome::NoStore);
}

async fn nobody_finds_what_is_of_another_partition(fixture: &LedgerFixture) {
    let (tenant, store) = memory(fixture).await;
    let put = PutItem { key: Some("k".to_owned()), ..put(&tenant, &store, 1, &[(1, 1)]) };
    let id = put.item.id;
    tenant.ledger.put_item(put).await.unwrap();
    let other = Partition("other".to_owned());
    for by in [FindBy::Id(id), FindBy::Key("k".to_owned()), FindBy::Newest { before: None }, FindBy::Words(vec![1])] {
        let query = find(&tenant, &store, by);
        assert_eq!(found(&tenant, query.clone()).await, [id]);
        assert!(found(&tenant, FindItems { partition: other.clone(), ..query.clone() }).await.is_empty());
        let elsewhere = FindItems { store: StoreId::new(tenant.now(), unique()), ..query };
        assert!(found(&tenant, elsewhere).await.is_empty());
    }
}

async fn what_is_put_after_untrusted_content_is_untrusted(fixture: &LedgerFixture) {
    let (tenant, store) = memory(fixture).await;
    let scope = MarkScope { agent: principal("writer"), session: String::new() };
    let marks = Marks { scope: scope.clone(), labels: [UNTRUSTED.to_owned()].into() };
    tenant.ledger.leave_marks(&tenant.id, marks, tenant.now()).await.unwrap();
    let query = HistoryQuery {
        tenant: tenant.id.clone(),
        scope,
        run: None,
        marks_since: tenant.now().minus(Duration::from_secs(60)),
        since: None,
    };
    assert!(tenant.ledger.history(&query).await.unwrap().marks.contains(UNTRUSTED), "policies see it");
    let outcome = tenant.ledger.put_item(put(&tenant, &store, 1, &[])).await.unwrap();
    assert_eq!(outcome, PutOutcome::Stored { is_trusted: false, has_replaced: false });
    let late = PutItem { marks_since: tenant.later(60), ..put(&tenant, &store, 2, &[]) };
    let outcome = tenant.ledger.put_item(late).await.unwrap();
    assert_eq!(outcome, PutOutcome::Stored { is_trusted: true, has_replaced: false }, "the mark has ended");
}

fn forget(tenant: &TestTenant, store: &Store, what: Forget) -> ForgetItems {
    ForgetItems { audit: tenant.audit(), store: store.id, name: store.name.clone(), what, reason: ForgetReason::Agent }
}

async fn forgotten_items_are_gone_with_their_words_and_leave_an_event(fixture: &LedgerFixture) {
    let (tenant, store) = memory(fixture).await;
    let puts: Vec<PutItem> = (1..=3).map(|number| put(&tenant, &store, number, &[(1, 1)])).collect();
    for put in &puts {
        tenant.ledger.put_item(put.clone()).await.unwrap();
    }
    let id = puts[0].item.id;
    let elsewhere = Forget::Item { partition: Some(Partition("other".to_owned())), id };
    assert_eq!(tenant.ledger.forget_items(forget(&tenant, &store, elsewhere)).await.unwrap(), 0);
    let one = Forget::Item { partition: Some(mine()), id };
    assert_eq!(tenant.ledger.forget_items(forget(&tenant, &store, one)).await.unwrap(), 1);
    assert_eq!(found(&tenant, find(&tenant, &store, FindBy::Words(vec![1]))).await.len(), 2);
    let nobody = Forget::Agent(principal("nobody"));
    assert_eq!(tenant.ledger.forget_items(forget(&tenant, &store, nobody)).await.unwrap(), 0);
    let of_host = Forget::Actor(principal("host"));
    assert_eq!(tenant.ledger.forget_items(forget(&tenant, &store, of_host)).await.unwrap(), 2);
    assert!(newest(&tenant, &store).await.is_empty());
    let events = tenant.events_of("memory.forgotten").await;
    let hash = toolgate_model::merkle::sha256(id.to_string().as_bytes()).to_hex();
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["data"], json!({"count": 1, "items": [hash], "reason": "agent", "store": "notes"}));
    assert!(tenant.ledger.erase_deleted().await.unwrap());
}

async fn expired_items_are_not_found_and_are_deleted(fixture: &LedgerFixture) {
    let (tenant, store) = memory(fixture).await;
    let ending = PutItem { expires_at: Some(tenant.later(10)), ..put(&tenant, &store, 1, &[(1, 1)]) };
    let staying = put(&tenant, &store, 2, &[(1, 1)]);
    tenant.ledger.put_item(ending).await.unwrap();
    tenant.ledger.put_item(staying.clone()).await.unwrap();
    assert_eq!(newest(&tenant, &store).await.len(), 2);
    tenant.wait(11);
    for by in [FindBy::Newest { before: None }, FindBy::Words(vec![1])] {
        assert_eq!(found(&tenant, find(&tenant, &store, by)).await, [staying.item.id]);
    }
    assert_eq!(tenant.ledger.stores(&tenant.id).await.unwrap()[0].1, 2, "until the sweep");
    tenant.ledger.sweep_stores(tenant.now()).await.unwrap();
    assert_eq!(tenant.ledger.stores(&tenant.id).await.unwrap()[0].1, 1);
    let events = tenant.events_of("memory.forgotten").await;
    assert_eq!((&events[0]["data"]["reason"], &events[0]["actor"]), (&json!("expired"), &json!("core.system")));
}

async fn a_removed_store_is_emptied(fixture: &LedgerFixture) {
    let (tenant, store) = memory(fixture).await;
    let put = put(&tenant, &store, 1, &[(1, 1)]);
    tenant.ledger.put_item(put.clone()).await.unwrap();
    let removal = RemoveStore { audit: tenant.audit(), store: store.id, name: store.name.clone() };
    tenant.ledger.remove_store(removal).await.unwrap();
    assert_eq!(tenant.ledger.put_item(put).await.unwrap(), PutOutcome::NoStore);
    tenant.ledger.sweep_stores(tenant.now()).await.unwrap();
    assert!(newest(&tenant, &store).await.is_empty());
    let next = Store { id: StoreId::new(tenant.now(), unique()), ..store };
    tenant.ledger.create_store(creation(&tenant, &next)).await.unwrap();
    assert!(newest(&tenant, &next).await.is_empty());
}

fn document(id: &str, chunks: u64) -> Document {
    Document {
        id: id.to_owned(),
        title: Some("A title".to_owned()),
        source: None,
        format: DocumentFormat::Markdown,
        bytes: 100,
        chunks,
        removed: RemovedParts::default(),
        ingested_by: principal("admin"),
        created_at: toolgate_model::time::Timestamp::from_millis(0).unwrap(),
    }
}

/// Ingests a document of one chunk with this word; returns its revision and its chunk.
async fn ingested(tenant: &TestTenant, store: &Store, id: &str, word: i64) -> (FinishDocument, ItemId) {
    let revision = RevisionId::new(tenant.now(), unique());
    let begin =
        BeginDocument { audit: tenant.audit(), store: store.id, revision, document: document(id, 1), max_documents: 2 };
    tenant.ledger.begin_document(begin).await.unwrap();
    let chunk = put(tenant, store, 1, &[(word, 1)]).item;
    let chunk_id = chunk.id;
    let add = AddChunks { audit: tenant.audit(), store: store.id, partition: mine(), revision, chunks: vec![chunk] };
    tenant.ledger.add_chunks(add).await.unwrap();
    let finish = FinishDocument {
        audit: tenant.audit(),
        store: store.id,
        name: store.name.clone(),
        revision,
        document: document(id, 1),
    };
    (finish, chunk_id)
}

async fn a_document_is_found_while_it_is_current(fixture: &LedgerFixture) {
    let (tenant, store) = created(fixture, StoreTerms::Knowledge(KnowledgeTerms::default())).await;
    let words = |word| find(&tenant, &store, FindBy::Words(vec![word]));
    let (finish, first) = ingested(&tenant, &store, "refunds", 1).await;
    assert!(found(&tenant, words(1)).await.is_empty(), "not before it is complete");
    assert!(!tenant.ledger.finish_document(finish).await.unwrap());
    let chunk = tenant.ledger.find_items(words(1)).await.unwrap().remove(0);
    let origin = chunk.document.unwrap();
    assert_eq!((chunk.id, origin.document.as_str(), origin.title.as_deref()), (first, "refunds", Some("A title")));
    let (finish, second) = ingested(&tenant, &store, "refunds", 1).await;
    assert_eq!(found(&tenant, words(1)).await, [first], "the old one until then");
    assert!(tenant.ledger.finish_document(finish).await.unwrap());
    assert_eq!(found(&tenant, words(1)).await, [second]);
    tenant.ledger.sweep_stores(tenant.now()).await.unwrap();
    assert_eq!(tenant.ledger.stores(&tenant.id).await.unwrap()[0].1, 1, "the chunks of the old one are deleted");
    let (finish, _) = ingested(&tenant, &store, "returns", 2).await;
    tenant.ledger.finish_document(finish).await.unwrap();
    let begin = BeginDocument {
        audit: tenant.audit(),
        store: store.id,
        revision: RevisionId::new(tenant.now(), unique()),
        document: document("third", 1),
        max_documents: 2,
    };
    refused(&tenant, Code::StoreFull, tenant.ledger.begin_document(begin)).await;
    let page = tenant.ledger.documents(store.id, PageRequest { after: None, limit: 1 }).await.unwrap();
    assert_eq!((page.items[0].id.as_str(), page.next.as_deref()), ("refunds", Some("refunds")));
    let removal = |document: &str| RemoveDocument {
        audit: tenant.audit(),
        store: store.id,
        name: store.name.clone(),
        document: document.to_owned(),
    };
    tenant.ledger.remove_document(removal("refunds")).await.unwrap();
    assert!(found(&tenant, words(1)).await.is_empty());
    refused(&tenant, Code::DocumentNotFound, tenant.ledger.remove_document(removal("refunds"))).await;
    // One that is never finished is given up after a while.
    ingested(&tenant, &store, "abandoned", 3).await;
    tenant.wait(3_601);
    tenant.ledger.sweep_stores(tenant.now()).await.unwrap();
    assert_eq!(tenant.ledger.stores(&tenant.id).await.unwrap()[0].1, 1);
}

async fn a_store_is_not_changed_by_a_definition(fixture: &LedgerFixture) {
    let (tenant, store) = memory(fixture).await;
    let removal = RemoveService { audit: tenant.audit(), service: store.name, version: None };
    refused(&tenant, Code::ServiceIsStore, tenant.ledger.remove_service(removal)).await;
}

async fn sealed_texts_are_rewrapped(fixture: &LedgerFixture) {
    let (tenant, store) = memory(fixture).await;
    tenant.ledger.put_item(put(&tenant, &store, 1, &[])).await.unwrap();
    let current = toolgate_gate::ports::sealer::MasterKeyId("none".to_owned());
    let (mut after, mut subjects) = (None, Vec::new());
    loop {
        let page = tenant.ledger.sealed_under_other_keys(&current, after, 50).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.binding.subject);
        subjects.extend(
            page.iter().filter(|sealed| sealed.binding.tenant == tenant.id).map(|sealed| sealed.binding.subject),
        );
    }
    assert_eq!(subjects.len(), 2, "the key of the index and the text: {subjects:?}");
}
