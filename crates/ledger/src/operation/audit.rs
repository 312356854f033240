//! The audit log: taking committed events into their tenant's Merkle tree, and reading it.

use std::sync::Arc;

use toolgate_gate::ports::ledger::{EventFilter, LogHead, LoggedEvent, Page, PageRequest};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::checkpoint::{SigningKey, TreeHead, sign};
use toolgate_model::merkle::{Hash, Tile, TileCoordinate, Tiles, append, edge_tiles};
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use super::Operation;
use super::listing::Conditions;
use crate::sql::{Failure, Row, SqlError};
use crate::transaction::{Transaction, values};

/// How many events one transaction integrates: few enough that other writers hardly wait.
pub const BATCH: u32 = 1024;

/// What every call leaves, of which there is more than of all else together.
const USUAL_KINDS: [&str; 2] = ["agent.toolCalled", "tool.invoked"];

/// The next events of a log whose places are known.
const IN_ORDER: &str =
    "SELECT sequence, leaf FROM events WHERE sequence >= $1 AND tenant = $2 ORDER BY sequence LIMIT $3";

/// Gives the next events their places. Those of transactions that commit later get later ones; what was committed before
/// another transaction began has an earlier position, so cause still comes before effect.
const PUT_IN_ORDER: &str = "UPDATE events SET sequence = batch.place FROM ( \
         SELECT position, row_number() OVER (ORDER BY position) - 1 + $1 AS place FROM ( \
             SELECT position FROM events WHERE tenant = $2 AND sequence IS NULL ORDER BY position LIMIT $3 \
         ) AS pending \
     ) AS batch WHERE events.position = batch.position RETURNING sequence, leaf";

/// Names the tenants with events that are not in their tree yet.
pub struct ListPending;

impl Operation for ListPending {
    type Output = Vec<TenantId>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Vec<TenantId>, Failure> {
        let sql = match T::ORDERS_EVENTS {
            true => {
                "SELECT tenants.id FROM tenants LEFT JOIN heads ON heads.tenant = tenants.id WHERE EXISTS \
                 (SELECT 1 FROM events WHERE tenant = tenants.id AND sequence >= COALESCE(heads.size, 0))"
            }
            false => "SELECT DISTINCT tenant FROM events WHERE sequence IS NULL",
        };
        let rows = transaction.query(sql, &[]).await?;
        Ok(rows.iter().map(|row| row.parsed(0, TenantId::parse)).collect::<Result<Vec<_>, _>>()?)
    }
}

/// Takes a batch of events into the tree and signs the new head; answers how many.
pub struct Integrate {
    /// Whose.
    pub tenant: TenantId,
    /// Signs the head.
    pub signer: Arc<SigningKey>,
    /// The time of the head.
    pub now: Timestamp,
}

impl Operation for Integrate {
    type Output = u64;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<u64, Failure> {
        transaction.lock_integration().await?;
        let head = read_head(transaction, &self.tenant).await?;
        // Another replica may have signed a head while this one waited for the lock: time does not run back.
        let (size, time) = head.map_or((0, self.now), |head| (head.head.size, self.now.max(head.head.time)));
        let sql = if T::ORDERS_EVENTS { IN_ORDER } else { PUT_IN_ORDER };
        let rows = transaction.query(sql, values![size, &self.tenant, BATCH]).await?;
        if rows.is_empty() {
            return Ok(0);
        }
        let mut leaves = rows
            .iter()
            .map(|row| Ok((row.count(0)?, hash(row.blob(1)?)?)))
            .collect::<Result<Vec<(u64, Hash)>, SqlError>>()?;
        leaves.sort_unstable_by_key(|(place, _)| *place);
        let leaves: Vec<Hash> = leaves.into_iter().map(|(_, leaf)| leaf).collect();
        let edge = read_tiles(transaction, &self.tenant, &edge_tiles(size)).await?;
        let appended = append(size, &edge, &leaves).map_err(|error| SqlError::Corrupt(error.to_string()))?;
        write_tiles(transaction, &self.tenant, &appended.tiles).await?;
        let head = TreeHead { tenant: self.tenant.clone(), size: appended.size, root: appended.root, time };
        let checkpoint = sign(&head, &self.signer).map_err(|error| Refusal::new(Code::Internal, error.to_string()))?;
        let sql = "INSERT INTO heads (tenant, size, root, time, checkpoint) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (tenant) DO UPDATE SET size = excluded.size, root = excluded.root, time = excluded.time, \
             checkpoint = excluded.checkpoint";
        let root = head.root.as_bytes().as_slice();
        transaction.execute(sql, values![&head.tenant, head.size, root, head.time, checkpoint]).await?;
        Ok(u64::try_from(leaves.len()).unwrap_or(u64::MAX))
    }
}

/// Reads the newest head.
pub struct ReadHead {
    /// Whose.
    pub tenant: TenantId,
}

impl Operation for ReadHead {
    type Output = Option<LogHead>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<LogHead>, Failure> {
        read_head(transaction, &self.tenant).await
    }
}

/// Reads tiles.
pub struct ReadTiles {
    /// Whose.
    pub tenant: TenantId,
    /// Which.
    pub coordinates: Vec<TileCoordinate>,
}

impl Operation for ReadTiles {
    type Output = Tiles;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Tiles, Failure> {
        read_tiles(transaction, &self.tenant, &self.coordinates).await
    }
}

/// Reads events that are in the log, in order.
pub struct ListEvents {
    /// Whose.
    pub tenant: TenantId,
    /// Which.
    pub filter: EventFilter,
    /// Which page; the cursor is a sequence.
    pub page: PageRequest,
}

impl Operation for ListEvents {
    type Output = Page<LoggedEvent>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Page<LoggedEvent>, Failure> {
        let read = |row: &Row| -> Result<LoggedEvent, SqlError> {
            Ok(LoggedEvent { sequence: row.count(0)?, canonical: row.text(1)?.to_owned() })
        };
        let from = ("sequence, canonical", "events", "sequence");
        self.conditions()?.page(transaction, from, &self.page, read, |event| event.sequence.to_string()).await
    }
}

impl ListEvents {
    fn conditions(&self) -> Result<Conditions, Refusal> {
        let after = self.page.after.as_ref().map(|after| after.parse::<u64>()).transpose();
        let after =
            after.map_err(|_| Refusal::new(Code::InvalidCursor, "`cursor` must come from an earlier answer"))?;
        let mut conditions = Conditions::default();
        conditions.and("tenant =", &self.tenant);
        // What is not in the tree yet cannot be proved yet.
        conditions.and_that("sequence < COALESCE((SELECT size FROM heads WHERE heads.tenant = events.tenant), 0)");
        conditions.and_if("sequence >", after);
        let filter = &self.filter;
        conditions.and_any("kind", filter.kinds.iter().map(String::as_str));
        let is_usual = |kind: &String| USUAL_KINDS.contains(&kind.as_str());
        if !filter.kinds.is_empty() && !filter.kinds.iter().any(is_usual) {
            // Says nothing new, but lets the index be used that has only the others.
            conditions.and_that("kind <> 'agent.toolCalled' AND kind <> 'tool.invoked' AND sequence IS NOT NULL");
        }
        conditions.and_if("run =", filter.run.as_deref());
        conditions.and_if("tool =", filter.tool.as_deref());
        conditions.and_if("actor =", filter.actor.as_ref());
        conditions.and_if("agent =", filter.agent.as_ref());
        conditions.and_if("intent =", filter.intent.as_ref());
        conditions.and_if("task =", filter.task.as_ref());
        conditions.and_if("time >=", filter.since);
        conditions.and_if("time <", filter.until);
        Ok(conditions)
    }
}

async fn read_head<T: Transaction>(transaction: &mut T, tenant: &TenantId) -> Result<Option<LogHead>, Failure> {
    let sql = "SELECT tenant, size, root, time, checkpoint FROM heads WHERE tenant = $1";
    let Some(row) = transaction.query_optional(sql, values![tenant]).await? else { return Ok(None) };
    let head = TreeHead {
        tenant: row.parsed(0, TenantId::parse)?,
        size: row.count(1)?,
        root: hash(row.blob(2)?)?,
        time: row.time(3)?,
    };
    Ok(Some(LogHead { head, checkpoint: row.text(4)?.to_owned() }))
}

async fn read_tiles<T: Transaction>(
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
            values![tenant, u32::from(coordinate.level), coordinate.index, tile.to_bytes().as_slice()].to_vec()
        })
        .collect();
    transaction.execute_many(sql, &rows).await?;
    Ok(())
}

fn hash(bytes: &[u8]) -> Result<Hash, SqlError> {
    let bytes = <[u8; 32]>::try_from(bytes).map_err(|_| SqlError::Corrupt("a hash of another length".to_owned()))?;
    Ok(Hash::from_bytes(bytes))
}
