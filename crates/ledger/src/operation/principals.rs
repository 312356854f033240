//! Principals and their keys.

use std::collections::BTreeMap;

use toolgate_gate::ports::ledger::{CreateKey, CreatePrincipal, NewKey, Page, PageRequest, RemovePrincipal, RevokeKey};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::event::Happening;
use toolgate_model::id::KeyId;
use toolgate_model::key::KeyDigest;
use toolgate_model::principal::{KeyRecord, Principal, PrincipalId, PrincipalKind, TenantId};
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use super::Operation;
use super::cascade::{Cascade, revoke_below};
use super::listing::Conditions;
use super::record::{Entry, record};
use crate::sql::{Failure, Row, SqlError, Value, json_text};
use crate::transaction::{Transaction, values};

const COLUMNS: &str = "tenant, id, kind, name, scopes, permissions, created_at, removed_at";
const KEY_COLUMNS: &str = "id, principal, label, hint, created_at, expires_at, revoked_at, last_used_at";

fn read(row: &Row) -> Result<Principal, SqlError> {
    Ok(Principal {
        tenant: row.parsed(0, TenantId::parse)?,
        id: row.parsed(1, PrincipalId::parse)?,
        kind: row.parsed(2, |text| PrincipalKind::parse(text).ok_or(()))?,
        name: row.optional_parsed(3, Line::parse)?,
        scopes: row.json(4)?,
        permissions: row.json(5)?,
        created_at: row.time(6)?,
        removed_at: row.optional_time(7)?,
    })
}

fn read_key(row: &Row) -> Result<KeyRecord, SqlError> {
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

/// Keeps the receiver of a grant from being removed until the transaction ends; refuses one that was. A receiver that is
/// not registered yet is no mistake: the grant waits for it, and ids are never given out twice.
pub async fn share_grantee<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    id: &PrincipalId,
) -> Result<(), Failure> {
    match locked(transaction, tenant, id, T::FOR_SHARE).await? {
        Some(Principal { removed_at: Some(_), .. }) => Err(not_found(id).into()),
        _ => Ok(()),
    }
}

/// Stores a principal, and the event.
pub async fn insert<T: Transaction>(transaction: &mut T, principal: &Principal) -> Result<(), Failure> {
    let sql = "INSERT INTO principals (tenant, id, kind, name, scopes, permissions, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let parameters = values![
        &principal.tenant,
        &principal.id,
        principal.kind.as_str(),
        principal.name.as_ref(),
        json_text(&principal.scopes)?,
        json_text(&principal.permissions)?,
        principal.created_at,
    ];
    match transaction.execute(sql, parameters).await {
        Err(SqlError::Taken(_)) => {
            let reason = format!("`{}` is taken; ids of removed agents are not given out again", principal.id);
            Err(Refusal::new(Code::AlreadyExists, reason).into())
        }
        other => other.map(drop).map_err(Failure::from),
    }
}

/// Stores a key.
pub async fn insert_key<T: Transaction>(
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

/// The event for a new principal.
pub fn created(principal: &Principal) -> Entry {
    let happening = Happening::AgentCreated {
        principal: principal.id.clone(),
        kind: principal.kind,
        permissions: principal.permissions.clone(),
    };
    Entry::about(happening, &principal.id)
}

/// The event for a new key.
pub fn key_created(key: &NewKey) -> Entry {
    let happening = Happening::KeyCreated { key: key.id, principal: key.principal.clone(), expires_at: key.expires_at };
    Entry::about(happening, &key.principal)
}

async fn locked<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    id: &PrincipalId,
    lock: &str,
) -> Result<Option<Principal>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM principals WHERE tenant = $1 AND id = $2{lock}");
    let row = transaction.query_optional(&sql, values![tenant, id]).await?;
    Ok(row.as_ref().map(read).transpose()?)
}

fn not_found(id: &PrincipalId) -> Refusal {
    Refusal::new(Code::AgentNotFound, format!("there is no agent `{id}`")).with("agent_id", id)
}

impl Operation for CreatePrincipal {
    type Output = ();

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(), Failure> {
        insert(transaction, &self.principal).await?;
        record(transaction, &self.stamp, created(&self.principal)).await
    }
}

impl Operation for RemovePrincipal {
    /// How many keys and grants.
    type Output = (u64, u64);

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(u64, u64), Failure> {
        let tenant = &self.stamp.tenant;
        let principal = locked(transaction, tenant, &self.id, T::FOR_UPDATE).await?;
        if principal.is_none_or(|principal| principal.removed_at.is_some()) {
            return Err(not_found(&self.id).into());
        }
        let now = self.stamp.time;
        let mark = "UPDATE principals SET removed_at = $1 WHERE tenant = $2 AND id = $3";
        transaction.execute(mark, values![now, tenant, &self.id]).await?;
        let end_keys = "UPDATE keys SET revoked_at = $1 WHERE tenant = $2 AND principal = $3 AND revoked_at IS NULL";
        let keys = transaction.execute(end_keys, values![now, tenant, &self.id]).await?;
        // Whoever changes grants shares their credential: holding these keeps new delegations out.
        let hold = format!(
            "SELECT id FROM credentials WHERE id IN (SELECT credential FROM grants WHERE tenant = $1 AND agent = $2) \
             ORDER BY id{}",
            T::FOR_UPDATE
        );
        transaction.query(&hold, values![tenant, &self.id]).await?;
        let reason = format!("agent `{}` was removed", self.id);
        let grants = revoke_below(transaction, &self.stamp, Cascade::Agent(&self.id), &reason).await?;
        let happening =
            Happening::AgentRemoved { principal: self.id.clone(), revoked_keys: keys, revoked_grants: grants };
        record(transaction, &self.stamp, Entry::about(happening, &self.id)).await?;
        Ok((keys, grants))
    }
}

impl Operation for CreateKey {
    type Output = KeyRecord;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<KeyRecord, Failure> {
        let principal = locked(transaction, &self.stamp.tenant, &self.key.principal, T::FOR_SHARE).await?;
        if principal.is_none_or(|principal| principal.removed_at.is_some()) {
            return Err(not_found(&self.key.principal).into());
        }
        insert_key(transaction, &self.stamp.tenant, &self.key, self.stamp.time).await?;
        record(transaction, &self.stamp, key_created(&self.key)).await?;
        Ok(KeyRecord {
            id: self.key.id,
            principal: self.key.principal.clone(),
            label: self.key.label.clone(),
            hint: self.key.hint.clone(),
            created_at: self.stamp.time,
            expires_at: self.key.expires_at,
            revoked_at: None,
            last_used_at: None,
        })
    }
}

impl Operation for RevokeKey {
    type Output = KeyRecord;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<KeyRecord, Failure> {
        let sql = format!("SELECT {KEY_COLUMNS} FROM keys WHERE tenant = $1 AND id = $2{}", T::FOR_UPDATE);
        let row = transaction.query_optional(&sql, values![&self.stamp.tenant, self.id]).await?;
        let missing = || Refusal::new(Code::KeyNotFound, format!("there is no key {}", self.id));
        let mut key = read_key(&row.ok_or_else(missing)?)?;
        if key.revoked_at.is_none() {
            let end = "UPDATE keys SET revoked_at = $1 WHERE id = $2";
            transaction.execute(end, values![self.stamp.time, self.id]).await?;
            key.revoked_at = Some(self.stamp.time);
            let happening = Happening::KeyRevoked { key: key.id, principal: key.principal.clone() };
            record(transaction, &self.stamp, Entry::about(happening, &key.principal)).await?;
        }
        Ok(key)
    }
}

/// Reads one principal.
pub struct ReadPrincipal {
    /// Whose.
    pub tenant: TenantId,
    /// Which.
    pub id: PrincipalId,
}

impl Operation for ReadPrincipal {
    type Output = Option<Principal>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<Principal>, Failure> {
        locked(transaction, &self.tenant, &self.id, "").await
    }
}

/// Lists principals that are not removed.
pub struct ListPrincipals {
    /// Whose.
    pub tenant: TenantId,
    /// Which page.
    pub page: PageRequest,
}

impl Operation for ListPrincipals {
    type Output = Page<Principal>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Page<Principal>, Failure> {
        let mut conditions = Conditions::default();
        conditions.and("tenant =", &self.tenant);
        conditions.and_that("removed_at IS NULL");
        conditions.and_if("id >", self.page.after.as_deref());
        let from = (COLUMNS, "principals", "id");
        conditions.page(transaction, from, &self.page, read, |principal| principal.id.to_string()).await
    }
}

/// Reads keys: of a principal, or one.
pub struct ReadKeys {
    /// Whose.
    pub tenant: TenantId,
    /// Of one principal only.
    pub principal: Option<PrincipalId>,
    /// One only.
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
        let sql = format!("SELECT {KEY_COLUMNS} FROM keys WHERE {condition} ORDER BY id DESC LIMIT 1000");
        let rows = transaction.query(&sql, &parameters).await?;
        Ok(rows.iter().map(read_key).collect::<Result<Vec<_>, _>>()?)
    }
}

/// Finds a key by its digest.
pub struct Identify {
    /// The digest.
    pub digest: KeyDigest,
}

impl Operation for Identify {
    type Output = Option<(Principal, KeyRecord)>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        let sql = format!("SELECT {KEY_COLUMNS}, tenant FROM keys WHERE digest = $1");
        let Some(row) = transaction.query_optional(&sql, values![self.digest.as_slice()]).await? else {
            return Ok(None);
        };
        let key = read_key(&row)?;
        let tenant = row.parsed(8, TenantId::parse)?;
        let principal = locked(transaction, &tenant, &key.principal, "").await?;
        Ok(principal.map(|principal| (principal, key)))
    }
}

/// Notes when keys were last accepted.
pub struct NoteKeyUse {
    /// Which, when.
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
