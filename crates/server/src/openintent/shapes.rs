//! How the nouns look in answers, in one place: the RFC's field names, the SDK's where they differ, and what we add.

use serde_json::{Map, Value, json};
use toolgate_gate::ports::ledger::Page;
use toolgate_model::credential::{Credential, Vault};
use toolgate_model::grant::{Grant, GrantStatus, Lineage};
use toolgate_model::id::CredentialId;
use toolgate_model::principal::{KeyRecord, Principal};
use toolgate_model::time::Timestamp;

/// A page of things under their name.
pub fn page<T>(name: &str, page: Page<T>, shape: impl FnMut(T) -> Value) -> Value {
    let items: Vec<Value> = page.items.into_iter().map(shape).collect();
    json!({name: items, "next_cursor": page.next})
}

/// A principal.
pub fn principal(principal: &Principal) -> Value {
    json!({
        "id": principal.id,
        "tenant_id": principal.tenant,
        "kind": principal.kind,
        "name": principal.name,
        "scopes": principal.scopes,
        "permissions": principal.permissions,
        "rate_limits": principal.rate_limits,
        "labels": principal.labels,
        "detach_calls": principal.detaches,
        "tool_allowlist": principal.tool_allowlist,
        "revision": principal.revision,
        "created_at": principal.created_at,
    })
}

/// A key, without the key.
pub fn key(record: &KeyRecord) -> Map<String, Value> {
    let shape = json!({
        "id": record.id,
        "agent_id": record.principal,
        "label": record.label,
        "hint": record.hint,
        "created_at": record.created_at,
        "expires_at": record.expires_at,
        "revoked_at": record.revoked_at,
        "last_used_at": record.last_used_at,
    });
    object(shape)
}

/// A vault.
pub fn vault(vault: &Vault, credentials: &[CredentialId]) -> Value {
    json!({
        "id": vault.id,
        "owner_id": vault.owner,
        "name": vault.name,
        "created_at": vault.created_at,
        "credentials": credentials,
    })
}

/// A credential, without its material.
pub fn credential(credential: &Credential, now: Timestamp) -> Value {
    json!({
        "id": credential.id,
        "vault_id": credential.vault,
        "service": credential.service,
        "label": credential.label,
        "auth_type": credential.auth_type,
        "scopes_available": credential.scopes_available,
        "metadata": credential.metadata,
        "credential_metadata": credential.metadata,
        "status": credential.status(now),
        "version": credential.version,
        "material_fields": credential.material_fields,
        "created_at": credential.created_at,
        "rotated_at": credential.rotated_at,
        "expires_at": credential.expires_at,
        "revoked_at": credential.revoked_at,
    })
}

/// A grant with what it can do in effect.
pub fn grant(lineage: &Lineage, now: Timestamp) -> Map<String, Value> {
    let standing = lineage.standing(now);
    let effective = lineage.effective();
    let mut shape = bare_grant(lineage.grant(), now);
    shape.insert("effective_status".to_owned(), json!(standing.status));
    if standing.status != GrantStatus::Active {
        shape.insert("effective_status_decided_by".to_owned(), json!(standing.decided_by));
    }
    let in_effect = json!({
        "scopes": effective.scopes,
        "constraints": effective.constraints.to_json(),
        "context": effective.context,
        "delegatable": effective.delegatable,
        "delegation_depth": effective.delegation_depth.to_option(),
        "expires_at": effective.expires_at,
    });
    shape.insert("effective".to_owned(), in_effect);
    let above = lineage.ancestors().iter().map(|grant| {
        json!({"grant_id": grant.id, "agent_id": grant.agent, "granted_by": grant.granted_by, "status": grant.status(now)})
    });
    shape.insert("lineage".to_owned(), above.collect());
    shape
}

/// A grant as it was stated.
pub fn bare_grant(grant: &Grant, now: Timestamp) -> Map<String, Value> {
    let authority = &grant.authority;
    let shape = json!({
        "id": grant.id,
        "credential_id": grant.credential,
        "service": grant.service,
        "agent_id": grant.agent,
        "granted_by": grant.granted_by,
        "scopes": authority.scopes,
        "constraints": authority.constraints.to_json(),
        "source": if grant.source.is_some() { "delegated" } else { "direct" },
        "source_grant_id": grant.source,
        "delegated_from": grant.source,
        "delegatable": authority.delegatable,
        "delegation_depth": authority.delegation_depth.to_option(),
        "context": authority.context,
        "status": grant.status(now),
        "expires_at": authority.expires_at,
        "created_at": grant.created_at,
        "suspended_at": grant.suspended.as_ref().map(|suspension| suspension.at),
        "revoked_at": grant.revoked_at,
    });
    object(shape)
}

fn object(shape: Value) -> Map<String, Value> {
    match shape {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
