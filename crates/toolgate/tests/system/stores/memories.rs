//! What agents put into a memory and get out of it again.

use serde_json::{Value, json};

use super::{Reader, Shelf};
use crate::world::{World, on_both_engines, text};

on_both_engines! {
    what_is_put_is_found_listed_and_read_again,
    the_best_entry_comes_first_on_every_engine,
    an_agent_finds_nothing_of_another,
    a_session_finds_nothing_of_another_and_needs_a_name,
    a_shared_memory_is_shared,
    an_agent_without_a_grant_does_not_know_the_memory,
    a_scope_that_was_not_granted_is_refused,
    limits_are_told_and_kept,
    a_store_is_not_changed_by_definitions,
    the_tools_are_listed_and_called_over_mcp,
}

fn what_is_put_is_found_listed_and_read_again(world: &World) {
    let shelf = Shelf::memory(world, "notes", json!({}));
    let reader = shelf.agent("writer");
    let call =
        reader.call("put", json!({"text": "The zebra likes grass.", "key": "zebra", "labels": ["animals"]})).ok();
    let put = &call["result"];
    assert_eq!((&put["replaced"], &put["trusted"], &put["expires_at"]), (&json!(false), &json!(true), &Value::Null));
    let got = reader.call("get", json!({"key": "zebra"})).ok()["result"]["item"].clone();
    assert_eq!((&got["id"], &got["text"]), (&put["id"], &json!("The zebra likes grass.")));
    assert_eq!((&got["labels"], &got["trusted"]), (&json!(["animals"]), &json!(true)));
    let by = &got["written_by"];
    assert_eq!((&by["agent"], &by["actor"]), (&json!("writer"), &json!("writer")));
    assert_eq!(by["invocation"], call["invocation_id"], "who wrote it is the matter of the gate");
    assert_eq!(reader.call("get", json!({"id": put["id"]})).ok()["result"]["item"]["id"], put["id"]);
    assert_eq!(reader.call("get", json!({"key": "lion"})).ok()["result"]["item"], Value::Null);
    assert_eq!(reader.search("ZEBRA"), ["The zebra likes grass."]);
    let labelled = |label: &str| {
        super::texts(&reader.call("search", json!({"query": "zebra", "labels": [label]})).ok()["result"]["items"]).len()
    };
    assert_eq!((labelled("animals"), labelled("plants")), (1, 0));
    let replaced = reader.call("put", json!({"text": "The zebra sleeps.", "key": "zebra"})).ok()["result"].clone();
    assert_eq!(replaced["replaced"], json!(true));
    assert_eq!(reader.list(), ["The zebra sleeps."]);
    assert!(reader.search("grass").is_empty());
    let page = reader.call("list", json!({"limit": 1})).ok()["result"].clone();
    assert_eq!(page["next_cursor"], Value::Null);
    reader.put("another");
    let page = reader.call("list", json!({"limit": 1})).ok()["result"].clone();
    assert_eq!(super::texts(&page["items"]), ["another"]);
    let next = reader.call("list", json!({"limit": 1, "cursor": page["next_cursor"]})).ok()["result"].clone();
    assert_eq!(super::texts(&next["items"]), ["The zebra sleeps."]);
}

fn the_best_entry_comes_first_on_every_engine(world: &World) {
    let shelf = Shelf::memory(world, "notes", json!({}));
    let reader = shelf.agent("writer");
    let corpus = [
        "The cat sat on the mat.",
        "Cats and dogs: the cat, the cat.",
        "A zebra in the long grass.",
        "Order E-1042 was shipped to Café Zürich.",
        "日本語のテキスト",
        "cat",
    ];
    corpus.iter().for_each(|text| drop(reader.put(text)));
    let order = |query: &str| -> Vec<usize> {
        reader.search(query).iter().map(|text| corpus.iter().position(|known| known == text).unwrap()).collect()
    };
    assert_eq!(order("cat"), [5, 1, 0]);
    assert_eq!(order("zebra cat"), [2, 5, 1, 0], "the rare word decides");
    assert_eq!(order("1042"), [3]);
    assert_eq!(order("cafe zurich"), [3]);
    assert_eq!(order("日本"), [4]);
    assert!(order("\"unbalanced OR NOT (").is_empty());
    assert!(order("lion").is_empty());
}

fn an_agent_finds_nothing_of_another(world: &World) {
    let shelf = Shelf::memory(world, "notes", json!({}));
    let (one, other) = (shelf.agent("one"), shelf.agent("other"));
    let put = one.put("The password of the zebra is stripes.");
    assert!(other.search("zebra").is_empty());
    assert!(other.list().is_empty());
    assert_eq!(other.call("get", json!({"id": put["id"]})).ok()["result"]["item"], Value::Null);
    assert_eq!(other.call("forget", json!({"id": put["id"]})).ok()["result"]["forgotten"], 0);
    assert_eq!(other.call("forget", json!({"all": true})).ok()["result"]["forgotten"], 0);
    assert_eq!(one.list().len(), 1);
    let error = other.call("search", json!({"query": "zebra", "agent": "one"})).error();
    assert_eq!(error["code"], "PARAMETERS_INVALID", "no argument chooses whose entries are read");
}

fn a_session_finds_nothing_of_another_and_needs_a_name(world: &World) {
    let shelf = Shelf::memory(world, "scratch", json!({"scope": "session"}));
    let reader = shelf.agent("writer");
    let in_run =
        |run: &str| Reader { shelf: &shelf, agent: reader.agent.clone(), more: json!({"context": {"run_id": run}}) };
    let (first, second) = (in_run("first"), in_run("second"));
    first.put("only here");
    assert_eq!((first.list().len(), second.list().len()), (1, 0));
    let error = reader.call("put", json!({"text": "nowhere"})).failed();
    assert_eq!(error["code"], "TOOL_NOT_EXECUTABLE");
    assert!(text(&error, "/message").contains("session"), "{error}");
}

fn a_shared_memory_is_shared(world: &World) {
    let shelf = Shelf::memory(world, "board", json!({"scope": "tenant"}));
    let (one, other) = (shelf.agent("one"), shelf.agent("other"));
    one.put("for everybody");
    assert_eq!(other.search("everybody"), ["for everybody"]);
}

fn an_agent_without_a_grant_does_not_know_the_memory(world: &World) {
    let shelf = Shelf::memory(world, "notes", json!({}));
    let stranger = world.agent("stranger", &["tools.invoke"]);
    let known = stranger.invokes(json!({"tool": "notes.search", "parameters": {"query": "x"}}));
    let unknown = stranger.invokes(json!({"tool": "nothing.search", "parameters": {"query": "x"}}));
    assert_eq!(known.status(), unknown.status());
    assert_eq!(known.error()["code"], unknown.error()["code"]);
    shelf.admin.get("/api/v1/memory/stores/notes").ok();
    stranger.get("/api/v1/memory/stores/notes").refused(404, "STORE_NOT_FOUND");
    stranger.get("/api/v1/memory/stores/nothing").refused(404, "STORE_NOT_FOUND");
}

fn a_scope_that_was_not_granted_is_refused(world: &World) {
    let shelf = Shelf::memory(world, "notes", json!({}));
    let reader = shelf.reader("reader", &["memory.read"]);
    assert!(reader.list().is_empty());
    for (tool, parameters) in [("put", json!({"text": "x"})), ("forget", json!({"all": true}))] {
        assert!(reader.call(tool, parameters).status() >= 400, "{tool}");
    }
}

fn limits_are_told_and_kept(world: &World) {
    let shelf = Shelf::memory(world, "notes", json!({"max_items": 2, "max_characters": 10}));
    let reader = shelf.agent("writer");
    reader.call("put", json!({"text": "x".repeat(11)})).refused(400, "PARAMETERS_INVALID");
    reader.put("one");
    reader.put("two");
    let error = reader.call("put", json!({"text": "three"})).failed();
    assert_eq!(error["code"], "STORE_FULL");
    assert!(text(&error, "/message").contains("2 entries"), "{error}");
    reader.call("forget", json!({"all": true})).ok();
    reader.put("three");
    let slow = Shelf::memory(world, "slow", json!({"writes_per_minute": 1}));
    slow.admin.grants(&slow.credential, "writer", json!({"scopes": ["memory.write"]}));
    let write = || reader.agent.invokes(json!({"tool": "slow.put", "parameters": {"text": "x"}}));
    write().ok();
    write().refused(429, "TOOL_RATE_LIMITED");
    for (member, value) in [("max_items", 0), ("retention_days", 4000), ("writes_per_minute", 0)] {
        let body = json!({"name": "wrong", "scope": "agent", member: value});
        let error = shelf.admin.post("/api/v1/memory/stores", &body).refused(400, "INVALID_FIELD");
        assert_eq!(error["path"], member);
    }
    let again = json!({"name": "notes", "scope": "agent"});
    shelf.admin.post("/api/v1/memory/stores", &again).refused(409, "ALREADY_EXISTS");
}

fn a_store_is_not_changed_by_definitions(world: &World) {
    let shelf = Shelf::memory(world, "notes", json!({}));
    let definition =
        json!({"service": "notes", "version": "2", "tools": {"x": {"http": {"method": "GET", "path": "/"}}}});
    shelf.admin.post("/api/v1/services", &definition).refused(409, "SERVICE_IS_STORE");
    shelf.admin.delete("/api/v1/services/notes").refused(409, "SERVICE_IS_STORE");
    let forged =
        json!({"service": "forged", "version": "1", "source": "host-extension", "tools": {"put": {"store": "put"}}});
    shelf.admin.post("/api/v1/services", &forged).refused(400, "INVALID_FIELD");
    shelf.admin.delete("/api/v1/memory/stores/notes").ok();
    shelf.admin.get("/api/v1/memory/stores/notes").refused(404, "STORE_NOT_FOUND");
    // The name is free again, and nothing of before is in it.
    let again = Shelf::memory(world, "notes", json!({}));
    assert!(again.agent("late").list().is_empty());
}

fn the_tools_are_listed_and_called_over_mcp(world: &World) {
    let shelf = Shelf::memory(world, "notes", json!({}));
    let reader = shelf.agent("writer");
    let listed = reader.agent.mcp("tools/list", json!({})).rpc();
    let tools: Vec<&str> = listed["tools"].as_array().unwrap().iter().map(|tool| text(tool, "/name")).collect();
    let put = tools.iter().find(|name| name.contains("notes") && name.ends_with("put"));
    let put = put.unwrap_or_else(|| panic!("{tools:?}"));
    let called = reader.agent.mcp("tools/call", json!({"name": put, "arguments": {"text": "over MCP"}})).rpc();
    assert_ne!(called["isError"], true, "{called}");
    assert_eq!(reader.search("mcp"), ["over MCP"]);
}
