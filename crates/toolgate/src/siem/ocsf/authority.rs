//! Changes of who may do what, in the classes of identity and access management: principals are accounts, a grant gives
//! privileges to its agent, and everything else that is managed is an entity.

use serde_json::{Map, Value, json};

use super::class::{Activity, Class, Outcome, Severity};
use super::{Mapped, StoredEvent, object};

const CREATE: Activity = Activity::new(1, "Create");
const UPDATE: Activity = Activity::new(3, "Update");
const DELETE: Activity = Activity::new(4, "Delete");
const DEACTIVATE: Activity = Activity::new(11, "Deactivate");
const SUSPEND: Activity = Activity::new(12, "Suspend");
const RESUME: Activity = Activity::new(13, "Resume");
const ACCOUNT_DELETE: Activity = Activity::new(6, "Delete");
const ACCOUNT_UPDATE: Activity = Activity::other("Update");
const ASSIGN: Activity = Activity::new(1, "Assign Privileges");
const REVOKE: Activity = Activity::new(2, "Revoke Privileges");

/// The line of an event about authority; `None` for any other event.
pub fn map(event: &StoredEvent) -> Option<Mapped> {
    let rest = Rest(event.data.clone());
    Some(match event.kind.as_str() {
        "agent.created" => rest.account(CREATE),
        "agent.removed" => rest.account(ACCOUNT_DELETE),
        "agent.updated" => rest.account(ACCOUNT_UPDATE),
        "credential.created" => rest.entity(CREATE, "credential", "credential_id"),
        "credential.expired" => rest.entity(DEACTIVATE, "credential", "credential_id"),
        "credential.revoked" => rest.entity(DELETE, "credential", "credential_id"),
        "credential.rotated" => rest.entity(UPDATE, "credential", "credential_id"),
        "grant.created" => rest.privileges(ASSIGN, "agent_id", event),
        "grant.delegated" => rest.privileges(ASSIGN, "target_agent_id", event),
        "grant.expired" | "grant.revoked" => rest.privileges(REVOKE, "agent_id", event),
        "grant.resumed" => rest.entity(RESUME, "grant", "grant_id"),
        "grant.suspended" => rest.entity(SUSPEND, "grant", "grant_id"),
        "key.created" => rest.entity(CREATE, "key", "key_id"),
        "key.revoked" => rest.entity(DELETE, "key", "key_id"),
        "ledger.rollback_accepted" => rest.ledger(event),
        "policies.changed" => rest.policies(event),
        "service.applied" => rest.entity(UPDATE, "service", "service"),
        "service.removed" => rest.entity(DELETE, "service", "service"),
        "tenant.created" => rest.entity(CREATE, "tenant", "tenant_id"),
        "vault.created" => rest.entity(CREATE, "vault", "vault_id"),
        "vault.deleted" => rest.entity(DELETE, "vault", "vault_id"),
        "vault.rekeyed" => rest.entity(UPDATE, "master key", "key_id"),
        _ => return None,
    })
}

/// The data that is not mapped yet; what is left in the end goes to `unmapped`.
struct Rest(Map<String, Value>);

impl Rest {
    fn account(mut self, activity: Activity) -> Mapped {
        let mut user = object([("uid", self.take("agent_id"))]);
        if let Value::String(kind) = self.take("kind") {
            // OCSF tells persons from the rest; it has no number for an agent.
            let (id, name) = if kind == "user" { (1, "User".to_owned()) } else { (99, kind) };
            user.extend(object([("type", json!(name)), ("type_id", json!(id))]));
        }
        self.done(Class::AccountChange, activity, object([("user", Value::Object(user))]))
    }

    fn entity(mut self, activity: Activity, kind: &str, uid: &str) -> Mapped {
        let mut entity = object([("type", json!(kind)), ("uid", self.take(uid))]);
        if let version @ Value::String(_) = self.take("version") {
            entity.insert("version".to_owned(), version);
        }
        let mut attributes = object([("entity", Value::Object(entity))]);
        if let reason @ Value::String(_) = self.take("reason") {
            attributes.insert("comment".to_owned(), reason);
        }
        self.done(Class::EntityManagement, activity, attributes)
    }

    /// The set of a tenant has no name of its own.
    fn policies(mut self, event: &StoredEvent) -> Mapped {
        let mut entity = object([("type", json!("policy set")), ("uid", json!(event.tenant))]);
        if let Value::Number(version) = self.take("version") {
            entity.insert("version".to_owned(), json!(version.to_string()));
        }
        let mut attributes = object([("entity", Value::Object(entity))]);
        if let note @ Value::String(_) = self.take("note") {
            attributes.insert("comment".to_owned(), note);
        }
        self.done(Class::EntityManagement, UPDATE, attributes)
    }

    /// The ledger has no name of its own; an older one brings back what was revoked.
    fn ledger(self, event: &StoredEvent) -> Mapped {
        let entity = object([("type", json!("ledger")), ("uid", json!(event.tenant))]);
        let mapped = self.done(Class::EntityManagement, UPDATE, object([("entity", Value::Object(entity))]));
        Mapped { severity: Severity::High, ..mapped }
    }

    /// The class demands the privileges. Where a grant ends, its event does not list them again: the grant, by its id,
    /// stands for all that it gave.
    fn privileges(mut self, activity: Activity, agent: &str, event: &StoredEvent) -> Mapped {
        let grant = self.take("grant_id");
        let privileges = match self.take("scopes") {
            scopes @ Value::Array(_) => scopes,
            _ => json!([grant]),
        };
        let agent = match self.take(agent) {
            agent @ Value::String(_) => agent,
            _ => json!(event.agent.as_deref().unwrap_or("unknown")),
        };
        let attributes = object([
            ("privileges", privileges),
            ("resource", json!({"type": "grant", "uid": grant})),
            ("user", json!({"uid": agent, "type": "agent", "type_id": 99})),
        ]);
        self.done(Class::UserAccess, activity, attributes)
    }

    fn take(&mut self, name: &str) -> Value {
        self.0.remove(name).unwrap_or_default()
    }

    fn done(mut self, class: Class, activity: Activity, attributes: Map<String, Value>) -> Mapped {
        self.0.retain(|_, value| !value.is_null());
        Mapped {
            class,
            activity,
            outcome: Outcome::Success,
            severity: Severity::Informational,
            attributes,
            unmapped: self.0,
        }
    }
}
