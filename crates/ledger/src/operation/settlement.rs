//! Settlement: one transaction with the outcome of a call, its events, and its result for repetitions. Also the record
//! of a refused call, and of one that its caller reports.

use std::sync::Arc;

use toolgate_gate::ports::ledger::{CountedRun, Mandate, RecordDenial, ReportInvocation, Settle};
use toolgate_gate::refusal::{Code, Refusal, Stage};
use toolgate_model::event::{AuthorizationDecided, EventPayload, ToolDenied};
use toolgate_model::invocation::{IdempotencyKey, Invocation};
use toolgate_model::principal::Principal;

use super::administration::{Administration, Entitled};
use super::held_grants::ReadHeldGrant;
use super::invocations::{INTO, invoked, row};
use super::rates::Rates;
use super::record::{BatchRows, Entry, Recorded, record, record_all};
use super::spending::{Adjustments, Charge, HeldSpending, Taken};
use super::{BatchOperation, Operation, detached, in_flight, principals, tenants};
use crate::sql::{Failure, SqlError, Value};
use crate::transaction::{Change, Transaction, values};

/// A call to settle.
pub struct Settling {
    command: Arc<Settle>,
    events: Recorded,
}

pub struct SettleAll {
    calls: Vec<Arc<Settle>>,
    events: Vec<Recorded>,
}

impl BatchOperation for SettleAll {
    type Command = Arc<Settle>;
    type Part = Settling;
    type Reply = ();

    fn ready(command: Arc<Settle>) -> Result<Settling, Failure> {
        let invocation = &command.invocation;
        let decided = command.decision.as_ref().map(|decision| Entry::decided(decision, invocation));
        let returned = invoked(invocation, Some(command.returned.clone()));
        let events = Recorded::new(&command.audit, decided.into_iter().chain([returned]))?;
        Ok(Settling { command, events })
    }

    fn of(parts: Vec<Settling>) -> Self {
        let mut all = Self { calls: Vec::new(), events: Vec::new() };
        for part in parts {
            all.calls.push(part.command);
            all.events.push(part.events);
        }
        all
    }

    fn into_parts(self) -> Vec<Settling> {
        self.calls.into_iter().zip(self.events).map(|(command, events)| Settling { command, events }).collect()
    }
}

impl Operation for SettleAll {
    /// One for each call.
    type Output = Vec<()>;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Vec<()>, Failure> {
        let batches = BatchRows::of(transaction, self.events.iter()).await?;
        let mut adjustments = self.differences(transaction).await?;
        let outcomes: Vec<_> = self.calls.iter().map(|settle| in_flight::outcome(&settle.invocation)).collect();
        let settle = in_flight::settle::<T>();
        let [settled, removed] = in_flight::settling(&outcomes, &settle);
        let changed = transaction.change_each(&[settled, removed, Change::Insert(batches.insert())]).await?;
        let settled: u64 = changed.first().into_iter().flatten().sum();
        if !usize::try_from(settled).is_ok_and(|settled| settled == outcomes.len()) {
            self.charge_again(transaction, &mut adjustments).await?;
            in_flight::settle_unknown(transaction, &outcomes, settled).await?;
        }
        let keyed =
            self.calls.iter().map(|settle| &**settle).filter(|settle| settle.invocation.idempotency_key.is_some());
        let (free, kept): (Vec<_>, Vec<_>) = keyed.partition(|settle| settle.never_sent);
        let keep = "UPDATE idempotency_keys SET answer = $1 \
             WHERE tenant = $2 AND agent = $3 AND key = $4 AND invocation = $5";
        let kept = kept.into_iter().map(|settle| {
            let result = Value::from(settle.stored_result.as_deref());
            [result].into_iter().chain(claim(settle)).collect()
        });
        let kept: Vec<Vec<Value<'_>>> = kept.collect();
        transaction.execute_many(keep, &kept).await?;
        let release = "DELETE FROM idempotency_keys WHERE tenant = $1 AND agent = $2 AND key = $3 AND invocation = $4";
        let free: Vec<Vec<Value<'_>>> = free.iter().map(|settle| claim(settle).to_vec()).collect();
        transaction.execute_many(release, &free).await?;
        for settle in &self.calls {
            if let Some(finish) = &settle.detached {
                detached::finish(transaction, &settle.invocation.tenant, settle.invocation.id, finish).await?;
            }
        }
        adjustments.store(transaction).await?;
        Ok(vec![(); self.calls.len()])
    }
}

impl SettleAll {
    /// What calls have cost more or less than was reserved. Usually none has, and no statement is run.
    async fn differences<T: Transaction>(&self, transaction: &mut T) -> Result<Adjustments, Failure> {
        let mut adjustments = Adjustments::default();
        let differing: Vec<&Settle> = self.calls.iter().map(|call| &**call).filter(|call| call.differs()).collect();
        if differing.is_empty() {
            return Ok(adjustments);
        }
        let accounts = in_flight::accounts(transaction, differing.iter().map(|settle| &settle.invocation)).await?;
        for settle in differing {
            let Some(accounts) = accounts.get(&settle.invocation.id) else { continue };
            let tenant = &settle.invocation.tenant;
            match settle.never_sent {
                true => in_flight::release(&mut adjustments, tenant, accounts, settle.reserved),
                false => {
                    let cost = in_flight::millionths(settle.invocation.cost);
                    let change = cost.saturating_sub(in_flight::millionths(settle.reserved));
                    adjustments.add(tenant, accounts, 0, change);
                }
            }
        }
        Ok(adjustments)
    }

    /// Charges calls again that were closed as cut off, which took back what they had reserved.
    async fn charge_again<T: Transaction>(
        &self,
        transaction: &mut T,
        adjustments: &mut Adjustments,
    ) -> Result<(), Failure> {
        for settle in self.calls.iter().filter(|settle| !settle.never_sent && !settle.accounts.is_empty()) {
            let (tenant, id) = (&settle.invocation.tenant, settle.invocation.id);
            if in_flight::is_closed(transaction, tenant, id).await? {
                for (account, day) in &settle.accounts {
                    let cost = in_flight::millionths(settle.invocation.cost);
                    adjustments.add_to(tenant, account.to_string(), *day, 1, cost);
                }
            }
        }
        Ok(())
    }
}

fn claim(settle: &Settle) -> [Value<'_>; 4] {
    let invocation = &settle.invocation;
    [
        Value::from(&invocation.tenant),
        Value::from(&invocation.agent),
        Value::from(invocation.idempotency_key.as_ref().map(IdempotencyKey::as_str)),
        Value::from(invocation.id),
    ]
}

impl Operation for RecordDenial {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(), Failure> {
        let invocation = &self.invocation;
        if let Some(finish) = &self.detached {
            detached::finish_refused(transaction, &self.audit, invocation.id, finish).await?;
        }
        let was_admitted = self.revert_admission(transaction).await.map_err(|error| self.never_overwrites(error))?;
        if in_flight::contains(transaction, invocation.id).await? {
            return Err(self.outcome_unknown());
        }
        let inserted = transaction.insert_many(INTO, &[row(invocation)?]).await;
        inserted.map_err(|error| self.never_overwrites(error.into()))?;
        let payload = EventPayload::ToolDenied(Box::new(ToolDenied {
            invocation_id: invocation.id,
            grant_id: invocation.grant,
            service: invocation.service.clone(),
            tool: invocation.tool.clone(),
            arguments_hash: invocation.arguments_hash.clone(),
            stage: self.stage.into(),
            error_code: self.error.code.clone(),
            reason: self.error.reason.clone(),
            returned: Some(self.returned.clone()),
            trace_id: invocation.trace.trace_id.map(|id| id.to_string()),
        }));
        let mut entries = Vec::new();
        if !was_admitted {
            // The admission has written both.
            entries.push(Entry::called(invocation, None));
            entries.extend(self.decision.as_ref().map(|decision| Entry::decided(decision, invocation)));
        }
        entries.push(Entry::of_call(payload, invocation));
        if self.about_authority {
            let decided = EventPayload::AuthorizationDecided(AuthorizationDecided {
                principal: invocation.agent.clone(),
                action: "tools:invoke".into(),
                allowed: false,
                resource: invocation.tool_name().to_string(),
                reason: self.error.code.clone(),
            });
            entries.push(Entry::of_call(decided, invocation));
        }
        record_all(transaction, &self.audit, entries).await
    }
}

/// The denial of a call whose admission the ledger did not confirm.
trait RevertAdmission {
    /// The refusal of a denial whose call was admitted.
    fn outcome_unknown(&self) -> Failure;

    /// A denial never overwrites an admitted call: its record says that it may have been executed.
    fn never_overwrites(&self, error: Failure) -> Failure;

    /// Withdraws the admission if it was made after all; returns whether it was. Nothing executes such a call: its gate
    /// has seen the admission fail.
    fn revert_admission<T: Transaction>(
        &self,
        transaction: &mut T,
    ) -> impl Future<Output = Result<bool, Failure>> + Send;
}

impl RevertAdmission for RecordDenial {
    fn outcome_unknown(&self) -> Failure {
        let reason = "the call was admitted, and its outcome is unknown";
        Refusal::new(Code::OutcomeUnknown, reason).with("invocation_id", self.invocation.id).into()
    }

    fn never_overwrites(&self, error: Failure) -> Failure {
        if matches!(error, Failure::Sql(SqlError::Taken(_))) { self.outcome_unknown() } else { error }
    }

    async fn revert_admission<T: Transaction>(&self, transaction: &mut T) -> Result<bool, Failure> {
        if self.stage != Stage::Admit.as_str() || self.error.code != Code::LedgerUnavailable.as_str() {
            return Ok(false);
        }
        if !in_flight::withdraw(transaction, &self.invocation, self.audit.time).await? {
            return Ok(false);
        }
        let Invocation { tenant, agent, id, .. } = &self.invocation;
        let release = "DELETE FROM idempotency_keys WHERE tenant = $1 AND agent = $2 AND invocation = $3";
        transaction.execute(release, values![tenant, agent, *id]).await?;
        Ok(true)
    }
}

impl Administration for ReportInvocation {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(), Failure> {
        // In the global lock order: principals first.
        let agent = principals::locked(transaction, &by.tenant, &self.invocation.agent, T::FOR_SHARE).await?;
        require_usable(transaction, self).await?;
        let limited = self.lineage.iter().filter_map(|(grant, limit)| limit.map(|limit| (*grant, limit)));
        let mut rates = Rates::hold(transaction, limited).await?;
        rates.reserve(&self.lineage, by.time)?;
        transaction.change_each(&rates.into_reserved().changes()).await?;
        let taken = charge_reported(transaction, by, &self.invocation, agent.as_ref()).await?;
        transaction.insert_many(INTO, &[row(&self.invocation)?]).await?;
        let events = BatchRows::of(transaction, taken.events.iter()).await?;
        transaction.insert(events.insert()).await?;
        record(transaction, by, invoked(&self.invocation, None)).await
    }
}

/// Charges a reported call to its accounts: it counts like a call that the gate made.
async fn charge_reported<T: Transaction>(
    transaction: &mut T,
    by: &Entitled<'_>,
    invocation: &Invocation,
    agent: Option<&Principal>,
) -> Result<Taken, Failure> {
    let mut reservations = tenants::limits(transaction, &by.tenant, agent).await?.reservations;
    if let Some(id) = invocation.grant {
        let read = ReadHeldGrant { tenant: by.tenant.clone(), id, generation: 0 };
        let held_grant = read.run(transaction).await?;
        let coordinators = held_grant.iter().flat_map(|held_grant| &held_grant.coordinators);
        reservations.extend(coordinators.filter_map(|coordinator| coordinator.reservation()));
    }
    let run = CountedRun::of(&invocation.actor, &invocation.agent, invocation.trace.run.as_ref());
    let charge =
        Charge { audit: by, invocation, run: run.as_ref(), reservations: &reservations, judged: true, counts: None };
    let mut spending = HeldSpending::hold(transaction, std::iter::once(charge)).await?;
    spending.check(&charge)??;
    spending.take(&charge)?;
    spending.keep(transaction).await
}

/// Refuses if a grant of the lineage, or the credential, is no longer usable; locks them until the transaction ends.
async fn require_usable<T: Transaction>(transaction: &mut T, report: &ReportInvocation) -> Result<(), Failure> {
    let share = T::FOR_SHARE;
    let credential = format!("SELECT id FROM credentials WHERE id = $1 AND revoked_at IS NULL{share}");
    let mut usable = transaction.query_optional(&credential, values![report.credential]).await?.is_some();
    let grant = format!("SELECT id FROM grants WHERE id = $1 AND revoked_at IS NULL AND suspended_at IS NULL{share}");
    for (id, _) in &report.lineage {
        usable &= transaction.query_optional(&grant, values![*id]).await?.is_some();
    }
    if usable {
        return Ok(());
    }
    Err(Refusal::new(Code::VersionConflict, "the grant has changed meanwhile; try again").into())
}
