//! Stores of texts, each registered as a service. Their items are in the files below.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{
    AddChunks, BeginDocument, CreateStore, Document, FindItems, FinishDocument, ForgetItems, FoundItem, KnownStore,
    Mandate, Marks, Page, PageRequest, PutItem, PutOutcome, RemoveDocument, RemoveStore, Stores,
};
use toolgate_gate::ports::sealer::{MasterKeyId, SealedMaterial};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::credential::ServiceName;
use toolgate_model::event::{EventPayload, ServiceRemoved, StoreCreated, StoreRemoved};
use toolgate_model::id::StoreId;
use toolgate_model::principal::TenantId;
use toolgate_model::store::{STORE_LIMIT, Store, version};
use toolgate_model::text::MultilineText;
use toolgate_model::time::Timestamp;

use self::documents::ListDocuments;
use self::items::LeaveMarks;
use self::sweep::{HasLeftovers, SweepDocument, SweepExpired, SweepStore};
use super::Operation;
use super::administration::{Administration, Entitled};
use super::master_keys::share_usable;
use super::record::{Entry, record, record_all};
use super::services::{self, next_revision};
use crate::ledger::{Engine, SqlLedger};
use crate::sql::{Failure, Row, SqlError, json_text};
use crate::transaction::{Transaction, values};

mod documents;
mod items;
pub mod sealed;
mod search;
mod sweep;

/// The maximum number of items deleted in one transaction: an item has hundreds of words, and other writes wait for it.
const BATCH: u32 = 40;
/// The maximum number of batches of one sweep.
const ROUNDS: u32 = 50;

#[async_trait]
impl<E: Engine> Stores for SqlLedger<E> {
    async fn create_store(&self, command: CreateStore) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn remove_store(&self, command: RemoveStore) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn stores(&self, tenant: &TenantId) -> Result<Vec<(Store, u64)>, Refusal> {
        self.engine.read(ListStores { tenant: tenant.clone() }).await
    }

    async fn store(&self, tenant: &TenantId, name: &ServiceName) -> Result<Option<KnownStore>, Refusal> {
        self.engine.read(ReadStore { tenant: tenant.clone(), name: name.clone() }).await
    }

    async fn put_item(&self, command: PutItem) -> Result<PutOutcome, Refusal> {
        let outcome = self.engine.write(command).await?;
        if matches!(outcome, PutOutcome::Stored { has_replaced: true, .. }) {
            self.has_deleted.store(true, Ordering::Release);
        }
        Ok(outcome)
    }

    async fn find_items(&self, query: FindItems) -> Result<Vec<FoundItem>, Refusal> {
        self.engine.read(query).await
    }

    async fn forget_items(&self, command: ForgetItems) -> Result<u64, Refusal> {
        let mut forgotten = 0;
        loop {
            let batch = self.engine.write(command.clone()).await?;
            forgotten += batch;
            if batch > 0 {
                self.has_deleted.store(true, Ordering::Release);
            }
            if batch < u64::from(BATCH) {
                return Ok(forgotten);
            }
        }
    }

    async fn leave_marks(&self, tenant: &TenantId, marks: Marks, time: Timestamp) -> Result<(), Refusal> {
        self.engine.write(LeaveMarks { tenant: tenant.clone(), marks, time }).await
    }

    async fn begin_document(&self, command: BeginDocument) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn add_chunks(&self, command: AddChunks) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn finish_document(&self, command: FinishDocument) -> Result<bool, Refusal> {
        self.engine.write(command).await
    }

    async fn remove_document(&self, command: RemoveDocument) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn documents(&self, store: StoreId, page: PageRequest) -> Result<Page<Document>, Refusal> {
        self.engine.read(ListDocuments { store, page }).await
    }

    async fn sweep_stores(&self, now: Timestamp) -> Result<u64, Refusal> {
        let mut deleted = 0;
        for _ in 0..ROUNDS {
            // Checked first: this runs every second, and nothing is written if there is nothing to delete.
            if !self.engine.read(HasLeftovers { now }).await? {
                break;
            }
            self.has_deleted.store(true, Ordering::Release);
            deleted += self.engine.write(SweepExpired { now }).await?;
            deleted += self.engine.write(SweepStore).await?;
            deleted += self.engine.write(SweepDocument { now }).await?;
        }
        Ok(deleted)
    }

    async fn erase_deleted(&self) -> Result<bool, Refusal> {
        if !self.has_deleted.swap(false, Ordering::AcqRel) {
            return Ok(true);
        }
        let erased = self.engine.erase(&["store_items", "store_words", "store_documents", "stores"]).await;
        if !matches!(erased, Ok(true)) {
            self.has_deleted.store(true, Ordering::Release);
        }
        erased
    }
}

/// The columns of a store, in the order in which [`read_store`] takes them.
const COLUMNS: &str = "s.id, s.tenant, s.name, s.description, s.terms, s.created_at";

fn read_store(row: &Row) -> Result<Store, SqlError> {
    Ok(Store {
        id: row.parsed(0, StoreId::parse)?,
        tenant: row.parsed(1, TenantId::parse)?,
        name: row.parsed(2, ServiceName::parse)?,
        description: row.optional_parsed(3, MultilineText::parse)?,
        terms: row.json(4)?,
        created_at: row.time(5)?,
    })
}

/// Reads the three columns of sealed material from this one on.
fn read_material(row: &Row, first: usize) -> Result<SealedMaterial, SqlError> {
    Ok(SealedMaterial {
        ciphertext: row.blob(first)?.to_vec(),
        wrapped_key: row.blob(first + 1)?.to_vec(),
        key: MasterKeyId(row.text(first + 2)?.to_owned()),
    })
}

/// Refuses to change a service that is a store by its definition. The transaction holds the registry.
pub async fn refuse_store<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    service: &ServiceName,
) -> Result<(), Failure> {
    let sql = "SELECT id, kind FROM stores WHERE tenant = $1 AND name = $2 AND removed_at IS NULL";
    let Some(row) = transaction.query_optional(sql, values![tenant, service]).await? else { return Ok(()) };
    let kind = row.text(1)?;
    let reason = format!("service `{service}` is a store; use `toolgate {kind}`");
    Err(Refusal::new(Code::ServiceIsStore, reason).into())
}

/// Holds a store until the transaction ends; false if it was removed.
async fn hold<T: Transaction>(transaction: &mut T, store: StoreId) -> Result<bool, Failure> {
    let sql = format!("SELECT id FROM stores WHERE id = $1 AND removed_at IS NULL{}", T::FOR_UPDATE);
    Ok(transaction.query_optional(&sql, values![store]).await?.is_some())
}

fn removed(name: &ServiceName) -> Failure {
    Refusal::new(Code::StoreNotFound, format!("there is no store `{name}`")).into()
}

impl Administration for CreateStore {
    type Output = ();

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(), Failure> {
        let store = &self.store;
        let place = next_revision(transaction, &by.tenant).await?;
        let sql = "SELECT COUNT(*) FROM stores WHERE tenant = $1 AND removed_at IS NULL";
        let count: u64 =
            transaction.query_optional(sql, values![&by.tenant]).await?.map_or(Ok(0), |row| row.count(0))?;
        if count >= STORE_LIMIT {
            let reason = format!("there are {count} stores, and {STORE_LIMIT} is the limit; remove one");
            return Err(Refusal::new(Code::TooManyStores, reason).into());
        }
        let sql = "SELECT service FROM services WHERE tenant = $1 AND service = $2 LIMIT 1";
        if transaction.query_optional(sql, values![&by.tenant, &store.name]).await?.is_some() {
            let reason = format!("there is a service `{}` already; choose another name", store.name);
            return Err(Refusal::new(Code::AlreadyExists, reason).into());
        }
        share_usable(transaction, &self.index_key.key).await?;
        let sql = "INSERT INTO stores (id, tenant, name, kind, description, terms, created_at, ciphertext, wrapped_key, \
             master_key) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
        let parameters = values![
            store.id,
            &by.tenant,
            &store.name,
            store.terms.kind().as_str(),
            store.description.as_ref().map(MultilineText::as_str),
            json_text(&store.terms)?,
            by.time,
            self.index_key.ciphertext.as_slice(),
            self.index_key.wrapped_key.as_slice(),
            self.index_key.key.0.as_str(),
        ];
        transaction.execute(sql, parameters).await?;
        let payload = EventPayload::StoreCreated(StoreCreated {
            kind: store.terms.kind().as_str().to_owned(),
            store: store.name.clone(),
            terms: serde_json::to_value(&store.terms).map_err(|error| SqlError::Corrupt(error.to_string()))?,
        });
        record(transaction, by, Entry::new(payload)).await?;
        services::store(transaction, by, &self.definition, place, false).await.map(drop)
    }
}

impl Administration for RemoveStore {
    type Output = ();

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(), Failure> {
        next_revision(transaction, &by.tenant).await?;
        if !hold(transaction, self.store).await? {
            return Err(removed(&self.name));
        }
        let sql = "UPDATE stores SET removed_at = $1, ciphertext = NULL, wrapped_key = NULL, master_key = NULL \
             WHERE id = $2 AND tenant = $3 RETURNING id, kind";
        let row = transaction.query_optional(sql, values![by.time, self.store, &by.tenant]).await?;
        let Some(row) = row else { return Err(removed(&self.name)) };
        let kind = row.text(1)?.to_owned();
        let sql = "DELETE FROM services WHERE tenant = $1 AND service = $2";
        transaction.execute(sql, values![&by.tenant, &self.name]).await?;
        let payloads = [
            EventPayload::StoreRemoved(StoreRemoved { kind, store: self.name.clone() }),
            EventPayload::ServiceRemoved(ServiceRemoved { service: self.name.clone(), version: version() }),
        ];
        record_all(transaction, by, payloads.map(Entry::new)).await
    }
}

struct ListStores {
    tenant: TenantId,
}

impl Operation for ListStores {
    type Output = Vec<(Store, u64)>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Vec<(Store, u64)>, Failure> {
        let sql = format!(
            "SELECT {COLUMNS}, (SELECT COUNT(*) FROM store_items AS i WHERE i.store = s.id) FROM stores AS s \
             WHERE s.tenant = $1 AND s.removed_at IS NULL ORDER BY s.name"
        );
        let rows = transaction.query(&sql, values![&self.tenant]).await?;
        Ok(rows.iter().map(|row| Ok((read_store(row)?, row.count(6)?))).collect::<Result<_, SqlError>>()?)
    }
}

struct ReadStore {
    tenant: TenantId,
    name: ServiceName,
}

impl Operation for ReadStore {
    type Output = Option<KnownStore>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<KnownStore>, Failure> {
        let sql = format!(
            "SELECT {COLUMNS}, s.ciphertext, s.wrapped_key, s.master_key FROM stores AS s \
             WHERE s.tenant = $1 AND s.name = $2 AND s.removed_at IS NULL"
        );
        let row = transaction.query_optional(&sql, values![&self.tenant, &self.name]).await?;
        let read =
            |row: Row| Ok::<_, SqlError>(KnownStore { store: read_store(&row)?, index_key: read_material(&row, 6)? });
        Ok(row.map(read).transpose()?)
    }
}
