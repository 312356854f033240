//! The audit log: integration, reading, and comparison with known heads.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use toolgate_model::checkpoint::{SigningKey, TreeHead};
use toolgate_model::context::ContextId;
use toolgate_model::event::{EventKind, StoredEvent};
use toolgate_model::merkle::{TileCoordinate, Tiles};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::{AuditContext, Page, PageRequest};
use crate::refusal::{Code, Refusal};

/// The audit log: a Merkle tree per tenant with signed heads.
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Integrates committed events into the Merkle trees and signs new heads; returns the number of events.
    async fn integrate(&self, signer: Arc<SigningKey>, now: Timestamp) -> Result<u64, Refusal>;
    /// Returns integrated events, in order.
    async fn events(
        &self,
        tenant: &TenantId,
        filter: EventFilter,
        page: PageRequest,
    ) -> Result<Page<LoggedEvent>, Refusal>;
    /// Returns what was added to these logs since they had these sizes. A log without additions is left out.
    async fn log_news(&self, followed: Vec<(TenantId, Option<u64>)>) -> Result<Vec<LogNews>, Refusal>;
    /// Returns the newest signed head; `None` while the log is empty.
    async fn log_head(&self, tenant: &TenantId) -> Result<Option<LogHead>, Refusal>;
    /// Compares the logs with heads that were signed before, and keeps those heads if every log extends its own.
    async fn compare_heads(&self, known: &[LogHead]) -> Result<Vec<LogRollback>, Refusal>;
    /// Compares the logs with the heads that this process knows, and stores newer ones. If a log was rolled back,
    /// nothing is admitted, identified or signed from then on. Returns the time of the newest head.
    async fn watch_heads(&self) -> Result<Option<Timestamp>, Refusal>;
    /// Returns the heads that this process knows, with the number of changes that led to them; `None` if there were no
    /// more changes than `seen`.
    fn known_heads(&self, seen: u64) -> Option<(u64, Vec<LogHead>)>;
    /// Records that an operator accepted a rollback of the ledger.
    async fn record_rollback(&self, command: RecordRollback) -> Result<(), Refusal>;
    /// Returns tiles of the log's tree.
    async fn tiles(&self, tenant: &TenantId, coordinates: &[TileCoordinate]) -> Result<Tiles, Refusal>;
}

/// Filters events. An absent member does not filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Any of these types; empty for all.
    pub kinds: Vec<String>,
    pub run: Option<String>,
    /// With its service.
    pub tool: Option<String>,
    pub actor: Option<PrincipalId>,
    pub agent: Option<PrincipalId>,
    pub intent: Option<ContextId>,
    pub task: Option<ContextId>,
    /// Inclusive.
    pub since: Option<Timestamp>,
    /// Exclusive.
    pub until: Option<Timestamp>,
}

impl EventFilter {
    pub fn of_kinds(kinds: impl IntoIterator<Item = EventKind>) -> Self {
        Self { kinds: kinds.into_iter().map(|kind| kind.as_str().to_owned()).collect(), ..Self::default() }
    }

    /// Whether an event with this heading may match. What a heading does not contain is assumed to match.
    pub fn may_have(&self, heading: &EventHeading) -> bool {
        let is = |wanted: Option<&str>, found: Option<&str>| wanted.is_none() || wanted == found;
        (self.kinds.is_empty() || self.kinds.contains(&heading.kind))
            && is(self.run.as_deref(), heading.run.as_deref())
            && is(self.tool.as_deref(), heading.tool.as_deref())
            && is(self.agent.as_ref().map(PrincipalId::as_str), heading.agent.as_deref())
    }
}

/// The parts of an event that decide whether a follower of the log wants to read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventHeading {
    pub kind: String,
    pub agent: Option<String>,
    pub run: Option<String>,
    /// With its service.
    pub tool: Option<String>,
}

/// New events of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogNews {
    pub tenant: TenantId,
    pub size: u64,
    /// The events since the last poll; `None` if there are too many, or at the first poll.
    pub headings: Option<Vec<EventHeading>>,
}

/// An event with its position in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Counted from zero without gaps: the index of its leaf.
    pub sequence: u64,
    /// Its canonical JSON, as it was hashed.
    pub canonical: String,
}

impl LoggedEvent {
    pub fn read(&self) -> Result<StoredEvent, Refusal> {
        StoredEvent::read(&self.canonical, self.sequence).map_err(|damaged| {
            let reason = format!("{damaged}; run `toolgate audit verify` on an export");
            Refusal::new(Code::Internal, reason)
        })
    }
}

/// A signed head of a tenant's log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogHead {
    pub head: TreeHead,
    /// The signed text.
    pub checkpoint: String,
}

/// A log that does not continue from a head that was signed before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRollback {
    pub known: TreeHead,
    /// The newest head in the ledger; `None` if it has no such log.
    pub found: Option<TreeHead>,
}

impl LogRollback {
    pub fn tenant(&self) -> &TenantId {
        &self.known.tenant
    }
}

impl fmt::Display for LogRollback {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tenant, known) = (self.tenant(), self.known.size);
        match &self.found {
            None => write!(out, "tenant `{tenant}`: {known} events expected, no log found"),
            Some(found) if found.size < known => {
                write!(out, "tenant `{tenant}`: {known} events expected, {} found", found.size)
            }
            Some(found) => write!(
                out,
                "tenant `{tenant}`: {known} events expected, {} found that do not begin with those",
                found.size
            ),
        }
    }
}

/// Records that an operator accepted a rollback of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordRollback {
    /// Recorded in the platform's log, which also has the events of tenants that the ledger does not know.
    pub audit: AuditContext,
    /// Empty if the known heads cannot be read.
    pub log_rollbacks: Vec<LogRollback>,
}
