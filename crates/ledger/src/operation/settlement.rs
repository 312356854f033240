//! Settlement: one transaction with the outcome of a call, its events, and its result for repetitions. Also the record
//! of a refused call, and of one that its caller reports.

use std::sync::Arc;

use toolgate_gate::ports::ledger::{Mandate, RecordDenial, ReportInvocation, Settle};
use toolgate_gate::refusal::{Code, Refusal, Stage};
use toolgate_model::event::{AuthorizationDecided, EventPayload, ToolDenied};
use toolgate_model::invocation::{IdempotencyKey, Invocation};

use super::administration::{Administration, Entitled};
use super::invocations::{INTO, invoked, row};
use super::rates::Rates;
use super::record::{BatchRows, Entry, Recorded, record, record_all};
use super::{BatchOperation, Operation, detached, in_flight};
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
        let outcomes: Vec<_> = self.calls.iter().map(|settle| in_flight::outcome(&settle.invocation)).collect();
        let settle = in_flight::settle::<T>();
        let [settled, removed] = in_flight::settling(&outcomes, &settle);
        let changed = transaction.change_each(&[settled, removed, Change::Insert(batches.insert())]).await?;
        let settled: u64 = changed.first().into_iter().flatten().sum();
        if !usize::try_from(settled).is_ok_and(|settled| settled == outcomes.len()) {
            in_flight::settle_unknown(transaction, &outcomes, settled).await?;
        }
        let keyed =
            self.calls.iter().map(|settle| &**settle).filter(|settle| settle.invocation.idempotency_key.is_some());
        let (free, kept): (Vec<_>, Vec<_>) = keyed.partition(|settle| settle.never_sent);
        let keep = "UPDATE idempotency_keys SET answer = $1 \
             WHERE tenant = $2 AND agent = $3 AND key = $4 AND invocation = $5";
        let kept = kept.into_iter().map(|settle| {
            let answer = Value::from(settle.answer.as_deref());
            [answer].into_iter().chain(claim(settle)).collect()
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
        Ok(vec![(); self.calls.len()])
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
    /// was told that the admission failed.
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
        require_usable(transaction, self).await?;
        let limited = self.lineage.iter().filter_map(|(grant, limit)| limit.map(|limit| (*grant, limit)));
        let mut rates = Rates::hold(transaction, limited).await?;
        rates.reserve(&self.lineage, by.time)?;
        transaction.change_each(&rates.into_reserved().changes()).await?;
        transaction.insert_many(INTO, &[row(&self.invocation)?]).await?;
        record(transaction, by, invoked(&self.invocation, None)).await
    }
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
