//! Tenants.

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{AuditContext, CreateTenant, Mandate, Page, PageRequest, Tenants};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::event::{EventPayload, TenantCreated};
use toolgate_model::principal::{Tenant, TenantId};
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

fn read(row: &Row) -> Result<Tenant, SqlError> {
    Ok(Tenant {
        id: row.parsed(0, TenantId::parse)?,
        name: row.optional_parsed(1, Line::parse)?,
        created_at: row.time(2)?,
    })
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
        let sql = "SELECT id, name, created_at FROM tenants WHERE id > $1 ORDER BY id LIMIT $2";
        let rows = transaction.query(sql, values![after, self.page.limit.saturating_add(1)]).await?;
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
        let sql = "SELECT id, name, created_at FROM tenants WHERE id = $1";
        let row = transaction.query_optional(sql, values![&self.id]).await?;
        Ok(row.as_ref().map(read).transpose()?)
    }
}
