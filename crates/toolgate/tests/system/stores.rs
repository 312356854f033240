//! Memories and collections of documents, from the outside: what agents put in and get out, what they cannot reach, what is
//! forgotten for good, and guardians at every point.

use serde_json::{Value, json};

use crate::world::{Actor, Reply, World, merged};

mod collections;
mod forgetting;
mod guarded;
mod memories;
mod tainted;

/// A store with agents that may use all of it.
pub struct Shelf<'a> {
    pub world: &'a World,
    pub admin: Actor,
    pub store: String,
    pub credential: String,
}

impl<'a> Shelf<'a> {
    /// A memory.
    pub fn memory(world: &'a World, name: &str, terms: Value) -> Self {
        let admin = world.admin();
        let body = merged(json!({"name": name, "scope": "agent", "vault_id": admin.vault()}), terms);
        let store = admin.post("/api/v1/memory/stores", &body).created();
        let credential = store["credential_id"].as_str().unwrap().to_owned();
        Self { world, admin, store: name.to_owned(), credential }
    }

    /// A collection.
    pub fn collection(world: &'a World, name: &str, terms: Value) -> Self {
        let admin = world.admin();
        let body = merged(json!({"name": name, "vault_id": admin.vault()}), terms);
        let store = admin.post("/api/v1/knowledge", &body).created();
        let credential = store["credential_id"].as_str().unwrap().to_owned();
        Self { world, admin, store: name.to_owned(), credential }
    }

    /// An agent that may use it.
    pub fn reader(&self, name: &str, scopes: &[&str]) -> Reader<'_> {
        let agent = self.world.agent(name, &["tools.invoke"]);
        self.admin.grants(&self.credential, name, json!({"scopes": scopes}));
        Reader { shelf: self, agent, more: json!({}) }
    }

    pub fn agent(&self, name: &str) -> Reader<'_> {
        self.reader(name, &["memory.read", "memory.write", "memory.forget"])
    }

    /// Ingests a document.
    pub fn ingest(&self, document: &str, format: &str, text: &str) -> Value {
        let body = json!({"id": document, "format": format, "text": text});
        self.admin.post(&format!("/api/v1/knowledge/{}/documents", self.store), &body).ok()
    }
}

/// An agent with a grant.
pub struct Reader<'a> {
    pub shelf: &'a Shelf<'a>,
    pub agent: Actor,
    /// Further members of its calls.
    pub more: Value,
}

impl Reader<'_> {
    pub fn call(&self, tool: &str, parameters: Value) -> Reply {
        let body = json!({"tool": format!("{}.{tool}", self.shelf.store), "parameters": parameters});
        self.agent.invokes(merged(body, self.more.clone()))
    }

    pub fn put(&self, text: &str) -> Value {
        self.call("put", json!({"text": text})).ok()["result"].clone()
    }

    /// The texts that are found, best first.
    pub fn search(&self, query: &str) -> Vec<String> {
        texts(&self.call("search", json!({"query": query})).ok()["result"]["items"])
    }

    pub fn list(&self) -> Vec<String> {
        texts(&self.call("list", json!({})).ok()["result"]["items"])
    }

    /// The chunks that are found, best first.
    pub fn find(&self, query: &str) -> Vec<Value> {
        let result = self.call("search", json!({"query": query})).ok();
        result["result"]["results"].as_array().unwrap().clone()
    }
}

pub fn texts(items: &Value) -> Vec<String> {
    items.as_array().unwrap().iter().map(|item| item["text"].as_str().unwrap().to_owned()).collect()
}

impl Reply {
    /// The error of a call that was admitted and failed.
    #[track_caller]
    pub fn failed(&self) -> Value {
        let body = self.json();
        assert!(self.status() >= 400 && body["status"] == "error", "{}: {body}", self.asked);
        body["error"].clone()
    }
}
