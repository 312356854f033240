//! Tenants.

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{AuditContext, CallLimits, CreateTenant, Mandate, Page, PageRequest, Tenants};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::event::{EventPayload, TenantCreated};
use toolgate_model::principal::{Principal, Tenant, TenantId};
use toolgate_model::text::Line;

use super::administration::{Administration, Entitled};
use super::record::{Entry, record, record_all};
use super::{Operation, keys, principals};
use crate::ledger::{Engine, SqlLedger};
use crate::sql::{Failure, Row, SqlError};
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> Tenants for SqlLedger<E> {
    async fn create_tenant(&self, command: CreateTenant) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn tenants(&self, page: PageRequest) -> Result<Page<Tenant>, Refusal> {
        self.engine.read(ListTenants { page }).await
    }

    async fn tenant(&self, id: &TenantId) -> Result<Option<Tenant>, Refusal> {
        self.engine.read(ReadTenant { id: id.clone() }).await
    }
}

const COLUMNS: &str = "id, name, created_at, budget, stopped, gate_stopped";
/// Reads one tenant.
pub const SELECT: &str = "SELECT id, name, created_at, budget, stopped, gate_stopped FROM tenants WHERE id = $1";

pub fn read(row: &Row) -> Result<Tenant, SqlError> {
    Ok(Tenant {
        id: row.parsed(0, TenantId::parse)?,
        name: row.optional_parsed(1, Line::parse)?,
        created_at: row.time(2)?,
        budget: row.optional_text(3)?.map(|_| row.json(3)).transpose()?,
        stopped: row.optional_text(4)?.map(|_| row.json(4)).transpose()?,
        gate_stopped: row.optional_text(5)?.map(|_| row.json(5)).transpose()?,
    })
}

/// Reads the limits of a tenant with their revision, in one statement.
pub async fn limits<T: Transaction>(
    transaction: &mut T,
    id: &TenantId,
    agent: Option<&Principal>,
) -> Result<CallLimits, Failure> {
    let sql = "SELECT id, name, created_at, budget, stopped, gate_stopped, registries.limits FROM tenants \
         JOIN registries ON registries.tenant = tenants.id WHERE id = $1";
    let row = transaction.query_optional(sql, values![id]).await?;
    let row = row.ok_or_else(|| SqlError::Corrupt(format!("tenant {id} has no registry")))?;
    Ok(CallLimits::of(row.count(6)?, &read(&row)?, agent))
}

/// Reads a tenant and keeps every admission in it from happening until the transaction ends.
pub async fn hold_limits<T: Transaction>(transaction: &mut T, id: &TenantId) -> Result<Tenant, Failure> {
    let registry = format!("SELECT tenant FROM registries WHERE tenant = $1{}", T::FOR_UPDATE);
    transaction.query_optional(&registry, values![id]).await?;
    let row = transaction.query_optional(SELECT, values![id]).await?;
    let missing = || Refusal::new(Code::TenantNotFound, format!("there is no tenant `{id}`"));
    Ok(read(&row.ok_or_else(missing)?)?)
}

/// Counts a change of budget or stops: calls that were decided before are decided again.
pub async fn limits_changed<T: Transaction>(transaction: &mut T, id: &TenantId) -> Result<(), Failure> {
    transaction.execute("UPDATE registries SET limits = limits + 1 WHERE tenant = $1", values![id]).await?;
    Ok(())
}

/// Records a change in the log of the tenant, and in that of the actor if it is another one.
pub async fn record_in_both<T: Transaction>(
    transaction: &mut T,
    by: &Entitled<'_>,
    id: &TenantId,
    payload: &EventPayload,
) -> Result<(), Failure> {
    let own = AuditContext { tenant: id.clone(), ..AuditContext::clone(by) };
    record(transaction, &own, Entry::new(payload.clone())).await?;
    if by.tenant != *id {
        record(transaction, by, Entry::new(payload.clone())).await?;
    }
    Ok(())
}

impl Administration for CreateTenant {
    type Output = ();

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(), Failure> {
        let tenant = &self.tenant;
        let sql = "INSERT INTO tenants (id, name, created_at) VALUES ($1, $2, $3)";
        match transaction.execute(sql, values![&tenant.id, tenant.name.as_ref(), tenant.created_at]).await {
            Err(SqlError::Taken(_)) => {
                return Err(Refusal::new(Code::AlreadyExists, format!("tenant `{}` exists", tenant.id)).into());
            }
            other => other?,
        };
        // Exists from the beginning, so that an admission can lock it while it depends on the absence of policies.
        // While all calls of the gate are stopped, those of a new tenant are as well. Held, so that the gate is not
        // stopped or resumed meanwhile.
        let default = format!("SELECT tenant FROM registries WHERE tenant = $1{}", T::FOR_SHARE);
        transaction.query_optional(&default, values![&TenantId::default_tenant()]).await?;
        let stopped = "UPDATE tenants SET gate_stopped = (SELECT gate_stopped FROM tenants AS first WHERE first.id = $1) \
             WHERE id = $2";
        transaction.execute(stopped, values![&TenantId::default_tenant(), &tenant.id]).await?;
        let registry = "INSERT INTO registries (tenant, revision) VALUES ($1, 0)";
        transaction.execute(registry, values![&tenant.id]).await?;
        principals::insert(transaction, &self.administrator).await?;
        keys::insert(transaction, &tenant.id, &self.key, by.time).await?;
        let created = || Entry::new(EventPayload::TenantCreated(TenantCreated { tenant_id: tenant.id.clone() }));
        let own = AuditContext { tenant: tenant.id.clone(), ..AuditContext::clone(by) };
        let entries = vec![created(), principals::created(&self.administrator), keys::created(&self.key)];
        record_all(transaction, &own, entries).await?;
        if by.tenant != tenant.id {
            record(transaction, by, created()).await?;
        }
        Ok(())
    }
}

pub struct ListTenants {
    pub page: PageRequest,
}

impl Operation for ListTenants {
    type Output = Page<Tenant>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Page<Tenant>, Failure> {
        let after = self.page.after.clone().unwrap_or_default();
        let sql = format!("SELECT {COLUMNS} FROM tenants WHERE id > $1 ORDER BY id LIMIT $2");
        let rows = transaction.query(&sql, values![after, self.page.limit.saturating_add(1)]).await?;
        let tenants = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        Ok(Page::cut(tenants, self.page.limit, |tenant| tenant.id.to_string()))
    }
}

pub struct ReadTenant {
    pub id: TenantId,
}

impl Operation for ReadTenant {
    type Output = Option<Tenant>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<Tenant>, Failure> {
        let row = transaction.query_optional(SELECT, values![&self.id]).await?;
        Ok(row.as_ref().map(read).transpose()?)
    }
}
