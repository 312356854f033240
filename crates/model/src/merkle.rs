//! The Merkle tree of the audit log, hashed as in RFC 9162. One hash stands for all events up to a point; short proofs
//! show that an event is among them, and that a later tree only added to an earlier one.
//!
//! The tree is stored in tiles (see [`TileCoordinate`]), so that it takes few rows, an append touches only the right
//! edge, and a proof needs a handful of reads.

use std::fmt;

use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;

mod proof;
mod tile;
mod verify;

#[cfg(test)]
mod tests;

pub use proof::{
    block_proof, block_tiles, consistency_proof, consistency_tiles, inclusion_proof, inclusion_tiles, root, root_tiles,
};
pub use tile::{Appended, TILE_WIDTH, Tile, TileCoordinate, TileError, Tiles, append, edge_tiles};
pub use verify::{ProofError, verify_consistency, verify_inclusion};

/// A SHA-256 hash: of an event, of a subtree, or of the whole tree. Displayed as base64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash([u8; 32]);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("must be a hash: 32 bytes in base64 with padding")]
pub struct HashError;

impl Hash {
    /// The length in bytes.
    pub const LENGTH: usize = 32;

    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Parses the base64 form.
    pub fn parse(text: &str) -> Result<Self, HashError> {
        let bytes = STANDARD.decode(text).map_err(|_| HashError)?;
        bytes.try_into().map(Self).map_err(|_| HashError)
    }
}

/// The hash of a leaf. The tag separates leaves from inner nodes, so that neither can pass for the other.
pub fn leaf_hash(data: &[u8]) -> Hash {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(&[0]);
    context.update(data);
    from_digest(&context.finish())
}

pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    // One update of one buffer: the call costs more than the copy.
    let mut input = [1; 65];
    let (_, hashes) = input.split_at_mut(1);
    for (place, byte) in hashes.iter_mut().zip(left.0.iter().chain(&right.0)) {
        *place = *byte;
    }
    sha256(&input)
}

pub fn empty_root() -> Hash {
    sha256(b"")
}

/// The root of the tree over these leaf hashes (or over the roots of equally large, full subtrees).
pub fn root_of(hashes: &[Hash]) -> Hash {
    let mut level = hashes.to_vec();
    while level.len() > 1 {
        // A hash without a sibling moves up unchanged: the same shape as splitting at the largest power of two.
        let pairs = level.chunks(2);
        level = pairs
            .filter_map(|pair| match pair {
                [left, right] => Some(node_hash(left, right)),
                alone => alone.first().copied(),
            })
            .collect();
    }
    level.first().copied().unwrap_or_else(empty_root)
}

/// The plain SHA-256 of these bytes, for data outside the tree.
pub fn sha256(bytes: &[u8]) -> Hash {
    from_digest(&digest::digest(&digest::SHA256, bytes))
}

fn from_digest(digest: &digest::Digest) -> Hash {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    Hash(bytes)
}

impl Hash {
    /// In hexadecimal, as other programs write SHA-256.
    pub fn to_hex(self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or(b'0');
        let mut text = Vec::with_capacity(self.0.len() * 2);
        for byte in self.0 {
            text.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        // INVARIANT: the digits are ASCII.
        String::from_utf8(text).unwrap_or_default()
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl serde::Serialize for Hash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Hash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}
