//! Reading the audit log and its proofs.

use std::sync::Arc;

use toolgate_model::audit_export::{self, BLOCK_EVENTS, ExportError};
use toolgate_model::blinding::Blinding;
use toolgate_model::checkpoint::SigningKey;
use toolgate_model::merkle::{
    Hash, TileError, block_tiles, consistency_proof, consistency_tiles, inclusion_proof, inclusion_tiles,
};
use toolgate_model::openwop_event::RunEvent;
use toolgate_model::permission::Permission;

use crate::gate::Ports;
use crate::identify::{Authenticator, Caller};
use crate::ports::clock::Clock;
use crate::ports::ledger::{AuditLog, EventFilter, Freshness, LogHead, LoggedEvent, Page, PageRequest};
use crate::refusal::{Code, Refusal};

/// An export in progress: a fixed head and the blocks up to it, for a caller who may read them.
pub struct Export {
    caller: Caller,
    head: LogHead,
    next: u64,
    ended: bool,
}

/// A proof with the head that it leads to.
pub struct Proof {
    pub hashes: Vec<Hash>,
    /// The size of the tree that the proof is about.
    pub size: u64,
    pub head: LogHead,
}

/// Reads and proves the audit log, and integrates committed events.
pub struct AuditReader {
    log: Arc<dyn AuditLog>,
    clock: Arc<dyn Clock>,
    authenticator: Arc<Authenticator>,
    audit_key: Arc<SigningKey>,
    pub(super) blinding: Blinding,
}

impl AuditReader {
    pub(crate) fn new(ports: &Ports, audit_key: Arc<SigningKey>, authenticator: Arc<Authenticator>) -> Self {
        Self {
            log: ports.ledger.clone(),
            clock: Arc::clone(&ports.clock),
            authenticator,
            blinding: Blinding::new(&audit_key),
            audit_key,
        }
    }

    /// Lists events in order, including everything committed before this call.
    pub async fn events(
        &self,
        caller: &Caller,
        filter: EventFilter,
        page: PageRequest,
    ) -> Result<Page<LoggedEvent>, Refusal> {
        caller.require(Permission::ReadAudit)?;
        self.integrate_if_possible().await;
        self.log.events(caller.tenant(), filter, page).await
    }

    /// Lists the events that the caller may see, in order: all of them with the permission to read the log, otherwise
    /// those that concern the caller. [`Freshness::Recent`] events end where the log was last integrated.
    pub async fn visible_events(
        &self,
        caller: &Caller,
        mut filter: EventFilter,
        page: PageRequest,
        freshness: Freshness,
    ) -> Result<Page<LoggedEvent>, Refusal> {
        if !caller.may(Permission::ReadAudit) {
            if filter.agent.as_ref().is_some_and(|agent| agent != caller.id()) {
                caller.require(Permission::ReadAudit)?;
            }
            filter.agent = Some(caller.id().clone());
        }
        if freshness == Freshness::Newest {
            self.integrate_if_possible().await;
        }
        self.log.events(caller.tenant(), filter, page).await
    }

    /// Removes from an event what would tell a caller without the permission to read the log whether the credential's
    /// secret was found in its arguments.
    pub fn blind_event(&self, caller: &Caller, event: &mut RunEvent) {
        if !caller.may(Permission::ReadAudit) {
            self.blinding.apply(&event.event_id.to_string(), &mut event.payload);
        }
    }

    /// The newest signed head and the key that verifies it.
    pub async fn log_head(&self, caller: &Caller) -> Result<LogHead, Refusal> {
        caller.require(Permission::ReadAudit)?;
        self.integrate_if_possible().await;
        let head = self.log.log_head(caller.tenant()).await?;
        head.ok_or_else(|| Refusal::new(Code::Internal, "the audit log of the tenant has no head"))
    }

    /// Integrates committed events into the audit log and returns their number.
    pub async fn integrate(&self) -> Result<u64, Refusal> {
        self.log.integrate(Arc::clone(&self.audit_key), self.clock.now()).await
    }

    /// A ledger that takes no writes can still be read: the log then ends where it was last integrated.
    pub(super) async fn integrate_if_possible(&self) {
        if let Err(refusal) = self.integrate().await {
            tracing::warn!(%refusal, "could not integrate new events; reading the audit log without them");
        }
    }

    /// The public key that verifies heads, as text.
    pub fn audit_public_key(&self) -> String {
        self.audit_key.public_key().to_string()
    }

    /// Proves that an event is in the log of a size (default: the newest).
    pub async fn prove_inclusion(&self, caller: &Caller, sequence: u64, size: Option<u64>) -> Result<Proof, Refusal> {
        let head = self.log_head(caller).await?;
        let size = within(size.unwrap_or(head.head.size), &head)?;
        let tiles = self.log.tiles(caller.tenant(), &inclusion_tiles(sequence, size)).await?;
        Ok(Proof { hashes: inclusion_proof(sequence, size, &tiles)?, size, head })
    }

    /// Proves that the log of one size is a prefix of the log of another (default: the newest).
    pub async fn prove_consistency(&self, caller: &Caller, first: u64, second: Option<u64>) -> Result<Proof, Refusal> {
        let head = self.log_head(caller).await?;
        let size = within(second.unwrap_or(head.head.size), &head)?;
        let tiles = self.log.tiles(caller.tenant(), &consistency_tiles(first, size)).await?;
        Ok(Proof { hashes: consistency_proof(first, size, &tiles)?, size, head })
    }

    /// Starts an export of the whole log in its current state.
    pub async fn begin_export(&self, caller: &Caller) -> Result<(Export, Vec<u8>), Refusal> {
        let head = self.log_head(caller).await?;
        let key = self.audit_key.public_key();
        let header = audit_export::header_line(caller.tenant(), &head.checkpoint, key);
        Ok((Export { caller: caller.clone(), head, next: 0, ended: false }, header))
    }

    /// The next lines of an export; `None` at its end. Refused once the caller's key or permission has ended: a client
    /// that reads slowly must not keep an access that was revoked.
    pub async fn continue_export(&self, export: &mut Export) -> Result<Option<Vec<u8>>, Refusal> {
        export.caller = self.authenticator.identify_again(&export.caller).await?;
        export.caller.require(Permission::ReadAudit)?;
        let tenant = export.caller.tenant();
        let size = export.head.head.size;
        let block = export.next;
        let first = block.saturating_mul(BLOCK_EVENTS);
        if first >= size {
            let end = (!export.ended).then(|| audit_export::end_line(size));
            export.ended = true;
            return Ok(end);
        }
        let count = u32::try_from((size - first).min(BLOCK_EVENTS)).unwrap_or(PageRequest::LIMIT);
        let after = first.checked_sub(1).map(|before| before.to_string());
        let page = PageRequest { after, limit: count };
        let events = self.log.events(tenant, EventFilter::default(), page).await?;
        let tiles = self.log.tiles(tenant, &block_tiles(block, size)).await?;
        let mut lines = audit_export::block_line(block, size, &tiles)?;
        for event in events.items {
            lines.extend(audit_export::event_line(event.sequence, &event.canonical)?);
        }
        export.next = block.saturating_add(1);
        Ok(Some(lines))
    }
}

fn within(size: u64, head: &LogHead) -> Result<u64, Refusal> {
    if size <= head.head.size {
        return Ok(size);
    }
    let reason = format!("the log has {} events; use a size up to that", head.head.size);
    Err(Refusal::new(Code::InvalidField, reason).with("path", "size"))
}

impl From<TileError> for Refusal {
    fn from(error: TileError) -> Self {
        let code = match error {
            TileError::OutOfRange { .. } => Code::InvalidField,
            _ => Code::Internal,
        };
        Self::new(code, error.to_string())
    }
}

impl From<ExportError> for Refusal {
    fn from(error: ExportError) -> Self {
        Self::new(Code::Internal, error.to_string())
    }
}
