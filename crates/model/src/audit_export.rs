//! The export of an audit log: JSON lines that can be verified offline with nothing but the public key.
//!
//! - `{"export":"toolgate-audit","version":1,"tenant":...,"checkpoint":...,"public_key":...}`: the signed head. The key
//!   is informative; a verifier trusts only the key that it was given.
//! - for each block of 256 events, `{"block":j,"leaves":[...],"proof":[...]}`: the hashes of its events, and the proof
//!   that the block is in the signed tree. So every block is authentic on its own, and an invalid event can be named.
//! - after each block line its events, one canonical JSON object per line, each with its `sequence`, which is its
//!   position in the log and not part of what is hashed.
//! - `{"end":n}`: all n events were written. An export that cannot continue ends with `{"broken":"why"}` instead.

mod verify;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::canonical::{write_members, write_string};
use crate::checkpoint::PublicKey;
use crate::merkle::{Hash, TILE_WIDTH, TileCoordinate, TileError, Tiles, block_proof, leaf_hash};
use crate::principal::TenantId;
use crate::strict_json;

pub use verify::{VerifiedExport, VerifyError, verify};

/// The number of events in a block; the last one may have fewer.
pub const BLOCK_EVENTS: u64 = 256;
/// The longest line that is read or written.
pub const MAX_LINE_BYTES: usize = 8 << 20;

const FORMAT: &str = "toolgate-audit";
const VERSION: u64 = 1;
const SEQUENCE: &str = "sequence";
const BROKEN: &str = "broken";

/// Why a line cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExportError {
    #[error("event {sequence} is damaged in the ledger: {reason}; restore the ledger from a backup")]
    DamagedEvent { sequence: u64, reason: String },
    /// The tree is incomplete.
    #[error(transparent)]
    Tile(#[from] TileError),
}

/// The first line.
pub fn header_line(tenant: &TenantId, checkpoint: &str, key: &PublicKey) -> Vec<u8> {
    let mut line = format!("{{\"export\":\"{FORMAT}\",\"version\":{VERSION}").into_bytes();
    for (name, text) in [("tenant", tenant.as_str()), ("checkpoint", checkpoint), ("public_key", &key.to_string())] {
        line.push(b',');
        write_string(name, &mut line);
        line.push(b':');
        write_string(text, &mut line);
    }
    line.extend_from_slice(b"}\n");
    line
}

/// The line before the events of a block, in the export of a log of `size` events; needs the tiles that
/// [`crate::merkle::block_tiles`] names.
pub fn block_line(block: u64, size: u64, tiles: &Tiles) -> Result<Vec<u8>, ExportError> {
    let proof = block_proof(block, size, tiles)?;
    let coordinate = TileCoordinate { level: 0, index: block };
    let tile = tiles.get(&coordinate).ok_or(TileError::Missing(coordinate))?;
    // The tile may have grown since the head was signed.
    let leaves = tile.hashes().get(..block_length(block, size)).ok_or(TileError::Short(coordinate))?;
    let mut line = format!("{{\"block\":{block}").into_bytes();
    for (name, hashes) in [("leaves", leaves), ("proof", &proof)] {
        line.push(b',');
        write_string(name, &mut line);
        line.extend_from_slice(b":[");
        for (position, hash) in hashes.iter().enumerate() {
            if position > 0 {
                line.push(b',');
            }
            write_string(&hash.to_string(), &mut line);
        }
        line.push(b']');
    }
    line.extend_from_slice(b"}\n");
    Ok(line)
}

/// The line of one event, from its stored form: canonical JSON without the sequence.
pub fn event_line(sequence: u64, canonical: &str) -> Result<Vec<u8>, ExportError> {
    let damaged = |reason: &dyn ToString| ExportError::DamagedEvent { sequence, reason: reason.to_string() };
    let value = strict_json::parse_written(canonical.as_bytes()).map_err(|error| damaged(&error))?;
    let Value::Object(mut event) = value else { return Err(damaged(&"not a JSON object")) };
    if event.insert(SEQUENCE.to_owned(), Value::from(sequence)).is_some() {
        return Err(damaged(&"it already has a sequence"));
    }
    let mut line = to_canonical(&event);
    line.push(b'\n');
    if line.len() > MAX_LINE_BYTES {
        return Err(damaged(&"longer than 8 MiB"));
    }
    Ok(line)
}

/// The last line.
pub fn end_line(size: u64) -> Vec<u8> {
    format!("{{\"end\":{size}}}\n").into_bytes()
}

/// The last line of an export that cannot continue, with the reason. Such an export does not verify.
pub fn broken_line(reason: &str) -> Vec<u8> {
    let mut line = format!("{{\"{BROKEN}\":").into_bytes();
    write_string(reason, &mut line);
    line.extend_from_slice(b"}\n");
    line
}

/// The reason in such a line; `None` for any other line.
pub fn broken_reason(line: &[u8]) -> Option<String> {
    // No event begins with this name, and most lines are events.
    if !line.starts_with(format!("{{\"{BROKEN}\":").as_bytes()) {
        return None;
    }
    let Value::Object(mut members) = strict_json::parse(line).ok()? else { return None };
    match (members.remove(BROKEN), members.is_empty()) {
        (Some(Value::String(reason)), true) => Some(reason),
        _ => None,
    }
}

/// The number of events of a block in a log of `size` events.
fn block_length(block: u64, size: u64) -> usize {
    let rest = size.saturating_sub(block.saturating_mul(BLOCK_EVENTS));
    usize::try_from(rest).map_or(TILE_WIDTH, |rest| rest.min(TILE_WIDTH))
}

fn to_canonical(event: &Map<String, Value>) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    write_members(event.iter().map(|(name, value)| (name.as_str(), value)), &mut out);
    out
}

/// The leaf of an exported event: of everything but its sequence.
fn exported_leaf(event: &Map<String, Value>) -> Hash {
    let mut out = Vec::with_capacity(512);
    let members = event.iter().filter(|(name, _)| *name != SEQUENCE);
    write_members(members.map(|(name, value)| (name.as_str(), value)), &mut out);
    leaf_hash(&out)
}
