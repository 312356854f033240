//! Deletion of what has expired and of what was removed, in small batches.

use std::collections::BTreeMap;
use std::time::Duration;

use toolgate_gate::ports::ledger::{AuditContext, ForgetReason};
use toolgate_model::credential::ServiceName;
use toolgate_model::id::{RevisionId, StoreId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::BATCH;
use super::items::{delete_items, forgotten};
use crate::operation::Operation;
use crate::operation::record::record;
use crate::sql::{Failure, SqlError};
use crate::transaction::{Transaction, values};

/// How long an ingestion may take.
const INGESTION: Duration = Duration::from_secs(3_600);

/// Whether there is anything to delete.
pub struct HasLeftovers {
    pub now: Timestamp,
}

impl Operation for HasLeftovers {
    type Output = bool;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<bool, Failure> {
        let queries = [
            ("SELECT id FROM store_items WHERE expires_at <= $1 LIMIT 1".to_owned(), values![self.now].to_vec()),
            ("SELECT id FROM stores WHERE removed_at IS NOT NULL LIMIT 1".to_owned(), Vec::new()),
            (leftover_documents(""), values![self.now.minus(INGESTION)].to_vec()),
        ];
        let results = transaction.query_each(&queries).await?;
        Ok(results.iter().any(|rows| !rows.is_empty()))
    }
}

fn leftover_documents(lock: &str) -> String {
    format!(
        "SELECT id FROM store_documents WHERE state <> 'current' AND (state = 'removed' OR created_at < $1) \
         ORDER BY created_at LIMIT 1{lock}"
    )
}

/// Forgets entries whose time has come.
pub struct SweepExpired {
    pub now: Timestamp,
}

impl Operation for SweepExpired {
    type Output = u64;

    const CHANGES_AUTHORITY: bool = false;
    const CAN_WAIT: bool = true;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<u64, Failure> {
        let sql = format!(
            "SELECT id, store FROM store_items WHERE expires_at <= $1 ORDER BY expires_at LIMIT {BATCH}{}",
            T::FOR_UPDATE_SKIPPING
        );
        let rows = transaction.query(&sql, values![self.now]).await?;
        let mut by_store: BTreeMap<StoreId, Vec<String>> = BTreeMap::new();
        for row in &rows {
            by_store.entry(row.parsed(1, StoreId::parse)?).or_default().push(row.text(0)?.to_owned());
        }
        let mut deleted = 0;
        for (store, ids) in by_store {
            let gone = delete_items(transaction, &ids).await?;
            deleted += u64::try_from(gone.len()).unwrap_or(u64::MAX);
            let sql = "SELECT id, tenant, name FROM stores WHERE id = $1 AND removed_at IS NULL";
            let Some(row) = transaction.query_optional(sql, values![store]).await? else { continue };
            if !gone.is_empty() {
                let (tenant, name) = (row.parsed(1, TenantId::parse)?, row.parsed(2, ServiceName::parse)?);
                let audit = AuditContext { tenant, actor: PrincipalId::system(), time: self.now };
                record(transaction, &audit, forgotten(name, &gone, ForgetReason::Expired.as_str())).await?;
            }
        }
        Ok(deleted)
    }
}

/// Deletes items of a removed store, and the store after the last of them.
pub struct SweepStore;

impl Operation for SweepStore {
    type Output = u64;

    const CHANGES_AUTHORITY: bool = false;
    const CAN_WAIT: bool = true;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<u64, Failure> {
        let sql = format!(
            "SELECT id FROM stores WHERE removed_at IS NOT NULL ORDER BY removed_at LIMIT 1{}",
            T::FOR_UPDATE_SKIPPING
        );
        let Some(row) = transaction.query_optional(&sql, &[]).await? else { return Ok(0) };
        let store = row.parsed(0, StoreId::parse)?;
        let sql = format!("SELECT id FROM store_items WHERE store = $1 ORDER BY id LIMIT {BATCH}");
        let rows = transaction.query(&sql, values![store]).await?;
        let ids: Vec<String> = rows.iter().map(|row| Ok(row.text(0)?.to_owned())).collect::<Result<_, SqlError>>()?;
        if ids.is_empty() {
            transaction.execute("DELETE FROM store_documents WHERE store = $1", values![store]).await?;
            transaction.execute("DELETE FROM stores WHERE id = $1", values![store]).await?;
        }
        Ok(u64::try_from(delete_items(transaction, &ids).await?.len()).unwrap_or(u64::MAX))
    }
}

/// Deletes chunks of a document that is not current, and the record of it after the last of them.
pub struct SweepDocument {
    pub now: Timestamp,
}

impl Operation for SweepDocument {
    type Output = u64;

    const CHANGES_AUTHORITY: bool = false;
    const CAN_WAIT: bool = true;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<u64, Failure> {
        let sql = leftover_documents(T::FOR_UPDATE_SKIPPING);
        let Some(row) = transaction.query_optional(&sql, values![self.now.minus(INGESTION)]).await? else {
            return Ok(0);
        };
        let revision = row.parsed(0, RevisionId::parse)?;
        let sql = format!("SELECT id FROM store_items WHERE document = $1 ORDER BY id LIMIT {BATCH}");
        let rows = transaction.query(&sql, values![revision]).await?;
        let ids: Vec<String> = rows.iter().map(|row| Ok(row.text(0)?.to_owned())).collect::<Result<_, SqlError>>()?;
        if ids.is_empty() {
            transaction.execute("DELETE FROM store_documents WHERE id = $1", values![revision]).await?;
        }
        Ok(u64::try_from(delete_items(transaction, &ids).await?.len()).unwrap_or(u64::MAX))
    }
}
