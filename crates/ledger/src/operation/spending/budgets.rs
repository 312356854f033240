//! Budgets as rows: created from the calls of the day when a budget is set, and listed with what was used.

use std::collections::BTreeMap;

use toolgate_gate::ports::ledger::{BudgetUse, Mandate, Page, PageRequest, SetTenantBudget, beginning_of_day};
use toolgate_model::event::{EventPayload, TenantUpdated};
use toolgate_model::id::CoordinatorId;
use toolgate_model::principal::{PrincipalId, Tenant, TenantId};
use toolgate_model::spending::{Account, Budget, Reservation, Used};
use toolgate_model::time::Timestamp;
use toolgate_model::work::Coordinator;

use super::{Sum, create, rows};
use crate::operation::administration::{Administration, Entitled};
use crate::operation::listing::Conditions;
use crate::operation::work::coordinator_rows;
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

/// What precedes the id of a coordinator in a cursor: no id of an agent contains a slash.
const COORDINATORS: &str = "coordinator/";

/// Coordinators that have not ended and limit calls or costs, by id.
struct WithLimits<'a> {
    tenant: &'a TenantId,
    /// Only those that this agent is.
    agent: Option<&'a PrincipalId>,
    after: &'a str,
    limit: u32,
}

impl WithLimits<'_> {
    async fn read<T: Transaction>(self, transaction: &mut T) -> Result<Page<Coordinator>, Failure> {
        let mut conditions = Conditions::default();
        conditions.and("tenant =", self.tenant);
        conditions.and_if("agent =", self.agent);
        conditions.and_that("ended_at IS NULL");
        conditions.and_that(
            r#"(guardrails LIKE '%"max_tool_invocations":%' OR guardrails LIKE '%"max_tool_cost_usd":%'
                OR guardrails LIKE '%"max_budget_usd":%')"#,
        );
        conditions.and("id >", self.after);
        let page = PageRequest::first(self.limit);
        let from = (coordinator_rows::COLUMNS, "coordinators", "id");
        conditions.page(transaction, from, &page, coordinator_rows::read, |one| one.id.to_string()).await
    }
}

/// Reads what these coordinators have used.
pub struct ReadCoordinatorUse {
    pub tenant: TenantId,
    pub ids: Vec<CoordinatorId>,
}

impl Operation for ReadCoordinatorUse {
    type Output = BTreeMap<CoordinatorId, Used>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        let account = |id: &CoordinatorId| Account::Coordinator(id.to_string());
        let names = self.ids.iter().map(|id| account(id).to_string());
        let known = rows(transaction, &self.tenant, names, "").await?;
        let used = self.ids.iter().map(|id| {
            let row = known.get(&account(id).to_string());
            Ok((*id, row.map(Sum::read).transpose()?.unwrap_or_default().used))
        });
        used.collect()
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
                let page = WithLimits { tenant: &self.tenant, agent: Some(agent), after: "", limit: self.page.limit };
                let page = page.read(transaction).await?;
                reservations.extend(page.items.iter().filter_map(Coordinator::reservation));
            }
            None => {
                if self.page.after.is_none() {
                    let sql = tenants::SELECT;
                    let row = transaction.query_optional(sql, values![&self.tenant]).await?;
                    let tenant = row.as_ref().map(tenants::read).transpose()?;
                    let budget = tenant.and_then(|tenant| tenant.budget);
                    reservations.extend(budget.map(|budget| budget.of_tenant()).into_iter().flatten());
                }
                let mut left = self.page.limit;
                let after = self.page.after.as_deref().and_then(|after| after.strip_prefix(COORDINATORS));
                if after.is_none() {
                    let page = principals::WithBudget { tenant: self.tenant.clone(), page: self.page.clone() };
                    let page = page.run(transaction).await?;
                    next = page.next;
                    left = left.saturating_sub(u32::try_from(page.items.len()).unwrap_or(u32::MAX));
                    for agent in page.items {
                        let budget = agent.budget.map(|budget| budget.of_agent(&agent.id));
                        reservations.extend(budget.into_iter().flatten());
                    }
                }
                match (&next, left) {
                    (Some(_), _) => {}
                    (None, 0) => next = Some(COORDINATORS.to_owned()),
                    (None, limit) => {
                        let after = after.unwrap_or_default();
                        let page = WithLimits { tenant: &self.tenant, agent: None, after, limit };
                        let page = page.read(transaction).await?;
                        next = page.next.map(|next| format!("{COORDINATORS}{next}"));
                        reservations.extend(page.items.iter().filter_map(Coordinator::reservation));
                    }
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
