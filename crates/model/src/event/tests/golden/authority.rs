//! Events of principals, keys, credentials and grants.

use super::*;
use crate::certificate::{CertificateName, SpiffeId};
use crate::credential::{AuthType, ServiceName};
use crate::grant::DelegationDepth;
use crate::id::{CredentialId, KeyId, VaultId};
use crate::permission::{Permission, PermissionSet};
use crate::principal::PrincipalKind;
use crate::principal_scope::HeldScopes;
use crate::service::ServiceVersion;

pub(super) fn authority() -> Vec<EventPayload> {
    let (vault, credential) = (VaultId::new(at(0), [1; 10]), CredentialId::new(at(0), [1; 10]));
    let key = KeyId::new(at(0), [1; 10]);
    let service = ServiceName::parse("stripe").unwrap();
    let version = ServiceVersion::parse("2024-01").unwrap();
    let permissions: PermissionSet = [Permission::InvokeTools, Permission::ActAs].into_iter().collect();
    let held = HeldScopes::from_stored(["mail:*".to_owned(), "a@b".to_owned()]);
    let spiffe = SpiffeId::parse("spiffe://example.org/billing").unwrap();
    let updated = |changed: &[&str], scopes, permissions| {
        EventPayload::AgentUpdated(AgentUpdated {
            agent_id: principal("billing"),
            budget: None,
            revision: 2,
            changed: changed.iter().map(|name| (*name).to_owned()).collect(),
            scopes,
            permissions,
        })
    };
    let delegated = |depth: DelegationDepth| {
        EventPayload::GrantDelegated(GrantDelegated {
            grant_id: grant(3),
            source_grant_id: grant(2),
            target_agent_id: principal("sub"),
            scopes: scopes(),
            delegation_depth: depth.to_option(),
        })
    };
    let created = |expires_at| {
        EventPayload::GrantCreated(GrantCreated {
            grant_id: grant(2),
            credential_id: credential,
            agent_id: principal("billing"),
            scopes: scopes(),
            expires_at,
        })
    };
    let key_created = |expires_at, certificate, token_subject| {
        let principal_id = principal("billing");
        EventPayload::KeyCreated(KeyCreated { certificate, expires_at, key_id: key, principal_id, token_subject })
    };
    let changed = |change, subject: Option<&str>, note: Option<&str>| {
        EventPayload::PoliciesChanged(PoliciesChanged {
            version: 3,
            change,
            subject: subject.map(str::to_owned),
            rules: 9,
            shadowed: 1,
            digest: "ef".repeat(32),
            note: note.map(str::to_owned),
        })
    };
    let gone = LedgerRollbackAccepted {
        tenant_id: Some(TenantId::parse("acme").unwrap()),
        known_size: Some(9),
        known_root: Some(Hash::from_bytes([7; 32])),
        ..LedgerRollbackAccepted::default()
    };
    let older =
        LedgerRollbackAccepted { found_size: Some(3), found_root: Some(Hash::from_bytes([8; 32])), ..gone.clone() };
    vec![
        EventPayload::AgentCreated(AgentCreated {
            agent_id: principal("billing"),
            kind: PrincipalKind::Agent,
            permissions,
        }),
        EventPayload::AgentRemoved(AgentRemoved { agent_id: principal("billing"), revoked_keys: 1, revoked_grants: 2 }),
        updated(&["name", "labels"], None, None),
        updated(&["scopes", "permissions"], Some(held), Some(PermissionSet::of_an_agent())),
        EventPayload::CredentialCreated(CredentialCreated {
            credential_id: credential,
            vault_id: vault,
            service: service.clone(),
            auth_type: AuthType::OAuth2ClientCredentials,
        }),
        EventPayload::CredentialExpired(CredentialExpired { credential_id: credential }),
        EventPayload::CredentialRevoked(CredentialRevoked {
            credential_id: credential,
            reason: "leaked".to_owned(),
            affected_grants_count: 4,
        }),
        EventPayload::CredentialRotated(CredentialRotated {
            credential_id: credential,
            rotated_by: PrincipalId::system(),
        }),
        created(None),
        created(Some(at(60_000))),
        delegated(DelegationDepth::Limited(1)),
        delegated(DelegationDepth::Unlimited),
        EventPayload::GrantExpired(GrantExpired { grant_id: grant(2) }),
        EventPayload::GrantResumed(GrantResumed { grant_id: grant(2) }),
        EventPayload::GrantRevoked(GrantRevoked { grant_id: grant(2), reason: "done".to_owned(), cascade_count: 1 }),
        EventPayload::GrantSuspended(GrantSuspended { grant_id: grant(2), reason: "holiday".to_owned() }),
        key_created(None, None, None),
        key_created(Some(at(60_000)), Some(CertificateName::SpiffeId(spiffe).to_string()), None),
        EventPayload::KeyRevoked(KeyRevoked { key_id: key, principal_id: principal("billing") }),
        changed(PolicyChangeKind::Applied, None, None),
        changed(PolicyChangeKind::Promoted, Some("no-sundays"), Some("as agreed")),
        changed(PolicyChangeKind::RolledBack, Some("2"), None),
        EventPayload::ServiceApplied(ServiceApplied {
            service: service.clone(),
            version: version.clone(),
            tools: 3,
            digest: "ab".repeat(32),
        }),
        EventPayload::ServiceRemoved(ServiceRemoved { service, version }),
        EventPayload::TenantCreated(TenantCreated { tenant_id: TenantId::parse("acme").unwrap() }),
        EventPayload::VaultCreated(VaultCreated { vault_id: vault, owner_id: principal("admin") }),
        EventPayload::VaultDeleted(VaultDeleted { vault_id: vault, revoked_credentials: 1, revoked_grants: 2 }),
        EventPayload::VaultRekeyed(VaultRekeyed { key_id: "k2".to_owned(), rewrapped: 7 }),
        EventPayload::LedgerRollbackAccepted(LedgerRollbackAccepted::default()),
        EventPayload::LedgerRollbackAccepted(older),
        EventPayload::LedgerRollbackAccepted(gone),
    ]
}
