//! Changes to accounts after the admission: calls that cost something else than was reserved, and calls that are taken back.

use std::collections::BTreeMap;

use toolgate_model::principal::TenantId;

use super::lines;
use crate::sql::{Failure, Value};
use crate::transaction::{Transaction, values};

/// Changes to accounts, added up.
#[derive(Default)]
pub struct Adjustments(BTreeMap<(TenantId, String, i64), (i64, i64)>);

impl Adjustments {
    /// Changes the accounts that were written into the row of a call in flight.
    pub fn add(&mut self, tenant: &TenantId, accounts: &str, calls: i64, cost: i64) {
        for (day, account) in lines(accounts) {
            self.add_to(tenant, account.to_owned(), day, calls, cost);
        }
    }

    /// Changes one account, in its stored form. If its day has ended, the account stays as it is.
    pub fn add_to(&mut self, tenant: &TenantId, account: String, day: i64, calls: i64, cost: i64) {
        let sum = self.0.entry((tenant.clone(), account, day)).or_default();
        *sum = (sum.0.saturating_add(calls), sum.1.saturating_add(cost));
    }

    /// Stores the changes. In a global order, so that transactions cannot deadlock; last in a transaction, because every
    /// admission to the same account waits for it.
    pub async fn store<T: Transaction>(self, transaction: &mut T) -> Result<(), Failure> {
        let rows: Vec<Vec<Value<'_>>> = self
            .0
            .iter()
            .filter(|(_, change)| **change != (0, 0))
            .map(|((tenant, account, day), (calls, cost))| {
                let (calls, cost) = (Value::Integer(*calls), Value::Integer(*cost));
                values![calls, cost, tenant, account.as_str(), Value::Integer(*day)].to_vec()
            })
            .collect();
        if rows.is_empty() {
            return Ok(());
        }
        let sql = "UPDATE spending SET calls = CASE WHEN calls + $1 < 0 THEN 0 ELSE calls + $1 END, \
             cost = CASE WHEN cost + $2 < 0 THEN 0 ELSE cost + $2 END WHERE tenant = $3 AND account = $4 AND day = $5";
        transaction.execute_many(sql, &rows).await?;
        Ok(())
    }
}
