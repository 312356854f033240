//! Changes of authority as identity and access management: principals are accounts, a grant gives privileges to its agent, and
//! other objects are entities.

use serde_json::{Map, Value, json};
use toolgate_model::event::{
    AgentCreated, AgentRemoved, AgentUpdated, BudgetReached, CallsStopped, CredentialCreated, CredentialExpired,
    CredentialRevoked, CredentialRotated, Event, EventPayload, GrantCreated, GrantDelegated, GrantExpired,
    GrantResumed, GrantRevoked, GrantSuspended, KeyCreated, KeyRevoked, LedgerRollbackAccepted, PoliciesChanged,
    ServiceApplied, ServiceRemoved, TenantCreated, TenantUpdated, VaultCreated, VaultDeleted, VaultRekeyed,
    WorkflowApplied,
};
use toolgate_model::id::GrantId;
use toolgate_model::principal::{PrincipalId, PrincipalKind};

use super::class::{Activity, Class, Outcome, Severity};
use super::{Mapped, object, present, value};

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

/// `None` for other events. Payloads are destructured completely, so that a new field must be handled here.
pub fn map(event: &Event) -> Option<Mapped> {
    Some(match &event.payload {
        EventPayload::AgentCreated(AgentCreated { agent_id, kind, permissions }) => {
            account(CREATE, agent_id, Some(*kind)).with([("permissions", value(permissions))])
        }
        EventPayload::AgentRemoved(AgentRemoved { agent_id, revoked_grants, revoked_keys }) => {
            account(ACCOUNT_DELETE, agent_id, None)
                .with([("revoked_grants", value(revoked_grants)), ("revoked_keys", value(revoked_keys))])
        }
        EventPayload::AgentUpdated(AgentUpdated { agent_id, budget, changed, permissions, revision, scopes }) => {
            account(ACCOUNT_UPDATE, agent_id, None).with([
                ("budget", value(budget)),
                ("changed", value(changed)),
                ("permissions", value(permissions)),
                ("revision", value(revision)),
                ("scopes", value(scopes)),
            ])
        }
        EventPayload::AgentStopped(stopped) => stop(SUSPEND, event, stopped),
        EventPayload::AgentResumed(resumed) => stop(RESUME, event, resumed),
        EventPayload::TenantStopped(stopped) => stop(SUSPEND, event, stopped),
        EventPayload::TenantResumed(resumed) => stop(RESUME, event, resumed),
        EventPayload::GateStopped(stopped) => stop(SUSPEND, event, stopped),
        EventPayload::GateResumed(resumed) => stop(RESUME, event, resumed),
        EventPayload::BudgetWarned(reached) | EventPayload::BudgetExhausted(reached) => budget(event, reached),
        EventPayload::TenantUpdated(TenantUpdated { budget, tenant_id }) => {
            entity(UPDATE, "tenant", tenant_id).with([("budget", value(budget))])
        }
        EventPayload::CredentialCreated(CredentialCreated { auth_type, credential_id, service, vault_id }) => {
            entity(CREATE, "credential", credential_id).with([
                ("auth_type", value(auth_type)),
                ("service", value(service)),
                ("vault_id", value(vault_id)),
            ])
        }
        EventPayload::CredentialExpired(CredentialExpired { credential_id }) => {
            entity(DEACTIVATE, "credential", credential_id)
        }
        EventPayload::CredentialRevoked(CredentialRevoked { affected_grants_count, credential_id, reason }) => {
            entity(DELETE, "credential", credential_id)
                .because(reason)
                .with([("affected_grants_count", value(affected_grants_count))])
        }
        EventPayload::CredentialRotated(CredentialRotated { credential_id, rotated_by }) => {
            entity(UPDATE, "credential", credential_id).with([("rotated_by", value(rotated_by))])
        }
        EventPayload::GrantCreated(GrantCreated { agent_id, credential_id, expires_at, grant_id, scopes }) => {
            privileges(ASSIGN, *grant_id, Some(agent_id), Some(value(scopes)))
                .with([("credential_id", value(credential_id)), ("expires_at", value(expires_at))])
        }
        EventPayload::GrantDelegated(GrantDelegated {
            delegation_depth,
            grant_id,
            scopes,
            source_grant_id,
            target_agent_id,
        }) => privileges(ASSIGN, *grant_id, Some(target_agent_id), Some(value(scopes)))
            .with([("delegation_depth", value(delegation_depth)), ("source_grant_id", value(source_grant_id))]),
        EventPayload::GrantExpired(GrantExpired { grant_id }) => {
            privileges(REVOKE, *grant_id, event.agent.as_ref(), None)
        }
        EventPayload::GrantResumed(GrantResumed { grant_id }) => entity(RESUME, "grant", grant_id),
        EventPayload::GrantRevoked(GrantRevoked { cascade_count, grant_id, reason }) => {
            privileges(REVOKE, *grant_id, event.agent.as_ref(), None)
                .with([("cascade_count", value(cascade_count)), ("reason", value(reason))])
        }
        EventPayload::GrantSuspended(GrantSuspended { grant_id, reason }) => {
            entity(SUSPEND, "grant", grant_id).because(reason)
        }
        EventPayload::KeyCreated(KeyCreated { certificate, expires_at, key_id, principal_id, token_subject }) => {
            entity(CREATE, "key", key_id).with([
                ("certificate", value(certificate)),
                ("expires_at", value(expires_at)),
                ("principal_id", value(principal_id)),
                ("token_subject", value(token_subject)),
            ])
        }
        EventPayload::KeyRevoked(KeyRevoked { key_id, principal_id }) => {
            entity(DELETE, "key", key_id).with([("principal_id", value(principal_id))])
        }
        EventPayload::LedgerRollbackAccepted(rollback) => ledger(event, rollback),
        EventPayload::PoliciesChanged(changed) => policies(event, changed),
        EventPayload::ServiceApplied(ServiceApplied { digest, service, tools, version }) => {
            versioned(UPDATE, service.as_str(), version.as_str())
                .with([("digest", value(digest)), ("tools", value(tools))])
        }
        EventPayload::ServiceRemoved(ServiceRemoved { service, version }) => {
            versioned(DELETE, service.as_str(), version.as_str())
        }
        EventPayload::TenantCreated(TenantCreated { tenant_id }) => entity(CREATE, "tenant", tenant_id),
        EventPayload::VaultCreated(VaultCreated { owner_id, vault_id }) => {
            entity(CREATE, "vault", vault_id).with([("owner_id", value(owner_id))])
        }
        EventPayload::VaultDeleted(VaultDeleted { revoked_credentials, revoked_grants, vault_id }) => {
            entity(DELETE, "vault", vault_id)
                .with([("revoked_credentials", value(revoked_credentials)), ("revoked_grants", value(revoked_grants))])
        }
        EventPayload::VaultRekeyed(VaultRekeyed { key_id, rewrapped }) => {
            entity(UPDATE, "master key", key_id).with([("rewrapped", value(rewrapped))])
        }
        EventPayload::WorkflowApplied(WorkflowApplied { changes, digest, revision, version, widenings, workflow }) => {
            entity(UPDATE, "workflow", workflow).with([
                ("changes", value(changes)),
                ("digest", value(digest)),
                ("revision", value(revision)),
                ("version", value(version)),
                ("widenings", value(widenings)),
            ])
        }
        _ => return None,
    })
}

fn account(activity: Activity, agent: &PrincipalId, kind: Option<PrincipalKind>) -> Mapped {
    let mut user = object([("uid", value(agent))]);
    if let Some(kind) = kind {
        // OCSF has a type for users, and none for agents.
        let (id, name) = if kind == PrincipalKind::User { (1, "User") } else { (99, kind.as_str()) };
        user.extend(object([("type", json!(name)), ("type_id", json!(id))]));
    }
    mapped(Class::AccountChange, activity, object([("user", Value::Object(user))]))
}

/// An agent or a tenant whose calls were stopped or resumed.
fn stop(activity: Activity, event: &Event, stopped: &CallsStopped) -> Mapped {
    let CallsStopped { agent_id, reason } = stopped;
    let mapped = match agent_id {
        Some(agent) => entity(activity, "agent", agent),
        None => entity(activity, "tenant", &event.tenant),
    };
    mapped.with([("reason", value(reason))])
}

/// A budget that has come to its share or its end.
fn budget(event: &Event, reached: &BudgetReached) -> Mapped {
    let BudgetReached { account, account_id, calls, cost_usd, limit_calls, limit_cost_usd, period, period_start } =
        reached;
    let uid = account_id.clone().unwrap_or_else(|| event.tenant.to_string());
    entity(UPDATE, "budget", &uid).with([
        ("account", value(account)),
        ("calls", value(calls)),
        ("cost_usd", value(cost_usd)),
        ("limit_calls", value(limit_calls)),
        ("limit_cost_usd", value(limit_cost_usd)),
        ("period", value(period)),
        ("period_start", value(period_start)),
    ])
}

fn entity(activity: Activity, kind: &str, uid: &impl ToString) -> Mapped {
    let entity = json!({"type": kind, "uid": uid.to_string()});
    mapped(Class::EntityManagement, activity, object([("entity", entity)]))
}

fn versioned(activity: Activity, service: &str, version: &str) -> Mapped {
    let entity = json!({"type": "service", "uid": service, "version": version});
    mapped(Class::EntityManagement, activity, object([("entity", entity)]))
}

/// A policy set is identified by its tenant.
fn policies(event: &Event, changed: &PoliciesChanged) -> Mapped {
    let PoliciesChanged { change, digest, note, rules, shadowed, subject, version } = changed;
    let entity = json!({"type": "policy set", "uid": event.tenant, "version": version.to_string()});
    let mapped = mapped(Class::EntityManagement, UPDATE, object([("entity", entity)])).with([
        ("change", value(change)),
        ("digest", value(digest)),
        ("rules", value(rules)),
        ("shadowed", value(shadowed)),
        ("subject", value(subject)),
    ]);
    match note {
        Some(note) => mapped.because(note),
        None => mapped,
    }
}

/// A ledger is identified by its tenant; an older one makes revoked grants valid again.
fn ledger(event: &Event, rollback: &LedgerRollbackAccepted) -> Mapped {
    let LedgerRollbackAccepted { found_root, found_size, known_root, known_size, tenant_id } = rollback;
    let entity = json!({"type": "ledger", "uid": event.tenant});
    let mapped = mapped(Class::EntityManagement, UPDATE, object([("entity", entity)])).with([
        ("found_root", value(found_root)),
        ("found_size", value(found_size)),
        ("known_root", value(known_root)),
        ("known_size", value(known_size)),
        ("tenant_id", value(tenant_id)),
    ]);
    Mapped { severity: Severity::High, ..mapped }
}

/// The class requires privileges. The event of an ended grant does not contain them, so its id is used.
fn privileges(activity: Activity, grant: GrantId, agent: Option<&PrincipalId>, scopes: Option<Value>) -> Mapped {
    let attributes = object([
        ("privileges", scopes.unwrap_or_else(|| json!([grant]))),
        ("resource", json!({"type": "grant", "uid": grant})),
        ("user", json!({"uid": agent.map_or("unknown", PrincipalId::as_str), "type": "agent", "type_id": 99})),
    ]);
    mapped(Class::UserAccess, activity, attributes)
}

fn mapped(class: Class, activity: Activity, attributes: Map<String, Value>) -> Mapped {
    Mapped {
        class,
        activity,
        outcome: Outcome::Success,
        severity: Severity::Informational,
        attributes,
        unmapped: Map::new(),
    }
}

impl Mapped {
    /// Adds attributes that OCSF does not have.
    pub(super) fn with<const N: usize>(mut self, unmapped: [(&str, Value); N]) -> Self {
        self.unmapped.extend(present(unmapped));
        self
    }

    fn because(mut self, reason: &str) -> Self {
        self.attributes.insert("comment".to_owned(), json!(reason));
        self
    }
}
