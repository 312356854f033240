//! The storage of the tree in tiles of up to 256 adjacent hashes, and appending of leaves.

use std::collections::BTreeMap;
use std::fmt;

use thiserror::Error;

use super::{Hash, proof, root_of};

/// The number of hashes in a full tile.
pub const TILE_WIDTH: usize = 256;
/// The levels of the tree that one tile spans: 2 to this power is [`TILE_WIDTH`].
pub(super) const TILE_HEIGHT: u8 = 8;

/// The position of a tile. The tile of level `t` and index `i` contains the nodes `256 * i ..` of the tree's level `8 *
/// t`; leaves are level 0. Only nodes with a full subtree are in tiles: a stored hash never changes; a tile only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TileCoordinate {
    /// The level of tiles, 0 for leaves.
    pub level: u8,
    /// The position within the level.
    pub index: u64,
}

/// The hashes of one tile, from left to right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tile(Vec<Hash>);

/// Fetched tiles.
pub type Tiles = BTreeMap<TileCoordinate, Tile>;

/// The result of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// The new number of leaves.
    pub size: u64,
    /// The new root.
    pub root: Hash,
    /// The tiles to write, new ones and grown ones.
    pub tiles: Tiles,
}

/// The given tiles do not match the tree.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TileError {
    #[error("{0} of the audit tree is missing; restore the ledger from a backup")]
    Missing(TileCoordinate),
    /// A tile has fewer hashes than the tree has there.
    #[error("{0} of the audit tree is too short; restore the ledger from a backup")]
    Short(TileCoordinate),
    /// A tile at the edge has more hashes than the tree has there: there was a concurrent append.
    #[error("{0} of the audit tree is ahead of the size of the tree; read both again")]
    Ahead(TileCoordinate),
    #[error(
        "a tile of the audit tree has {0} bytes, expected 1 to 256 hashes of 32 bytes; restore the ledger from a backup"
    )]
    Bytes(usize),
    /// A leaf, a block or a tree that the tree does not contain.
    #[error("{asked} is beyond the end of the audit log, which has {size} events; request an earlier point")]
    OutOfRange { asked: u64, size: u64 },
}

impl fmt::Display for TileCoordinate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "tile {} of level {}", self.index, self.level)
    }
}

impl Tile {
    pub fn hashes(&self) -> &[Hash] {
        &self.0
    }

    /// The stored form: the concatenated hashes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|hash| hash.as_bytes()).copied().collect()
    }

    /// Parses the stored form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TileError> {
        let (hashes, rest) = bytes.as_chunks::<{ Hash::LENGTH }>();
        if hashes.is_empty() || hashes.len() > TILE_WIDTH || !rest.is_empty() {
            return Err(TileError::Bytes(bytes.len()));
        }
        Ok(Self(hashes.iter().map(|hash| Hash::from_bytes(*hash)).collect()))
    }
}

/// The incomplete tiles of a tree: exactly what [`append`] needs.
pub fn edge_tiles(size: u64) -> Vec<TileCoordinate> {
    edge(size).map(|(coordinate, _)| coordinate).collect()
}

/// Appends leaves to a tree of `size` leaves with these [`edge_tiles`].
pub fn append(size: u64, edge_tiles: &Tiles, leaves: &[Hash]) -> Result<Appended, TileError> {
    let grown = u64::try_from(leaves.len()).ok().and_then(|count| size.checked_add(count));
    let grown = grown.ok_or(TileError::OutOfRange { asked: u64::MAX, size })?;
    check_edge(size, edge_tiles)?;
    let mut changed = Tiles::new();
    let mut added = leaves.to_vec();
    let mut level = 0;
    while !added.is_empty() {
        added = extend_level(level, nodes_at(size, level), edge_tiles, added, &mut changed);
        level += 1;
    }
    let root = proof::root_from(grown, |coordinate| changed.get(&coordinate).or_else(|| edge_tiles.get(&coordinate)))?;
    Ok(Appended { size: grown, root, tiles: changed })
}

/// Appends `added` to the `present` nodes of one level of tiles; returns the roots of the tiles that became full, which
/// are the nodes to add to the level above.
fn extend_level(level: u8, present: u64, edge_tiles: &Tiles, added: Vec<Hash>, changed: &mut Tiles) -> Vec<Hash> {
    let mut coordinate = TileCoordinate { level, index: present >> TILE_HEIGHT };
    let unfinished = if present == coordinate.index << TILE_HEIGHT { None } else { edge_tiles.get(&coordinate) };
    let mut hashes = unfinished.map(|tile| tile.0.clone()).unwrap_or_default();
    let mut full = Vec::with_capacity(added.len() / TILE_WIDTH + 1);
    for hash in added {
        hashes.push(hash);
        if hashes.len() == TILE_WIDTH {
            full.push(root_of(&hashes));
            changed.insert(coordinate, Tile(std::mem::take(&mut hashes)));
            coordinate.index += 1;
        }
    }
    if !hashes.is_empty() {
        changed.insert(coordinate, Tile(hashes));
    }
    full
}

/// INVARIANT: an append starts from exactly the given tree, or two appends could overwrite each other.
fn check_edge(size: u64, edge_tiles: &Tiles) -> Result<(), TileError> {
    for (coordinate, length) in edge(size) {
        let tile = edge_tiles.get(&coordinate).ok_or(TileError::Missing(coordinate))?;
        match tile.0.len().cmp(&length) {
            std::cmp::Ordering::Less => return Err(TileError::Short(coordinate)),
            std::cmp::Ordering::Equal => {}
            std::cmp::Ordering::Greater => return Err(TileError::Ahead(coordinate)),
        }
    }
    Ok(())
}

/// The incomplete tiles and their number of hashes.
fn edge(size: u64) -> impl Iterator<Item = (TileCoordinate, usize)> {
    (0..u8::try_from(u64::BITS).unwrap_or(u8::MAX) / TILE_HEIGHT).filter_map(move |level| {
        let nodes = nodes_at(size, level);
        let index = nodes >> TILE_HEIGHT;
        let length = usize::try_from(nodes - (index << TILE_HEIGHT)).ok()?;
        (length > 0).then_some((TileCoordinate { level, index }, length))
    })
}

/// The number of full nodes of a tree of `size` leaves at a level of tiles.
fn nodes_at(size: u64, level: u8) -> u64 {
    size.checked_shr(u32::from(level) * u32::from(TILE_HEIGHT)).unwrap_or(0)
}
