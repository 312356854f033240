//! Roots and proofs from tiles. A proof is first planned as ranges of leaves; the plan determines the tiles to fetch,
//! and is then evaluated to hashes.

use std::collections::BTreeSet;
use std::ops::Range;

use super::tile::{TILE_HEIGHT, Tile, TileCoordinate, TileError, Tiles};
use super::{Hash, empty_root, node_hash, root_of};

/// The leaves of one block of an export, which are also those of one tile.
const BLOCK: u64 = 1 << TILE_HEIGHT;

/// The tiles that [`root`] needs.
pub fn root_tiles(size: u64) -> Vec<TileCoordinate> {
    tiles_of(std::slice::from_ref(&(0..size)))
}

/// The root of the first `size` leaves.
pub fn root(size: u64, tiles: &Tiles) -> Result<Hash, TileError> {
    root_from(size, |coordinate| tiles.get(&coordinate))
}

/// The tiles that [`inclusion_proof`] needs; none if there is no such leaf.
pub fn inclusion_tiles(index: u64, size: u64) -> Vec<TileCoordinate> {
    tiles_of(&inclusion_plan(index, size))
}

/// Proof that the leaf `index` is in the tree of the first `size` leaves.
pub fn inclusion_proof(index: u64, size: u64, tiles: &Tiles) -> Result<Vec<Hash>, TileError> {
    if index >= size {
        return Err(TileError::OutOfRange { asked: index, size });
    }
    hashes_of(&inclusion_plan(index, size), tiles)
}

/// The tiles that [`consistency_proof`] needs.
pub fn consistency_tiles(old_size: u64, new_size: u64) -> Vec<TileCoordinate> {
    tiles_of(&consistency_plan(old_size, new_size))
}

/// Proof that the tree of the first `new_size` leaves begins with that of the first `old_size`.
pub fn consistency_proof(old_size: u64, new_size: u64, tiles: &Tiles) -> Result<Vec<Hash>, TileError> {
    if old_size > new_size {
        return Err(TileError::OutOfRange { asked: old_size, size: new_size });
    }
    hashes_of(&consistency_plan(old_size, new_size), tiles)
}

/// The tiles that [`block_proof`] needs, and the one with the leaves of the block itself.
pub fn block_tiles(block: u64, size: u64) -> Vec<TileCoordinate> {
    let mut tiles = tiles_of(&block_plan(block, size));
    tiles.insert(0, TileCoordinate { level: 0, index: block });
    tiles
}

/// Proof that the 256 leaves (fewer at the end) of a block are in the tree of the first `size` leaves. The tree over
/// the roots of all blocks has the same root, so this is the inclusion proof of leaf `block` in a tree of
/// `size.div_ceil(256)` leaves.
pub fn block_proof(block: u64, size: u64, tiles: &Tiles) -> Result<Vec<Hash>, TileError> {
    if block >= size.div_ceil(BLOCK) {
        return Err(TileError::OutOfRange { asked: block.saturating_mul(BLOCK), size });
    }
    hashes_of(&block_plan(block, size), tiles)
}

/// [`root`] with any lookup of tiles.
pub(super) fn root_from<'a>(size: u64, tile: impl Fn(TileCoordinate) -> Option<&'a Tile>) -> Result<Hash, TileError> {
    range_hash(&(0..size), &tile)
}

/// From the leaf to the root, the sibling at each level.
fn inclusion_plan(index: u64, size: u64) -> Vec<Range<u64>> {
    let mut plan = Vec::new();
    let mut within = 0..size;
    while within.contains(&index)
        && let Some(middle) = split(&within)
    {
        if index < middle {
            plan.push(middle..within.end);
            within.end = middle;
        } else {
            plan.push(within.start..middle);
            within.start = middle;
        }
    }
    plan.reverse();
    plan
}

/// The subtrees that the old tree ends with, then what was added beside and above them.
fn consistency_plan(old_size: u64, new_size: u64) -> Vec<Range<u64>> {
    let mut plan = Vec::new();
    // Every tree extends the empty one, and none extends a larger one.
    if old_size == 0 || old_size > new_size {
        return plan;
    }
    let mut within = 0..new_size;
    while within.end != old_size
        && let Some(middle) = split(&within)
    {
        if old_size <= middle {
            plan.push(middle..within.end);
            within.end = middle;
        } else {
            plan.push(within.start..middle);
            within.start = middle;
        }
    }
    // If the old tree is itself a subtree of the new one, the verifier already knows its root.
    if within.start != 0 {
        plan.push(within);
    }
    plan.reverse();
    plan
}

fn block_plan(block: u64, size: u64) -> Vec<Range<u64>> {
    let leaves = |blocks: u64| blocks.saturating_mul(BLOCK).min(size);
    let plan = inclusion_plan(block, size.div_ceil(BLOCK));
    plan.into_iter().map(|range| leaves(range.start)..leaves(range.end)).collect()
}

/// Where RFC 9162 splits a tree: after the largest power of two that leaves something on the right.
fn split(range: &Range<u64>) -> Option<u64> {
    let last = (range.end - range.start).checked_sub(1)?;
    last.checked_ilog2().map(|level| range.start + (1 << level))
}

/// A full subtree: the node `index` of the tree's level `level`.
struct Node {
    level: u32,
    index: u64,
}

impl Node {
    /// The tile that contains it or its nodes, their first position there, and their number.
    fn location(&self) -> (TileCoordinate, usize, usize) {
        let height = u32::from(TILE_HEIGHT);
        let below = self.level % height;
        let first = self.index << below;
        let index = first >> height;
        let level = u8::try_from(self.level / height).unwrap_or(u8::MAX);
        let offset = usize::try_from(first - (index << height)).unwrap_or(usize::MAX);
        (TileCoordinate { level, index }, offset, 1 << below)
    }
}

/// The full subtrees that a range consists of, from left to right, each smaller than the one before.
///
/// INVARIANT: the range is a subtree of some tree, so that its start is a multiple of its largest part.
fn full_subtrees(range: &Range<u64>) -> Vec<Node> {
    let mut nodes = Vec::new();
    let mut start = range.start;
    while let Some(level) = range.end.checked_sub(start).and_then(u64::checked_ilog2) {
        nodes.push(Node { level, index: start >> level });
        start += 1 << level;
    }
    nodes
}

fn tiles_of(plan: &[Range<u64>]) -> Vec<TileCoordinate> {
    let nodes = plan.iter().flat_map(full_subtrees);
    nodes.map(|node| node.location().0).collect::<BTreeSet<_>>().into_iter().collect()
}

fn hashes_of(plan: &[Range<u64>], tiles: &Tiles) -> Result<Vec<Hash>, TileError> {
    plan.iter().map(|range| range_hash(range, &|coordinate| tiles.get(&coordinate))).collect()
}

fn range_hash<'a>(range: &Range<u64>, tile: &impl Fn(TileCoordinate) -> Option<&'a Tile>) -> Result<Hash, TileError> {
    let mut whole: Option<Hash> = None;
    for node in full_subtrees(range).iter().rev() {
        let (coordinate, offset, count) = node.location();
        let hashes = tile(coordinate).ok_or(TileError::Missing(coordinate))?.hashes();
        let parts = hashes.get(offset..offset.saturating_add(count)).ok_or(TileError::Short(coordinate))?;
        let left = root_of(parts);
        whole = Some(whole.map_or(left, |right| node_hash(&left, &right)));
    }
    Ok(whole.unwrap_or_else(empty_root))
}
