//! Mounted MCP servers: what people decide about them is the management of an entity, what is quarantined a finding that
//! needs a review.

use serde_json::{Map, json};
use toolgate_model::event::{
    Event, EventPayload, MountAdded, MountRemoved, MountServerAccepted, MountServerQuarantined, MountToolAccepted,
    MountToolQuarantined, MountToolRejected, MountToolRestored,
};

use super::class::{Activity, Class, Outcome, Severity};
use super::{Mapped, object, value};

const CREATE: Activity = Activity::new(1, "Create");
const UPDATE: Activity = Activity::new(3, "Update");
const DELETE: Activity = Activity::new(4, "Delete");
const SUSPEND: Activity = Activity::new(12, "Suspend");
const RESUME: Activity = Activity::new(13, "Resume");

/// The line of an event about a mount; `None` for any other event.
pub fn map(event: &Event) -> Option<Mapped> {
    let tool = |mount: &dyn ToString, tool: &dyn ToString| format!("{}.{}", mount.to_string(), tool.to_string());
    Some(match &event.payload {
        EventPayload::MountAdded(MountAdded { address, mount, tools, trusted }) => entity(CREATE, "mount", mount)
            .with([("address", value(address)), ("tools", value(tools)), ("trusted", value(trusted))]),
        EventPayload::MountRemoved(MountRemoved { mount }) => entity(DELETE, "mount", mount),
        EventPayload::MountServerAccepted(MountServerAccepted { hash, mount, overridden, previous_hash }) => {
            entity(UPDATE, "mount", mount).overriding(overridden).with([
                ("hash", value(hash)),
                ("overridden", value(overridden)),
                ("previous_hash", value(previous_hash)),
            ])
        }
        EventPayload::MountServerQuarantined(MountServerQuarantined { hash, mount, pinned_hash, replaced }) => {
            entity(SUSPEND, "mount", mount).of(if *replaced { Severity::High } else { Severity::Medium }).with([
                ("hash", value(hash)),
                ("pinned_hash", value(pinned_hash)),
                ("replaced", value(replaced)),
            ])
        }
        EventPayload::MountToolAccepted(MountToolAccepted {
            change,
            hash,
            mount,
            overridden,
            previous_hash,
            tool: name,
            upstream,
        }) => entity(UPDATE, "tool", &tool(mount, name)).overriding(overridden).with([
            ("change", value(change)),
            ("hash", value(hash)),
            ("overridden", value(overridden)),
            ("previous_hash", value(previous_hash)),
            ("upstream", value(upstream)),
        ]),
        EventPayload::MountToolQuarantined(MountToolQuarantined {
            change,
            hash,
            mount,
            pinned_hash,
            tool: name,
            upstream,
        }) => entity(SUSPEND, "tool", &tool(mount, name)).of(Severity::Medium).with([
            ("change", value(change)),
            ("hash", value(hash)),
            ("pinned_hash", value(pinned_hash)),
            ("upstream", value(upstream)),
        ]),
        EventPayload::MountToolRejected(MountToolRejected { hash, mount, tool: name, upstream }) => {
            entity(DELETE, "tool", &tool(mount, name)).with([("hash", value(hash)), ("upstream", value(upstream))])
        }
        EventPayload::MountToolRestored(MountToolRestored { hash, mount, tool: name, upstream }) => {
            entity(RESUME, "tool", &tool(mount, name)).with([("hash", value(hash)), ("upstream", value(upstream))])
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

impl Mapped {
    fn of(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    /// A person accepted something that the lint blocks.
    fn overriding(self, codes: &[String]) -> Self {
        if codes.is_empty() { self } else { self.of(Severity::High) }
    }
}
