//! Revocation of many grants at once: of one grant and its descendants, of a credential, a vault or an agent. One
//! transaction, one event for each grant.

use toolgate_gate::ports::ledger::AuditContext;
use toolgate_model::context::GrantContext;
use toolgate_model::event::{EventPayload, GrantRevoked};
use toolgate_model::id::{CredentialId, GrantId, TaskId};
use toolgate_model::principal::PrincipalId;

use super::agent_tasks;
use super::record::{Entry, record_all};
use crate::sql::{Failure, Value};
use crate::transaction::Transaction;

/// Where a cascade begins.
pub enum Cascade<'a> {
    /// At the grants of an agent.
    Agent(&'a PrincipalId),
    /// At the grants on a credential.
    Credential(CredentialId),
    Grant(GrantId),
    /// At the grants that are bound to a task.
    Task(TaskId),
}

/// Revokes the grants of the cascade that are neither revoked nor expired yet; returns their number.
///
/// INVARIANT: the caller holds the locks that prevent concurrent delegations below the roots.
pub async fn revoke_below<T: Transaction>(
    transaction: &mut T,
    audit: &AuditContext,
    cascade: Cascade<'_>,
    reason: &str,
) -> Result<u64, Failure> {
    let (root, root_value) = match &cascade {
        Cascade::Agent(agent) => ("agent = $3", Value::from(*agent)),
        Cascade::Credential(credential) => ("credential = $3", Value::from(*credential)),
        Cascade::Grant(grant) => ("id = $3", Value::from(*grant)),
        Cascade::Task(task) => ("task = $3", Value::from(*task)),
    };
    let sql = format!(
        "WITH RECURSIVE clock (now, tenant) AS (VALUES (CAST($1 AS BIGINT), CAST($2 AS TEXT))), \
         below (id) AS ( \
             SELECT id FROM grants WHERE {root} AND tenant = (SELECT tenant FROM clock) \
             UNION \
             SELECT grants.id FROM grants JOIN below ON grants.source = below.id \
         ) UPDATE grants SET revoked_at = (SELECT now FROM clock) \
         WHERE id IN (SELECT id FROM below) AND revoked_at IS NULL \
             AND (expires_at IS NULL OR expires_at > (SELECT now FROM clock)) \
         RETURNING id, agent, context"
    );
    let parameters = [Value::from(audit.time), Value::from(&audit.tenant), root_value];
    let rows = transaction.query(&sql, &parameters).await?;
    let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
    let mut entries = Vec::with_capacity(rows.len());
    let mut revoked = Vec::with_capacity(rows.len());
    for row in &rows {
        let grant = row.parsed(0, GrantId::parse)?;
        revoked.push(grant);
        let agent = row.parsed(1, PrincipalId::parse)?;
        let context: GrantContext = row.json(2)?;
        let (reason, cascade_count) = match &cascade {
            Cascade::Grant(root) if *root == grant => (reason.to_owned(), count - 1),
            Cascade::Grant(root) => (format!("{root}, which it was delegated from, was revoked"), 0),
            Cascade::Agent(_) | Cascade::Credential(_) | Cascade::Task(_) => (reason.to_owned(), 0),
        };
        let payload = EventPayload::GrantRevoked(GrantRevoked { grant_id: grant, reason, cascade_count });
        entries.push(Entry { context, ..Entry::about(payload, &agent) });
    }
    // The root first, then its descendants, oldest first.
    entries.sort_by_key(|entry| match (&entry.payload, &cascade) {
        (EventPayload::GrantRevoked(revoked), Cascade::Grant(root)) => {
            (revoked.grant_id != *root, Some(revoked.grant_id))
        }
        (EventPayload::GrantRevoked(revoked), _) => (true, Some(revoked.grant_id)),
        _ => (true, None),
    });
    agent_tasks::forget_grants(transaction, &audit.tenant, &revoked).await?;
    record_all(transaction, audit, entries).await?;
    Ok(count)
}
