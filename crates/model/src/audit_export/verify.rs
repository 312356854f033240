//! The offline verifier. It reads an export line by line, keeps one block at a time, and stops at the first difference
//! from the log.

mod error;
mod lines;

use std::io::BufRead;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use self::lines::{Entry, Event, Lines};
use super::{BLOCK_EVENTS, FORMAT, VERSION, block_length};
use crate::checkpoint::{self, PublicKey, TreeHead};
use crate::merkle::{Hash, empty_root, root_of, verify_inclusion};
use crate::principal::TenantId;
use crate::strict_json;
use crate::time::Timestamp;

pub use self::error::VerifyError;

/// What a verified export proves: these were all events of that log at that time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedExport {
    pub tenant: TenantId,
    /// The number of events.
    pub size: u64,
    /// The root of the tree over them.
    pub root: Hash,
    /// When the head was signed.
    pub time: Timestamp,
}

/// Verifies an export against a trusted key.
pub fn verify(reader: impl BufRead, key: &PublicKey) -> Result<VerifiedExport, VerifyError> {
    let mut lines = Lines::new(reader);
    let head = read_header(&mut lines, key)?;
    for block in 0..head.size.div_ceil(BLOCK_EVENTS) {
        let leaves = read_block(&mut lines, &head, block)?;
        read_events(&mut lines, block * BLOCK_EVENTS, &leaves)?;
    }
    read_end(&mut lines, head.size)?;
    Ok(VerifiedExport { tenant: head.tenant, size: head.size, root: head.root, time: head.time })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    #[serde(rename = "export")]
    _export: IgnoredAny,
    #[serde(rename = "version")]
    _version: IgnoredAny,
    tenant: TenantId,
    checkpoint: String,
    #[serde(rename = "public_key")]
    _public_key: String,
}

fn read_header<R: BufRead>(lines: &mut Lines<R>, key: &PublicKey) -> Result<TreeHead, VerifyError> {
    let header = |reason: String| VerifyError::Header { reason };
    let line = lines.next(None)?.unwrap_or_default();
    let value = strict_json::parse(line).map_err(|error| header(error.to_string()))?;
    // Format and version are checked first: in another version the rest may look different.
    if value.get("export").and_then(Value::as_str) != Some(FORMAT) {
        return Err(header(format!("not a {FORMAT} export")));
    }
    if value.get("version").and_then(Value::as_u64) != Some(VERSION) {
        return Err(header(format!("only version {VERSION} of the format is supported")));
    }
    let members = "it must have export, version, tenant, checkpoint and public_key, and nothing else";
    let found: Header = serde_json::from_value(value).map_err(|_| header(members.to_owned()))?;
    let head = checkpoint::verify(&found.checkpoint, key)?;
    if head.tenant != found.tenant {
        return Err(header(format!("it names the tenant {}, and its signed head {}", found.tenant, head.tenant)));
    }
    if head.size == 0 && head.root != empty_root() {
        return Err(header("its signed head has no events, but the root of some".to_owned()));
    }
    Ok(head)
}

/// The leaves of a block, authenticated by the signed head.
fn read_block<R: BufRead>(lines: &mut Lines<R>, head: &TreeHead, block: u64) -> Result<Vec<Hash>, VerifyError> {
    let sequence = block * BLOCK_EVENTS;
    let (line, entry) = lines.entry(Some(sequence))?;
    let length = block_length(block, head.size);
    let last = (sequence + BLOCK_EVENTS).min(head.size) - 1;
    let forged = VerifyError::BlockForged { block, sequence, last, line };
    match entry {
        Entry::Block(found) if found.block == block => {
            let blocks = head.size.div_ceil(BLOCK_EVENTS);
            let subtree = root_of(&found.leaves);
            if found.leaves.len() != length
                || verify_inclusion(&subtree, block, blocks, &found.proof, &head.root).is_err()
            {
                return Err(forged);
            }
            Ok(found.leaves)
        }
        Entry::Block(found) if found.block < block => Err(VerifyError::Inserted { sequence, line }),
        // An event in place of a block line was inserted, unless the block line is missing.
        Entry::Event(_) if lines.next_block() == Some(block) => Err(VerifyError::Inserted { sequence, line }),
        Entry::Event(_) => Err(forged),
        Entry::Block(_) | Entry::End(_) => Err(VerifyError::Missing { sequence, line }),
    }
}

fn read_events<R: BufRead>(lines: &mut Lines<R>, first: u64, leaves: &[Hash]) -> Result<(), VerifyError> {
    for (sequence, (position, leaf)) in (first..).zip(leaves.iter().enumerate()) {
        let (line, entry) = lines.entry(Some(sequence))?;
        let Entry::Event(event) = entry else { return Err(VerifyError::Missing { sequence, line }) };
        if event.leaf != *leaf {
            return Err(explain(lines, Place { first, position, line }, leaves, &event));
        }
        if event.sequence != Some(sequence) {
            return Err(VerifyError::Renumbered { sequence, line });
        }
        if !event.canonical {
            return Err(VerifyError::Rewritten { sequence, line });
        }
    }
    Ok(())
}

fn read_end<R: BufRead>(lines: &mut Lines<R>, size: u64) -> Result<(), VerifyError> {
    let (line, entry) = lines.entry(None)?;
    match entry {
        Entry::End(count) if count == size => {}
        Entry::End(_) => return Err(VerifyError::WrongEnd { size, line }),
        Entry::Event(_) | Entry::Block(_) => return Err(VerifyError::Inserted { sequence: size, line }),
    }
    match lines.next(None) {
        Ok(None) => Ok(()),
        Err(error @ VerifyError::Read(_)) => Err(error),
        Ok(Some(_)) | Err(_) => Err(VerifyError::TrailingData { line: line + 1 }),
    }
}

/// The position of an unexpected event in a block.
struct Place {
    first: u64,
    position: usize,
    line: u64,
}

/// Determines what happened to the expected event, from the one found instead and the rest of the block.
fn explain<R: BufRead>(lines: &mut Lines<R>, place: Place, leaves: &[Hash], found: &Event) -> VerifyError {
    let Place { first, position, line } = place;
    let at = |position: usize| first.saturating_add(u64::try_from(position).unwrap_or(u64::MAX));
    let sequence = at(position);
    let expected = leaves.get(position..).unwrap_or_default();
    let later = expected.iter().position(|leaf| *leaf == found.leaf).map(|offset| at(position + offset));
    let rest = lines.rest_of_block(expected.first());
    let incomplete = rest.events + 1 < expected.len();
    match later {
        Some(moved) if rest.holds_expected => VerifyError::OutOfOrder { sequence, found: moved, line },
        Some(_) => VerifyError::Missing { sequence, line },
        None if rest.holds_expected => VerifyError::Inserted { sequence, line },
        None if incomplete && found.sequence != Some(sequence) => VerifyError::Missing { sequence, line },
        None => VerifyError::Changed { sequence, line },
    }
}
