//! Principals: who exists, with which scopes, permissions and limits.

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{
    AuditContext, CreatePrincipal, Mandate, Page, PageRequest, Principals, RemovePrincipal, Removed, UpdatePrincipal,
};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::descriptor::ToolId;
use toolgate_model::event::{AgentCreated, AgentRemoved, AgentUpdated, EventPayload, ToolForbidden};
use toolgate_model::principal::{Principal, PrincipalId, PrincipalKind, TenantId};
use toolgate_model::principal_scope::HeldScopes;
use toolgate_model::text::Line;

use super::Operation;
use super::administration::{Administration, Entitled};
use super::cascade::{Cascade, revoke_below};
use super::listing::Conditions;
use super::record::{Entry, record, record_all};
use crate::ledger::{Engine, SqlLedger};
use crate::sql::{Failure, Row, SqlError, json_text};
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> Principals for SqlLedger<E> {
    async fn create_principal(&self, command: CreatePrincipal) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn principal(&self, tenant: &TenantId, id: &PrincipalId) -> Result<Option<Principal>, Refusal> {
        self.engine.read(ReadPrincipal { tenant: tenant.clone(), id: id.clone() }).await
    }

    async fn principals(&self, tenant: &TenantId, page: PageRequest) -> Result<Page<Principal>, Refusal> {
        self.engine.read(ListPrincipals { tenant: tenant.clone(), page }).await
    }

    async fn update_principal(&self, command: UpdatePrincipal) -> Result<Principal, Refusal> {
        self.engine.write(command).await
    }

    async fn remove_principal(&self, command: RemovePrincipal) -> Result<Removed, Refusal> {
        let (keys, grants) = self.engine.write(command).await?;
        Ok(Removed { keys, grants, revision: self.revision_after_change().await? })
    }
}

const COLUMNS: &str = "tenant, id, kind, name, scopes, permissions, created_at, removed_at, rate_limits, \
     tool_allowlist, revision, labels, detaches";

fn read(row: &Row) -> Result<Principal, SqlError> {
    Ok(Principal {
        tenant: row.parsed(0, TenantId::parse)?,
        id: row.parsed(1, PrincipalId::parse)?,
        kind: row.parsed(2, |text| PrincipalKind::parse(text).ok_or(()))?,
        name: row.optional_parsed(3, Line::parse)?,
        // Scopes of an earlier time may break the rules of today; then they open nothing, and the principal is still there.
        scopes: HeldScopes::from_stored(row.json::<Vec<String>>(4)?),
        permissions: row.json(5)?,
        created_at: row.time(6)?,
        removed_at: row.optional_time(7)?,
        rate_limits: row.json(8)?,
        tool_allowlist: row.optional_parsed(9, |text| serde_json::from_str(text))?,
        revision: row.count(10)?,
        labels: row.json(11)?,
        detaches: row.integer(12)? != 0,
    })
}

/// Keeps the receiver of a grant from being removed until the transaction ends; refuses one that was. A receiver that is
/// not registered yet is no mistake: the grant waits for it, and ids are never given out twice.
pub async fn share_grantee<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    id: &PrincipalId,
) -> Result<(), Failure> {
    match locked(transaction, tenant, id, T::FOR_SHARE).await? {
        Some(Principal { removed_at: Some(_), .. }) => Err(not_found(id).into()),
        _ => Ok(()),
    }
}

/// Stores a principal.
pub async fn insert<T: Transaction>(transaction: &mut T, principal: &Principal) -> Result<(), Failure> {
    let sql = "INSERT INTO principals (tenant, id, kind, name, scopes, permissions, created_at, rate_limits, \
         tool_allowlist, revision, labels, detaches) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    let parameters = values![
        &principal.tenant,
        &principal.id,
        principal.kind.as_str(),
        principal.name.as_ref(),
        json_text(&principal.scopes)?,
        json_text(&principal.permissions)?,
        principal.created_at,
        json_text(&principal.rate_limits)?,
        principal.tool_allowlist.as_ref().map(json_text).transpose()?,
        principal.revision,
        json_text(&principal.labels)?,
        principal.detaches,
    ];
    match transaction.execute(sql, parameters).await {
        Err(SqlError::Taken(_)) => {
            let reason = format!("`{}` is taken; ids of removed agents are not given out again", principal.id);
            Err(Refusal::new(Code::AlreadyExists, reason).into())
        }
        other => other.map(drop).map_err(Failure::from),
    }
}

/// The event for a new principal.
pub fn created(principal: &Principal) -> Entry {
    let payload = EventPayload::AgentCreated(AgentCreated {
        agent_id: principal.id.clone(),
        kind: principal.kind,
        permissions: principal.permissions.clone(),
    });
    Entry::about(payload, &principal.id)
}

/// Reads a principal, and keeps others from changing it as far as `lock` says.
pub async fn locked<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    id: &PrincipalId,
    lock: &str,
) -> Result<Option<Principal>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM principals WHERE tenant = $1 AND id = $2{lock}");
    let row = transaction.query_optional(&sql, values![tenant, id]).await?;
    Ok(row.as_ref().map(read).transpose()?)
}

/// The refusal for a principal that is not there.
pub fn not_found(id: &PrincipalId) -> Refusal {
    Refusal::new(Code::AgentNotFound, format!("there is no agent `{id}`")).with("agent_id", id)
}

impl Administration for CreatePrincipal {
    type Output = ();

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(), Failure> {
        insert(transaction, &self.principal).await?;
        record(transaction, by, created(&self.principal)).await?;
        record_unresolved(transaction, by, &self.principal, &self.unresolved).await
    }
}

impl Administration for UpdatePrincipal {
    type Output = Principal;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<Principal, Failure> {
        let tenant = &by.tenant;
        let found = locked(transaction, tenant, &self.id, T::FOR_UPDATE).await?;
        let mut principal =
            found.filter(|principal| principal.removed_at.is_none()).ok_or_else(|| not_found(&self.id))?;
        if principal.revision != self.expected_revision {
            let reason = format!("`{}` was changed at the same moment; look at it and try again", self.id);
            return Err(Refusal::new(Code::VersionConflict, reason).into());
        }
        let changed = self.changes.apply(&mut principal);
        if changed.is_empty() {
            return Ok(principal);
        }
        let sql = "UPDATE principals SET name = $1, scopes = $2, permissions = $3, rate_limits = $4, \
             tool_allowlist = $5, revision = $6, labels = $7, detaches = $8 WHERE tenant = $9 AND id = $10";
        let parameters = values![
            principal.name.as_ref(),
            json_text(&principal.scopes)?,
            json_text(&principal.permissions)?,
            json_text(&principal.rate_limits)?,
            principal.tool_allowlist.as_ref().map(json_text).transpose()?,
            principal.revision,
            json_text(&principal.labels)?,
            principal.detaches,
            tenant,
            &self.id,
        ];
        transaction.execute(sql, parameters).await?;
        let payload = EventPayload::AgentUpdated(AgentUpdated {
            agent_id: self.id.clone(),
            revision: principal.revision,
            scopes: changed.contains(&"scopes").then(|| principal.scopes.clone()),
            permissions: changed.contains(&"permissions").then(|| principal.permissions.clone()),
            changed: changed.iter().map(|name| (*name).to_owned()).collect(),
        });
        record(transaction, by, Entry::about(payload, &self.id)).await?;
        if changed.contains(&"tool_allowlist") {
            record_unresolved(transaction, by, &principal, &self.unresolved).await?;
        }
        Ok(principal)
    }
}

impl Administration for RemovePrincipal {
    /// How many keys and grants.
    type Output = (u64, u64);

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(u64, u64), Failure> {
        let tenant = &by.tenant;
        let principal = locked(transaction, tenant, &self.id, T::FOR_UPDATE).await?;
        let principal = principal.filter(|principal| principal.removed_at.is_none());
        by.require_within_own(&principal.ok_or_else(|| not_found(&self.id))?)?;
        let now = by.time;
        let mark = "UPDATE principals SET removed_at = $1 WHERE tenant = $2 AND id = $3";
        transaction.execute(mark, values![now, tenant, &self.id]).await?;
        let end_keys = "UPDATE keys SET revoked_at = $1 WHERE tenant = $2 AND principal = $3 AND revoked_at IS NULL";
        let keys = transaction.execute(end_keys, values![now, tenant, &self.id]).await?;
        // Whoever changes grants shares their credential: holding these keeps new delegations out.
        let hold = format!(
            "SELECT id FROM credentials WHERE id IN (SELECT credential FROM grants WHERE tenant = $1 AND agent = $2) \
             ORDER BY id{}",
            T::FOR_UPDATE
        );
        transaction.query(&hold, values![tenant, &self.id]).await?;
        let reason = format!("agent `{}` was removed", self.id);
        let grants = revoke_below(transaction, by, Cascade::Agent(&self.id), &reason).await?;
        let payload = EventPayload::AgentRemoved(AgentRemoved {
            agent_id: self.id.clone(),
            revoked_keys: keys,
            revoked_grants: grants,
        });
        record(transaction, by, Entry::about(payload, &self.id)).await?;
        Ok((keys, grants))
    }
}

/// Reads one principal.
pub struct ReadPrincipal {
    /// Whose.
    pub tenant: TenantId,
    /// Which.
    pub id: PrincipalId,
}

impl Operation for ReadPrincipal {
    type Output = Option<Principal>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<Principal>, Failure> {
        locked(transaction, &self.tenant, &self.id, "").await
    }
}

/// Lists principals that are not removed.
pub struct ListPrincipals {
    /// Whose.
    pub tenant: TenantId,
    /// Which page.
    pub page: PageRequest,
}

impl Operation for ListPrincipals {
    type Output = Page<Principal>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Page<Principal>, Failure> {
        let mut conditions = Conditions::default();
        conditions.and("tenant =", &self.tenant);
        conditions.and_that("removed_at IS NULL");
        conditions.and_if("id >", self.page.after.as_deref());
        let from = (COLUMNS, "principals", "id");
        conditions.page(transaction, from, &self.page, read, |principal| principal.id.to_string()).await
    }
}

/// Records what an allowlist names and there is not.
async fn record_unresolved<T: Transaction>(
    transaction: &mut T,
    audit: &AuditContext,
    principal: &Principal,
    unresolved: &[ToolId],
) -> Result<(), Failure> {
    let agent = (principal.kind == PrincipalKind::Agent).then_some(&principal.id);
    let entries = unresolved.iter().map(|tool| {
        let payload = EventPayload::ToolForbidden(ToolForbidden::at_load(agent, tool));
        Entry { tool: Some(tool.to_string()), ..Entry::about(payload, &principal.id) }
    });
    record_all(transaction, audit, entries.collect()).await
}
