//! The keys of principals.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{CreateKey, Freshness, Generation, Keys, Mandate, NewKey, RevokeKey};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::certificate::released_digest;
use toolgate_model::event::{EventPayload, KeyCreated, KeyRevoked};
use toolgate_model::external_identity::ExternalIdentity;
use toolgate_model::id::KeyId;
use toolgate_model::key::KeyDigest;
use toolgate_model::principal::{KeyRecord, Principal, PrincipalId, TenantId};
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use super::Operation;
use super::administration::{Administration, Entitled};
use super::listing::Conditions;
use super::principals::{locked, not_found};
use super::record::{Entry, record};
use crate::ledger::{Engine, SqlLedger};
use crate::sql::{Failure, Row, SqlError, Value};
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> Keys for SqlLedger<E> {
    async fn create_key(&self, command: CreateKey) -> Result<KeyRecord, Refusal> {
        self.engine.write(command).await
    }

    async fn keys(&self, tenant: &TenantId, principal: &PrincipalId) -> Result<Vec<KeyRecord>, Refusal> {
        self.engine.read(ReadKeys { tenant: tenant.clone(), principal: Some(principal.clone()), id: None }).await
    }

    async fn key(&self, tenant: &TenantId, id: KeyId) -> Result<Option<KeyRecord>, Refusal> {
        let keys = self.engine.read(ReadKeys { tenant: tenant.clone(), principal: None, id: Some(id) }).await?;
        Ok(keys.into_iter().next())
    }

    async fn revoke_key(&self, command: RevokeKey) -> Result<KeyRecord, Refusal> {
        self.engine.write(command).await
    }

    fn generation(&self) -> Generation {
        self.engine.generation()
    }

    async fn identify(
        &self,
        digest: &KeyDigest,
        now: Timestamp,
        freshness: Freshness,
    ) -> Result<Option<Arc<(Arc<Principal>, KeyRecord)>>, Refusal> {
        self.heads.intact()?;
        let generation = self.engine.generation();
        if let Some(known) = self.callers.get(digest, generation, now, freshness) {
            return Ok(Some(known));
        }
        let Some((principal, key)) = self.engine.read(Identify { digest: *digest }).await? else { return Ok(None) };
        let found = Arc::new((Arc::new(principal), key));
        self.callers.put(*digest, Arc::clone(&found), generation, now);
        Ok(Some(found))
    }

    async fn note_key_use(&self, uses: BTreeMap<KeyId, Timestamp>) -> Result<(), Refusal> {
        self.engine.write(NoteKeyUse { uses }).await
    }
}

const COLUMNS: &str = "id, principal, label, hint, created_at, expires_at, revoked_at, last_used_at";

pub async fn insert<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    key: &NewKey,
    now: Timestamp,
) -> Result<(), Failure> {
    let sql = "INSERT INTO keys (id, tenant, principal, digest, hint, label, created_at, expires_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let parameters = values![
        key.id,
        tenant,
        &key.principal,
        key.digest.as_slice(),
        key.hint.as_str(),
        key.label.as_ref(),
        now,
        key.expires_at,
    ];
    transaction.execute(sql, parameters).await?;
    Ok(())
}

/// The event for a new key.
pub fn created(key: &NewKey) -> Entry {
    let identity = key.identity.as_ref();
    let payload = EventPayload::KeyCreated(KeyCreated {
        key_id: key.id,
        principal_id: key.principal.clone(),
        expires_at: key.expires_at,
        certificate: identity.and_then(ExternalIdentity::certificate).map(ToString::to_string),
        token_subject: identity.and_then(ExternalIdentity::token_subject).cloned(),
    });
    Entry::about(payload, &key.principal)
}

impl Administration for CreateKey {
    type Output = KeyRecord;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<KeyRecord, Failure> {
        let principal = locked(transaction, &by.tenant, &self.key.principal, T::FOR_SHARE).await?;
        let principal = principal.filter(|principal| principal.removed_at.is_none());
        let principal = principal.ok_or_else(|| not_found(&self.key.principal))?;
        // The key gives all permissions of its principal.
        by.require_within_own(&principal)?;
        if let Some(identity) = &self.key.identity {
            release(transaction, identity, by.time).await?;
        }
        insert(transaction, &by.tenant, &self.key, by.time).await?;
        record(transaction, by, created(&self.key)).await?;
        Ok(KeyRecord {
            id: self.key.id,
            principal: self.key.principal.clone(),
            label: self.key.label.clone(),
            hint: self.key.hint.clone(),
            created_at: by.time,
            expires_at: self.key.expires_at,
            revoked_at: None,
            last_used_at: None,
        })
    }
}

impl Administration for RevokeKey {
    type Output = KeyRecord;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<KeyRecord, Failure> {
        let sql = format!("SELECT {COLUMNS} FROM keys WHERE tenant = $1 AND id = $2{}", T::FOR_UPDATE);
        let row = transaction.query_optional(&sql, values![&by.tenant, self.id]).await?;
        let missing = || Refusal::new(Code::KeyNotFound, format!("there is no key {}", self.id));
        let mut key = read(&row.ok_or_else(missing)?)?;
        if key.revoked_at.is_none() {
            let end = "UPDATE keys SET revoked_at = $1 WHERE id = $2";
            transaction.execute(end, values![by.time, self.id]).await?;
            key.revoked_at = Some(by.time);
            let payload = EventPayload::KeyRevoked(KeyRevoked { key_id: key.id, principal_id: key.principal.clone() });
            record(transaction, by, Entry::about(payload, &key.principal)).await?;
        }
        Ok(key)
    }
}

/// Makes room for a certificate or subject that was registered before. An ended key keeps its row, but releases the digest, which
/// must be unique; a live one keeps both.
async fn release<T: Transaction>(
    transaction: &mut T,
    identity: &ExternalIdentity,
    now: Timestamp,
) -> Result<(), Failure> {
    let digest = identity.digest();
    let sql = format!("SELECT {COLUMNS} FROM keys WHERE digest = $1{}", T::FOR_UPDATE);
    let Some(row) = transaction.query_optional(&sql, values![digest.as_slice()]).await? else { return Ok(()) };
    let key = read(&row)?;
    if key.revoked_at.is_none() && key.expires_at.is_none_or(|end| end > now) {
        let reason =
            format!("the {} {identity} is registered for `{}`, as key {}", identity.noun(), key.principal, key.id);
        return Err(Refusal::new(Code::AlreadyExists, reason).into());
    }
    let sql = "UPDATE keys SET digest = $1 WHERE id = $2";
    transaction.execute(sql, values![released_digest(key.id).as_slice(), key.id]).await?;
    Ok(())
}

/// Reads keys: of a principal, or one.
pub struct ReadKeys {
    pub tenant: TenantId,
    /// Of one principal only.
    pub principal: Option<PrincipalId>,
    /// `None` for all.
    pub id: Option<KeyId>,
}

impl Operation for ReadKeys {
    type Output = Vec<KeyRecord>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Vec<KeyRecord>, Failure> {
        let mut conditions = Conditions::default();
        conditions.and("tenant =", &self.tenant);
        conditions.and_if("principal =", self.principal.as_ref());
        conditions.and_if("id =", self.id);
        let (condition, parameters) = conditions.finish();
        let sql = format!("SELECT {COLUMNS} FROM keys WHERE {condition} ORDER BY id DESC LIMIT 1000");
        let rows = transaction.query(&sql, &parameters).await?;
        Ok(rows.iter().map(read).collect::<Result<Vec<_>, _>>()?)
    }
}

/// Finds a key by its digest.
pub struct Identify {
    pub digest: KeyDigest,
}

impl Operation for Identify {
    type Output = Option<(Principal, KeyRecord)>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        let sql = format!("SELECT {COLUMNS}, tenant FROM keys WHERE digest = $1");
        let Some(row) = transaction.query_optional(&sql, values![self.digest.as_slice()]).await? else {
            return Ok(None);
        };
        let key = read(&row)?;
        let tenant = row.parsed(8, TenantId::parse)?;
        let principal = locked(transaction, &tenant, &key.principal, "").await?;
        Ok(principal.map(|principal| (principal, key)))
    }
}

/// Notes when keys were last accepted.
pub struct NoteKeyUse {
    pub uses: BTreeMap<KeyId, Timestamp>,
}

impl Operation for NoteKeyUse {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(), Failure> {
        let rows: Vec<_> = self.uses.iter().map(|(key, time)| vec![Value::from(*time), Value::from(*key)]).collect();
        let sql = "UPDATE keys SET last_used_at = $1 WHERE id = $2 AND COALESCE(last_used_at, 0) < $1";
        transaction.execute_many(sql, &rows).await?;
        Ok(())
    }
}

fn read(row: &Row) -> Result<KeyRecord, SqlError> {
    Ok(KeyRecord {
        id: row.parsed(0, KeyId::parse)?,
        principal: row.parsed(1, PrincipalId::parse)?,
        label: row.optional_parsed(2, Line::parse)?,
        hint: row.text(3)?.to_owned(),
        created_at: row.time(4)?,
        expires_at: row.optional_time(5)?,
        revoked_at: row.optional_time(6)?,
        last_used_at: row.optional_time(7)?,
    })
}
