//! Budgets as rows: created from the calls of the day when a budget is set, and listed with what was used.

use toolgate_gate::ports::ledger::{BudgetUse, Mandate, Page, PageRequest, SetTenantBudget, beginning_of_day};
use toolgate_model::event::{EventPayload, TenantUpdated};
use toolgate_model::principal::{PrincipalId, Tenant, TenantId};
use toolgate_model::spending::{Account, Budget, Reservation, Used};
use toolgate_model::time::Timestamp;

use super::{Sum, create, rows};
use crate::operation::administration::{Administration, Entitled};
use crate::operation::{Operation, principals, tenants};
use crate::sql::{Failure, Value, json_text};
use crate::transaction::{Transaction, values};

/// What a budget belongs to.
pub enum Owner<'a> {
    Agent(&'a PrincipalId),
    Tenant,
}

impl Owner<'_> {
    fn accounts(&self) -> [Account; 2] {
        match self {
            Self::Agent(agent) => [Account::Agent((*agent).clone()), Account::AgentTotal((*agent).clone())],
            Self::Tenant => [Account::Tenant, Account::TenantTotal],
        }
    }
}

/// Creates and deletes the rows of a budget that changes. The transaction holds what it belongs to exclusively, so that
/// no admission comes in between.
pub async fn change<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    owner: Owner<'_>,
    [before, after]: [Option<Budget>; 2],
    now: Timestamp,
) -> Result<(), Failure> {
    let limits = |budget: Option<Budget>| [budget.and_then(|one| one.daily()), budget.and_then(|one| one.total())];
    let changes = owner.accounts().into_iter().zip(limits(before).into_iter().zip(limits(after)));
    for (account, (before, after)) in changes {
        let name = account.to_string();
        let parameters = values![tenant, name.as_str()];
        if before.is_none() != after.is_none() {
            // Without the budget, or before it, nothing kept the row complete. Where policies read it, the next
            // admission creates it again.
            transaction.execute("DELETE FROM spending WHERE tenant = $1 AND account = $2", parameters).await?;
        }
        match after {
            None => {}
            Some(_) if before.is_none() => create(transaction, tenant, &account, now).await?,
            // Another limit is warned of again.
            Some(_) => {
                let sql = "UPDATE spending SET noted = 0 WHERE tenant = $1 AND account = $2";
                transaction.execute(sql, parameters).await?;
            }
        }
    }
    Ok(())
}

impl Administration for SetTenantBudget {
    type Output = Tenant;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<Tenant, Failure> {
        let id = &self.tenant;
        let mut tenant = tenants::hold_limits(transaction, id).await?;
        if tenant.budget == self.budget {
            return Ok(tenant);
        }
        change(transaction, id, Owner::Tenant, [tenant.budget, self.budget], by.time).await?;
        tenant.budget = self.budget;
        let text = self.budget.as_ref().map(json_text).transpose()?;
        let sql = "UPDATE tenants SET budget = $1 WHERE id = $2";
        transaction.execute(sql, &[text.unwrap_or(Value::Null), Value::from(id)]).await?;
        tenants::limits_changed(transaction, id).await?;
        let payload = EventPayload::TenantUpdated(TenantUpdated { budget: self.budget, tenant_id: id.clone() });
        tenants::record_in_both(transaction, by, id, &payload).await?;
        Ok(tenant)
    }
}

/// Lists the accounts of budgets.
pub struct ListBudgets {
    pub tenant: TenantId,
    pub agent: Option<PrincipalId>,
    pub now: Timestamp,
    pub page: PageRequest,
}

impl Operation for ListBudgets {
    type Output = Page<BudgetUse>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Page<BudgetUse>, Failure> {
        let mut reservations: Vec<Reservation> = Vec::new();
        let mut next = None;
        match &self.agent {
            Some(agent) => {
                let found = principals::locked(transaction, &self.tenant, agent, "").await?;
                let budget = found.filter(|agent| agent.removed_at.is_none()).and_then(|agent| agent.budget);
                reservations.extend(budget.map(|budget| budget.of_agent(agent)).into_iter().flatten());
            }
            None => {
                if self.page.after.is_none() {
                    let sql = tenants::SELECT;
                    let row = transaction.query_optional(sql, values![&self.tenant]).await?;
                    let tenant = row.as_ref().map(tenants::read).transpose()?;
                    let budget = tenant.and_then(|tenant| tenant.budget);
                    reservations.extend(budget.map(|budget| budget.of_tenant()).into_iter().flatten());
                }
                let page = principals::WithBudget { tenant: self.tenant.clone(), page: self.page.clone() };
                let page = page.run(transaction).await?;
                next = page.next;
                for agent in page.items {
                    reservations.extend(agent.budget.map(|budget| budget.of_agent(&agent.id)).into_iter().flatten());
                }
            }
        }
        let names = reservations.iter().map(|reservation| reservation.account.to_string());
        let known = rows(transaction, &self.tenant, names, "").await?;
        let today = beginning_of_day(self.now);
        let used = |Reservation { account, limit }: Reservation| {
            let row = known.get(&account.to_string());
            let sum = row.map(Sum::read).transpose()?.unwrap_or_default().on(&account, today);
            let since = match account.is_daily() {
                true => today,
                false => row.map(|row| row.time(5)).transpose()?.unwrap_or(self.now),
            };
            let used: Used = sum.used;
            Ok(BudgetUse { account, limit, used, since })
        };
        let items = reservations.into_iter().map(used).collect::<Result<Vec<_>, Failure>>()?;
        Ok(Page { items, next })
    }
}
