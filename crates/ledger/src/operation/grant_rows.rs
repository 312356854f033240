//! Grants as rows: reading, writing, and locking a lineage.

use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::constraint::Constraints;
use toolgate_model::credential::{Credential, ServiceName};
use toolgate_model::grant::{Authority, DelegationDepth, Grant, Lineage, Suspension};
use toolgate_model::id::{CredentialId, GrantId};
use toolgate_model::principal::{PrincipalId, TenantId};

use super::credentials;
use crate::sql::{Failure, Row, SqlError, json_text};
use crate::transaction::{Transaction, values};

/// The columns of a grant, in the order of [`read`].
pub const COLUMNS: &str = "id, tenant, credential, service, agent, granted_by, source, level, scopes, constraints, \
     context, delegatable, delegation_depth, expires_at, created_at, suspended_at, suspended_by, revoked_at";

/// Reads a row of [`COLUMNS`].
pub fn read(row: &Row) -> Result<Grant, SqlError> {
    let suspended = match (row.optional_time(15)?, row.optional_parsed(16, PrincipalId::parse)?) {
        (Some(at), Some(by)) => Some(Suspension { at, by }),
        (None, None) => None,
        _ => return Err(SqlError::Corrupt(format!("suspension of {}", row.text(0)?))),
    };
    Ok(Grant {
        id: row.parsed(0, GrantId::parse)?,
        tenant: row.parsed(1, TenantId::parse)?,
        credential: row.parsed(2, CredentialId::parse)?,
        service: row.parsed(3, ServiceName::parse)?,
        agent: row.parsed(4, PrincipalId::parse)?,
        granted_by: row.parsed(5, PrincipalId::parse)?,
        source: row.optional_parsed(6, GrantId::parse)?,
        level: row.count(7)?,
        authority: Authority {
            scopes: row.json(8)?,
            // A stored constraint that cannot be parsed makes the grant unreadable, which disables it.
            constraints: Constraints::from_json(&row.json(9)?)
                .map_err(|error| SqlError::Corrupt(format!("constraints: {error}")))?,
            context: row.json(10)?,
            delegatable: row.integer(11)? != 0,
            delegation_depth: DelegationDepth::from_option(
                row.optional_integer(12)?
                    .map(u32::try_from)
                    .transpose()
                    .map_err(|error| SqlError::Corrupt(error.to_string()))?,
            ),
            expires_at: row.optional_time(13)?,
        },
        created_at: row.time(14)?,
        suspended,
        revoked_at: row.optional_time(17)?,
    })
}

/// Stores a new grant.
pub async fn insert<T: Transaction>(transaction: &mut T, grant: &Grant) -> Result<(), Failure> {
    let authority = &grant.authority;
    let parameters = values![
        grant.id,
        &grant.tenant,
        grant.credential,
        &grant.service,
        &grant.agent,
        &grant.granted_by,
        grant.source,
        grant.level,
        json_text(&authority.scopes)?,
        authority.constraints.to_json().to_string(),
        json_text(&authority.context)?,
        authority.delegatable,
        authority.delegation_depth.to_option(),
        authority.expires_at,
        grant.created_at,
        authority.context.task(),
    ];
    transaction
        .execute(
            "INSERT INTO grants (id, tenant, credential, service, agent, granted_by, source, level, scopes, \
             constraints, context, delegatable, delegation_depth, expires_at, created_at, task) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
            parameters,
        )
        .await?;
    Ok(())
}

pub fn not_found(id: GrantId) -> Refusal {
    Refusal::new(Code::GrantNotFound, format!("there is no grant {id}")).with("grant_id", id)
}

pub async fn lineage<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    id: GrantId,
) -> Result<Option<Lineage>, Failure> {
    lineage_locked(transaction, tenant, id, "").await
}

/// Reads a lineage and locks all its grants and its credential against changes until the transaction ends.
///
/// INVARIANT: a transaction that changes grants locks the credential first, then grants from the top of the lineage
/// down. A revocation above therefore waits for this transaction, and this one for it: neither misses the other.
pub async fn share_lineage<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    id: GrantId,
) -> Result<(Lineage, Credential), Failure> {
    let credential = share_credential(transaction, tenant, id).await?;
    let lineage = lineage_locked(transaction, tenant, id, T::FOR_SHARE).await?.ok_or_else(|| not_found(id))?;
    Ok((lineage, credential))
}

/// Like [`share_lineage`], for a transaction that changes the grant itself.
pub async fn take_grant<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    id: GrantId,
) -> Result<Lineage, Failure> {
    share_credential(transaction, tenant, id).await?;
    let unlocked = lineage_locked(transaction, tenant, id, "").await?.ok_or_else(|| not_found(id))?;
    if let Some(source) = unlocked.grant().source {
        lineage_locked(transaction, tenant, source, T::FOR_SHARE).await?;
    }
    let lock = format!("SELECT id FROM grants WHERE id = $1{}", T::FOR_UPDATE);
    transaction.query(&lock, values![id]).await?;
    lineage_locked(transaction, tenant, id, "").await?.ok_or_else(|| not_found(id).into())
}

async fn share_credential<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    id: GrantId,
) -> Result<Credential, Failure> {
    let sql = format!(
        "SELECT {} FROM credentials WHERE id = (SELECT credential FROM grants WHERE id = $1 AND tenant = $2){}",
        credentials::COLUMNS,
        T::FOR_SHARE
    );
    let row = transaction.query_optional(&sql, values![id, tenant]).await?.ok_or_else(|| not_found(id))?;
    Ok(credentials::read(&row)?)
}

async fn lineage_locked<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    id: GrantId,
    lock: &str,
) -> Result<Option<Lineage>, Failure> {
    let sql = format!(
        "WITH RECURSIVE lineage (id, source) AS ( \
             SELECT id, source FROM grants WHERE id = $1 AND tenant = $2 \
             UNION ALL \
             SELECT above.id, above.source FROM grants AS above JOIN lineage ON above.id = lineage.source \
         ) SELECT {COLUMNS} FROM grants WHERE id IN (SELECT id FROM lineage) ORDER BY level{lock}"
    );
    let rows = transaction.query(&sql, values![id, tenant]).await?;
    let grants = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(assemble(grants)?)
}

/// Puts the grants of one lineage, the direct grant first, together.
pub fn assemble(mut grants: Vec<Grant>) -> Result<Option<Lineage>, SqlError> {
    let Some(grant) = grants.pop() else { return Ok(None) };
    let id = grant.id;
    let lineage = Lineage::new(grants, grant);
    lineage.map(Some).ok_or_else(|| SqlError::Corrupt(format!("the lineage of {id} is broken")))
}
