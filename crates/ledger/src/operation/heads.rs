//! Comparing the logs with heads that were signed before: a log only ever grows, so that one which is smaller or different
//! is that of an older or of another ledger.

use std::collections::BTreeMap;

use toolgate_gate::ports::ledger::{AuditContext, LogHead, LogRollback, RecordRollback};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::checkpoint::TreeHead;
use toolgate_model::event::{EventPayload, LedgerRollbackAccepted};
use toolgate_model::merkle::{consistency_proof, consistency_tiles, verify_consistency};
use toolgate_model::principal::TenantId;

use super::Operation;
use super::audit::{head_of_row, read_tiles};
use super::record::{Entry, record};
use super::tenants::ReadTenant;
use crate::sql::Failure;
use crate::transaction::Transaction;

/// Compares the logs with these heads.
pub struct CompareHeads {
    pub known: BTreeMap<TenantId, TreeHead>,
}

#[derive(Default)]
pub struct Compared {
    /// The logs that do not continue from their known heads.
    pub log_rollbacks: Vec<LogRollback>,
    /// The heads of the others that are newer.
    pub newer: Vec<LogHead>,
}

impl Operation for CompareHeads {
    type Output = Compared;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Compared, Failure> {
        let rows = transaction.query("SELECT tenant, size, root, time, checkpoint FROM heads", &[]).await?;
        let heads = rows.iter().map(head_of_row).collect::<Result<Vec<_>, _>>()?;
        let mut compared = Compared::default();
        let mut missing: BTreeMap<_, _> = self.known.iter().collect();
        for head in heads {
            let Some(known) = missing.remove(&head.head.tenant) else {
                compared.newer.push(head);
                continue;
            };
            match log_rollback(transaction, known, Some(&head.head)).await? {
                Some(log_rollback) => compared.log_rollbacks.push(log_rollback),
                None if head.head.size > known.size => compared.newer.push(head),
                None => {}
            }
        }
        compared
            .log_rollbacks
            .extend(missing.into_values().map(|known| LogRollback { known: known.clone(), found: None }));
        Ok(compared)
    }
}

/// How a log fails to continue from a known head, if it does. If a continuation cannot be proved, it is a rollback.
pub(super) async fn log_rollback<T: Transaction>(
    transaction: &mut T,
    known: &TreeHead,
    found: Option<&TreeHead>,
) -> Result<Option<LogRollback>, Failure> {
    let goes_on = match found {
        None => known.size == 0,
        Some(found) if found.size == known.size => found.root == known.root,
        Some(found) if found.size < known.size => false,
        Some(found) => {
            let tiles = read_tiles(transaction, &found.tenant, &consistency_tiles(known.size, found.size)).await?;
            consistency_proof(known.size, found.size, &tiles)
                .is_ok_and(|proof| verify_consistency(known.size, found.size, &known.root, &found.root, &proof).is_ok())
        }
    };
    Ok((!goes_on).then(|| LogRollback { known: known.clone(), found: found.cloned() }))
}

/// The refusal of everything once logs went back.
pub fn rolled_back(log_rollbacks: &[LogRollback]) -> Refusal {
    let first = log_rollbacks.first().map(ToString::to_string).unwrap_or_default();
    let others = match log_rollbacks.len() {
        0 | 1 => String::new(),
        count => format!(" (and {} more tenants)", count - 1),
    };
    let reason = format!(
        "the ledger was rolled back while the gate was running: {first}{others}; restore the newest ledger and \
        restart the gate"
    );
    Refusal::new(Code::LedgerRolledBack, reason)
}

impl Operation for RecordRollback {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(), Failure> {
        if self.log_rollbacks.is_empty() {
            let unknown = EventPayload::LedgerRollbackAccepted(LedgerRollbackAccepted::default());
            return record(transaction, &self.audit, Entry::new(unknown)).await;
        }
        for LogRollback { known, found } in &self.log_rollbacks {
            let rollback = LedgerRollbackAccepted {
                found_root: found.as_ref().map(|found| found.root),
                found_size: found.as_ref().map(|found| found.size),
                known_root: Some(known.root),
                known_size: Some(known.size),
                tenant_id: Some(known.tenant.clone()),
            };
            let exists = ReadTenant { id: known.tenant.clone() }.run(transaction).await?.is_some();
            let tenant = if exists { &known.tenant } else { &self.audit.tenant };
            let audit = AuditContext { tenant: tenant.clone(), ..self.audit.clone() };
            record(transaction, &audit, Entry::new(EventPayload::LedgerRollbackAccepted(rollback))).await?;
        }
        Ok(())
    }
}
