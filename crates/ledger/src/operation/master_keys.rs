//! What each master key wraps, and its retirement without losing anything.

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{KeyUsage, MasterKeys, RecordRekey, Rewrap, SealedVersion};
use toolgate_gate::ports::sealer::{MasterKeyId, SealSubject};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::event::{EventPayload, VaultRekeyed};
use toolgate_model::time::Timestamp;

use super::credentials::{VERSION_COLUMNS, read_version};
use super::record::{Entry, record};
use super::stores::sealed;
use super::{Operation, detached};
use crate::ledger::{Engine, SqlLedger};
use crate::sql::Failure;
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> MasterKeys for SqlLedger<E> {
    async fn key_usage(&self) -> Result<Vec<KeyUsage>, Refusal> {
        self.engine.read(ReadKeyUsage).await
    }

    async fn register_key(&self, key: &MasterKeyId) -> Result<(), Refusal> {
        self.engine.write(RegisterKey { key: key.clone() }).await
    }

    async fn sealed_under_other_keys(
        &self,
        current: &MasterKeyId,
        after: Option<SealSubject>,
        limit: u32,
    ) -> Result<Vec<SealedVersion>, Refusal> {
        self.engine.read(ListUnderOtherKeys { current: current.clone(), after, limit }).await
    }

    async fn rewrap(&self, command: Rewrap) -> Result<bool, Refusal> {
        self.engine.write(command).await
    }

    async fn retire_key(&self, key: &MasterKeyId, time: Timestamp) -> Result<bool, Refusal> {
        self.engine.write(RetireKey { key: key.clone(), time }).await
    }

    async fn record_rekey(&self, command: RecordRekey) -> Result<(), Refusal> {
        self.engine.write(command).await
    }
}

const REGISTER: &str = "INSERT INTO master_keys (id) VALUES ($1) ON CONFLICT (id) DO NOTHING";

/// Ensures that material may be stored under this key, and that the key is not retired before the transaction ends.
///
/// INVARIANT: nothing is stored under a retired key, and a key is retired only while nothing is stored under it. So the
/// key provider can remove a retired key.
pub async fn share_usable<T: Transaction>(transaction: &mut T, key: &MasterKeyId) -> Result<(), Failure> {
    transaction.execute(REGISTER, values![key.0.as_str()]).await?;
    let sql = format!("SELECT id, retired_at FROM master_keys WHERE id = $1{}", T::FOR_SHARE);
    let row = transaction.query_optional(&sql, values![key.0.as_str()]).await?;
    match row.map(|row| row.optional_time(1)).transpose()? {
        Some(None) => Ok(()),
        _ => {
            let reason = format!("master key {} was retired meanwhile; seal again", key.0);
            Err(Refusal::new(Code::MasterKeyRetired, reason).into())
        }
    }
}

pub struct RegisterKey {
    pub key: MasterKeyId,
}

impl Operation for RegisterKey {
    type Output = ();

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(), Failure> {
        transaction.execute(REGISTER, values![self.key.0.as_str()]).await?;
        Ok(())
    }
}

/// Counts the data keys of each master key.
pub struct ReadKeyUsage;

impl Operation for ReadKeyUsage {
    type Output = Vec<KeyUsage>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Vec<KeyUsage>, Failure> {
        let sql = "SELECT m.id, (SELECT COUNT(*) FROM credential_versions AS v WHERE v.master_key = m.id \
             AND v.destroyed_at IS NULL) + (SELECT COUNT(*) FROM detached_calls AS d WHERE d.master_key = m.id) \
             + (SELECT COUNT(*) FROM stores AS s WHERE s.master_key = m.id) \
             + (SELECT COUNT(*) FROM store_items AS i WHERE i.master_key = m.id), \
             m.retired_at FROM master_keys AS m ORDER BY m.id";
        let rows = transaction.query(sql, &[]).await?;
        let usage = rows.iter().map(|row| {
            Ok(KeyUsage {
                key: MasterKeyId(row.text(0)?.to_owned()),
                wraps: row.count(1)?,
                retired_at: row.optional_time(2)?,
            })
        });
        usage.collect()
    }
}

/// Lists versions that another key wraps.
pub struct ListUnderOtherKeys {
    /// The key that they should be under.
    pub current: MasterKeyId,
    /// The last one of the page before.
    pub after: Option<SealSubject>,
    pub limit: u32,
}

impl Operation for ListUnderOtherKeys {
    type Output = Vec<SealedVersion>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Vec<SealedVersion>, Failure> {
        let (credential, version) = match self.after {
            None => (String::new(), 0),
            Some(SealSubject::Credential { id, version }) => (id.to_string(), version),
            Some(SealSubject::Call { id, .. }) => return self.calls(transaction, &id.to_string()).await,
            Some(SealSubject::Store { id }) => return self.stores(transaction, &id.to_string()).await,
            Some(SealSubject::Item { id }) => {
                return sealed::items(transaction, &self.current, &id.to_string(), self.limit).await;
            }
        };
        let sql = format!(
            "SELECT {VERSION_COLUMNS} FROM credential_versions AS v WHERE v.destroyed_at IS NULL \
             AND v.master_key <> $1 AND (v.credential > $2 OR (v.credential = $2 AND v.version > $3)) \
             ORDER BY v.credential, v.version LIMIT $4"
        );
        let parameters = values![self.current.0.as_str(), credential, version, self.limit];
        let rows = transaction.query(&sql, parameters).await?;
        match rows.is_empty() {
            // Behind the credentials come the detached calls.
            true => self.calls(transaction, "").await,
            false => Ok(rows.iter().map(read_version).collect::<Result<Vec<_>, _>>()?),
        }
    }
}

impl ListUnderOtherKeys {
    async fn calls<T: Transaction>(&self, transaction: &mut T, after: &str) -> Result<Vec<SealedVersion>, Failure> {
        let sql = format!(
            "SELECT {} FROM detached_calls WHERE master_key <> $1 AND master_key IS NOT NULL AND id > $2 \
             ORDER BY id LIMIT $3",
            detached::sealed_columns()
        );
        let rows = transaction.query(&sql, values![self.current.0.as_str(), after, self.limit]).await?;
        let sealed = rows.iter().map(detached::read_sealed).collect::<Result<Vec<_>, _>>()?;
        match rows.is_empty() {
            // Behind the detached calls come the stores and their items.
            true => self.stores(transaction, "").await,
            false => Ok(sealed.into_iter().flatten().collect()),
        }
    }

    async fn stores<T: Transaction>(&self, transaction: &mut T, after: &str) -> Result<Vec<SealedVersion>, Failure> {
        let stores = sealed::stores(transaction, &self.current, after, self.limit).await?;
        match stores.is_empty() {
            true => sealed::items(transaction, &self.current, "", self.limit).await,
            false => Ok(stores),
        }
    }
}

impl Operation for Rewrap {
    type Output = bool;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<bool, Failure> {
        share_usable(transaction, &self.sealed.key).await?;
        let (wrapped, key) = (self.sealed.wrapped_key.as_slice(), self.sealed.key.0.as_str());
        let replaced = self.replaced.as_slice();
        let changed = match self.binding.subject {
            SealSubject::Credential { id, version } => {
                let sql = "UPDATE credential_versions SET wrapped_key = $1, master_key = $2 \
                     WHERE credential = $3 AND version = $4 AND wrapped_key = $5 AND destroyed_at IS NULL";
                transaction.execute(sql, values![wrapped, key, id, version, replaced]).await?
            }
            SealSubject::Call { id, .. } => {
                let sql = "UPDATE detached_calls SET wrapped_key = $1, master_key = $2 \
                     WHERE tenant = $3 AND id = $4 AND wrapped_key = $5";
                transaction.execute(sql, values![wrapped, key, &self.binding.tenant, id, replaced]).await?
            }
            SealSubject::Store { id } => {
                let sql = "UPDATE stores SET wrapped_key = $1, master_key = $2 WHERE id = $3 AND wrapped_key = $4";
                transaction.execute(sql, values![wrapped, key, id, replaced]).await?
            }
            SealSubject::Item { id } => {
                let sql = "UPDATE store_items SET wrapped_key = $1, master_key = $2 WHERE id = $3 AND wrapped_key = $4";
                transaction.execute(sql, values![wrapped, key, id, replaced]).await?
            }
        };
        Ok(changed == 1)
    }
}

/// Retires a key that wraps nothing.
pub struct RetireKey {
    pub key: MasterKeyId,
    pub time: Timestamp,
}

impl Operation for RetireKey {
    type Output = bool;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<bool, Failure> {
        let key = self.key.0.as_str();
        // A key that never wrapped anything may still have sealed something that is on its way here.
        transaction.execute(REGISTER, values![key]).await?;
        let lock = format!("SELECT id FROM master_keys WHERE id = $1{}", T::FOR_UPDATE);
        transaction.query(&lock, values![key]).await?;
        let sql = "UPDATE master_keys SET retired_at = COALESCE(retired_at, $1) WHERE id = $2 AND NOT EXISTS \
             (SELECT 1 FROM credential_versions WHERE master_key = $2 AND destroyed_at IS NULL) AND NOT EXISTS \
             (SELECT 1 FROM detached_calls WHERE master_key = $2) AND NOT EXISTS \
             (SELECT 1 FROM stores WHERE master_key = $2) AND NOT EXISTS \
             (SELECT 1 FROM store_items WHERE master_key = $2)";
        Ok(transaction.execute(sql, values![self.time, key]).await? == 1)
    }
}

impl Operation for RecordRekey {
    type Output = ();

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(), Failure> {
        let payload =
            EventPayload::VaultRekeyed(VaultRekeyed { key_id: self.key.0.clone(), rewrapped: self.rewrapped });
        record(transaction, &self.audit, Entry::new(payload)).await
    }
}
