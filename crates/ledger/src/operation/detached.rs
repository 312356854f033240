//! Detached calls as rows: stored, claimed by the process that runs them, parked while an approval is open, ended with their
//! settlement or their refusal.

use toolgate_gate::ports::ledger::{
    AuditContext, ClaimDetached, ClaimedCall, DetachCall, Detached, DetachedCall, DetachedState, FinishDetached,
    ParkCall, SealedVersion, StoredCall,
};
use toolgate_gate::ports::sealer::{CallPart, MasterKeyId, SealBinding, SealedMaterial};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::approval::Approval;
use toolgate_model::event::{CallDetached, EventPayload};
use toolgate_model::id::{InvocationId, KeyId, ProcessId};
use toolgate_model::invocation::IdempotencyKey;
use toolgate_model::principal::{PrincipalId, TenantId};

use super::Operation;
use super::master_keys::share_usable;
use super::processes::ALIVE_FOR;
use super::record::{Entry, record};
use super::sweeping::Readable;
use crate::sql::{Failure, Row, SqlError, Value, json_text};
use crate::transaction::{Transaction, values};

/// The columns of [`read`], in its order.
pub const COLUMNS: &str = "id, tenant, agent, actor, key, tool, idempotency_key, state, asked, cancelled, attempts, \
     created_at, finished_at";
/// The sealed part behind [`COLUMNS`].
const SEALED: &str = "ciphertext, wrapped_key, master_key";
/// Where the sealed part begins behind [`COLUMNS`].
const SEALED_AT: usize = 13;

impl Operation for DetachCall {
    type Output = Detached;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Detached, Failure> {
        // The agent's row is held, so that calls that come at the same moment are counted one after the other.
        let agent = format!("SELECT id FROM principals WHERE tenant = $1 AND id = $2{}", T::FOR_UPDATE);
        transaction.query_optional(&agent, values![&self.call.tenant, &self.call.agent]).await?;
        if let Some(known) = known(transaction, self).await? {
            return Ok(Detached::Known(known));
        }
        if let Some(repeated) = repeated(transaction, self).await? {
            return Ok(Detached::Known(repeated));
        }
        if let Err(full) = require_room(transaction, self).await {
            let Failure::Refused(_) = full else { return Err(full) };
            // Outcomes that were fetched give way.
            let sql = "DELETE FROM detached_calls WHERE tenant = $1 AND agent = $2 AND state = 'finished' \
                 AND claimed_by IS NULL";
            transaction.execute(sql, values![&self.call.tenant, &self.call.agent]).await?;
            require_room(transaction, self).await?;
        }
        share_usable(transaction, &self.sealed.key).await?;
        let call = &self.call;
        let sql = "INSERT INTO detached_calls (tenant, id, agent, actor, key, tool, idempotency_key, request_digest, \
             state, claimed_by, claimed_at, attempts, created_at, ciphertext, wrapped_key, master_key) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 1, $12, $13, $14, $15)";
        let parameters = values![
            &call.tenant,
            call.id,
            &call.agent,
            &call.actor,
            call.key,
            call.tool.as_str(),
            call.idempotency_key.as_ref().map(IdempotencyKey::as_str),
            self.request_digest.as_deref(),
            DetachedState::Ready.as_str(),
            self.process,
            self.audit.time,
            call.created_at,
            self.sealed.ciphertext.as_slice(),
            self.sealed.wrapped_key.as_slice(),
            self.sealed.key.0.as_str(),
        ];
        transaction.execute(sql, parameters).await?;
        let payload = EventPayload::CallDetached(CallDetached {
            invocation_id: call.id,
            tool: call.tool.clone(),
            arguments_hash: self.arguments_hash.clone(),
        });
        record(transaction, &self.audit, entry(payload, call)).await?;
        Ok(Detached::Accepted)
    }
}

fn entry(payload: EventPayload, call: &DetachedCall) -> Entry {
    Entry {
        run: Some(call.id.to_string()),
        tool: Some(call.tool.as_str().into()),
        ..Entry::about(payload, &call.agent)
    }
}

/// The call that was stored under the same idempotency key; refused where it was another request.
async fn known<T: Transaction>(transaction: &mut T, command: &DetachCall) -> Result<Option<InvocationId>, Failure> {
    let Some(key) = &command.call.idempotency_key else { return Ok(None) };
    let sql = "SELECT id, request_digest FROM detached_calls WHERE tenant = $1 AND agent = $2 AND idempotency_key = $3";
    let parameters = values![&command.call.tenant, &command.call.agent, key.as_str()];
    let Some(row) = transaction.query_optional(sql, parameters).await? else { return Ok(None) };
    let id = row.parsed(0, InvocationId::parse)?;
    if row.optional_text(1)? == command.request_digest.as_deref() {
        return Ok(Some(id));
    }
    let reason = format!("the idempotency key `{}` was used for another request; use a new one", key.as_str());
    Err(Refusal::new(Code::IdempotencyConflict, reason).with("invocation_id", id).into())
}

/// The oldest stored call that this one repeats. An agent has no more calls than its limit, so that looking at all of
/// their keys is cheap.
async fn repeated<T: Transaction>(transaction: &mut T, command: &DetachCall) -> Result<Option<InvocationId>, Failure> {
    let Some(beginning) = &command.repeats else { return Ok(None) };
    let call = &command.call;
    let sql = format!(
        "SELECT id FROM detached_calls WHERE tenant = $1 AND agent = $2 AND actor = $3 \
         AND SUBSTR(idempotency_key, 1, {}) = $4 ORDER BY id LIMIT 1",
        beginning.chars().count()
    );
    let parameters = values![&call.tenant, &call.agent, &call.actor, beginning.as_str()];
    let row = transaction.query_optional(&sql, parameters).await?;
    Ok(row.map(|row| row.parsed(0, InvocationId::parse)).transpose()?)
}

async fn require_room<T: Transaction>(transaction: &mut T, command: &DetachCall) -> Result<(), Failure> {
    let sql = "SELECT COUNT(*), CAST(COALESCE(SUM(LENGTH(ciphertext)), 0) AS BIGINT) FROM detached_calls \
         WHERE tenant = $1 AND agent = $2";
    let row = transaction.query_optional(sql, values![&command.call.tenant, &command.call.agent]).await?;
    let (calls, bytes) = match &row {
        Some(row) => (row.count::<u32>(0)?, row.count::<u64>(1)?),
        None => (0, 0),
    };
    let size = u64::try_from(command.sealed.ciphertext.len()).unwrap_or(u64::MAX);
    let limits = command.limits;
    if calls < limits.calls && bytes.saturating_add(size) <= limits.bytes {
        return Ok(());
    }
    let reason = format!(
        "{calls} detached calls of `{}` are stored, with {bytes} bytes; the limit is {} calls and {} bytes: wait for \
        some to end, or delete results that are no longer needed",
        command.call.agent, limits.calls, limits.bytes
    );
    Err(Refusal::new(Code::TooManyDetached, reason)
        .with("limit", limits.calls)
        .with("limit_bytes", limits.bytes)
        .into())
}

/// Whether a call is ready that does not run here.
pub struct HasReady {
    /// The calls that run here.
    pub running: Vec<InvocationId>,
}

impl Operation for HasReady {
    type Output = bool;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<bool, Failure> {
        let enough = u32::try_from(self.running.len()).unwrap_or(u32::MAX).saturating_add(1);
        let sql = "SELECT id FROM detached_calls WHERE state = 'ready' ORDER BY id LIMIT $1";
        let ready = transaction.query(sql, values![enough]).await?;
        Ok(ready.iter().any(|row| row.parsed(0, InvocationId::parse).is_ok_and(|id| !self.running.contains(&id))))
    }
}

/// The maximum number of calls of one agent per claim: its further calls leave room for those of others.
const OF_ONE_AGENT: u32 = 16;

/// Claims ready calls without a live process.
pub struct Claiming {
    pub command: ClaimDetached,
    /// Whether other processes may be alive.
    pub shared: bool,
}

impl Operation for Claiming {
    type Output = Vec<ClaimedCall>;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Vec<ClaimedCall>, Failure> {
        let ClaimDetached { process, now, limit, running } = &self.command;
        let dead = if self.shared {
            "claimed_at <= $2 AND NOT EXISTS (SELECT 1 FROM processes \
             WHERE processes.id = detached_calls.claimed_by AND processes.seen_at > $2)"
        } else {
            "claimed_at <= $2"
        };
        let alive_since = if self.shared { Value::from(now.minus(ALIVE_FOR)) } else { Value::Integer(i64::MAX) };
        let sql = format!(
            "SELECT {COLUMNS}, {SEALED} FROM detached_calls WHERE state = 'ready' \
             AND (claimed_by IS NULL OR claimed_by = $1 OR ({dead})) AND (tenant, id) IN (SELECT tenant, id FROM \
             (SELECT tenant, id, ROW_NUMBER() OVER (PARTITION BY tenant, agent ORDER BY id) AS turn \
             FROM detached_calls WHERE state = 'ready') AS turns WHERE turn <= {OF_ONE_AGENT}) \
             ORDER BY id LIMIT $3{}",
            T::FOR_UPDATE_SKIPPING
        );
        // Calls that already run here are among the rows.
        let limit = limit.saturating_add(u32::try_from(running.len()).unwrap_or(u32::MAX));
        let rows = transaction.query(&sql, &[Value::from(*process), alive_since, Value::from(limit)]).await?;
        let mut claimed = Readable::of(&rows, |row| {
            let call = read(row)?;
            let request = sealed(row, &call, CallPart::Request)?;
            request.map(|request| ClaimedCall { call, request }).ok_or_else(|| SqlError::Corrupt("request".to_owned()))
        })
        .logged();
        claimed.retain(|claimed| !running.contains(&claimed.call.id));
        let updates: Vec<Vec<Value<'_>>> = claimed
            .iter()
            .map(|claimed| values![*process, *now, &claimed.call.tenant, claimed.call.id].to_vec())
            .collect();
        let sql = "UPDATE detached_calls SET claimed_by = $1, claimed_at = $2, attempts = attempts + 1 \
             WHERE tenant = $3 AND id = $4";
        transaction.execute_many(sql, &updates).await?;
        claimed.iter_mut().for_each(|claimed| claimed.call.attempts += 1);
        Ok(claimed)
    }
}

/// Gives up a claim.
pub struct ReleaseDetached {
    pub tenant: TenantId,
    pub id: InvocationId,
    pub process: ProcessId,
}

impl Operation for ReleaseDetached {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(), Failure> {
        let sql = "UPDATE detached_calls SET claimed_by = NULL, attempts = attempts - 1 \
             WHERE tenant = $1 AND id = $2 AND claimed_by = $3 AND state = 'ready'";
        transaction.execute(sql, values![&self.tenant, self.id, self.process]).await?;
        Ok(())
    }
}

/// Marks a call as cancelled.
pub struct CancelDetached {
    pub tenant: TenantId,
    pub id: InvocationId,
}

impl Operation for CancelDetached {
    type Output = Option<DetachedCall>;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<DetachedCall>, Failure> {
        let sql = "UPDATE detached_calls SET cancelled = 1 WHERE tenant = $1 AND id = $2 \
             AND (state = 'ready' OR state = 'waiting')";
        transaction.execute(sql, values![&self.tenant, self.id]).await?;
        let sql = "UPDATE detached_calls SET state = 'ready', claimed_by = NULL WHERE tenant = $1 AND id = $2 \
             AND state = 'waiting'";
        transaction.execute(sql, values![&self.tenant, self.id]).await?;
        let sql = format!("SELECT {COLUMNS} FROM detached_calls WHERE tenant = $1 AND id = $2");
        let row = transaction.query_optional(&sql, values![&self.tenant, self.id]).await?;
        Ok(row.as_ref().map(read).transpose()?)
    }
}

/// Stores an outcome without a settlement.
pub struct Finishing {
    pub tenant: TenantId,
    pub id: InvocationId,
    pub command: FinishDetached,
}

impl Operation for Finishing {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(), Failure> {
        finish(transaction, &self.tenant, self.id, &self.command).await.map(drop)
    }
}

pub struct ForgetOutcome {
    pub tenant: TenantId,
    pub id: InvocationId,
}

impl Operation for ForgetOutcome {
    type Output = bool;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<bool, Failure> {
        let sql = "DELETE FROM detached_calls WHERE tenant = $1 AND id = $2 AND state = 'finished'";
        Ok(transaction.execute(sql, values![&self.tenant, self.id]).await? == 1)
    }
}

/// Notes that the caller has an outcome. Like every ended call, it was claimed until then by the process that ended it.
pub struct NoteFetched {
    pub tenant: TenantId,
    pub id: InvocationId,
}

impl Operation for NoteFetched {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(), Failure> {
        let sql = "UPDATE detached_calls SET claimed_by = NULL WHERE tenant = $1 AND id = $2 AND state = 'finished'";
        transaction.execute(sql, values![&self.tenant, self.id]).await?;
        Ok(())
    }
}

/// Locks a call that this process has claimed; refused if it was cancelled, or claimed by another process.
pub async fn hold_claimed<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    id: InvocationId,
    process: ProcessId,
) -> Result<Result<(), Refusal>, Failure> {
    let sql = format!(
        "SELECT id, cancelled FROM detached_calls WHERE tenant = $1 AND id = $2 AND claimed_by = $3 \
         AND state = 'ready'{}",
        T::FOR_UPDATE
    );
    let row = transaction.query_optional(&sql, values![tenant, id, process]).await?;
    let Some(row) = row else { return Ok(Err(taken_over(id))) };
    if row.integer(1)? == 0 {
        return Ok(Ok(()));
    }
    let reason = "the caller cancelled the call before it was admitted; nothing was run";
    Ok(Err(Refusal::new(Code::CallCancelled, reason)))
}

/// The refusal for a call that another process, or another run of it, has.
pub fn taken_over(id: InvocationId) -> Refusal {
    let reason = format!("another process has taken the detached call {id} over");
    Refusal::new(Code::VersionConflict, reason).with("invocation_id", id)
}

/// Parks a call until the approval that this transaction requests has ended.
pub async fn park<T: Transaction>(transaction: &mut T, approval: &Approval, park: &ParkCall) -> Result<(), Failure> {
    let (tenant, id) = (&approval.tenant, approval.invocation);
    hold_claimed(transaction, tenant, id, park.process).await??;
    let mut asked = park.asked.clone();
    asked.push(toolgate_gate::ports::ledger::AskedApproval { approval: approval.id, first: park.first });
    let sql = "UPDATE detached_calls SET state = 'waiting', claimed_by = NULL, attempts = 0, asked = $1 \
         WHERE tenant = $2 AND id = $3";
    transaction.execute(sql, &[json_text(&asked)?, Value::from(tenant), Value::from(id)]).await?;
    Ok(())
}

/// Makes the calls of these ended approvals ready.
pub async fn wake<'a, T: Transaction>(
    transaction: &mut T,
    ended: impl Iterator<Item = &'a Approval> + Send,
) -> Result<(), Failure> {
    let detached = ended.filter(|approval| approval.detached);
    let rows: Vec<Vec<Value<'_>>> =
        detached.map(|approval| values![&approval.tenant, approval.invocation].to_vec()).collect();
    let sql = "UPDATE detached_calls SET state = 'ready', claimed_by = NULL WHERE tenant = $1 AND id = $2 \
         AND state = 'waiting'";
    transaction.execute_many(sql, &rows).await?;
    Ok(())
}

/// Ends a call that this process has claimed; false where another one has taken it over.
pub async fn finish<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    id: InvocationId,
    command: &FinishDetached,
) -> Result<bool, Failure> {
    let mut sealed = command.sealed.as_ref();
    if let Some(kept) = sealed {
        match share_usable(transaction, &kept.key).await {
            Ok(()) => {}
            // The outcome matters more than its storage: the caller learns that the result could not be stored.
            Err(Failure::Refused(_)) => sealed = None,
            Err(failure) => return Err(failure),
        }
    }
    let sql = "UPDATE detached_calls SET state = 'finished', finished_at = $1, ciphertext = $2, wrapped_key = $3, \
         master_key = $4 WHERE tenant = $5 AND id = $6 AND claimed_by = $7 AND state <> 'waiting'";
    let parameters = values![
        command.time,
        sealed.map(|sealed| sealed.ciphertext.as_slice()),
        sealed.map(|sealed| sealed.wrapped_key.as_slice()),
        sealed.map(|sealed| sealed.key.0.as_str()),
        tenant,
        id,
        command.process,
    ];
    Ok(transaction.execute(sql, parameters).await? == 1)
}

/// The same for a call that was refused: where another process has taken it over, nothing is recorded here.
pub async fn finish_refused<T: Transaction>(
    transaction: &mut T,
    audit: &AuditContext,
    id: InvocationId,
    command: &FinishDetached,
) -> Result<(), Failure> {
    if finish(transaction, &audit.tenant, id, command).await? { Ok(()) } else { Err(taken_over(id).into()) }
}

/// Notes that these calls are admitted.
pub async fn run<T: Transaction>(transaction: &mut T, admitted: &[Vec<Value<'_>>]) -> Result<(), Failure> {
    transaction
        .execute_many("UPDATE detached_calls SET state = 'running' WHERE tenant = $1 AND id = $2", admitted)
        .await?;
    Ok(())
}

/// Reads a row of [`COLUMNS`].
pub fn read(row: &Row) -> Result<DetachedCall, SqlError> {
    Ok(DetachedCall {
        id: row.parsed(0, InvocationId::parse)?,
        tenant: row.parsed(1, TenantId::parse)?,
        agent: row.parsed(2, PrincipalId::parse)?,
        actor: row.parsed(3, PrincipalId::parse)?,
        key: row.parsed(4, KeyId::parse)?,
        tool: row.text(5)?.to_owned(),
        idempotency_key: row.optional_parsed(6, IdempotencyKey::parse)?,
        state: row.parsed(7, |text| DetachedState::parse(text).ok_or(()))?,
        asked: row.json(8)?,
        cancelled: row.integer(9)? != 0,
        attempts: row.count(10)?,
        created_at: row.time(11)?,
        finished_at: row.optional_time(12)?,
    })
}

/// The sealed part behind the columns of a call.
fn sealed(row: &Row, call: &DetachedCall, part: CallPart) -> Result<Option<SealedVersion>, SqlError> {
    let Some(key) = row.optional_text(SEALED_AT + 2)? else { return Ok(None) };
    Ok(Some(SealedVersion {
        binding: SealBinding::of_call(&call.tenant, call.id, part),
        sealed: SealedMaterial {
            ciphertext: row.blob(SEALED_AT)?.to_vec(),
            wrapped_key: row.blob(SEALED_AT + 1)?.to_vec(),
            key: MasterKeyId(key.to_owned()),
        },
    }))
}

/// Reads a sealed part of a call.
pub fn read_sealed(row: &Row) -> Result<Option<SealedVersion>, SqlError> {
    let call = read(row)?;
    let part = if call.state == DetachedState::Finished { CallPart::Outcome } else { CallPart::Request };
    sealed(row, &call, part)
}

/// The columns of [`read_sealed`].
pub fn sealed_columns() -> String {
    format!("{COLUMNS}, {SEALED}")
}

pub struct ReadDetached {
    pub tenant: TenantId,
    pub id: InvocationId,
}

impl Operation for ReadDetached {
    type Output = Option<StoredCall>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<StoredCall>, Failure> {
        let sql = format!("SELECT {COLUMNS}, {SEALED} FROM detached_calls WHERE tenant = $1 AND id = $2");
        let Some(row) = transaction.query_optional(&sql, values![&self.tenant, self.id]).await? else {
            return Ok(None);
        };
        let call = read(&row)?;
        let outcome = match call.state {
            DetachedState::Finished => sealed(&row, &call, CallPart::Outcome)?,
            _ => None,
        };
        Ok(Some(StoredCall { call, outcome }))
    }
}
