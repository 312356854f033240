//! The tiled tree against an independent implementation, and against the definitions of RFC 9162 word by word.

use ct_merkle::digest::{FixedOutput, HashMarker, Output, OutputSizeUser, Update, typenum};
use ct_merkle::mem_backed_tree::MemoryBackedTree;
use proptest::prelude::*;

use super::*;

/// SHA-256 in the form in which the oracle takes it.
struct OracleDigest(digest::Context);

impl Default for OracleDigest {
    fn default() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }
}

impl Update for OracleDigest {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }
}

impl OutputSizeUser for OracleDigest {
    type OutputSize = typenum::U32;
}

impl FixedOutput for OracleDigest {
    fn finalize_into(self, out: &mut Output<Self>) {
        out.copy_from_slice(self.0.finish().as_ref());
    }
}

impl HashMarker for OracleDigest {}

fn data(index: u64) -> Vec<u8> {
    format!("event {index}").into_bytes()
}

fn leaves(range: std::ops::Range<u64>) -> Vec<Hash> {
    range.map(|index| leaf_hash(&data(index))).collect()
}

fn oracle(size: u64) -> MemoryBackedTree<OracleDigest, Vec<u8>> {
    let mut tree = MemoryBackedTree::new();
    (0..size).for_each(|index| tree.push(data(index)));
    tree
}

/// A store that hands out exactly the tiles asked for.
#[derive(Default)]
struct Store {
    size: u64,
    root: Option<Hash>,
    tiles: Tiles,
}

impl Store {
    fn with(size: u64) -> Self {
        let mut store = Self::default();
        store.append(size);
        store
    }

    fn append(&mut self, count: u64) {
        let edge = self.fetch(&edge_tiles(self.size));
        let appended = append(self.size, &edge, &leaves(self.size..self.size + count)).unwrap();
        self.size = appended.size;
        self.root = Some(appended.root);
        self.tiles.extend(appended.tiles);
    }

    fn fetch(&self, coordinates: &[TileCoordinate]) -> Tiles {
        coordinates.iter().map(|coordinate| (*coordinate, self.tiles[coordinate].clone())).collect()
    }
}

fn concatenated(hashes: &[Hash]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| *hash.as_bytes()).collect()
}

/// The definitions of RFC 9162, word by word.
mod by_definition {
    use super::*;

    fn cut(length: usize) -> usize {
        let mut power = 1;
        while power * 2 < length {
            power *= 2;
        }
        power
    }

    pub fn root(leaves: &[Hash]) -> Hash {
        match leaves.len() {
            0 => empty_root(),
            1 => leaves[0],
            length => node_hash(&root(&leaves[..cut(length)]), &root(&leaves[cut(length)..])),
        }
    }

    pub fn path(index: usize, leaves: &[Hash]) -> Vec<Hash> {
        if leaves.len() == 1 {
            return Vec::new();
        }
        let (left, right) = leaves.split_at(cut(leaves.len()));
        let (mut proof, sibling) = if index < left.len() {
            (path(index, left), root(right))
        } else {
            (path(index - left.len(), right), root(left))
        };
        proof.push(sibling);
        proof
    }

    pub fn subproof(old: usize, leaves: &[Hash], known: bool) -> Vec<Hash> {
        if old == leaves.len() {
            return if known { Vec::new() } else { vec![root(leaves)] };
        }
        let (left, right) = leaves.split_at(cut(leaves.len()));
        let (mut proof, sibling) = if old <= left.len() {
            (subproof(old, left, known), root(right))
        } else {
            (subproof(old - left.len(), right, false), root(left))
        };
        proof.push(sibling);
        proof
    }
}

#[test]
fn hashes_are_those_of_certificate_transparency() {
    let hex = |hash: Hash| hash.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(empty_root()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_eq!(hex(leaf_hash(b"")), "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
    let inputs: [&[u8]; 8] = [
        b"",
        b"\x00",
        b"\x10",
        b"\x20\x21",
        b"\x30\x31",
        b"\x40\x41\x42\x43",
        b"\x50\x51\x52\x53\x54\x55\x56\x57",
        b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
    ];
    let hashes: Vec<Hash> = inputs.iter().map(|input| leaf_hash(input)).collect();
    assert_eq!(hex(root_of(&hashes[..2])), "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125");
    assert_eq!(hex(root_of(&hashes)), "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328");
}

#[test]
fn a_hash_reads_back_from_its_text_and_nothing_else_does() {
    let hash = leaf_hash(b"x");
    assert_eq!(Hash::parse(&hash.to_string()), Ok(hash));
    assert_eq!(serde_json::from_value::<Hash>(serde_json::json!(hash)).unwrap(), hash);
    for bad in ["", "AAAA", &format!("{hash}AAAA"), &hash.to_string().replace('=', "")] {
        assert!(Hash::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_tile_reads_back_from_its_bytes_and_other_lengths_are_refused() {
    let store = Store::with(300);
    for tile in store.tiles.values() {
        assert_eq!(Tile::from_bytes(&tile.to_bytes()).as_ref(), Ok(tile));
    }
    for length in [0, 31, 33, 257 * 32] {
        assert_eq!(Tile::from_bytes(&vec![0; length]), Err(TileError::Bytes(length)));
    }
}

#[test]
fn a_large_batch_gives_the_tree_that_single_steps_give() {
    let whole = Store::with(100_000);
    let mut stepped = Store::default();
    for count in [1, 255, 1, 0, 65_000, 536, 300, 30_000, 3_907] {
        stepped.append(count);
    }
    assert_eq!(stepped.size, 100_000);
    assert_eq!(whole.root, stepped.root);
    assert_eq!(whole.tiles, stepped.tiles);
    assert_eq!(whole.root.unwrap().as_bytes()[..], oracle(100_000).root().as_bytes()[..]);
    // 391 tiles of leaves, 2 of their roots, 1 above: few rows for a store.
    assert_eq!(whole.tiles.len(), 391 + 2 + 1);
}

#[test]
fn proofs_in_a_large_tree_need_few_tiles() {
    let store = Store::with(100_000);
    for index in [0, 255, 256, 65_535, 65_536, 99_999] {
        assert!(inclusion_tiles(index, 100_000).len() <= 6);
        let tiles = store.fetch(&inclusion_tiles(index, 100_000));
        let proof = inclusion_proof(index, 100_000, &tiles).unwrap();
        let leaf = leaf_hash(&data(index));
        assert_eq!(verify_inclusion(&leaf, index, 100_000, &proof, &store.root.unwrap()), Ok(()));
    }
    assert!(consistency_tiles(70_001, 100_000).len() <= 6);
    assert_eq!(edge_tiles(1 << 40), [TileCoordinate { level: 5, index: 0 }]);
    assert_eq!(inclusion_tiles(u64::MAX - 1, u64::MAX).len(), 8);
}

#[test]
fn a_tile_that_is_missing_or_short_or_ahead_is_named() {
    let store = Store::with(700);
    let first = TileCoordinate { level: 0, index: 0 };
    let edge = TileCoordinate { level: 0, index: 2 };
    assert_eq!(inclusion_proof(3, 700, &Tiles::new()), Err(TileError::Missing(first)));
    assert_eq!(root(701, &store.tiles), Err(TileError::Short(edge)));
    assert_eq!(append(700, &Tiles::new(), &[]), Err(TileError::Missing(edge)));
    assert_eq!(append(699, &store.tiles, &leaves(699..701)), Err(TileError::Ahead(edge)));
    assert_eq!(append(701, &store.tiles, &[]), Err(TileError::Short(edge)));
}

#[test]
fn what_the_tree_does_not_contain_has_no_proof() {
    let store = Store::with(10);
    assert_eq!(inclusion_proof(10, 10, &store.tiles), Err(TileError::OutOfRange { asked: 10, size: 10 }));
    assert_eq!(consistency_proof(11, 10, &store.tiles), Err(TileError::OutOfRange { asked: 11, size: 10 }));
    assert_eq!(block_proof(1, 10, &store.tiles), Err(TileError::OutOfRange { asked: 256, size: 10 }));
    assert!(inclusion_tiles(10, 10).is_empty() && consistency_tiles(11, 10).is_empty());
    let hash = leaf_hash(b"");
    assert_eq!(verify_inclusion(&hash, 10, 10, &[], &hash), Err(ProofError::OutOfRange));
    assert_eq!(verify_consistency(11, 10, &hash, &hash, &[]), Err(ProofError::OutOfRange));
}

#[test]
fn every_tree_extends_the_empty_one_and_itself() {
    let root = leaf_hash(b"x");
    assert_eq!(verify_consistency(0, 5, &empty_root(), &root, &[]), Ok(()));
    assert_eq!(verify_consistency(5, 5, &root, &root, &[]), Ok(()));
    assert_eq!(verify_consistency(0, 5, &root, &root, &[]), Err(ProofError::Mismatch));
    assert_eq!(verify_consistency(5, 5, &root, &empty_root(), &[]), Err(ProofError::Mismatch));
    assert_eq!(verify_consistency(5, 5, &root, &root, &[root]), Err(ProofError::Length));
}

#[test]
fn small_trees_agree_with_the_definition_in_every_proof() {
    let store = Store::with(40);
    let all = leaves(0..40);
    for size in 0..=40 {
        let present = &all[..usize::try_from(size).unwrap()];
        assert_eq!(root(size, &store.tiles), Ok(by_definition::root(present)));
        assert_eq!(root_of(present), by_definition::root(present));
        for index in 0..size {
            let at = usize::try_from(index).unwrap();
            assert_eq!(inclusion_proof(index, size, &store.tiles), Ok(by_definition::path(at, present)));
            let proof = by_definition::subproof(at + 1, present, true);
            assert_eq!(consistency_proof(index + 1, size, &store.tiles), Ok(proof));
        }
    }
}

/// Sizes around the borders of tiles as well as in between.
fn any_size() -> impl Strategy<Value = u64> {
    prop_oneof![1u64..20, 250u64..262, 505u64..520, 1u64..3000]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn appends_of_any_lengths_give_the_root_of_the_oracle(counts in prop::collection::vec(0u64..700, 1..6)) {
        let mut store = Store::default();
        counts.iter().for_each(|count| store.append(*count));
        prop_assert_eq!(store.root.unwrap().as_bytes().to_vec(), oracle(store.size).root().as_bytes().to_vec());
        let tiles = store.fetch(&root_tiles(store.size));
        prop_assert_eq!(root(store.size, &tiles).unwrap(), store.root.unwrap());
    }

    #[test]
    fn inclusion_proofs_are_those_of_the_oracle_and_hold(
        size in any_size(), later in any_size(), chosen in any::<prop::sample::Index>(),
    ) {
        let index = chosen.index(usize::try_from(size).unwrap());
        // Tiles that have grown since serve the older tree as well.
        let store = Store::with(size + later);
        let at = u64::try_from(index).unwrap();
        let proof = inclusion_proof(at, size, &store.fetch(&inclusion_tiles(at, size))).unwrap();
        prop_assert_eq!(concatenated(&proof), oracle(size).prove_inclusion(index).as_bytes().to_vec());
        let root = root(size, &store.tiles).unwrap();
        let leaf = leaf_hash(&data(at));
        prop_assert_eq!(verify_inclusion(&leaf, at, size, &proof, &root), Ok(()));
        prop_assert!(verify_inclusion(&leaf_hash(b"other"), at, size, &proof, &root).is_err());
        prop_assert!(verify_inclusion(&leaf, at + 1, size, &proof, &root).is_err());
        for position in 0..proof.len() {
            let mut wrong = proof.clone();
            wrong[position] = leaf;
            prop_assert_eq!(verify_inclusion(&leaf, at, size, &wrong, &root), Err(ProofError::Mismatch));
            wrong.remove(position);
            prop_assert!(verify_inclusion(&leaf, at, size, &wrong, &root).is_err());
        }
    }

    #[test]
    fn consistency_proofs_are_those_of_the_oracle_and_hold(old in any_size(), added in any_size()) {
        let new = old + added;
        let store = Store::with(new);
        let proof = consistency_proof(old, new, &store.fetch(&consistency_tiles(old, new))).unwrap();
        let expected = oracle(new).prove_consistency(usize::try_from(added).unwrap());
        prop_assert_eq!(concatenated(&proof), expected.as_bytes().to_vec());
        let (old_root, new_root) = (root(old, &store.tiles).unwrap(), store.root.unwrap());
        prop_assert_eq!(verify_consistency(old, new, &old_root, &new_root, &proof), Ok(()));
        prop_assert!(verify_consistency(old, new, &new_root, &new_root, &proof).is_err());
        prop_assert!(verify_consistency(old, new, &old_root, &old_root, &proof).is_err());
        for position in 0..proof.len() {
            let mut wrong = proof.clone();
            wrong[position] = leaf_hash(b"other");
            prop_assert_eq!(verify_consistency(old, new, &old_root, &new_root, &wrong), Err(ProofError::Mismatch));
            wrong.remove(position);
            prop_assert!(verify_consistency(old, new, &old_root, &new_root, &wrong).is_err());
        }
    }

    #[test]
    fn a_block_is_a_leaf_of_the_tree_of_blocks(size in any_size()) {
        let store = Store::with(size);
        for block in 0..size.div_ceil(256) {
            let tiles = store.fetch(&block_tiles(block, size));
            let hashes = tiles[&TileCoordinate { level: 0, index: block }].hashes();
            let proof = block_proof(block, size, &tiles).unwrap();
            let root = store.root.unwrap();
            prop_assert_eq!(verify_inclusion(&root_of(hashes), block, size.div_ceil(256), &proof, &root), Ok(()));
        }
    }
}
