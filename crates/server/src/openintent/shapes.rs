//! How lists look in responses that are not typed yet.

use serde_json::{Value, json};
use toolgate_gate::ports::ledger::Page;

/// A page of things under their name.
pub fn page<T>(name: &str, page: Page<T>, shape: impl FnMut(T) -> Value) -> Value {
    let items: Vec<Value> = page.items.into_iter().map(shape).collect();
    json!({name: items, "next_cursor": page.next})
}
