//! Verifies proofs by the two algorithms of RFC 9162 (2.1.3.2 and 2.1.4.2). Needs no tiles and trusts only the given
//! root.

use thiserror::Error;

use super::{Hash, empty_root, node_hash};

/// Why a proof is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProofError {
    /// A leaf beyond the end, or an old tree larger than the new one.
    #[error("the proof is about something beyond the size of the tree; check the sizes")]
    OutOfRange,
    #[error("the proof has the wrong number of hashes for these sizes; request it again")]
    Length,
    #[error("the proof does not lead to this root: its subject is not in that tree")]
    Mismatch,
}

/// Verifies that a leaf is at `index` in the tree of `size` leaves with this root.
pub fn verify_inclusion(leaf: &Hash, index: u64, size: u64, proof: &[Hash], root: &Hash) -> Result<(), ProofError> {
    if index >= size {
        return Err(ProofError::OutOfRange);
    }
    let mut path = Path { node: index, last: size - 1 };
    let mut hash = *leaf;
    for sibling in proof {
        hash = if path.climb()? { node_hash(sibling, &hash) } else { node_hash(&hash, sibling) };
    }
    path.finish()?;
    if hash == *root { Ok(()) } else { Err(ProofError::Mismatch) }
}

/// Verifies that the tree of `new_size` leaves begins with the tree of `old_size` leaves.
pub fn verify_consistency(
    old_size: u64,
    new_size: u64,
    old_root: &Hash,
    new_root: &Hash,
    proof: &[Hash],
) -> Result<(), ProofError> {
    if old_size > new_size {
        return Err(ProofError::OutOfRange);
    }
    if old_size == 0 || old_size == new_size {
        let known = if old_size == 0 { *old_root == empty_root() } else { old_root == new_root };
        return match (proof.is_empty(), known) {
            (false, _) => Err(ProofError::Length),
            (true, false) => Err(ProofError::Mismatch),
            (true, true) => Ok(()),
        };
    }
    // A full old tree is a node of the new one; its root is not repeated in the proof.
    let (first, rest) =
        if old_size.is_power_of_two() { (old_root, proof) } else { proof.split_first().ok_or(ProofError::Length)? };
    let skipped = (old_size - 1).trailing_ones();
    let mut path = Path { node: (old_size - 1) >> skipped, last: (new_size - 1) >> skipped };
    let (mut old, mut new) = (*first, *first);
    for sibling in rest {
        if path.climb()? {
            old = node_hash(sibling, &old);
            new = node_hash(sibling, &new);
        } else {
            new = node_hash(&new, sibling);
        }
    }
    path.finish()?;
    if old == *old_root && new == *new_root { Ok(()) } else { Err(ProofError::Mismatch) }
}

/// The path up from a node, along the right edge of the tree.
struct Path {
    node: u64,
    last: u64,
}

impl Path {
    /// One level up; true if the sibling is on the left.
    fn climb(&mut self) -> Result<bool, ProofError> {
        if self.last == 0 {
            return Err(ProofError::Length);
        }
        let left = self.node & 1 == 1 || self.node == self.last;
        if left {
            // At the right edge a node without a sibling is its own parent: skip those levels.
            let skipped = self.node.trailing_zeros();
            self.node >>= skipped;
            self.last >>= skipped;
        }
        self.node >>= 1;
        self.last >>= 1;
        Ok(left)
    }

    fn finish(&self) -> Result<(), ProofError> {
        if self.last == 0 { Ok(()) } else { Err(ProofError::Length) }
    }
}
