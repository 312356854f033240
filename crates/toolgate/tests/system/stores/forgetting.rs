//! What is forgotten is gone: from searches, from tables, from the files, and with an event that has nothing of it.

use std::path::Path;

use serde_json::{Value, json};

use super::Shelf;
use crate::world::{World, block_on, on_both_engines, text, until};

/// A word that is nowhere else.
const WORD: &str = "xylophonist";

on_both_engines! {
    a_forgotten_entry_is_nowhere_and_its_event_says_nothing_of_it,
    an_administrator_forgets_what_was_written_for_somebody,
    what_has_expired_is_deleted_and_not_hidden,
    nothing_of_a_text_is_in_the_log,
    a_change_of_the_master_key_leaves_entries_readable,
}

/// All bytes that the ledger has on disk or in its tables.
fn ledger(world: &World) -> Vec<u8> {
    match world.database() {
        None => {
            let data = world.gate.setup().data();
            let mut bytes = Vec::new();
            for file in ["ledger.sqlite3", "ledger.sqlite3-wal"] {
                bytes.extend(std::fs::read(Path::new(&data).join(file)).unwrap_or_default());
            }
            assert!(!bytes.is_empty(), "no ledger in {}", data.display());
            bytes
        }
        Some(url) => block_on(dump(url)),
    }
}

async fn dump(url: &str) -> Vec<u8> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let tables = client
        .query("SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'", &[])
        .await
        .unwrap();
    let mut bytes = Vec::new();
    for table in tables {
        let table: String = table.get(0);
        let rows = client.query(&format!("SELECT t::text FROM \"{table}\" AS t"), &[]).await.unwrap();
        rows.iter().for_each(|row| bytes.extend(row.get::<_, String>(0).into_bytes()));
    }
    drop(client);
    let _ = connection.await;
    bytes
}

fn has(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

fn a_forgotten_entry_is_nowhere_and_its_event_says_nothing_of_it(world: &World) {
    let shelf = Shelf::memory(world, "notes", json!({}));
    let writer = shelf.agent("writer");
    let put = writer.put(&format!("The {WORD} lives next door."));
    let item = text(&put, "/id").to_owned();
    assert_eq!(writer.search(WORD).len(), 1);
    let before = ledger(world);
    assert!(has(&before, item.as_bytes()), "the row is there");
    assert!(!has(&before, WORD.as_bytes()), "the text is sealed, and its words are numbers");
    let hash = toolgate_model::merkle::sha256(item.as_bytes()).to_hex();
    assert_eq!(writer.call("forget", json!({"id": item})).ok()["result"]["forgotten"], 1);
    assert!(writer.search(WORD).is_empty());
    assert!(writer.list().is_empty());
    let events = shelf.admin.events("&type=memory.forgotten");
    let [event] = events.as_slice() else { panic!("one event: {events:?}") };
    assert_eq!(event["actor"], "writer");
    assert_eq!(event["data"], json!({"count": 1, "items": [hash], "reason": "agent", "store": "notes"}));
    // Calls that named the id stay in the log: what is gone is the row with the sealed text.
    until("an overwritten row", || {
        let now = ledger(world);
        assert!(!has(&now, WORD.as_bytes()));
        (rows(world, &item) == 0).then_some(())
    });
    assert_eq!(writer.call("forget", json!({"id": item})).ok()["result"]["forgotten"], 0);
}

/// The rows of an item and of its words.
fn rows(world: &World, item: &str) -> i64 {
    let counts = ["SELECT COUNT(*) FROM store_items WHERE id = $1", "SELECT COUNT(*) FROM store_words WHERE item = $1"];
    match world.database() {
        None => {
            let ledger = rusqlite::Connection::open(world.gate.setup().data().join("ledger.sqlite3")).unwrap();
            counts.iter().map(|sql| ledger.query_row(sql, [item], |row| row.get::<_, i64>(0)).unwrap()).sum()
        }
        Some(url) => block_on(async {
            let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
            let connection = tokio::spawn(connection);
            let mut sum = 0;
            for sql in counts {
                sum += client.query_one(sql, &[&item]).await.unwrap().get::<_, i64>(0);
            }
            drop(client);
            let _ = connection.await;
            sum
        }),
    }
}

fn an_administrator_forgets_what_was_written_for_somebody(world: &World) {
    let shelf = Shelf::memory(world, "notes", json!({"scope": "tenant"}));
    let (one, other) = (shelf.agent("one"), shelf.agent("other"));
    one.put("of one");
    one.put("of one again");
    other.put("of the other");
    let forget = |body: &Value| shelf.admin.post("/api/v1/memory/stores/notes/forget", body);
    forget(&json!({})).refused(400, "INVALID_FIELD");
    forget(&json!({"user": "one", "all": true})).refused(400, "INVALID_FIELD");
    one.agent.post("/api/v1/memory/stores/notes/forget", &json!({"all": true})).refused(404, "STORE_NOT_FOUND");
    assert_eq!(forget(&json!({"user": "one"})).ok()["forgotten"], 2);
    assert_eq!(other.list(), ["of the other"]);
    assert_eq!(shelf.admin.events("&type=memory.forgotten")[0]["data"]["reason"], "administrator");
    assert_eq!(forget(&json!({"all": true})).ok()["forgotten"], 1);
    assert!(other.list().is_empty());
}

fn what_has_expired_is_deleted_and_not_hidden(world: &World) {
    let shelf = Shelf::memory(world, "notes", json!({"retention_days": 1}));
    let writer = shelf.agent("writer");
    let kept = writer.put("kept for a day");
    assert!(kept["expires_at"].is_string(), "{kept}");
    let put = writer.call("put", json!({"text": "kept for a second", "ttl_seconds": 1})).ok()["result"].clone();
    let item = text(&put, "/id").to_owned();
    until("an expired entry", || (rows(world, &item) == 0).then_some(()));
    assert_eq!(writer.list(), ["kept for a day"]);
    let event = until("its event", || shelf.admin.events("&type=memory.forgotten").first().cloned());
    assert_eq!((&event["actor"], &event["data"]["reason"]), (&json!("core.system"), &json!("expired")));
}

fn nothing_of_a_text_is_in_the_log(world: &World) {
    let shelf = Shelf::memory(world, "notes", json!({}));
    let writer = shelf.agent("writer");
    let parameters = json!({"text": format!("The {WORD}."), "key": WORD, "labels": [WORD]});
    writer.call("put", parameters).ok();
    let more = json!({"idempotency_key": "once"});
    let reader = super::Reader { shelf: &shelf, agent: writer.agent.clone(), more };
    reader.call("search", json!({"query": WORD})).ok();
    let events = shelf.admin.events("");
    assert!(!json!(events).to_string().contains(WORD));
    assert!(!has(&ledger(world), WORD.as_bytes()), "nor the result of a call that may be repeated");
}

fn a_change_of_the_master_key_leaves_entries_readable(world: &World) {
    let shelf = Shelf::memory(world, "notes", json!({}));
    let writer = shelf.agent("writer");
    writer.put("sealed before");
    let current = |status: Value| status["current"].as_str().unwrap().to_owned();
    let before = current(shelf.admin.get("/api/v1/master-keys").ok());
    shelf.admin.ask("POST", "/api/v1/master-keys/rekey", None).expect(202);
    let after = until("the end of the rekey", || {
        let status = shelf.admin.get("/api/v1/master-keys").ok();
        (status["remaining"] == 0).then(|| current(status))
    });
    assert_ne!(before, after);
    writer.put("sealed after");
    assert_eq!(writer.search("sealed"), ["sealed after", "sealed before"]);
}
