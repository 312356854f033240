//! Admission: one transaction checks the authority of calls again, claims their idempotency keys, reserves their rates,
//! consumes their approvals and records them as running, with the guardians' decisions. Concurrent calls are admitted
//! together; a refused call does not affect the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use toolgate_gate::ports::ledger::{Admission, Admit, StoredResult};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::id::{CredentialId, GrantId, InvocationId, KeyId, TaskId};
use toolgate_model::invocation::{IdempotencyKey, InvocationStatus};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::buckets::Buckets;
use super::consents::Consents;
use super::invocations;
use super::listing::padded;
use super::rates::{Rates, Reserved};
use super::record::{BatchRows, Entry, Recorded};
use super::spending::{Charge, HeldSpending, Taken};
use super::{BatchOperation, Operation, detached, marks, sessions, work};
use crate::sql::{Failure, Row, Value};
use crate::transaction::{Change, INSERT, Query, Rows, Transaction, values};

/// A call to admit.
pub struct Admitting {
    command: Arc<Admit>,
    events: Recorded,
}

pub struct AdmitAll {
    calls: Vec<Arc<Admit>>,
    events: Vec<Recorded>,
}

impl BatchOperation for AdmitAll {
    type Command = Arc<Admit>;
    type Part = Admitting;
    type Reply = Admission;

    fn ready(command: Arc<Admit>) -> Result<Admitting, Failure> {
        let invocation = &command.invocation;
        let called = Entry::called(invocation, command.inputs.clone());
        let decided = command.decision.as_ref().map(|decision| Entry::decided(decision, invocation));
        let events = Recorded::new(&command.audit, [called].into_iter().chain(decided))?;
        Ok(Admitting { command, events })
    }

    fn of(parts: Vec<Admitting>) -> Self {
        let mut all = Self { calls: Vec::new(), events: Vec::new() };
        for part in parts {
            all.calls.push(part.command);
            all.events.push(part.events);
        }
        all
    }

    fn into_parts(self) -> Vec<Admitting> {
        self.calls.into_iter().zip(self.events).map(|(command, events)| Admitting { command, events }).collect()
    }
}

impl Operation for AdmitAll {
    /// One for each, in order.
    type Output = Vec<Admission>;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Vec<Admission>, Failure> {
        let mut outcomes = vec![Admission::Admitted; self.calls.len()];
        self.recheck(transaction, &mut outcomes).await?;
        self.hold_sessions(transaction, &mut outcomes).await?;
        self.hold_detached(transaction, &mut outcomes).await?;
        self.claim_keys(transaction, &mut outcomes).await?;
        let (reserved, taken) = self.reserve(transaction, &mut outcomes).await?;
        let standing = self.standing(&outcomes);
        let rows = standing.iter().map(|(_, admit)| {
            let accounts = taken.accounts_of(admit.invocation.id);
            invocations::row_in_flight(&admit.invocation, admit.deadline, accounts)
        });
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        let events = standing.iter().filter_map(|(number, _)| self.events.get(*number)).chain(&taken.events);
        let batches = BatchRows::of(transaction, events).await?;
        let [counters, rate_places] = reserved.changes();
        let admitted = Change::Insert(Rows::new(invocations::INTO_IN_FLIGHT, &rows));
        let recorded = Change::Insert(batches.insert());
        transaction.change_each(&[counters, rate_places, admitted, recorded]).await?;
        marks::leave(transaction, &standing).await?;
        let detached = standing.iter().filter(|(_, admit)| admit.detached.is_some());
        let detached: Vec<Vec<Value<'_>>> =
            detached.map(|(_, admit)| values![&admit.audit.tenant, admit.invocation.id].to_vec()).collect();
        detached::run(transaction, &detached).await?;
        Ok(outcomes)
    }
}

impl AdmitAll {
    /// The calls that nothing prevents so far.
    fn standing<'a>(&'a self, outcomes: &[Admission]) -> Vec<(usize, &'a Admit)> {
        let calls = self.calls.iter().enumerate().zip(outcomes);
        calls
            .filter(|(_, outcome)| **outcome == Admission::Admitted)
            .map(|((number, call), _)| (number, &**call))
            .collect()
    }

    /// Checks that everything that the calls are based on still holds, and keeps it from changing until this
    /// transaction ends.
    async fn recheck<T: Transaction>(&self, transaction: &mut T, outcomes: &mut [Admission]) -> Result<(), Failure> {
        let unsure: Vec<&Admit> = self
            .calls
            .iter()
            .map(|admit| &**admit)
            .filter(|admit| !transaction.unchanged_since(admit.generation))
            .collect();
        // In the global lock order: principals, keys, credentials, grants from the top of the lineages down,
        // registries. Together, so that they take one round trip.
        let tenants = principals_of(&unsure);
        // A call whose rules read counters must not be overtaken by another call of the same agent or the same run.
        let lock = if unsure.iter().any(|admit| admit.counts.is_some()) { T::FOR_UPDATE } else { T::FOR_SHARE };
        let mut queries: Vec<_> =
            tenants.iter().map(|(tenant, principals)| revisions(tenant, principals, lock)).collect();
        queries.push(live_keys::<T>(&self.calls));
        // After the principals and before the credentials.
        let tasks: BTreeSet<TaskId> = unsure.iter().filter_map(|admit| admit.task).collect();
        if !tasks.is_empty() {
            queries.push(work::share_tasks::<T>(&tasks));
        }
        if !unsure.is_empty() {
            queries.extend(State::queries::<T>(&unsure));
        }
        let mut results = transaction.query_each(&queries).await?.into_iter();
        let mut principals = BTreeMap::new();
        for tenant in tenants.keys() {
            for row in results.next().unwrap_or_default() {
                principals.insert(((*tenant).clone(), row.parsed(0, PrincipalId::parse)?), row.count(1)?);
            }
        }
        let keys = read_keys(&results.next().unwrap_or_default())?;
        let tasks = if tasks.is_empty() { Vec::new() } else { results.next().unwrap_or_default() };
        let tasks = tasks.iter().map(work::read_shared).collect::<Result<_, _>>()?;
        let state = if unsure.is_empty() { None } else { Some(State::read(principals, tasks, results)?) };
        for (admit, outcome) in self.calls.iter().zip(outcomes) {
            let over = |end: &Option<Timestamp>| end.is_some_and(|end| end <= admit.audit.time);
            let changed = match &state {
                Some(state) if !transaction.unchanged_since(admit.generation) => !state.supports(admit),
                _ => false,
            };
            if changed || over(&admit.usable_until) || keys.get(&admit.key).is_none_or(over) {
                *outcome = Admission::Stale;
            }
        }
        Ok(())
    }

    /// A call of a session is admitted only while the session is open, and keeps it open until it has returned.
    async fn hold_sessions<T: Transaction>(
        &self,
        transaction: &mut T,
        outcomes: &mut [Admission],
    ) -> Result<(), Failure> {
        let mut parts: Vec<_> = self
            .standing(outcomes)
            .into_iter()
            .filter_map(|(position, admit)| Some((admit.invocation.trace.session?, position, admit)))
            .collect();
        // In the global lock order.
        parts.sort_by_key(|(session, _, _)| *session);
        for (session, position, admit) in parts {
            let open = sessions::hold(transaction, &admit.audit.tenant, session).await?;
            let stands =
                open.is_some_and(|open| open.principal == admit.invocation.agent && open.expires_at > admit.audit.time);
            if let (false, Some(place)) = (stands, outcomes.get_mut(position)) {
                *place = Admission::Refused(sessions::no_session(session));
            }
        }
        Ok(())
    }

    /// A detached call is admitted only by the process that has claimed it, so that it is made once.
    async fn hold_detached<T: Transaction>(
        &self,
        transaction: &mut T,
        outcomes: &mut [Admission],
    ) -> Result<(), Failure> {
        let mut claimed: Vec<_> = self
            .standing(outcomes)
            .into_iter()
            .filter_map(|(position, admit)| Some((admit.invocation.id, admit.detached?, position, admit)))
            .collect();
        // In the global lock order.
        claimed.sort_by_key(|(id, _, _, _)| *id);
        let mut before = None;
        for (id, process, position, admit) in claimed {
            let held = match before.replace(id) == Some(id) {
                true => Err(detached::taken_over(id)),
                false => detached::hold_claimed(transaction, &admit.audit.tenant, id, process).await?,
            };
            if let (Err(refusal), Some(place)) = (held, outcomes.get_mut(position)) {
                *place = Admission::Refused(refusal);
            }
        }
        Ok(())
    }

    async fn claim_keys<T: Transaction>(&self, transaction: &mut T, outcomes: &mut [Admission]) -> Result<(), Failure> {
        let mut keyed = self.standing(outcomes);
        keyed.retain(|(_, admit)| admit.invocation.idempotency_key.is_some());
        if keyed.is_empty() {
            return Ok(());
        }
        // Claimed in a global order, so that transactions cannot deadlock.
        keyed.sort_by(|(_, left), (_, right)| order_of(left).cmp(&order_of(right)));
        let mut parameters = Vec::with_capacity(keyed.len() * 6);
        for (_, admit) in &keyed {
            parameters.extend_from_slice(&key_of(admit));
            parameters.extend_from_slice(values![
                admit.request_digest.as_deref(),
                admit.invocation.id,
                admit.audit.time,
            ]);
        }
        let insert = crate::transaction::insert_statement(
            INSERT,
            "idempotency_keys (tenant, agent, key, request_digest, invocation, created_at)",
            keyed.len(),
            6,
        );
        let sql = format!("{insert} ON CONFLICT (tenant, agent, key) DO NOTHING RETURNING invocation");
        let claimed = transaction.query(&sql, &parameters).await?;
        let claimed: BTreeSet<InvocationId> =
            claimed.iter().map(|row| row.parsed(0, InvocationId::parse)).collect::<Result<_, _>>()?;
        let lost: Vec<_> = keyed.into_iter().filter(|(_, admit)| !claimed.contains(&admit.invocation.id)).collect();
        for (position, admit) in lost {
            let sql = "SELECT keys.invocation, keys.request_digest, keys.answer, calls.status, calls.grant_id \
                 FROM idempotency_keys AS keys LEFT JOIN invocations AS calls \
                 ON calls.tenant = keys.tenant AND calls.id = keys.invocation \
                 WHERE keys.tenant = $1 AND keys.agent = $2 AND keys.key = $3";
            let row = transaction.query_optional(sql, &key_of(admit)).await?;
            let outcome = match row {
                Some(row) => earlier(&row, admit)?,
                // Its holder released it between the two statements: the caller may try again at once.
                None => Admission::Stale,
            };
            if let Some(place) = outcomes.get_mut(position) {
                *place = outcome;
            }
        }
        Ok(())
    }

    /// Reserves a slot in every rate and every approval that a call is based on: all of them, or none.
    async fn reserve<T: Transaction>(
        &self,
        transaction: &mut T,
        outcomes: &mut [Admission],
    ) -> Result<(Reserved, Taken), Failure> {
        let limited = |(grant, limit): &(GrantId, Option<u64>)| limit.map(|limit| (*grant, limit));
        let standing = self.standing(outcomes);
        let uses = standing.iter().flat_map(|(_, admit)| admit.lineage.iter().filter_map(limited));
        let mut rates = Rates::hold(transaction, uses).await?;
        let mut buckets = Buckets::hold(transaction, standing.iter().map(|(_, admit)| *admit)).await?;
        let mut consents = Consents::hold(transaction, standing.iter().map(|(_, admit)| *admit)).await?;
        let charges = standing.iter().map(|(_, admit)| Charge::from(*admit));
        let mut spending = HeldSpending::hold(transaction, charges).await?;
        for (position, admit) in standing {
            let taken = consents.check(admit).and_then(|()| buckets.check(admit)).map_err(Admission::Refused);
            let charge = Charge::from(admit);
            let agreed =
                taken.and_then(|taken| if spending.agree(&charge) { Ok(taken) } else { Err(Admission::Stale) });
            let agreed = match agreed {
                Ok(taken) => spending.check(&charge)?.map(|()| taken).map_err(Admission::Refused),
                Err(outcome) => Err(outcome),
            };
            let reserved = agreed.and_then(|taken| {
                let reserved = rates.reserve(&admit.lineage, admit.audit.time);
                reserved.map(|()| taken).map_err(Admission::Refused)
            });
            let outcome = match reserved {
                Ok(taken) => {
                    buckets.put(admit, taken);
                    spending.take(&charge)?;
                    consents.take(admit)?;
                    continue;
                }
                Err(outcome) => outcome,
            };
            if admit.invocation.idempotency_key.is_some() {
                // A call that is not admitted was not made: its key is free again.
                let [tenant, agent, key] = key_of(admit);
                let parameters = [tenant, agent, key, Value::from(admit.invocation.id)];
                let sql = "DELETE FROM idempotency_keys \
                     WHERE tenant = $1 AND agent = $2 AND key = $3 AND invocation = $4";
                transaction.execute(sql, &parameters).await?;
            }
            if let Some(place) = outcomes.get_mut(position) {
                *place = outcome;
            }
        }
        buckets.keep(transaction).await?;
        consents.keep(transaction).await?;
        // Last: every other call of the account waits for it.
        let taken = spending.keep(transaction).await?;
        Ok((rates.into_reserved(), taken))
    }
}

/// Queries the keys of these calls that are not revoked, each with its expiry. For every call: the key was presented
/// before the grant was read, so the generation of the grant does not cover it.
fn live_keys<T: Transaction>(calls: &[Arc<Admit>]) -> Query<'static> {
    let keys: BTreeSet<_> = calls.iter().map(|admit| admit.key).collect();
    let (places, ids) = padded(keys.into_iter().map(Value::from).collect());
    let share = T::FOR_SHARE;
    let sql =
        format!("SELECT id, expires_at FROM keys WHERE id IN ({places}) AND revoked_at IS NULL ORDER BY id{share}");
    (sql, ids)
}

fn read_keys(rows: &[Row]) -> Result<BTreeMap<KeyId, Option<Timestamp>>, Failure> {
    rows.iter().map(|row| Ok((row.parsed(0, KeyId::parse)?, row.optional_time(1)?))).collect()
}

/// The state that calls are based on besides the key, locked until the transaction ends.
struct State {
    principals: BTreeMap<(TenantId, PrincipalId), u64>,
    credentials: BTreeMap<CredentialId, u32>,
    grants: BTreeSet<GrantId>,
    /// The running tasks, with the agents that have them.
    tasks: BTreeMap<TaskId, Option<PrincipalId>>,
    /// The revisions of tools, of policies, of budget and stops, and of coordinated work.
    registries: BTreeMap<TenantId, (u64, u64, u64, u64)>,
}

impl State {
    /// Queries the credentials, grants and registries of these calls.
    fn queries<'a, T: Transaction>(calls: &[&'a Admit]) -> [Query<'a>; 3] {
        let credentials: BTreeSet<_> = calls.iter().filter_map(|admit| Some(admit.credential?.0)).collect();
        let grants: BTreeSet<_> =
            calls.iter().flat_map(|admit| admit.lineage.iter().map(|(grant, _)| *grant)).collect();
        let tenants: BTreeSet<_> = calls.iter().map(|admit| &admit.audit.tenant).collect();
        let share = T::FOR_SHARE;
        let (places, ids) = listed(credentials.into_iter().map(Value::from).collect());
        let sql = format!(
            "SELECT id, version FROM credentials WHERE id IN ({places}) AND revoked_at IS NULL ORDER BY id{share}"
        );
        let credentials = (sql, ids);
        let (places, ids) = listed(grants.into_iter().map(Value::from).collect());
        let sql = format!(
            "SELECT id FROM grants WHERE id IN ({places}) AND revoked_at IS NULL AND suspended_at IS NULL \
             ORDER BY level, id{share}"
        );
        let grants = (sql, ids);
        let (places, ids) = padded(tenants.into_iter().map(Value::from).collect());
        let sql = format!(
            "SELECT tenant, revision, policies, limits, work FROM registries WHERE tenant IN ({places}) \
             ORDER BY tenant{share}"
        );
        [credentials, grants, (sql, ids)]
    }

    /// From the results of these queries.
    fn read(
        principals: BTreeMap<(TenantId, PrincipalId), u64>,
        tasks: BTreeMap<TaskId, Option<PrincipalId>>,
        mut results: impl Iterator<Item = Vec<Row>>,
    ) -> Result<Self, Failure> {
        let mut next = || results.next().unwrap_or_default();
        let (credentials, grants, registries) = (next(), next(), next());
        Ok(Self {
            principals,
            tasks,
            credentials: credentials
                .iter()
                .map(|row| Ok((row.parsed(0, CredentialId::parse)?, row.count(1)?)))
                .collect::<Result<_, Failure>>()?,
            grants: grants.iter().map(|row| row.parsed(0, GrantId::parse)).collect::<Result<_, _>>()?,
            registries: registries
                .iter()
                .map(|row| {
                    Ok((row.parsed(0, TenantId::parse)?, (row.count(1)?, row.count(2)?, row.count(3)?, row.count(4)?)))
                })
                .collect::<Result<_, Failure>>()?,
        })
    }

    fn supports(&self, admit: &Admit) -> bool {
        let registered = self.registries.get(&admit.audit.tenant).copied();
        let (registry, policies, limits, work) = registered.unwrap_or((0, 0, 0, 0));
        let revision = |of: &PrincipalId| self.principals.get(&(admit.audit.tenant.clone(), of.clone())).copied();
        revision(&admit.invocation.actor) == Some(admit.actor_revision)
            && revision(&admit.invocation.agent) == admit.agent.as_ref().map(|agent| agent.revision)
            && admit.credential.is_none_or(|(id, version)| self.credentials.get(&id) == Some(&version))
            && admit.lineage.iter().all(|(grant, _)| self.grants.contains(grant))
            && admit.registry.is_none_or(|revision| revision == registry)
            && admit.policies == policies
            && admit.limits == limits
            && admit.work_revision == work
            && admit.task.is_none_or(|task| self.tasks.get(&task) == Some(&Some(admit.invocation.agent.clone())))
    }
}

/// The agents and actors of these calls, by tenant.
fn principals_of<'a>(calls: &[&'a Admit]) -> BTreeMap<&'a TenantId, BTreeSet<&'a PrincipalId>> {
    let mut principals: BTreeMap<&TenantId, BTreeSet<&PrincipalId>> = BTreeMap::new();
    for admit in calls {
        let of_tenant = principals.entry(&admit.audit.tenant).or_default();
        of_tenant.extend([&admit.invocation.agent, &admit.invocation.actor]);
    }
    principals
}

/// Queries the revisions of those that are not removed.
fn revisions<'a>(tenant: &'a TenantId, principals: &BTreeSet<&'a PrincipalId>, lock: &str) -> Query<'a> {
    let (places, mut parameters) = padded(principals.iter().map(|principal| Value::from(*principal)).collect());
    parameters.push(Value::from(tenant));
    let last = parameters.len();
    let sql = format!(
        "SELECT id, revision FROM principals WHERE id IN ({places}) AND tenant = ${last} AND removed_at IS NULL \
         ORDER BY id{lock}"
    );
    (sql, parameters)
}

/// Like [`padded`], for a list that may be empty: then no row matches.
fn listed(values: Vec<Value<'_>>) -> (String, Vec<Value<'_>>) {
    if values.is_empty() { ("NULL".to_owned(), values) } else { padded(values) }
}

fn order_of(admit: &Admit) -> (&TenantId, &PrincipalId, Option<&IdempotencyKey>) {
    (&admit.invocation.tenant, &admit.invocation.agent, admit.invocation.idempotency_key.as_ref())
}

fn key_of(admit: &Admit) -> [Value<'_>; 3] {
    let invocation = &admit.invocation;
    [
        Value::from(&invocation.tenant),
        Value::from(&invocation.agent),
        Value::from(invocation.idempotency_key.as_ref().map(IdempotencyKey::as_str)),
    ]
}

/// The outcome of the call that holds the key.
fn earlier(row: &Row, admit: &Admit) -> Result<Admission, Failure> {
    let invocation = row.parsed(0, InvocationId::parse)?;
    let refuse =
        |code, reason: &str| Ok(Admission::Refused(Refusal::new(code, reason).with("invocation_id", invocation)));
    if row.optional_text(1)? != admit.request_digest.as_deref() {
        let reason = "this idempotency key was used for another request; use a new key for a new request";
        return refuse(Code::IdempotencyConflict, reason);
    }
    let status = row.optional_parsed(3, |text| InvocationStatus::parse(text).ok_or(()))?;
    match (row.optional_text(2)?, status) {
        (Some(result), Some(status)) => Ok(Admission::Replayed(StoredResult {
            invocation,
            grant: row.optional_parsed(4, GrantId::parse)?,
            status,
            result: result.to_owned(),
        })),
        (None, Some(InvocationStatus::Success | InvocationStatus::Error)) => {
            let reason = "the call with this idempotency key was made, and its result is not stored, because the \
                agent has reached its storage limit; see the invocation, or use a new key to make the call again";
            refuse(Code::ResultNotKept, reason)
        }
        (_, Some(InvocationStatus::Unknown)) => {
            let reason = "the gate stopped while this call was in flight, and it is unknown whether the service \
                executed it; check there, and use a new idempotency key to make the call again";
            refuse(Code::OutcomeUnknown, reason)
        }
        _ => {
            let reason = "the call with this idempotency key is still in flight; try again in a moment";
            Ok(Admission::Refused(
                Refusal::new(Code::IdempotencyInProgress, reason)
                    .with("invocation_id", invocation)
                    .with("retry_after_seconds", 1),
            ))
        }
    }
}
