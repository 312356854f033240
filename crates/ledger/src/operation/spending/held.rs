//! The accounts of calls that are admitted: held by the transaction, compared, reserved, stored.

use std::collections::{BTreeMap, BTreeSet};

use toolgate_gate::ports::ledger::{Admit, AuditContext, CountedRun, Counts, beginning_of_day};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::constraint::Cost;
use toolgate_model::event::{BudgetReached, EventPayload};
use toolgate_model::id::InvocationId;
use toolgate_model::invocation::Invocation;
use toolgate_model::principal::TenantId;
use toolgate_model::spending::{Account, Excess, Reservation, Used};
use toolgate_model::time::Timestamp;

use super::{Sum, counted, counts_of, create, line, rows};
use crate::operation::record::{Entry, Recorded};
use crate::sql::{Failure, Value};
use crate::transaction::{Transaction, values};

const KEEP: &str = "UPDATE spending SET day = $1, calls = $2, cost = $3, noted = $4, changed_at = $5 \
     WHERE tenant = $6 AND account = $7";
/// The events in `noted`.
const WARNED: i64 = 1;
const EXHAUSTED: i64 = 2;
const DAY_SECONDS: i64 = 24 * 60 * 60;

/// A call that is charged to accounts.
#[derive(Clone, Copy)]
pub struct Charge<'a> {
    pub audit: &'a AuditContext,
    pub invocation: &'a Invocation,
    pub run: Option<&'a CountedRun>,
    pub reservations: &'a [Reservation],
    /// Whether policies may count it: accounts that they read are then updated if there are any.
    pub judged: bool,
    /// What it was decided on, if rules read counts.
    pub counts: Option<Counts>,
}

impl<'a> From<&'a Admit> for Charge<'a> {
    fn from(admit: &'a Admit) -> Self {
        Self {
            audit: &admit.audit,
            invocation: &admit.invocation,
            run: admit.run.as_ref(),
            reservations: &admit.reservations,
            judged: admit.policies > 0,
            counts: admit.counts,
        }
    }
}

impl Charge<'_> {
    fn tenant(&self) -> &TenantId {
        &self.audit.tenant
    }

    fn today(&self) -> Timestamp {
        beginning_of_day(self.audit.time)
    }

    /// The accounts that policies read.
    fn counted(&self) -> impl Iterator<Item = Account> {
        counted(&self.invocation.agent, self.run)
    }

    /// Every account that it may be charged to.
    fn accounts(&self) -> BTreeSet<Account> {
        let counted = self.counted().filter(|_| self.judged);
        counted.chain(self.reservations.iter().map(|reservation| reservation.account.clone())).collect()
    }

    /// The accounts that must exist.
    fn needed(&self) -> impl Iterator<Item = Account> {
        let counted = self.counted().filter(|_| self.counts.is_some());
        counted.chain(self.reservations.iter().map(|reservation| reservation.account.clone()))
    }
}

type Key = (TenantId, Account);

/// The accounts of a tenant that calls concern, by their stored form.
#[derive(Default)]
struct Wanted {
    all: BTreeMap<String, Account>,
    /// Those that must exist, with the time of the call.
    needed: BTreeMap<String, Timestamp>,
}

/// The accounts of some calls, held by the transaction.
#[derive(Default)]
pub struct HeldSpending {
    sums: BTreeMap<Key, Sum>,
    changed: BTreeMap<Key, Timestamp>,
    /// The accounts of each call that was taken, as they are written into its row.
    lines: BTreeMap<InvocationId, String>,
    events: Vec<Recorded>,
}

impl HeldSpending {
    /// Locks the accounts of these calls. If no budget and no policy concerns them, no statement is run.
    ///
    /// INVARIANT: if a call was decided on counts, the transaction holds its principals exclusively, so that no other
    /// admission comes between its call and its count.
    pub async fn hold<'a, T: Transaction>(
        transaction: &mut T,
        calls: impl Iterator<Item = Charge<'a>>,
    ) -> Result<Self, Failure> {
        let mut wanted: BTreeMap<&TenantId, Wanted> = BTreeMap::new();
        for call in calls.filter(|call| call.judged || !call.reservations.is_empty()) {
            let Wanted { all, needed } = wanted.entry(&call.audit.tenant).or_default();
            all.extend(call.accounts().into_iter().map(|account| (account.to_string(), account)));
            needed.extend(call.needed().map(|account| (account.to_string(), call.audit.time)));
        }
        let mut held = Self::default();
        // In the global lock order: by tenant, then by the stored form.
        for (tenant, Wanted { all, needed }) in wanted {
            let mut found = rows(transaction, tenant, all.keys().cloned(), T::FOR_UPDATE).await?;
            let missing: Vec<(&String, &Timestamp)> =
                needed.iter().filter(|(name, _)| !found.contains_key(*name)).collect();
            if !missing.is_empty() {
                for (name, time) in &missing {
                    if let Some(account) = all.get(*name) {
                        create(transaction, tenant, account, **time).await?;
                    }
                }
                let created = missing.into_iter().map(|(name, _)| name.clone());
                found.extend(rows(transaction, tenant, created, T::FOR_UPDATE).await?);
            }
            for (name, account) in all {
                if let Some(row) = found.get(&name) {
                    held.sums.insert((tenant.clone(), account), Sum::read(row)?);
                }
            }
        }
        Ok(held)
    }

    fn sum(&self, call: &Charge<'_>, account: &Account) -> Option<Sum> {
        let sum = self.sums.get(&(call.tenant().clone(), account.clone()))?;
        Some(sum.on(account, call.today()))
    }

    /// Whether the counts are still those that the call was decided on.
    pub fn agree(&self, call: &Charge<'_>) -> bool {
        let Some(judged) = call.counts else { return true };
        let used: Vec<Used> = call.counted().map(|account| self.sum(call, &account).unwrap_or_default().used).collect();
        judged == counts_of(&used)
    }

    /// Refuses a call for which a budget has no room. The first refusal of a budget in its period is recorded.
    pub fn check(&mut self, call: &Charge<'_>) -> Result<Result<(), Refusal>, Failure> {
        for reservation in call.reservations {
            let sum = self.sum(call, &reservation.account).unwrap_or_default();
            let Some(excess) = reservation.limit.excess(sum.used, call.invocation.cost) else { continue };
            if excess != Excess::UnknownCost {
                self.note(call, reservation, sum, EXHAUSTED)?;
            }
            return Ok(Err(refusal(call, reservation, sum.used, excess)));
        }
        Ok(Ok(()))
    }

    /// Records that a budget is used up, or nearly so, once in its period.
    fn note(&mut self, call: &Charge<'_>, reservation: &Reservation, sum: Sum, what: i64) -> Result<(), Failure> {
        if sum.noted & what != 0 {
            return Ok(());
        }
        let Reservation { account, limit } = reservation;
        let day = account.is_daily().then(|| Timestamp::from_millis(sum.day).ok()).flatten();
        let reached = Box::new(BudgetReached::new(account, limit, sum.used, day));
        let payload = match what {
            WARNED => EventPayload::BudgetWarned(reached),
            _ => EventPayload::BudgetExhausted(reached),
        };
        self.events.push(Recorded::new(call.audit, [Entry::of_call(payload, call.invocation)])?);
        self.put(call, account, Sum { noted: sum.noted | what, ..sum });
        Ok(())
    }

    fn put(&mut self, call: &Charge<'_>, account: &Account, sum: Sum) {
        let key = (call.tenant().clone(), account.clone());
        self.sums.insert(key.clone(), sum);
        self.changed.insert(key, call.audit.time);
    }

    /// Charges a call that is admitted.
    pub fn take(&mut self, call: &Charge<'_>) -> Result<(), Failure> {
        if self.sums.is_empty() {
            return Ok(());
        }
        let cost = call.invocation.cost.map_or(0, Cost::micros);
        let mut taken = String::new();
        for account in call.accounts() {
            let Some(before) = self.sum(call, &account) else { continue };
            let Used { calls, cost: spent } = before.used;
            let used = Used { calls: calls.saturating_add(1), cost: spent.saturating_add(cost) };
            self.put(call, &account, Sum { used, ..before });
            taken.push_str(&line(&account.to_string(), before.day));
        }
        for reservation in call.reservations {
            let Some(sum) = self.sum(call, &reservation.account) else { continue };
            if reservation.limit.is_warning(sum.used) {
                self.note(call, reservation, sum, WARNED)?;
            }
        }
        if !taken.is_empty() {
            self.lines.insert(call.invocation.id, taken);
        }
        Ok(())
    }

    /// Stores the new sums; returns what is left to write.
    pub async fn keep<T: Transaction>(self, transaction: &mut T) -> Result<Taken, Failure> {
        let Self { sums, changed, lines, events } = self;
        let mut rows: Vec<Vec<Value<'_>>> = Vec::with_capacity(changed.len());
        for (key, time) in &changed {
            let Some(Sum { day, used, noted }) = sums.get(key).copied() else { continue };
            let (day, noted) = (Value::Integer(day), Value::Integer(noted));
            rows.push(values![day, used.calls, used.cost, noted, *time, &key.0, key.1.to_string()].to_vec());
        }
        if !rows.is_empty() {
            transaction.execute_many(KEEP, &rows).await?;
        }
        Ok(Taken { lines, events })
    }
}

/// What the charges of an admission leave to be written.
pub struct Taken {
    lines: BTreeMap<InvocationId, String>,
    /// The events of budgets.
    pub events: Vec<Recorded>,
}

impl Taken {
    /// The accounts that a call was charged to, for its row.
    pub fn accounts_of(&self, call: InvocationId) -> Option<&str> {
        if self.lines.is_empty() {
            return None;
        }
        self.lines.get(&call).map(String::as_str)
    }
}

fn refusal(call: &Charge<'_>, reservation: &Reservation, used: Used, excess: Excess) -> Refusal {
    let account = &reservation.account;
    let whose = match account {
        Account::Agent(agent) | Account::AgentTotal(agent) => format!("the budget of `{agent}`"),
        Account::Tenant | Account::TenantTotal => "the budget of the tenant".to_owned(),
        Account::Run { run, .. } => format!("the budget of the run `{}`", run.as_str()),
        Account::Coordinator(id) => format!("the budget of coordinator {id}"),
    };
    let when = if account.is_daily() { " in a day" } else { "" };
    let spent = Cost::from_micros(used.cost);
    let reason = match excess {
        Excess::Calls { max } => format!("{whose} allows {max} calls{when}, and {} were made", used.calls),
        Excess::Cost { max } => {
            let spent = spent.map_or_else(|| "more".to_owned(), |spent| spent.to_string());
            let cost = call.invocation.cost.map_or_else(String::new, |cost| format!("; this call may cost {cost}"));
            format!("{whose} allows {max}{when}, and {spent} are spent or reserved{cost}")
        }
        Excess::UnknownCost => {
            let tool = &call.invocation.tool;
            format!("{whose} limits costs, and the definition of `{}` does not say what a call costs", &**tool)
        }
    };
    let refusal = Refusal::new(Code::BudgetExceeded, reason)
        .with("account", account.kind())
        .with("account_id", account.id())
        .with("period", account.period());
    let refusal = match excess {
        Excess::Calls { max } => refusal
            .with("limit", "calls")
            .with("limit_calls", max)
            .with("used_calls", used.calls)
            .with("remaining_calls", max.saturating_sub(used.calls)),
        Excess::Cost { max } => refusal
            .with("limit", "cost")
            .with("limit_cost_usd", max.dollars())
            .with("used_cost_usd", used.dollars())
            .with("remaining_cost_usd", Cost::from_micros(max.micros().saturating_sub(used.cost)).map(Cost::dollars)),
        // Waiting does not help.
        Excess::UnknownCost => return refusal.with("limit", "cost"),
    };
    if !account.is_daily() {
        return refusal;
    }
    let passed = call.audit.time.as_millis().saturating_sub(call.today().as_millis()).div_euclid(1000);
    refusal.with("retry_after_seconds", DAY_SECONDS.saturating_sub(passed).max(1))
}
