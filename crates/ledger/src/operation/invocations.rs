//! Invocations as rows: writing and reading the records that stay of calls.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value as Json};
use toolgate_gate::ports::ledger::{InvocationFilter, Page, PageRequest};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::constraint::Cost;
use toolgate_model::context::{ContextId, GrantContext};
use toolgate_model::credential::ServiceName;
use toolgate_model::event::{EventPayload, ToolInvoked};
use toolgate_model::hook::{CallTrace, RunId, ToolReturned, Transport};
use toolgate_model::id::{GrantId, InvocationId, SessionId};
use toolgate_model::invocation::{IdempotencyKey, Invocation, InvocationError, InvocationStatus};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::service::ServiceVersion;
use toolgate_model::spending::CostBasis;
use toolgate_model::text::SharedText;
use toolgate_model::time::Timestamp;

use super::Operation;
use super::listing::Conditions;
use super::record::Entry;
use crate::sql::{Failure, Row, SqlError, Value, json_text};
use crate::transaction::{Transaction, values};

/// The columns of an invocation, in the order of [`row`] and [`read`].
macro_rules! columns {
    () => {
        "id, tenant, grant_id, agent, actor, service, tool, version, status, error_code, error_reason, parameters, \
         arguments_hash, fingerprint, http_status, cost, duration_ms, idempotency_key, intent, plan, task, reported, \
         created_at, run, by_agent, transport, session, out_of_order, cost_basis"
    };
}

/// See [`row`].
pub const COLUMNS: &str = columns!();
/// The table of calls that have an outcome, with the columns of [`row`].
pub const INTO: &str = concat!("invocations (", columns!(), ")");
/// The table of calls that are admitted and not settled, with the columns of [`row`], a deadline and accounts.
pub const INTO_IN_FLIGHT: &str = concat!("calls_in_flight (", columns!(), ", deadline, accounts)");

/// The row of an invocation.
pub fn row(invocation: &Invocation) -> Result<Vec<Value<'_>>, SqlError> {
    let error = invocation.error.as_ref();
    // With room for the deadline and the accounts of a call in flight.
    let mut row = Vec::with_capacity(31);
    row.extend([
        Value::from(invocation.id),
        Value::from(&invocation.tenant),
        Value::from(invocation.grant),
        Value::from(&invocation.agent),
        Value::from(&invocation.actor),
        Value::from(invocation.service.as_ref()),
        Value::from(invocation.tool.as_str()),
        Value::from(invocation.version.as_ref()),
        Value::from(invocation.status.as_str()),
        Value::from(error.map(|error| error.code.as_str())),
        Value::from(error.map(|error| error.reason.as_str())),
        json_text(&*invocation.parameters)?,
        Value::from(invocation.arguments_hash.as_str()),
        Value::from(invocation.fingerprint.as_deref()),
        Value::from(invocation.http_status.map(u32::from)),
        Value::from(invocation.cost.map(Cost::micros)),
        Value::from(invocation.duration_ms),
        Value::from(invocation.idempotency_key.as_ref().map(IdempotencyKey::as_str)),
        Value::from(invocation.context.intent_id.as_ref()),
        Value::from(invocation.context.plan_id.as_ref()),
        Value::from(invocation.context.task_id.as_ref()),
        Value::from(invocation.reported),
        Value::from(invocation.created_at),
        Value::from(invocation.trace.run.as_ref().map(RunId::as_str)),
        Value::from(invocation.trace.by_agent),
        Value::from(invocation.trace.transport.as_str()),
        Value::from(invocation.trace.session),
        // Set for a call whose clock had stepped back, so that its id has a later time.
        Value::from((invocation.id.time() != invocation.created_at).then_some(true)),
        Value::from(invocation.cost_basis.map(CostBasis::as_str)),
    ]);
    Ok(row)
}

/// The row of a call in flight, until this time, with the accounts that it was charged to.
pub fn row_in_flight<'a>(
    invocation: &'a Invocation,
    deadline: Timestamp,
    accounts: Option<&'a str>,
) -> Result<Vec<Value<'a>>, SqlError> {
    let mut row = row(invocation)?;
    row.extend([Value::from(deadline), Value::from(accounts)]);
    Ok(row)
}

/// Reads a row of [`COLUMNS`].
pub fn read(row: &Row) -> Result<Invocation, SqlError> {
    let error = match (row.optional_text(9)?, row.optional_text(10)?) {
        (Some(code), reason) => {
            Some(InvocationError { code: code.to_owned(), reason: reason.unwrap_or_default().to_owned() })
        }
        _ => None,
    };
    let whole = |column| row.optional_integer(column).map(|value| value.and_then(|value| u64::try_from(value).ok()));
    Ok(Invocation {
        id: row.parsed(0, InvocationId::parse)?,
        tenant: row.parsed(1, TenantId::parse)?,
        grant: row.optional_parsed(2, GrantId::parse)?,
        agent: row.parsed(3, PrincipalId::parse)?,
        actor: row.parsed(4, PrincipalId::parse)?,
        service: row.optional_parsed(5, ServiceName::parse)?,
        tool: row.text(6)?.into(),
        version: row.optional_parsed(7, ServiceVersion::parse)?,
        status: row.parsed(8, |text| InvocationStatus::parse(text).ok_or(()))?,
        error,
        parameters: row.json::<Map<String, Json>>(11).map(Arc::new)?,
        arguments_hash: row.text(12)?.into(),
        fingerprint: row.optional_text(13)?.map(SharedText::from),
        http_status: whole(14)?.and_then(|status| u16::try_from(status).ok()),
        cost: whole(15)?.and_then(Cost::from_micros),
        cost_basis: row.optional_parsed(28, |text| CostBasis::parse(text).ok_or(()))?,
        duration_ms: whole(16)?,
        idempotency_key: row.optional_parsed(17, IdempotencyKey::parse)?,
        context: GrantContext {
            intent_id: row.optional_parsed(18, ContextId::parse)?,
            plan_id: row.optional_parsed(19, ContextId::parse)?,
            task_id: row.optional_parsed(20, ContextId::parse)?,
        },
        reported: row.integer(21)? != 0,
        created_at: row.time(22)?,
        trace: CallTrace {
            run: row.optional_parsed(23, RunId::parse)?,
            session: row.optional_parsed(26, SessionId::parse)?,
            by_agent: row.integer(24)? != 0,
            transport: row.parsed(25, |text| Transport::parse(text).ok_or(()))?,
            trace_id: None,
        },
    })
}

/// The event of an invocation that was executed, cut off or reported.
pub fn invoked(invocation: &Invocation, returned: Option<ToolReturned>) -> Entry {
    let payload = EventPayload::ToolInvoked(Box::new(ToolInvoked {
        invocation_id: invocation.id,
        grant_id: invocation.grant,
        service: invocation.service.clone(),
        tool: invocation.tool.clone(),
        parameters_summary: Arc::clone(&invocation.parameters),
        arguments_hash: invocation.arguments_hash.clone(),
        status: invocation.status,
        error_code: invocation.error.as_ref().map(|error| error.code.clone()),
        http_status: invocation.http_status,
        duration_ms: invocation.duration_ms,
        cost: invocation.cost.into(),
        cost_basis: invocation.cost_basis,
        request_fingerprint: invocation.fingerprint.clone(),
        reported: invocation.reported,
        returned,
        trace_id: invocation.trace.trace_id.map(|id| id.to_string()),
    }));
    Entry::of_call(payload, invocation)
}

/// Selects from the calls that have an outcome and from those that are running.
fn of_both(columns: &str, condition: &str) -> String {
    format!(
        "SELECT {columns} FROM invocations WHERE {condition} \
         UNION ALL SELECT {columns} FROM calls_in_flight WHERE {condition} AND status = 'running'"
    )
}

pub struct ReadInvocation {
    pub tenant: TenantId,
    pub id: InvocationId,
}

impl Operation for ReadInvocation {
    type Output = Option<Invocation>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<Invocation>, Failure> {
        let condition = "tenant = $1 AND id = $2";
        let row = transaction.query_optional(&of_both(COLUMNS, condition), values![&self.tenant, self.id]).await?;
        Ok(row.as_ref().map(read).transpose()?)
    }
}

/// Lists invocations, newest first.
pub struct ListInvocations {
    pub tenant: TenantId,
    pub filter: InvocationFilter,
    pub page: PageRequest,
}

impl Operation for ListInvocations {
    type Output = Page<Invocation>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Page<Invocation>, Failure> {
        if self.filter.since.is_some() || self.filter.until.is_some() {
            return self.of_period(transaction).await;
        }
        let mut conditions = self.conditions();
        if let Some(after) = &self.page.after {
            conditions.and("id <", after.as_str());
        }
        let select = |condition: &str| of_both(COLUMNS, condition);
        conditions
            .page_of(transaction, select, "id DESC", &self.page, read, |invocation| invocation.id.to_string())
            .await
    }
}

impl ListInvocations {
    /// The conditions of the filter, except for its period.
    fn conditions(&self) -> Conditions<'_> {
        let filter = &self.filter;
        let mut conditions = Conditions::default();
        conditions.and("tenant =", &self.tenant);
        conditions.and_if("agent =", filter.agent.as_ref());
        conditions.and_if("grant_id =", filter.grant);
        conditions.and_if("service =", filter.service.as_ref());
        conditions.and_if("tool =", filter.tool.as_deref());
        conditions.and_if("status =", filter.status.map(InvocationStatus::as_str));
        conditions.and_if("intent =", filter.intent.as_ref());
        conditions.and_if("task =", filter.task.as_ref());
        conditions.and_if("idempotency_key =", filter.idempotency_key.as_ref().map(IdempotencyKey::as_str));
        if let Some(owner) = &filter.vault_owner {
            // Closed by the bracket below: the condition ends with its parameter.
            conditions.and(
                "grant_id IN (SELECT grants.id FROM grants JOIN credentials ON credentials.id = grants.credential \
                 JOIN vaults ON vaults.id = credentials.vault WHERE vaults.owner =",
                owner,
            );
            conditions.close();
        }
        conditions
    }

    /// The calls of a period by their time, then by their id. Most have the time of their id and are found by it; the
    /// few others have an index of their own.
    async fn of_period<T: Transaction>(&self, transaction: &mut T) -> Result<Page<Invocation>, Failure> {
        let (since, until) = (self.filter.since, self.filter.until);
        let (mut in_order, mut others) = (self.conditions(), self.conditions());
        in_order.and_that("out_of_order IS NULL");
        in_order.and_if("id >=", since.map(InvocationId::first_at));
        in_order.and_if("id <", until.map(InvocationId::first_at));
        others.and_that("out_of_order IS NOT NULL");
        others.and_if("created_at >=", since);
        others.and_if("created_at <", until);
        if let Some(after) = &self.page.after {
            let time = self.time_of(transaction, after).await?;
            in_order.and("id <", after.as_str());
            in_order.and("id <", InvocationId::first_at(time.plus(Duration::from_millis(1))));
            others.and_row("(created_at, id) <", [Value::from(time), Value::from(after.as_str())]);
        }
        let mut found = Vec::new();
        for (conditions, order) in [(in_order, "id DESC"), (others, "created_at DESC, id DESC")] {
            let (condition, mut values) = conditions.finish();
            // One more than requested shows whether there is a next page.
            values.push(Value::from(self.page.limit.saturating_add(1)));
            let sql = format!("{} ORDER BY {order} LIMIT ${}", of_both(COLUMNS, &condition), values.len());
            for row in transaction.query(&sql, &values).await? {
                found.push(read(&row)?);
            }
        }
        found.sort_by_key(|invocation| Reverse((invocation.created_at, invocation.id)));
        Ok(Page::cut(found, self.page.limit, |invocation| invocation.id.to_string()))
    }

    /// The time of the call that the previous page ended with.
    async fn time_of<T: Transaction>(&self, transaction: &mut T, id: &str) -> Result<Timestamp, Failure> {
        let sql = of_both("created_at", "tenant = $1 AND id = $2");
        let row = transaction.query_optional(&sql, values![&self.tenant, id]).await?;
        let unknown = || Refusal::new(Code::InvalidCursor, "`cursor` must come from an earlier response");
        Ok(row.ok_or_else(unknown)?.time(0)?)
    }
}
