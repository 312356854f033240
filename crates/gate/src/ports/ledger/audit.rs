//! The audit log: integration, reading, and comparison with the heads that are known.

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
    /// Compares the logs with the heads that this process knows, and learns newer ones. If a log went back, nothing is
    /// admitted, identified or signed from then on. Returns the time of the newest head.
    async fn watch_heads(&self) -> Result<Option<Timestamp>, Refusal>;
    /// Returns the heads that this process knows, with the number of changes that led to them; `None` if there were no
    /// more changes than `seen`.
    fn known_heads(&self, seen: u64) -> Option<(u64, Vec<LogHead>)>;
    /// Records that an operator accepted a ledger that went back.
    async fn record_rollback(&self, command: RecordRollback) -> Result<(), Refusal>;
    /// Returns tiles of the log's tree.
    async fn tiles(&self, tenant: &TenantId, coordinates: &[TileCoordinate]) -> Result<Tiles, Refusal>;
}

/// Which events to read. What is absent does not filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// By type: any of these; none means all.
    pub kinds: Vec<String>,
    /// By the execution that it belongs to.
    pub run: Option<String>,
    /// By tool, with its service.
    pub tool: Option<String>,
    /// By who did it.
    pub actor: Option<PrincipalId>,
    /// By the agent that it concerns.
    pub agent: Option<PrincipalId>,
    /// By intent.
    pub intent: Option<ContextId>,
    /// By task.
    pub task: Option<ContextId>,
    /// Not before.
    pub since: Option<Timestamp>,
    /// Not at or after.
    pub until: Option<Timestamp>,
}

impl EventFilter {
    /// Events of these types.
    pub fn of_kinds(kinds: impl IntoIterator<Item = EventKind>) -> Self {
        Self { kinds: kinds.into_iter().map(|kind| kind.as_str().to_owned()).collect(), ..Self::default() }
    }

    /// Whether an event with this heading may pass. What a heading does not say is taken to pass.
    pub fn may_have(&self, heading: &EventHeading) -> bool {
        let is = |wanted: Option<&str>, found: Option<&str>| wanted.is_none() || wanted == found;
        (self.kinds.is_empty() || self.kinds.contains(&heading.kind))
            && is(self.run.as_deref(), heading.run.as_deref())
            && is(self.tool.as_deref(), heading.tool.as_deref())
            && is(self.agent.as_ref().map(PrincipalId::as_str), heading.agent.as_deref())
    }
}

/// What tells whether somebody who follows a log wants to read an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventHeading {
    /// Its type.
    pub kind: String,
    /// The agent that it concerns.
    pub agent: Option<String>,
    /// The execution that it belongs to.
    pub run: Option<String>,
    /// The tool, with its service.
    pub tool: Option<String>,
}

/// What is new in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogNews {
    /// Whose log.
    pub tenant: TenantId,
    /// How many events are in it.
    pub size: u64,
    /// Those since the last look; `None` where they are too many, or where this is the first look.
    pub headings: Option<Vec<EventHeading>>,
}

/// An event with its place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Its place, counted from zero without gaps: the index of its leaf.
    pub sequence: u64,
    /// Its canonical JSON, as it was hashed.
    pub canonical: String,
}

impl LoggedEvent {
    /// The event in its types.
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
    /// What is signed.
    pub head: TreeHead,
    /// The signed text.
    pub checkpoint: String,
}

/// A log that does not continue from a head that was signed before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRollback {
    /// The head that is known.
    pub known: TreeHead,
    /// The newest head in the ledger; none where it has no such log.
    pub found: Option<TreeHead>,
}

impl LogRollback {
    /// Whose log it is.
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

/// Records that an operator accepted a ledger that went back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordRollback {
    /// Who and when, in the platform's log, which has the events of tenants that the ledger does not know.
    pub audit: AuditContext,
    /// Which logs went back; none where what was known of them cannot be read.
    pub log_rollbacks: Vec<LogRollback>,
}
