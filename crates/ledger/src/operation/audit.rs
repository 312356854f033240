//! The audit log: taking committed events into their tenant's Merkle tree, and reading that.

use std::sync::Arc;

use toolgate_gate::ports::ledger::LogHead;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::checkpoint::{SigningKey, TreeHead, sign};
use toolgate_model::event::event_leaf;
use toolgate_model::merkle::{Hash, Tile, TileCoordinate, Tiles, append, edge_tiles};
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use super::Operation;
use super::event_batches::{Batch, BatchEvent};
use super::event_pages::PageEntries;
use super::event_times::PageTimes;
use super::heads::{log_rollback, rolled_back};
use super::sweeping::Readable;
use crate::sql::{Failure, Row, SqlError, Value};
use crate::transaction::{Transaction, values};

/// The number of events that one transaction integrates: few enough that other writers hardly wait, and enough that few
/// transactions are needed.
pub const BATCH: u32 = 1024;

/// Assigns positions to the next batches. Transactions that commit later get later positions; what was committed before
/// another transaction began has an earlier one, so that causes precede effects.
const PUT_IN_ORDER: &str = "UPDATE event_batches SET first = batch.place FROM ( \
         SELECT position, place FROM ( \
             SELECT position, CAST(SUM(size) OVER (ORDER BY position) AS BIGINT) - size + $1 AS place FROM ( \
                 SELECT position, size FROM event_batches WHERE tenant = $2 AND first IS NULL ORDER BY position LIMIT $3 \
             ) AS pending \
         ) AS placed WHERE place < $1 + $3 \
     ) AS batch WHERE event_batches.position = batch.position RETURNING first, events";

/// The batches that begin within the next so many places.
const NEXT_IN_ORDER: &str = "SELECT first, events FROM event_batches WHERE first >= $1 AND tenant = $2 AND first < $1 + $3 \
     ORDER BY first";

/// Names the tenants with events that are not in their tree yet.
pub struct ListPending;

impl Operation for ListPending {
    type Output = Vec<TenantId>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Vec<TenantId>, Failure> {
        let sql = match T::ORDERS_EVENTS {
            true => {
                "SELECT tenants.id FROM tenants LEFT JOIN heads ON heads.tenant = tenants.id WHERE EXISTS \
                 (SELECT 1 FROM event_batches WHERE tenant = tenants.id AND first >= COALESCE(heads.size, 0))"
            }
            false => "SELECT DISTINCT tenant FROM event_batches WHERE first IS NULL",
        };
        let rows = transaction.query(sql, &[]).await?;
        Ok(Readable::of(&rows, |row| row.parsed(0, TenantId::parse)).logged())
    }
}

/// Integrates a batch of events into the tree and signs the new head; returns their number and the head.
pub struct Integrate {
    pub tenant: TenantId,
    /// A head that the log must continue from: a second history must not be signed.
    pub known: Option<TreeHead>,
    pub signer: Arc<SigningKey>,
    /// The time of the head.
    pub now: Timestamp,
}

impl Operation for Integrate {
    type Output = (u64, Option<LogHead>);

    const CHANGES_AUTHORITY: bool = false;
    const CAN_WAIT: bool = true;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(u64, Option<LogHead>), Failure> {
        transaction.lock_integration().await?;
        let head = read_head(transaction, &self.tenant).await?;
        if let Some(known) = &self.known
            && let Some(log_rollback) = log_rollback(transaction, known, head.as_ref().map(|head| &head.head)).await?
        {
            return Err(rolled_back(&[log_rollback]).into());
        }
        // Another replica may have signed a head while this one waited for the lock: time does not run back.
        let (size, time) = head.map_or((0, self.now), |head| (head.head.size, self.now.max(head.head.time)));
        let sql = if T::ORDERS_EVENTS { NEXT_IN_ORDER } else { PUT_IN_ORDER };
        let rows = transaction.query(sql, values![size, &self.tenant, BATCH]).await?;
        if rows.is_empty() {
            return Ok((0, None));
        }
        let mut batches = rows.iter().map(Batch::read).collect::<Result<Vec<_>, _>>()?;
        batches.sort_unstable_by_key(Batch::first);
        let mut leaves: Vec<Hash> = Vec::new();
        let (mut pages, mut times) = (PageEntries::default(), PageTimes::default());
        for event in batches.iter().flat_map(Batch::events) {
            let BatchEvent { sequence, heading, canonical } = event?;
            leaves.push(event_leaf(canonical.as_bytes()));
            times.note(sequence, heading.time()?);
            pages.note(sequence, &heading);
        }
        pages.keep(times, transaction, &self.tenant).await?;
        let edge = read_tiles(transaction, &self.tenant, &edge_tiles(size)).await?;
        let appended = append(size, &edge, &leaves).map_err(|error| SqlError::Corrupt(error.to_string()))?;
        write_tiles(transaction, &self.tenant, &appended.tiles).await?;
        let head = TreeHead { tenant: self.tenant.clone(), size: appended.size, root: appended.root, time };
        let checkpoint = sign(&head, &self.signer).map_err(|error| Refusal::new(Code::Internal, error.to_string()))?;
        let sql = "INSERT INTO heads (tenant, size, root, time, checkpoint) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (tenant) DO UPDATE SET size = excluded.size, root = excluded.root, time = excluded.time, \
             checkpoint = excluded.checkpoint";
        let root = head.root.as_bytes().as_slice();
        transaction.execute(sql, values![&head.tenant, head.size, root, head.time, checkpoint.as_str()]).await?;
        Ok((u64::try_from(leaves.len()).unwrap_or(u64::MAX), Some(LogHead { head, checkpoint })))
    }
}

/// Reads the newest head.
pub struct ReadHead {
    pub tenant: TenantId,
}

impl Operation for ReadHead {
    type Output = Option<LogHead>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<LogHead>, Failure> {
        read_head(transaction, &self.tenant).await
    }
}

pub struct ReadTiles {
    pub tenant: TenantId,
    pub coordinates: Vec<TileCoordinate>,
}

impl Operation for ReadTiles {
    type Output = Tiles;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Tiles, Failure> {
        read_tiles(transaction, &self.tenant, &self.coordinates).await
    }
}

pub(super) async fn read_head<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
) -> Result<Option<LogHead>, Failure> {
    let sql = "SELECT tenant, size, root, time, checkpoint FROM heads WHERE tenant = $1";
    let row = transaction.query_optional(sql, values![tenant]).await?;
    Ok(row.as_ref().map(head_of_row).transpose()?)
}

/// Of tenant, size, root, time and checkpoint.
pub(super) fn head_of_row(row: &Row) -> Result<LogHead, SqlError> {
    let head = TreeHead {
        tenant: row.parsed(0, TenantId::parse)?,
        size: row.count(1)?,
        root: hash(row.blob(2)?)?,
        time: row.time(3)?,
    };
    Ok(LogHead { head, checkpoint: row.text(4)?.to_owned() })
}

pub(super) async fn read_tiles<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    coordinates: &[TileCoordinate],
) -> Result<Tiles, Failure> {
    let sql = "SELECT tenant, hashes FROM tiles WHERE tenant = $1 AND level = $2 AND position = $3";
    let mut tiles = Tiles::new();
    for coordinate in coordinates {
        let parameters = values![tenant, u32::from(coordinate.level), coordinate.index];
        if let Some(row) = transaction.query_optional(sql, parameters).await? {
            let tile = Tile::from_bytes(row.blob(1)?).map_err(|error| SqlError::Corrupt(error.to_string()))?;
            tiles.insert(*coordinate, tile);
        }
    }
    Ok(tiles)
}

async fn write_tiles<T: Transaction>(transaction: &mut T, tenant: &TenantId, tiles: &Tiles) -> Result<(), Failure> {
    let sql = "INSERT INTO tiles (tenant, level, position, hashes) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (tenant, level, position) DO UPDATE SET hashes = excluded.hashes";
    let rows: Vec<_> = tiles
        .iter()
        .map(|(coordinate, tile)| {
            let level = u32::from(coordinate.level);
            vec![Value::from(tenant), Value::from(level), Value::from(coordinate.index), Value::from(tile.to_bytes())]
        })
        .collect();
    transaction.execute_many(sql, &rows).await?;
    Ok(())
}

fn hash(bytes: &[u8]) -> Result<Hash, SqlError> {
    let bytes = <[u8; 32]>::try_from(bytes).map_err(|_| SqlError::Corrupt("a hash of another length".to_owned()))?;
    Ok(Hash::from_bytes(bytes))
}
