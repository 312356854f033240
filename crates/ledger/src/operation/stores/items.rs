//! Entries of memories: written, replaced and forgotten.

use std::collections::BTreeSet;

use toolgate_gate::ports::ledger::{Forget, ForgetItems, Mandate, Marks, NewItem, Partition, PutItem, PutOutcome};
use toolgate_model::event::{EventPayload, MemoryForgotten};
use toolgate_model::id::{RevisionId, StoreId};
use toolgate_model::merkle::sha256;
use toolgate_model::principal::TenantId;
use toolgate_model::store::{AGENT_LIMIT, Provenance, UNTRUSTED};
use toolgate_model::time::Timestamp;

use super::{BATCH, hold, removed};
use crate::operation::Operation;
use crate::operation::administration::{Administration, Entitled};
use crate::operation::marks;
use crate::operation::master_keys::share_usable;
use crate::operation::record::{Entry, record};
use crate::sql::{Failure, SqlError, Value};
use crate::transaction::{Transaction, values};

/// The maximum number of rows of one statement.
const ROWS: usize = 200;

impl Operation for PutItem {
    type Output = PutOutcome;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<PutOutcome, Failure> {
        // Held, so that puts that come at the same moment are counted one after the other.
        if !hold(transaction, self.store).await? {
            return Ok(PutOutcome::NoStore);
        }
        let has_replaced = match &self.key {
            Some(key) => replace(transaction, self, key).await?,
            None => false,
        };
        let partition = &self.partition.0;
        let sql = "SELECT COUNT(*) FROM store_items WHERE store = $1 AND partition_hash = $2";
        if count(transaction, sql, values![self.store, partition.as_str()]).await? >= self.max_items {
            return Ok(PutOutcome::Full { limit: self.max_items, of_agent: false });
        }
        let sql = "SELECT COUNT(*) FROM store_items WHERE store = $1 AND agent = $2";
        if count(transaction, sql, values![self.store, &self.provenance.agent]).await? >= AGENT_LIMIT {
            return Ok(PutOutcome::Full { limit: AGENT_LIMIT, of_agent: true });
        }
        let is_trusted = !follows_untrusted(transaction, self).await?;
        share_usable(transaction, &self.item.sealed.key).await?;
        let provenance = Provenance { is_trusted, ..self.provenance.clone() };
        let row = ItemRow {
            store: self.store,
            partition: &self.partition,
            key: self.key.as_deref(),
            document: None,
            provenance: &provenance,
            created_at: self.audit.time,
            expires_at: self.expires_at,
        };
        insert_items(transaction, &row, std::slice::from_ref(&self.item)).await?;
        Ok(PutOutcome::Stored { is_trusted, has_replaced })
    }
}

async fn count<T: Transaction>(transaction: &mut T, sql: &str, values: &[Value<'_>]) -> Result<u64, Failure> {
    Ok(transaction.query_optional(sql, values).await?.map_or(Ok(0), |row| row.count(0))?)
}

/// Deletes the item with the same key.
async fn replace<T: Transaction>(transaction: &mut T, put: &PutItem, key: &str) -> Result<bool, Failure> {
    let sql = "SELECT id FROM store_items WHERE store = $1 AND partition_hash = $2 AND key_hash = $3";
    let row = transaction.query_optional(sql, values![put.store, put.partition.0.as_str(), key]).await?;
    let Some(row) = row else { return Ok(false) };
    let ids = [row.text(0)?.to_owned()];
    Ok(!delete_items(transaction, &ids).await?.is_empty())
}

/// Whether untrusted content has come into the conversation.
async fn follows_untrusted<T: Transaction>(transaction: &mut T, put: &PutItem) -> Result<bool, Failure> {
    let sql = "SELECT label FROM session_marks WHERE tenant = $1 AND agent = $2 AND session = $3 AND label = $4 \
         AND marked_at >= $5";
    let scope = &put.scope;
    let parameters = values![&put.audit.tenant, &scope.agent, scope.session.as_str(), UNTRUSTED, put.marks_since];
    Ok(transaction.query_optional(sql, parameters).await?.is_some())
}

/// What items that are written together have in common.
pub struct ItemRow<'a> {
    pub store: StoreId,
    pub partition: &'a Partition,
    pub key: Option<&'a str>,
    pub document: Option<RevisionId>,
    pub provenance: &'a Provenance,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

/// Writes items and their words.
pub async fn insert_items<T: Transaction>(
    transaction: &mut T,
    common: &ItemRow<'_>,
    items: &[NewItem],
) -> Result<(), Failure> {
    let provenance = common.provenance;
    let rows: Vec<Vec<Value<'_>>> = items
        .iter()
        .map(|item| {
            values![
                item.id,
                common.store,
                common.partition.0.as_str(),
                common.key,
                common.document,
                item.length,
                &provenance.agent,
                &provenance.actor,
                provenance.invocation,
                provenance.run.as_deref(),
                provenance.is_trusted,
                common.created_at,
                common.expires_at,
                item.sealed.ciphertext.as_slice(),
                item.sealed.wrapped_key.as_slice(),
                item.sealed.key.0.as_str(),
            ]
            .to_vec()
        })
        .collect();
    let into = "INSERT INTO store_items (id, store, partition_hash, key_hash, document, length, agent, actor, invocation, \
         run, trusted, created_at, expires_at, ciphertext, wrapped_key, master_key) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)";
    transaction.execute_many(into, &rows).await?;
    let words = items.iter().flat_map(|item| {
        item.words
            .iter()
            .map(|(word, occurrences)| values![Value::Integer(*word), item.id, *occurrences, item.length].to_vec())
    });
    let words: Vec<Vec<Value<'_>>> = words.collect();
    for rows in words.chunks(ROWS) {
        transaction.insert_many("store_words (word, item, occurrences, length)", rows).await?;
    }
    Ok(())
}

/// Deletes items with their words; returns those that were there.
pub async fn delete_items<T: Transaction>(transaction: &mut T, ids: &[String]) -> Result<Vec<String>, Failure> {
    let rows: Vec<Vec<Value<'_>>> = ids.iter().map(|id| values![id.as_str()].to_vec()).collect();
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let deleted = transaction.execute_many("DELETE FROM store_items WHERE id = $1", &rows).await?;
    transaction.execute_many("DELETE FROM store_words WHERE item = $1", &rows).await?;
    Ok(ids.iter().zip(deleted).filter(|(_, count)| *count > 0).map(|(id, _)| id.clone()).collect())
}

/// The event of a batch of forgotten entries: hashes of their ids, and nothing of them.
pub fn forgotten(store: toolgate_model::credential::ServiceName, ids: &[String], reason: &str) -> Entry {
    Entry::new(EventPayload::MemoryForgotten(MemoryForgotten {
        count: u64::try_from(ids.len()).unwrap_or(u64::MAX),
        items: ids.iter().map(|id| sha256(id.as_bytes()).to_hex()).collect(),
        reason: reason.to_owned(),
        store,
    }))
}

impl Administration for ForgetItems {
    /// How many were deleted; as many as a batch has if there may be more.
    type Output = u64;

    const CHANGES_AUTHORITY: bool = false;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<u64, Failure> {
        if !hold(transaction, self.store).await? {
            return Err(removed(&self.name));
        }
        let store = Value::from(self.store);
        let (condition, more): (&str, Vec<Value<'_>>) = match &self.what {
            Forget::Item { partition: None, id } => ("id = $2", vec![Value::from(*id)]),
            Forget::Item { partition: Some(partition), id } => {
                ("id = $2 AND partition_hash = $3", vec![Value::from(*id), Value::from(partition.0.as_str())])
            }
            Forget::Key { partition, key } => {
                let parameters = vec![Value::from(partition.0.as_str()), Value::from(key.as_str())];
                ("partition_hash = $2 AND key_hash = $3", parameters)
            }
            Forget::Partition(partition) => ("partition_hash = $2", vec![Value::from(partition.0.as_str())]),
            Forget::Agent(agent) => ("agent = $2", vec![Value::from(agent)]),
            Forget::Actor(actor) => ("actor = $2", vec![Value::from(actor)]),
            Forget::All => ("TRUE", Vec::new()),
        };
        let sql = format!("SELECT id FROM store_items WHERE store = $1 AND {condition} ORDER BY id LIMIT {BATCH}");
        let parameters: Vec<Value<'_>> = [store].into_iter().chain(more).collect();
        let rows = transaction.query(&sql, &parameters).await?;
        let ids: Vec<String> = rows.iter().map(|row| Ok(row.text(0)?.to_owned())).collect::<Result<_, SqlError>>()?;
        let deleted = delete_items(transaction, &ids).await?;
        if !deleted.is_empty() {
            let entry = forgotten(self.name.clone(), &deleted, self.reason.as_str());
            record(transaction, by, entry).await?;
        }
        Ok(u64::try_from(deleted.len()).unwrap_or(u64::MAX))
    }
}

/// Leaves marks on a conversation.
pub struct LeaveMarks {
    pub tenant: TenantId,
    pub marks: Marks,
    pub time: Timestamp,
}

impl Operation for LeaveMarks {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(), Failure> {
        let labels: BTreeSet<&str> = self.marks.labels.iter().map(String::as_str).collect();
        let rows = labels.into_iter().map(|label| (&self.tenant, &self.marks.scope, label, self.time));
        marks::write(transaction, rows).await
    }
}
