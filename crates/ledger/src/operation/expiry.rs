//! Work by the clock: recording expiries, and destroying replaced material.

use toolgate_gate::ports::ledger::AuditContext;
use toolgate_model::context::GrantContext;
use toolgate_model::event::{CredentialExpired, EventPayload, GrantExpired};
use toolgate_model::id::{CredentialId, GrantId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::record::{Entry, record};
use super::sweeping::{Readable, Swept};
use super::{Operation, rates};
use crate::sql::{Failure, Row, Value};
use crate::transaction::{Transaction, values};

/// The maximum number recorded in one transaction.
pub const BATCH: u32 = 500;

/// Records the expiry of a batch of grants and credentials, each once, even with concurrent processes.
pub struct AnnounceExpired {
    pub now: Timestamp,
}

impl Operation for AnnounceExpired {
    type Output = Swept;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Swept, Failure> {
        let skip = T::FOR_UPDATE_SKIPPING;
        let grants = format!(
            "UPDATE grants SET expiry_announced_at = $1 WHERE id IN (SELECT id FROM grants \
             WHERE expires_at <= $1 AND expiry_announced_at IS NULL \
             ORDER BY expires_at LIMIT $2{skip}) RETURNING id, tenant, agent, context, revoked_at"
        );
        let credentials = format!(
            "UPDATE credentials SET expiry_announced_at = $1 WHERE id IN (SELECT id FROM credentials \
             WHERE expires_at <= $1 AND expiry_announced_at IS NULL AND revoked_at IS NULL \
             ORDER BY expires_at LIMIT $2{skip}) RETURNING id, tenant"
        );
        let credentials = transaction.query(&credentials, values![self.now, BATCH]).await?;
        let grants = transaction.query(&grants, values![self.now, BATCH]).await?;
        let full = |rows: usize| u32::try_from(rows).unwrap_or(u32::MAX) >= BATCH;
        let full = full(credentials.len()) || full(grants.len());
        let (now, mut entries) = (self.now, Vec::with_capacity(credentials.len() + grants.len()));
        let credentials = Readable::of(&credentials, |row| {
            let payload = EventPayload::CredentialExpired(CredentialExpired {
                credential_id: row.parsed(0, CredentialId::parse)?,
            });
            Ok((audit(row.parsed(1, TenantId::parse)?, now), Entry::new(payload)))
        });
        entries.extend(credentials.items);
        let ended: Vec<_> = grants.iter().filter_map(|row| Some(vec![Value::from(row.text(0).ok()?)])).collect();
        rates::forget(transaction, &ended).await?;
        // A grant that was revoked before had its end announced then.
        let grants: Vec<Row> = grants.into_iter().filter(|row| !matches!(row.optional_time(4), Ok(Some(_)))).collect();
        let grants = Readable::of(&grants, |row| {
            let payload = EventPayload::GrantExpired(GrantExpired { grant_id: row.parsed(0, GrantId::parse)? });
            let agent = row.parsed(2, PrincipalId::parse)?;
            let context: GrantContext = row.json(3)?;
            let entry = Entry { context, ..Entry::about(payload, &agent) };
            Ok((audit(row.parsed(1, TenantId::parse)?, now), entry))
        });
        entries.extend(grants.items);
        let done = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        for (audit, entry) in entries {
            record(transaction, &audit, entry).await?;
        }
        let unreadable = credentials.unreadable.into_iter().chain(grants.unreadable).collect();
        Ok(Swept { done, full, unreadable })
    }
}

fn audit(tenant: TenantId, now: Timestamp) -> AuditContext {
    AuditContext { tenant, actor: PrincipalId::system(), time: now }
}

/// Destroys replaced material whose last calls have ended; returns the number of versions.
pub struct DestroyRetired {
    pub now: Timestamp,
}

impl Operation for DestroyRetired {
    type Output = u64;

    // It changes no decision: the version in use stays.
    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<u64, Failure> {
        let sql = "UPDATE credential_versions SET ciphertext = NULL, wrapped_key = NULL, master_key = NULL, \
             destroyed_at = $1 WHERE retire_until <= $1 AND destroyed_at IS NULL";
        Ok(transaction.execute(sql, values![self.now]).await?)
    }
}
