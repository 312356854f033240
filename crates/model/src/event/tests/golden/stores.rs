//! Events of stores.

use serde_json::json;

use super::*;
use crate::document::RemovedParts;

pub(super) fn stores() -> Vec<EventPayload> {
    let store = ServiceName::parse("notes").unwrap();
    let removed = RemovedParts { comments: 1, hidden_characters: 2, hidden_elements: 3, scripts: 4, styles: 5 };
    vec![
        EventPayload::StoreCreated(StoreCreated {
            kind: "memory".to_owned(),
            store: store.clone(),
            terms: json!({"kind": "memory", "max_items": 10, "scope": "agent"}),
        }),
        EventPayload::StoreRemoved(StoreRemoved { kind: "memory".to_owned(), store: store.clone() }),
        EventPayload::MemoryForgotten(MemoryForgotten {
            count: 1,
            items: vec!["ab".repeat(32)],
            reason: "expired".to_owned(),
            store: store.clone(),
        }),
        EventPayload::KnowledgeIngested(KnowledgeIngested {
            bytes: 1000,
            chunks: 2,
            document: "refunds".to_owned(),
            removed,
            replaced: true,
            store: store.clone(),
        }),
        EventPayload::KnowledgeRemoved(KnowledgeRemoved { document: "refunds".to_owned(), store }),
    ]
}
