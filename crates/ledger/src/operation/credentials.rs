//! Credentials: their rows, and the whole of their lifecycle.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value as Json};
use toolgate_gate::ports::ledger::{
    AuditContext, CreateCredential, Credentials, Freshness, Mandate, NewExpiry, Page, PageRequest, RevokeCredential,
    Revoked, RotateCredential, SealedVersion,
};
use toolgate_gate::ports::sealer::{MasterKeyId, SealBinding, SealedMaterial};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::credential::{AuthType, Credential, CredentialStatus, ServiceName};
use toolgate_model::event::{CredentialCreated, CredentialExpired, CredentialRevoked, CredentialRotated, EventPayload};
use toolgate_model::id::{CredentialId, VaultId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::scope::Scope;
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use super::administration::{Administration, Entitled};
use super::cascade::{Cascade, revoke_below};
use super::expiry::DestroyRetired;
use super::listing::Conditions;
use super::record::{Entry, record};
use super::{Operation, master_keys, tool_names, vaults};
use crate::ledger::{Engine, SqlLedger};
use crate::sql::{Failure, Row, SqlError, json_text};
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> Credentials for SqlLedger<E> {
    async fn create_credential(&self, command: CreateCredential) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn credential(&self, tenant: &TenantId, id: CredentialId) -> Result<Option<Credential>, Refusal> {
        self.engine.read(ReadCredential { tenant: tenant.clone(), id }).await
    }

    async fn credentials(
        &self,
        tenant: &TenantId,
        vault: Option<VaultId>,
        page: PageRequest,
    ) -> Result<Page<Credential>, Refusal> {
        self.engine.read(ListCredentials { tenant: tenant.clone(), vault, page }).await
    }

    async fn credentials_naming(&self, tenant: &TenantId, name: &str) -> Result<Vec<Credential>, Refusal> {
        self.engine.read(CredentialsNaming { tenant: tenant.clone(), name: name.to_owned() }).await
    }

    async fn rotate_credential(&self, command: RotateCredential) -> Result<Credential, Refusal> {
        if command.end != NewExpiry::Same || command.metadata.is_some() {
            return self.engine.write(command).await;
        }
        self.renewed.note(command.id, command.expected_version.saturating_add(1));
        self.engine.write(Renewal(command)).await
    }

    async fn revoke_credential(&self, command: RevokeCredential) -> Result<Revoked, Refusal> {
        let grants = self.engine.write(command).await?;
        Ok(Revoked { grants, revision: self.revision_after_change().await? })
    }

    async fn sealed_material(
        &self,
        tenant: &TenantId,
        id: CredentialId,
        now: Timestamp,
        freshness: Freshness,
    ) -> Result<Option<Arc<SealedVersion>>, Refusal> {
        let generation = self.engine.generation();
        let known = self.sealed.get(&id, generation, now, freshness);
        let known = known.filter(|known| !self.renewed.is_before(id, known.binding.version()));
        if let Some(known) = known.filter(|known| known.binding.tenant == *tenant) {
            return Ok(Some(known));
        }
        let read = self.engine.read(ReadSealed { tenant: tenant.clone(), id }).await?;
        let Some(found) = read.map(Arc::new) else { return Ok(None) };
        self.sealed.put(id, Arc::clone(&found), generation, now);
        Ok(Some(found))
    }

    async fn destroy_retired(&self, now: Timestamp) -> Result<u64, Refusal> {
        self.engine.write(DestroyRetired { now }).await
    }
}

/// The columns of a credential, in the order of [`read`].
pub const COLUMNS: &str = "id, tenant, vault, service, label, auth_type, scopes_available, metadata, version, \
     material_fields, created_at, rotated_at, expires_at, revoked_at";

/// Reads a row of [`COLUMNS`].
pub fn read(row: &Row) -> Result<Credential, SqlError> {
    Ok(Credential {
        id: row.parsed(0, CredentialId::parse)?,
        tenant: row.parsed(1, TenantId::parse)?,
        vault: row.parsed(2, VaultId::parse)?,
        service: row.parsed(3, ServiceName::parse)?,
        label: row.parsed(4, Line::parse)?,
        auth_type: row.parsed(5, |text| AuthType::parse(text).ok_or(()))?,
        scopes_available: row.json(6)?,
        metadata: row.json::<Map<String, Json>>(7)?,
        version: row.count(8)?,
        material_fields: row.json(9)?,
        created_at: row.time(10)?,
        rotated_at: row.time(11)?,
        expires_at: row.optional_time(12)?,
        revoked_at: row.optional_time(13)?,
    })
}

/// Reads a credential and locks it against changes until the transaction ends.
pub async fn share<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    id: CredentialId,
) -> Result<Credential, Failure> {
    locked(transaction, tenant, id, T::FOR_SHARE).await
}

async fn locked<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    id: CredentialId,
    lock: &str,
) -> Result<Credential, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM credentials WHERE id = $1 AND tenant = $2{lock}");
    let row = transaction.query_optional(&sql, values![id, tenant]).await?;
    Ok(read(&row.ok_or_else(|| not_found(id))?)?)
}

pub fn not_found(id: CredentialId) -> Refusal {
    Refusal::new(Code::CredentialNotFound, format!("there is no credential {id}")).with("credential_id", id)
}

/// Refuses a credential that cannot be used.
pub fn require_active(credential: &Credential, now: Timestamp) -> Result<(), Refusal> {
    let (code, advice) = match credential.status(now) {
        CredentialStatus::Active => return Ok(()),
        CredentialStatus::Expired => (Code::CredentialExpired, "has expired; rotate it with fresh material"),
        CredentialStatus::Revoked => (Code::CredentialRevoked, "is revoked; create another one"),
    };
    let reason = format!("credential {} {advice}", credential.id);
    Err(Refusal::new(code, reason).with("credential_id", credential.id))
}

/// Revokes a credential whose row the transaction holds: marks it, destroys its material, revokes its grants.
pub async fn revoke_held<T: Transaction>(
    transaction: &mut T,
    audit: &AuditContext,
    id: CredentialId,
    reason: &str,
) -> Result<u64, Failure> {
    let sql = "UPDATE credentials SET revoked_at = $1 WHERE id = $2";
    transaction.execute(sql, values![audit.time, id]).await?;
    let destroy = "UPDATE credential_versions SET ciphertext = NULL, wrapped_key = NULL, master_key = NULL, \
         destroyed_at = $1 WHERE credential = $2 AND destroyed_at IS NULL";
    transaction.execute(destroy, values![audit.time, id]).await?;
    let grant_reason = format!("credential {id} was revoked");
    let grants = revoke_below(transaction, audit, Cascade::Credential(id), &grant_reason).await?;
    let payload = EventPayload::CredentialRevoked(CredentialRevoked {
        credential_id: id,
        reason: reason.to_owned(),
        affected_grants_count: grants,
    });
    record(transaction, audit, Entry::new(payload)).await?;
    Ok(grants)
}

impl Administration for CreateCredential {
    type Output = ();

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(), Failure> {
        let credential = &self.credential;
        vaults::share(transaction, &credential.tenant, credential.vault).await?;
        // Each scope may be a tool by the credential alone.
        let tools = credential.scopes_available.iter().map(Scope::as_str);
        tool_names::require_unique(transaction, &credential.tenant, &credential.service, tools).await?;
        let parameters = values![
            credential.id,
            &credential.tenant,
            credential.vault,
            &credential.service,
            &credential.label,
            credential.auth_type.as_str(),
            json_text(&credential.scopes_available)?,
            json_text(&credential.metadata)?,
            credential.version,
            json_text(&credential.material_fields)?,
            credential.created_at,
            credential.rotated_at,
            credential.expires_at,
        ];
        let sql = "INSERT INTO credentials (id, tenant, vault, service, label, auth_type, scopes_available, metadata, \
             version, material_fields, created_at, rotated_at, expires_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
        transaction.execute(sql, parameters).await?;
        if let Some(sealed) = &self.sealed {
            insert_version(transaction, credential, sealed, by.time).await?;
        }
        let payload = EventPayload::CredentialCreated(CredentialCreated {
            credential_id: credential.id,
            vault_id: credential.vault,
            service: credential.service.clone(),
            auth_type: credential.auth_type,
        });
        record(transaction, by, Entry::new(payload)).await
    }
}

impl Administration for RotateCredential {
    type Output = Credential;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<Credential, Failure> {
        let mut credential = locked(transaction, &by.tenant, self.id, T::FOR_UPDATE).await?;
        let now = by.time;
        let status = credential.status(now);
        if status == CredentialStatus::Revoked {
            require_active(&credential, now)?;
        }
        if credential.version != self.expected_version {
            let reason = "the credential was rotated concurrently; read it and try again";
            return Err(Refusal::new(Code::VersionConflict, reason).into());
        }
        if status == CredentialStatus::Expired {
            announce_expiry(transaction, by, self.id).await?;
        }
        credential.version += 1;
        credential.rotated_at = now;
        credential.material_fields.clone_from(&self.material_fields);
        if let Some(metadata) = &self.metadata {
            credential.metadata.clone_from(metadata);
        }
        credential.expires_at = match self.end {
            NewExpiry::At(end) => end,
            NewExpiry::Later if status == CredentialStatus::Expired => None,
            NewExpiry::Later | NewExpiry::Same => credential.expires_at,
        };
        let retire = "UPDATE credential_versions SET retire_until = $1 WHERE credential = $2 AND retire_until IS NULL";
        transaction.execute(retire, values![self.retire_until, self.id]).await?;
        // An end that stays past was announced, above or before.
        let announced =
            if credential.status(now) == CredentialStatus::Expired { "expiry_announced_at" } else { "NULL" };
        let update = format!(
            "UPDATE credentials SET version = $1, rotated_at = $2, material_fields = $3, metadata = $4, \
             expires_at = $5, expiry_announced_at = {announced} WHERE id = $6"
        );
        let parameters = values![
            credential.version,
            credential.rotated_at,
            json_text(&credential.material_fields)?,
            json_text(&credential.metadata)?,
            credential.expires_at,
            credential.id,
        ];
        transaction.execute(&update, parameters).await?;
        insert_version(transaction, &credential, &self.sealed, now).await?;
        let payload = EventPayload::CredentialRotated(CredentialRotated {
            credential_id: credential.id,
            rotated_by: by.actor.clone(),
        });
        record(transaction, by, Entry::new(payload)).await?;
        Ok(credential)
    }
}

/// A credential that renews its own material, for an admitted call. Its users are not affected.
pub struct Renewal(pub RotateCredential);

impl Administration for Renewal {
    type Output = Credential;

    const CHANGES_AUTHORITY: bool = false;

    fn mandate(&self) -> &Mandate {
        &self.0.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<Credential, Failure> {
        self.0.perform(transaction, by).await
    }
}

/// Records the expiry that a rotation is about to remove, unless it is already recorded.
async fn announce_expiry<T: Transaction>(
    transaction: &mut T,
    audit: &AuditContext,
    id: CredentialId,
) -> Result<(), Failure> {
    let sql = "UPDATE credentials SET expiry_announced_at = $1 WHERE id = $2 AND expiry_announced_at IS NULL";
    if transaction.execute(sql, values![audit.time, id]).await? == 0 {
        return Ok(());
    }
    let by_the_clock = AuditContext { actor: PrincipalId::system(), ..audit.clone() };
    record(
        transaction,
        &by_the_clock,
        Entry::new(EventPayload::CredentialExpired(CredentialExpired { credential_id: id })),
    )
    .await
}

impl Administration for RevokeCredential {
    /// The number of grants.
    type Output = u64;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<u64, Failure> {
        let credential = locked(transaction, &by.tenant, self.id, T::FOR_UPDATE).await?;
        match credential.revoked_at {
            Some(_) => Ok(0),
            None => revoke_held(transaction, by, self.id, &self.reason).await,
        }
    }
}

pub struct ReadCredential {
    pub tenant: TenantId,
    pub id: CredentialId,
}

impl Operation for ReadCredential {
    type Output = Option<Credential>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<Credential>, Failure> {
        let sql = format!("SELECT {COLUMNS} FROM credentials WHERE id = $1 AND tenant = $2");
        let row = transaction.query_optional(&sql, values![self.id, &self.tenant]).await?;
        Ok(row.as_ref().map(read).transpose()?)
    }
}

pub struct ListCredentials {
    pub tenant: TenantId,
    /// Of one vault only.
    pub vault: Option<VaultId>,
    pub page: PageRequest,
}

impl Operation for ListCredentials {
    type Output = Page<Credential>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Page<Credential>, Failure> {
        let mut conditions = Conditions::default();
        conditions.and("tenant =", &self.tenant);
        conditions.and_if("vault =", self.vault);
        conditions.and_if("id >", self.page.after.as_deref());
        let from = (COLUMNS, "credentials", "id");
        conditions.page(transaction, from, &self.page, read, |credential| credential.id.to_string()).await
    }
}

/// Finds the credentials of a name: its service, or a tool that may be defined by the credential alone.
pub struct CredentialsNaming {
    pub tenant: TenantId,
    /// The name, in small letters.
    pub name: String,
}

impl Operation for CredentialsNaming {
    type Output = Vec<Credential>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Vec<Credential>, Failure> {
        // Tool names are quoted in the stored JSON; the gate examines the matches.
        let sql = format!(
            "SELECT {COLUMNS} FROM credentials WHERE tenant = $1 AND (lower(service) = $2 \
             OR substr($2, 1, length(service) + 1) = lower(service) || '.' \
             OR replace(lower(scopes_available), $3, '') <> lower(scopes_available) \
             OR replace(lower(metadata), $3, '') <> lower(metadata)) ORDER BY id"
        );
        let parameters = values![&self.tenant, self.name.as_str(), json_text(&self.name)?];
        let rows = transaction.query(&sql, parameters).await?;
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }
}

/// Reads the sealed material of the current version.
pub struct ReadSealed {
    pub tenant: TenantId,
    pub id: CredentialId,
}

impl Operation for ReadSealed {
    type Output = Option<SealedVersion>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<SealedVersion>, Failure> {
        let sql = format!(
            "SELECT {VERSION_COLUMNS} FROM credential_versions AS v JOIN credentials AS c ON c.id = v.credential \
             AND c.version = v.version WHERE c.id = $1 AND c.tenant = $2 AND v.destroyed_at IS NULL"
        );
        let row = transaction.query_optional(&sql, values![self.id, &self.tenant]).await?;
        Ok(row.as_ref().map(read_version).transpose()?)
    }
}

/// The columns of a sealed version, in the order of [`read_version`].
pub const VERSION_COLUMNS: &str = "v.credential, v.version, v.tenant, v.ciphertext, v.wrapped_key, v.master_key";

/// Reads a row of [`VERSION_COLUMNS`].
pub fn read_version(row: &Row) -> Result<SealedVersion, SqlError> {
    Ok(SealedVersion {
        binding: SealBinding::of_credential(
            &row.parsed(2, TenantId::parse)?,
            row.parsed(0, CredentialId::parse)?,
            row.count(1)?,
        ),
        sealed: SealedMaterial {
            ciphertext: row.blob(3)?.to_vec(),
            wrapped_key: row.blob(4)?.to_vec(),
            key: MasterKeyId(row.text(5)?.to_owned()),
        },
    })
}

async fn insert_version<T: Transaction>(
    transaction: &mut T,
    credential: &Credential,
    sealed: &SealedMaterial,
    now: Timestamp,
) -> Result<(), Failure> {
    master_keys::share_usable(transaction, &sealed.key).await?;
    let sql = "INSERT INTO credential_versions (credential, version, tenant, ciphertext, wrapped_key, master_key, \
         created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let parameters = values![
        credential.id,
        credential.version,
        &credential.tenant,
        sealed.ciphertext.as_slice(),
        sealed.wrapped_key.as_slice(),
        sealed.key.0.as_str(),
        now,
    ];
    transaction.execute(sql, parameters).await?;
    Ok(())
}
