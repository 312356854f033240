//! A tenant to test in.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use toolgate_gate::ports::clock::Clock;
use toolgate_gate::ports::entropy::random;
use toolgate_gate::ports::ledger::*;
use toolgate_gate::ports::sealer::{MasterKeyId, SealedMaterial};
use toolgate_gate::refusal::Refusal;
use toolgate_model::checkpoint::SigningKey;
use toolgate_model::constraint::Constraints;
use toolgate_model::context::GrantContext;
use toolgate_model::credential::{AuthType, Credential, ServiceName, Vault};
use toolgate_model::grant::{Authority, DelegationDepth, DelegationRequest, Grant, GrantStatus, Lineage};
use toolgate_model::id::{CredentialId, GrantId, KeyId, VaultId};
use toolgate_model::key::digest_of;
use toolgate_model::permission::PermissionSet;
use toolgate_model::principal::{KeyRecord, Principal, PrincipalId, PrincipalKind, Tenant, TenantId};
use toolgate_model::scope::{Scope, ScopeSet};
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use super::LedgerFixture;
use crate::clock::TestClock;
use crate::trail::whole_trail;

/// The scopes of the credentials of a test tenant.
pub const SCOPES: [&str; 3] = ["charges.create", "charges.read", "refunds.create"];

/// The default lifetime of the grants of a test tenant: a month.
const LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);

/// A tenant with its administrator, the default actor of everything.
#[derive(Clone)]
pub struct TestTenant {
    pub id: TenantId,
    pub administrator: PrincipalId,
    /// The ledger that it is in.
    pub ledger: Arc<dyn Ledger>,
    /// The time in its audit contexts.
    pub clock: TestClock,
    signer: Arc<SigningKey>,
}

impl TestTenant {
    pub(super) async fn create(fixture: &LedgerFixture) -> Self {
        let name = u64::from_be_bytes(random().expect("random bytes"));
        let id = TenantId::parse(&format!("tenant-{name:016x}")).expect("a tenant's id");
        let tenant = Self::existing(fixture, id);
        let command = tenant.creation();
        tenant.ledger.create_tenant(command).await.expect("a tenant");
        tenant
    }

    /// A tenant that this ledger has already, after the ledger was closed and opened again.
    pub fn existing(fixture: &LedgerFixture, id: TenantId) -> Self {
        Self {
            id,
            administrator: PrincipalId::administrator(),
            ledger: Arc::clone(&fixture.ledger),
            clock: fixture.clock.clone(),
            signer: Arc::clone(&fixture.signer),
        }
    }

    /// The same tenant as another replica sees it.
    pub fn through(&self, ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger, ..self.clone() }
    }

    pub fn creation(&self) -> CreateTenant {
        let administrator = Principal {
            kind: PrincipalKind::User,
            permissions: PermissionSet::of_a_tenant_administrator(),
            ..self.new_principal(&self.administrator)
        };
        let key = self.new_key(&self.administrator, &format!("first key of {}", self.id));
        let tenant = Tenant::new(self.id.clone(), None, self.now());
        CreateTenant { audit: self.audit(), tenant, administrator, key }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// So much later than now.
    pub fn later(&self, seconds: u64) -> Timestamp {
        self.now().plus(Duration::from_secs(seconds))
    }

    pub fn wait(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// The administrator, now, as the command wants it.
    pub fn audit<S: FromAuditContext>(&self) -> S {
        self.audit_of(&self.administrator)
    }

    /// This principal, now, as the command wants it.
    pub fn audit_of<S: FromAuditContext>(&self, actor: &PrincipalId) -> S {
        S::from_audit(AuditContext { tenant: self.id.clone(), actor: actor.clone(), time: self.now() })
    }

    /// The right of a principal, as it is now, by this key.
    pub async fn mandate(&self, actor: &PrincipalId, key: KeyId) -> Mandate {
        let found = self.ledger.principal(&self.id, actor).await.expect("a readable ledger");
        Mandate::of_key(key, Arc::new(found.expect("a principal of this tenant")), self.now())
    }

    /// An agent that is not stored.
    pub fn new_principal(&self, id: &PrincipalId) -> Principal {
        let permissions = PermissionSet::of_an_agent();
        Principal::new(self.id.clone(), id.clone(), PrincipalKind::Agent, permissions, self.now())
    }

    /// The command that registers a principal without unknown tools in its allowlist.
    pub fn registration(&self, principal: Principal) -> CreatePrincipal {
        CreatePrincipal { audit: self.audit(), principal, unresolved: Vec::new() }
    }

    pub async fn agent(&self, name: &str) -> PrincipalId {
        let id = principal(name);
        let command = self.registration(self.new_principal(&id));
        self.ledger.create_principal(command).await.expect("an agent");
        id
    }

    pub async fn remove(&self, id: &PrincipalId) -> Result<Removed, Refusal> {
        self.ledger.remove_principal(RemovePrincipal { audit: self.audit(), id: id.clone() }).await
    }

    /// A key that is not stored, with the digest of this text.
    pub fn new_key(&self, owner: &PrincipalId, text: &str) -> NewKey {
        NewKey {
            id: KeyId::new(self.now(), random().expect("random bytes")),
            principal: owner.clone(),
            digest: digest_of(text),
            identity: None,
            hint: "tgk_Test".to_owned(),
            label: Some(line("laptop")),
            expires_at: None,
        }
    }

    /// A key of a principal, with the digest of this text.
    pub async fn key(&self, owner: &PrincipalId, text: &str) -> KeyRecord {
        let command = CreateKey { audit: self.audit(), key: self.new_key(owner, text) };
        self.ledger.create_key(command).await.expect("a key")
    }

    /// A vault of the administrator.
    pub async fn vault(&self) -> Vault {
        let vault = Vault {
            id: VaultId::new(self.now(), random().expect("random bytes")),
            tenant: self.id.clone(),
            owner: self.administrator.clone(),
            name: line("acme-production"),
            created_at: self.now(),
        };
        self.ledger.create_vault(CreateVault { audit: self.audit(), vault: vault.clone() }).await.expect("a vault");
        vault
    }

    /// A credential that is not stored.
    pub fn new_credential(&self, vault: VaultId) -> Credential {
        let metadata = Map::from_iter([("environment".to_owned(), Value::from("production"))]);
        Credential {
            id: CredentialId::new(self.now(), random().expect("random bytes")),
            tenant: self.id.clone(),
            vault,
            service: ServiceName::parse("stripe").expect("a service"),
            label: line("stripe-production"),
            auth_type: AuthType::ApiKey,
            scopes_available: scopes(&SCOPES),
            metadata,
            version: 1,
            material_fields: vec!["api_key".to_owned()],
            created_at: self.now(),
            rotated_at: self.now(),
            expires_at: None,
            revoked_at: None,
        }
    }

    /// Stores a credential with material under the master key `first`.
    pub async fn store_credential(&self, credential: Credential) -> Credential {
        let sealed = Some(sealed_under("first"));
        let command = CreateCredential { audit: self.audit(), credential: credential.clone(), sealed };
        self.ledger.create_credential(command).await.expect("a credential");
        credential
    }

    /// A credential in its own vault.
    pub async fn credential(&self) -> Credential {
        let vault = self.vault().await;
        self.store_credential(self.new_credential(vault.id)).await
    }

    /// A rotation of the given version, with material under the master key `first`; the replaced version is kept for a
    /// minute.
    pub fn rotation(&self, credential: &Credential) -> RotateCredential {
        RotateCredential {
            audit: self.audit(),
            id: credential.id,
            expected_version: credential.version,
            sealed: sealed_under("first"),
            material_fields: credential.material_fields.clone(),
            metadata: None,
            end: NewExpiry::Later,
            retire_until: self.later(60),
        }
    }

    pub async fn revoke_credential(&self, id: CredentialId) -> Result<Revoked, Refusal> {
        let command = RevokeCredential { audit: self.audit(), id, reason: "leaked".to_owned() };
        self.ledger.revoke_credential(command).await
    }

    pub async fn delete_vault(&self, id: VaultId) -> Result<Deleted, Refusal> {
        self.ledger.delete_vault(DeleteVault { audit: self.audit(), id }).await
    }

    /// A direct grant of everything that the credential can do, freely delegatable, that is not stored.
    pub fn new_grant(&self, credential: &Credential, agent: &PrincipalId) -> Grant {
        Grant {
            id: self.grant_id(),
            tenant: self.id.clone(),
            credential: credential.id,
            service: credential.service.clone(),
            agent: agent.clone(),
            granted_by: self.administrator.clone(),
            source: None,
            level: 0,
            authority: Authority {
                scopes: credential.scopes_available.clone(),
                constraints: Constraints::default(),
                context: GrantContext::default(),
                delegatable: true,
                delegation_depth: DelegationDepth::Unlimited,
                expires_at: Some(self.now().plus(LIFETIME)),
            },
            created_at: self.now(),
            suspended: None,
            revoked_at: None,
        }
    }

    /// Stores a direct grant.
    pub async fn store_grant(&self, grant: Grant) -> Result<Grant, Refusal> {
        self.ledger.create_grant(CreateGrant { audit: self.audit(), grant }).await
    }

    /// A direct grant on its own credential, for an agent that is not registered.
    pub async fn grant(&self, agent: &str) -> Grant {
        let credential = self.credential().await;
        self.store_grant(self.new_grant(&credential, &principal(agent))).await.expect("a grant")
    }

    pub fn grant_id(&self) -> GrantId {
        GrantId::new(self.now(), random().expect("random bytes"))
    }

    /// The delegation of everything that the source states.
    pub fn delegation(&self, source: &Grant, target: &str) -> DelegateGrant {
        DelegateGrant {
            audit: self.audit_of(&source.agent),
            id: self.grant_id(),
            source: source.id,
            target: principal(target),
            granted_by: source.agent.clone(),
            request: request(source.authority.scopes.clone()),
        }
    }

    /// Delegates everything that the source states.
    pub async fn delegate(&self, source: &Grant, target: &str) -> Result<Grant, Refusal> {
        self.ledger.delegate_grant(self.delegation(source, target)).await
    }

    pub async fn revoke(&self, id: GrantId) -> Result<Revoked, Refusal> {
        self.ledger.revoke_grant(RevokeGrant { audit: self.audit(), id, reason: "no longer needed".to_owned() }).await
    }

    pub async fn suspend(&self, id: GrantId) -> Result<Grant, Refusal> {
        let (audit, reason) = (self.audit(), "under review".to_owned());
        self.ledger.suspend_grant(SuspendGrant { audit, id, reason, overrides: true }).await
    }

    pub async fn resume(&self, id: GrantId) -> Result<Grant, Refusal> {
        self.ledger.resume_grant(ResumeGrant { audit: self.audit(), id, only_own: false }).await
    }

    /// A grant of this tenant with its lineage.
    pub async fn lineage(&self, id: GrantId) -> Lineage {
        self.ledger.lineage(&self.id, id).await.expect("a readable ledger").expect("a grant of this tenant")
    }

    /// The effective status of a grant, now.
    pub async fn standing(&self, id: GrantId) -> GrantStatus {
        self.lineage(id).await.standing(self.now()).status
    }

    /// Integrates pending events of all tenants.
    pub async fn integrate(&self) -> u64 {
        self.ledger.integrate(Arc::clone(&self.signer), self.now()).await.expect("integration")
    }

    /// All events of the tenant's log, oldest first, after integration. They are also validated: whatever a test writes
    /// must be presentable.
    pub async fn events(&self) -> Vec<Value> {
        self.integrate().await;
        let mut events = Vec::new();
        let mut page = PageRequest::first(PageRequest::LIMIT);
        loop {
            let read = self.ledger.events(&self.id, EventFilter::default(), page).await.expect("events");
            events
                .extend(read.items.iter().map(|event| serde_json::from_str::<Value>(&event.canonical).expect("JSON")));
            let Some(next) = read.next else {
                whole_trail(&events);
                return events;
            };
            page = PageRequest { after: Some(next), limit: PageRequest::LIMIT };
        }
    }

    /// The events of one type.
    pub async fn events_of(&self, kind: &str) -> Vec<Value> {
        self.events().await.into_iter().filter(|event| event["type"] == kind).collect()
    }
}

/// The audit context of a command. By default the authority is not checked.
pub trait FromAuditContext {
    fn from_audit(audit: AuditContext) -> Self;
}

impl FromAuditContext for AuditContext {
    fn from_audit(audit: AuditContext) -> Self {
        audit
    }
}

impl FromAuditContext for Mandate {
    fn from_audit(audit: AuditContext) -> Self {
        Self::own(audit)
    }
}

/// Stands for sealed material in the ledger's tests: the ledger never reads it.
pub fn sealed_under(key: &str) -> SealedMaterial {
    SealedMaterial {
        ciphertext: b"ciphertext".to_vec(),
        wrapped_key: format!("data key under {key}").into_bytes(),
        key: MasterKeyId(key.to_owned()),
    }
}

pub fn principal(name: &str) -> PrincipalId {
    PrincipalId::parse(name).expect("a principal's id")
}

/// Scopes by their names.
pub fn scopes(names: &[&str]) -> ScopeSet {
    names.iter().map(|name| Scope::parse(name).expect("a scope")).collect()
}

/// The delegation of these scopes and otherwise all that the source leaves.
pub fn request(scopes: ScopeSet) -> DelegationRequest {
    DelegationRequest {
        scopes,
        constraints: Constraints::default(),
        context: GrantContext::default(),
        delegatable: None,
        delegation_depth: None,
        expires_at: None,
    }
}

fn line(text: &str) -> Line {
    Line::parse(text).expect("a line")
}
