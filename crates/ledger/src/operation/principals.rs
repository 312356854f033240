//! Principals, with their scopes, permissions and limits.

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{
    AuditContext, CreatePrincipal, Mandate, Page, PageRequest, Principals, RemovePrincipal, Removed, UpdatePrincipal,
};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::descriptor::ToolId;
use toolgate_model::event::{AgentCreated, AgentRemoved, AgentUpdated, EventPayload, ToolForbidden};
use toolgate_model::permission::PermissionSet;
use toolgate_model::principal::{Principal, PrincipalChanges, PrincipalId, PrincipalKind, TenantId};

use super::Operation;
use super::administration::{Administration, Entitled};
use super::cascade::{Cascade, revoke_below};
use super::listing::Conditions;
use super::record::{Entry, record, record_all};
use super::spending::budgets;
use crate::ledger::{Engine, SqlLedger};
use crate::sql::{Failure, Row, SqlError, Value, json_text};
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

const COLUMNS: &str = "tenant, id, kind, attributes, revision, created_at, removed_at";

fn read(row: &Row) -> Result<Principal, SqlError> {
    let (tenant, id) = (row.parsed(0, TenantId::parse)?, row.parsed(1, PrincipalId::parse)?);
    let kind = row.parsed(2, |text| PrincipalKind::parse(text).ok_or(()))?;
    let mut principal = Principal::new(tenant, id, kind, PermissionSet::default(), row.time(5)?);
    row.json::<PrincipalChanges>(3)?.apply(&mut principal);
    Ok(Principal { revision: row.count(4)?, removed_at: row.optional_time(6)?, ..principal })
}

fn attributes(principal: &Principal) -> Result<Value<'static>, SqlError> {
    json_text(&PrincipalChanges::of(principal))
}

/// Keeps the receiver of a grant from being removed until the transaction ends; refuses a removed one. A receiver that
/// is not registered yet is allowed: the grant waits for it, and ids are never reused.
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

pub async fn insert<T: Transaction>(transaction: &mut T, principal: &Principal) -> Result<(), Failure> {
    let sql =
        "INSERT INTO principals (tenant, id, kind, attributes, revision, created_at) VALUES ($1, $2, $3, $4, $5, $6)";
    let parameters = values![
        &principal.tenant,
        &principal.id,
        principal.kind.as_str(),
        attributes(principal)?,
        principal.revision,
        principal.created_at,
    ];
    match transaction.execute(sql, parameters).await {
        Err(SqlError::Taken(_)) => {
            let reason = format!("`{}` is taken; ids of removed agents are not reused", principal.id);
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

/// Reads a principal and locks it as `lock` says.
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

/// Stores the attributes of a principal that the transaction holds.
pub async fn store<T: Transaction>(transaction: &mut T, principal: &Principal) -> Result<(), Failure> {
    let sql = "UPDATE principals SET attributes = $1, revision = $2 WHERE tenant = $3 AND id = $4";
    let parameters = values![attributes(principal)?, principal.revision, &principal.tenant, &principal.id];
    transaction.execute(sql, parameters).await?;
    Ok(())
}

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
        let Principal { tenant, id, budget, .. } = &self.principal;
        budgets::change(transaction, tenant, budgets::Owner::Agent(id), [None, *budget], by.time).await?;
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
            let reason = format!("`{}` was changed concurrently; read it and try again", self.id);
            return Err(Refusal::new(Code::VersionConflict, reason).into());
        }
        let budget = principal.budget;
        let changed = self.changes.apply(&mut principal);
        if changed.is_empty() {
            return Ok(principal);
        }
        store(transaction, &principal).await?;
        if changed.contains(&"budget") {
            let budgets = [budget, principal.budget];
            budgets::change(transaction, tenant, budgets::Owner::Agent(&self.id), budgets, by.time).await?;
        }
        let payload = EventPayload::AgentUpdated(AgentUpdated {
            agent_id: self.id.clone(),
            budget: changed.contains(&"budget").then_some(principal.budget),
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
    /// The numbers of keys and grants.
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
        // A transaction that changes grants share-locks their credential: locking these excludes new delegations.
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

pub struct ReadPrincipal {
    pub tenant: TenantId,
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
    pub tenant: TenantId,
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

/// Lists principals that have a budget. An attribute that is set stands in the stored document; the name of a member
/// cannot stand in a text of it, in which quotes are escaped.
pub struct WithBudget {
    pub tenant: TenantId,
    pub page: PageRequest,
}

impl Operation for WithBudget {
    type Output = Page<Principal>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Page<Principal>, Failure> {
        let mut conditions = Conditions::default();
        conditions.and("tenant =", &self.tenant);
        conditions.and_that("removed_at IS NULL");
        conditions.and_that(r#"attributes LIKE '%"budget":{%'"#);
        conditions.and_if("id >", self.page.after.as_deref());
        let from = (COLUMNS, "principals", "id");
        conditions.page(transaction, from, &self.page, read, |principal| principal.id.to_string()).await
    }
}

/// Records entries of an allowlist that name no existing tool.
async fn record_unresolved<T: Transaction>(
    transaction: &mut T,
    audit: &AuditContext,
    principal: &Principal,
    unresolved: &[ToolId],
) -> Result<(), Failure> {
    let agent = (principal.kind == PrincipalKind::Agent).then_some(&principal.id);
    let entries = unresolved.iter().map(|tool| {
        let payload = EventPayload::ToolForbidden(ToolForbidden::at_load(agent, tool));
        Entry { tool: Some(tool.as_str().into()), ..Entry::about(payload, &principal.id) }
    });
    record_all(transaction, audit, entries).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::migration::SQLITE;

    #[test]
    fn the_principals_of_an_older_ledger_keep_their_attributes_and_damage_stays_in_its_row() {
        let ledger = rusqlite::Connection::open_in_memory().unwrap();
        let attributes_at =
            SQLITE.iter().position(|migration| migration.sql.contains("ADD COLUMN attributes")).unwrap();
        let (before, from_then_on) = SQLITE.split_at(attributes_at);
        before.iter().for_each(|migration| ledger.execute_batch(migration.sql).unwrap());
        ledger
            .execute_batch(
                r#"INSERT INTO tenants (id, created_at) VALUES ('a', 0);
                   INSERT INTO principals (tenant, id, kind, name, scopes, permissions, created_at, rate_limits, tool_allowlist,
                       revision, labels, detaches)
                   VALUES ('a', 'billing', 'agent', 'Bill "B"', '["mail:*"]', '["tools.invoke"]', 0,
                       '{"*":{"requests":1,"per_seconds":1}}', '["connector:a.b"]', 3, '["trusted"]', 1),
                       ('a', 'broken', 'agent', NULL, '[', '[]', 0, '{}', NULL, 1, '[]', 0),
                       ('a', 'nobody', 'agent', NULL, '[]', '[]', 0, '{}', NULL, 1, '[]', 0);"#,
            )
            .unwrap();
        from_then_on.iter().for_each(|migration| ledger.execute_batch(migration.sql).unwrap());
        let read = |id: &str| {
            let sql = "SELECT attributes FROM principals WHERE id = ?1";
            let text = ledger.query_row(sql, [id], |row| row.get::<_, String>(0)).unwrap();
            serde_json::from_str::<toolgate_model::principal::PrincipalChanges>(&text).map(|read| json!(read))
        };
        let billing = json!({
            "name": "Bill \"B\"", "scopes": ["mail:*"], "permissions": ["tools.invoke"],
            "rate_limits": {"*": {"requests": 1, "per_seconds": 1}}, "tool_allowlist": ["connector:a.b"],
            "labels": ["trusted"], "detach_calls": true
        });
        assert_eq!(read("billing").unwrap(), billing);
        let nobody = json!({"scopes": [], "permissions": [], "rate_limits": {}, "labels": [], "detach_calls": false});
        assert_eq!(read("nobody").unwrap(), nobody);
        assert!(read("broken").is_err());
    }
}
