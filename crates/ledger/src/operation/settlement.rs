//! Settlement: in one transaction the outcome of a call, its events, and its answer for whoever sends it again. Also the
//! record of a call that was refused, and of one that its caller reports.

use std::sync::Arc;

use toolgate_gate::ports::ledger::{Mandate, RecordDenial, ReportInvocation, Settle};
use toolgate_gate::refusal::{Code, Refusal, Stage};
use toolgate_model::constraint::Cost;
use toolgate_model::event::{AuthorizationDecided, EventPayload, ToolDenied};
use toolgate_model::invocation::{IdempotencyKey, Invocation};

use super::administration::{Administration, Entitled};
use super::invocations::{INTO, invoked, row};
use super::rates::Rates;
use super::record::{Entry, EventGroups, event_rows, next_places, record, record_all, recording};
use super::{BatchOperation, Operation, detached};
use crate::sql::{Failure, SqlError, Value};
use crate::transaction::{Change, Transaction, values};

/// A call that is to be settled.
pub struct Settling {
    command: Arc<Settle>,
    /// What is written down of it, and its events.
    outcome: Vec<Value>,
    events: Vec<Vec<Value>>,
}

/// Settles calls.
pub struct SettleAll {
    calls: Vec<Arc<Settle>>,
    outcomes: Vec<Vec<Value>>,
    events: EventGroups,
}

impl BatchOperation for SettleAll {
    type Command = Arc<Settle>;
    type Part = Settling;
    type Reply = ();

    fn ready(command: Arc<Settle>) -> Result<Settling, Failure> {
        let outcome = outcome(&command);
        let invocation = &command.invocation;
        let decided = command.decision.as_ref().map(|decision| Entry::decided(decision, invocation));
        let returned = invoked(invocation, Some(command.returned.clone()));
        let entries = decided.into_iter().chain([returned]).map(|entry| (&command.audit, entry));
        let events = event_rows(entries)?;
        Ok(Settling { command, outcome, events })
    }

    fn of(parts: Vec<Settling>) -> Self {
        let mut all = Self { calls: Vec::new(), outcomes: Vec::new(), events: EventGroups::default() };
        for part in parts {
            all.calls.push(part.command);
            all.outcomes.push(part.outcome);
            all.events.push(part.events);
        }
        all
    }

    fn into_parts(self) -> Vec<Settling> {
        let written = self.outcomes.into_iter().zip(self.events.into_groups());
        let calls = self.calls.into_iter().zip(written);
        calls.map(|(command, (outcome, events))| Settling { command, outcome, events }).collect()
    }
}

impl Operation for SettleAll {
    /// One for each.
    type Output = Vec<()>;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Vec<()>, Failure> {
        // A call that was taken for cut off meanwhile is settled all the same: now it is known. Its agent is named because
        // PostgreSQL plans this while the table is empty, when the index by agent looks as good as the key: without the
        // agent it would go through all calls of the tenant in it, for each call, until it has counted them.
        let sql = "UPDATE invocations SET status = $1, error_code = $2, error_reason = $3, http_status = $4, cost = $5, \
             duration_ms = $6 WHERE tenant = $7 AND agent = $8 AND id = $9 \
             AND (status = 'running' OR status = 'unknown')";
        let places = next_places(transaction, self.events.all()).await?;
        let recording = recording::<T>(self.events.all(), &places);
        let changed = transaction.change_each(&[Change::Each(sql, &self.outcomes), Change::Insert(recording)]).await?;
        if changed.iter().flatten().any(|&changed| changed != 1) {
            return Err(Refusal::new(Code::Internal, "a call was to be settled that was not running").into());
        }
        let keyed =
            self.calls.iter().map(|settle| &**settle).filter(|settle| settle.invocation.idempotency_key.is_some());
        let (free, kept): (Vec<_>, Vec<_>) = keyed.partition(|settle| settle.never_sent);
        let keep = "UPDATE idempotency_keys SET answer = $1 \
             WHERE tenant = $2 AND agent = $3 AND key = $4 AND invocation = $5";
        let with_result = |settle: &&Settle| {
            let answer = Value::from(settle.answer.as_deref());
            [answer].into_iter().chain(claim(settle)).collect()
        };
        let kept: Vec<Vec<Value>> = kept.iter().map(with_result).collect();
        transaction.execute_many(keep, &kept).await?;
        let release = "DELETE FROM idempotency_keys WHERE tenant = $1 AND agent = $2 AND key = $3 AND invocation = $4";
        let free: Vec<Vec<Value>> = free.iter().map(|settle| claim(settle).to_vec()).collect();
        transaction.execute_many(release, &free).await?;
        for settle in &self.calls {
            if let Some(finish) = &settle.detached {
                detached::finish(transaction, &settle.invocation.tenant, settle.invocation.id, finish).await?;
            }
        }
        Ok(vec![(); self.calls.len()])
    }
}

fn outcome(settle: &Settle) -> Vec<Value> {
    let invocation = &settle.invocation;
    let error = invocation.error.as_ref();
    values![
        invocation.status.as_str(),
        error.map(|error| error.code.as_str()),
        error.map(|error| error.reason.as_str()),
        invocation.http_status.map(u32::from),
        invocation.cost.map(Cost::micros),
        invocation.duration_ms,
        &invocation.tenant,
        &invocation.agent,
        invocation.id,
    ]
    .to_vec()
}

fn claim(settle: &Settle) -> [Value; 4] {
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
        let was_admitted = self.revert_admission(transaction).await?;
        if !was_admitted {
            match transaction.insert_many(INTO, &[row(invocation, None)?]).await {
                // Any other refusal never overwrites an admitted call: its record says that it may have been carried out.
                Err(SqlError::Taken(_)) => {
                    let reason = "the call was admitted, and its outcome is not known";
                    return Err(Refusal::new(Code::OutcomeUnknown, reason).with("invocation_id", invocation.id).into());
                }
                inserted => inserted?,
            }
        }
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
                resource: invocation.tool_name(),
                reason: self.error.code.clone(),
            });
            entries.push(Entry::of_call(decided, invocation));
        }
        record_all(transaction, &self.audit, entries).await
    }
}

/// The denial of a call whose admission the ledger did not confirm.
trait RevertAdmission {
    /// Takes the admission back if it was made all the same; answers whether it was. Nobody carries such a call out: the
    /// gate that asked was told that the admission failed.
    fn revert_admission<T: Transaction>(
        &self,
        transaction: &mut T,
    ) -> impl Future<Output = Result<bool, Failure>> + Send;
}

impl RevertAdmission for RecordDenial {
    async fn revert_admission<T: Transaction>(&self, transaction: &mut T) -> Result<bool, Failure> {
        if self.stage != Stage::Admit.as_str() || self.error.code != Code::LedgerUnavailable.as_str() {
            return Ok(false);
        }
        let Invocation { tenant, agent, id, .. } = &self.invocation;
        let sql = "UPDATE invocations SET status = $1, error_code = $2, error_reason = $3 \
             WHERE tenant = $4 AND agent = $5 AND id = $6 AND status = 'running'";
        let (code, reason) = (self.error.code.as_str(), self.error.reason.as_str());
        let parameters = values![self.invocation.status.as_str(), code, reason, tenant, agent, *id];
        if transaction.execute(sql, parameters).await? == 0 {
            return Ok(false);
        }
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
        transaction.insert_many(INTO, &[row(&self.invocation, None)?]).await?;
        record(transaction, by, invoked(&self.invocation, None)).await
    }
}

/// Refuses where a grant of the lineage, or the credential, is not usable any more; keeps them so until the transaction
/// ends.
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
