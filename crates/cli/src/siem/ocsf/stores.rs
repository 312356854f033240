//! Stores of texts: what is created and removed is the management of an entity.

use serde_json::{Map, json};
use toolgate_model::event::{
    Event, EventPayload, KnowledgeIngested, KnowledgeRemoved, MemoryForgotten, StoreCreated, StoreRemoved,
};

use super::class::{Activity, Class, Outcome, Severity};
use super::{Mapped, object, value};

const CREATE: Activity = Activity::new(1, "Create");
const DELETE: Activity = Activity::new(4, "Delete");

/// The line of an event about a store; `None` for any other event.
pub fn map(event: &Event) -> Option<Mapped> {
    Some(match &event.payload {
        EventPayload::StoreCreated(StoreCreated { kind, store, terms }) => {
            entity(CREATE, "store", store).with([("kind", value(kind)), ("terms", value(terms))])
        }
        EventPayload::StoreRemoved(StoreRemoved { kind, store }) => {
            entity(DELETE, "store", store).with([("kind", value(kind))])
        }
        EventPayload::MemoryForgotten(MemoryForgotten { count, items, reason, store }) => {
            entity(DELETE, "memory", store).with([
                ("count", value(count)),
                ("items", value(items)),
                ("reason", value(reason)),
            ])
        }
        EventPayload::KnowledgeIngested(KnowledgeIngested { bytes, chunks, document, removed, replaced, store }) => {
            let severity = if removed.is_suspicious() { Severity::Low } else { Severity::Informational };
            let mapped = Mapped { severity, ..entity(CREATE, "document", document) };
            mapped.with([
                ("bytes", value(bytes)),
                ("chunks", value(chunks)),
                ("removed", value(removed)),
                ("replaced", value(replaced)),
                ("store", value(store)),
            ])
        }
        EventPayload::KnowledgeRemoved(KnowledgeRemoved { document, store }) => {
            entity(DELETE, "document", document).with([("store", value(store))])
        }
        _ => return None,
    })
}

fn entity(activity: Activity, kind: &str, uid: &impl ToString) -> Mapped {
    Mapped {
        class: Class::EntityManagement,
        activity,
        outcome: Outcome::Success,
        severity: Severity::Informational,
        attributes: object([("entity", json!({"type": kind, "uid": uid.to_string()}))]),
        unmapped: Map::new(),
    }
}
