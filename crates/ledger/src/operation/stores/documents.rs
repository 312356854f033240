//! Documents of collections. Each ingestion is a revision with chunks of its own; one of them is current.

use toolgate_gate::ports::ledger::{
    AddChunks, BeginDocument, Document, FinishDocument, Mandate, Page, PageRequest, RemoveDocument,
};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::document::DocumentFormat;
use toolgate_model::event::{EventPayload, KnowledgeIngested, KnowledgeRemoved};
use toolgate_model::id::StoreId;
use toolgate_model::principal::PrincipalId;
use toolgate_model::store::{CHUNK_LIMIT, Provenance};

use super::items::{ItemRow, insert_items};
use super::{hold, removed};
use crate::operation::Operation;
use crate::operation::administration::{Administration, Entitled};
use crate::operation::listing::Conditions;
use crate::operation::master_keys::share_usable;
use crate::operation::record::{Entry, record};
use crate::sql::{Failure, Row, SqlError, json_text};
use crate::transaction::{Transaction, values};

const COLUMNS: &str = "document, title, source, format, bytes, chunks, removed_parts, ingested_by, created_at";

fn read(row: &Row) -> Result<Document, SqlError> {
    let text = |column: usize| Ok::<_, SqlError>(row.optional_text(column)?.map(str::to_owned));
    Ok(Document {
        id: row.text(0)?.to_owned(),
        title: text(1)?,
        source: text(2)?,
        format: row.parsed(3, |text| DocumentFormat::parse(text).ok_or(()))?,
        bytes: row.count(4)?,
        chunks: row.count(5)?,
        removed: row.json(6)?,
        ingested_by: row.parsed(7, PrincipalId::parse)?,
        created_at: row.time(8)?,
    })
}

impl Administration for BeginDocument {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(), Failure> {
        // The store is held, so that documents that come at the same moment are counted one after the other.
        if !hold(transaction, self.store).await? {
            return Err(Refusal::new(Code::StoreNotFound, "the collection was removed").into());
        }
        let document = &self.document;
        let sql = "SELECT COUNT(*) FROM store_documents WHERE store = $1 AND state <> 'removed' AND document <> $2";
        let row = transaction.query_optional(sql, values![self.store, document.id.as_str()]).await?;
        let count: u64 = row.map_or(Ok(0), |row| row.count(0))?;
        if count >= self.max_documents {
            let reason = format!("the collection has {count} documents, the limit; remove some");
            return Err(Refusal::new(Code::StoreFull, reason).with("limit", self.max_documents).into());
        }
        let sql = "SELECT COUNT(*) FROM store_items WHERE store = $1";
        let row = transaction.query_optional(sql, values![self.store]).await?;
        let chunks: u64 = row.map_or(Ok(0), |row| row.count(0))?;
        if chunks.saturating_add(document.chunks) > CHUNK_LIMIT {
            let reason = format!(
                "the collection has {chunks} chunks, the document {}, and {CHUNK_LIMIT} is the limit; remove documents, or \
                 use another collection",
                document.chunks
            );
            return Err(Refusal::new(Code::StoreFull, reason).with("limit", CHUNK_LIMIT).into());
        }
        let sql = format!(
            "INSERT INTO store_documents (id, store, state, {COLUMNS}) \
             VALUES ($1, $2, 'ingesting', $3, $4, $5, $6, $7, $8, $9, $10, $11)"
        );
        let parameters = values![
            self.revision,
            self.store,
            document.id.as_str(),
            document.title.as_deref(),
            document.source.as_deref(),
            document.format.as_str(),
            document.bytes,
            document.chunks,
            json_text(&document.removed)?,
            &by.actor,
            by.time,
        ];
        transaction.execute(&sql, parameters).await?;
        Ok(())
    }
}

impl Operation for AddChunks {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;
    const CAN_WAIT: bool = true;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(), Failure> {
        let sql = format!("SELECT id FROM store_documents WHERE id = $1 AND state = 'ingesting'{}", T::FOR_SHARE);
        if transaction.query_optional(&sql, values![self.revision]).await?.is_none() {
            return Err(Refusal::new(Code::VersionConflict, "the ingestion took too long; start it again").into());
        }
        let mut keys: Vec<_> = self.chunks.iter().map(|chunk| &chunk.sealed.key).collect();
        keys.dedup();
        for key in keys {
            share_usable(transaction, key).await?;
        }
        let provenance = Provenance {
            agent: self.audit.actor.clone(),
            actor: self.audit.actor.clone(),
            invocation: None,
            run: None,
            is_trusted: true,
        };
        let row = ItemRow {
            store: self.store,
            partition: &self.partition,
            key: None,
            document: Some(self.revision),
            provenance: &provenance,
            created_at: self.audit.time,
            expires_at: None,
        };
        insert_items(transaction, &row, &self.chunks).await
    }
}

impl Administration for FinishDocument {
    /// Whether it replaces another.
    type Output = bool;

    const CHANGES_AUTHORITY: bool = false;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<bool, Failure> {
        if !hold(transaction, self.store).await? {
            return Err(removed(&self.name));
        }
        let document = &self.document;
        let has_replaced = retire(transaction, self.store, &document.id).await?;
        let sql = "UPDATE store_documents SET state = 'current' WHERE id = $1 AND state = 'ingesting'";
        if transaction.execute(sql, values![self.revision]).await? == 0 {
            return Err(Refusal::new(Code::VersionConflict, "the ingestion took too long; start it again").into());
        }
        let payload = EventPayload::KnowledgeIngested(KnowledgeIngested {
            bytes: document.bytes,
            chunks: document.chunks,
            document: document.id.clone(),
            removed: document.removed,
            replaced: has_replaced,
            store: self.name.clone(),
        });
        record(transaction, by, Entry::new(payload)).await?;
        Ok(has_replaced)
    }
}

/// Ends the current revision of a document; false if there is none.
async fn retire<T: Transaction>(transaction: &mut T, store: StoreId, document: &str) -> Result<bool, Failure> {
    let sql = "UPDATE store_documents SET state = 'removed' WHERE store = $1 AND document = $2 AND state = 'current'";
    Ok(transaction.execute(sql, values![store, document]).await? > 0)
}

impl Administration for RemoveDocument {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(), Failure> {
        if !hold(transaction, self.store).await? {
            return Err(removed(&self.name));
        }
        if !retire(transaction, self.store, &self.document).await? {
            let reason = format!("there is no document `{}` in `{}`", self.document, self.name);
            return Err(Refusal::new(Code::DocumentNotFound, reason).into());
        }
        let payload = EventPayload::KnowledgeRemoved(KnowledgeRemoved {
            document: self.document.clone(),
            store: self.name.clone(),
        });
        record(transaction, by, Entry::new(payload)).await
    }
}

/// The current documents of a collection.
pub struct ListDocuments {
    pub store: StoreId,
    pub page: PageRequest,
}

impl Operation for ListDocuments {
    type Output = Page<Document>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Page<Document>, Failure> {
        let mut conditions = Conditions::default();
        conditions.and("store =", self.store);
        conditions.and_that("state = 'current'");
        conditions.and_if("document >", self.page.after.as_deref());
        let from = (COLUMNS, "store_documents", "document");
        conditions.page(transaction, from, &self.page, read, |document| document.id.clone()).await
    }
}
